//! A scan of all live pages. It requests one page of lines after the other from tier 1.

use super::{Line, SCAN_LINES_MAX, ScanPosition, Tier1Api, Tier1Error};

/// Iterates over the lines of a whole scan and reads them page by page. The iterator ends after the first
/// error.
pub struct PageScan<'a> {
    tier1: &'a dyn Tier1Api,
    lines: std::vec::IntoIter<Line>,
    /// Where the next page begins; `None` after the last page.
    next: Option<Option<ScanPosition>>,
}

impl<'a> PageScan<'a> {
    /// Creates a scan from the beginning. To follow the feed afterwards, take [`Tier1Api::cursor`] before
    /// reading the first line.
    #[must_use]
    pub fn new(tier1: &'a dyn Tier1Api) -> Self {
        Self { tier1, lines: Vec::new().into_iter(), next: Some(None) }
    }
}

impl Iterator for PageScan<'_> {
    type Item = Result<Line, Tier1Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(line) = self.lines.next() {
                return Some(Ok(line));
            }
            match self.tier1.scan(self.next.take()?, SCAN_LINES_MAX) {
                Ok(page) => {
                    self.lines = page.lines.into_iter();
                    self.next = page.next.map(Some);
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
