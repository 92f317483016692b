//! A scan of all live pages, as owned pages of lines that the caller asks for one after the other.

use doppel_model::{PageId, ShardId};
use serde::{Deserialize, Serialize};

use super::{Line, Tier1Api, Tier1Error};

/// The maximum number of lines in one page of a scan.
pub const SCAN_LINES_MAX: usize = 1_000;

/// A place in the order of a scan: after this page. A caller only gives back what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanPosition {
    /// The shard that was being read.
    pub shard: ShardId,
    /// The last page that was read in it.
    pub page: PageId,
}

/// A page of a scan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinesPage {
    /// Live pages. There may be none before the end, because dead pages are read, too.
    pub lines: Vec<Line>,
    /// Where the next page begins; none at the end.
    pub next: Option<ScanPosition>,
}

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
