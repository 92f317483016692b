//! A scan of all live pages: it asks tier 1 for one page of lines after the other.

use super::{Line, SCAN_LINES_MAX, ScanPosition, Tier1Api, Tier1Error};

/// The lines of a whole scan, read page by page. It ends after the first error.
pub struct Scan<'a> {
    tier1: &'a dyn Tier1Api,
    lines: std::vec::IntoIter<Line>,
    /// Where the next page begins; none when there is no other.
    next: Option<Option<ScanPosition>>,
}

impl<'a> Scan<'a> {
    /// A scan from the beginning. To follow the feed afterwards, take [`Tier1Api::cursor`] before the first line.
    #[must_use]
    pub fn new(tier1: &'a dyn Tier1Api) -> Self {
        Self { tier1, lines: Vec::new().into_iter(), next: Some(None) }
    }
}

impl Iterator for Scan<'_> {
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
