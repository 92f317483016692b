//! What tier 2 needs from tier 1: the contents that it must have, their signatures, and a receiver for its results.
//!
//! Every call is bounded, returns owned data and can fail. Tier 2 makes no call while it holds a lock.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use serde::{Deserialize, Serialize};

use super::{SearchResult, Tier1Error};

/// The maximum number of contents that [`ContentSource::contents`] returns at a time.
pub const CONTENTS_MAX: usize = 4_096;

/// The maximum number of pages in one call of [`ContentSource::signatures`].
pub const SIGNATURES_MAX: usize = 1_024;

/// A range with its pages: from its first page up to the first page of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// The range.
    pub range: RangeId,
    /// The epoch of its present owner.
    pub epoch: Epoch,
    /// The smallest page id that belongs to it.
    pub first: PageId,
}

impl PageRange {
    /// Finds the range of a page. `all` is in the order of the first pages.
    #[must_use]
    pub fn of(all: &[Self], page: PageId) -> Option<RangeId> {
        let after = all.partition_point(|range| range.first <= page);
        all.get(after.checked_sub(1)?).map(|range| range.range)
    }
}

/// Some of the contents of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsPage {
    /// Pages with content, and the content of each.
    pub contents: Vec<(PageId, ContentHash)>,
    /// Where the next page begins; none at the end.
    pub next: Option<PageId>,
}

/// A page that has to be searched for again although nobody asked. The first page of its content has left, and this
/// page is now the first. The copies are linked to the page that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// The number of this entry, which the node counts from 1 for each range.
    pub number: u64,
    /// The page.
    pub page: PageId,
    /// The content.
    pub content: ContentHash,
}

/// Why tier 1 does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SourceError {
    /// Tier 1 cannot be reached or is stopping.
    #[error("tier 1 does not answer: {0}")]
    Unavailable(String),
    /// A record is damaged.
    #[error("a record of tier 1 is damaged: {0}")]
    Damaged(String),
}

impl From<Tier1Error> for SourceError {
    fn from(refused: Tier1Error) -> Self {
        match refused {
            Tier1Error::Damaged(why) => Self::Damaged(why),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

/// Tier 1 as tier 2 sees it.
pub trait ContentSource: Send + Sync {
    /// All ranges, in the order of their first pages.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError>;

    /// The next contents of a range after a page, at most `limit` and [`CONTENTS_MAX`]. They are those of all live
    /// pages with tokens, in an order that does not change.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError>;

    /// The present signatures of at most [`SIGNATURES_MAX`] pages. The entry of a page without content is `None`.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError>;

    /// Takes the results of searches. If a result is lost with its range, the range asks again under another ticket.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError>;

    /// Takes pages of a range that have to be searched for again. On return they are durable, so the node may forget
    /// them.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_belongs_to_the_last_range_that_begins_before_it() {
        let page = |first: u8| PageId::from_bytes([first; 16]);
        let range = |range, first| PageRange { range: RangeId(range), epoch: Epoch(1), first: page(first) };
        let all = [range(4, 0), range(7, 100), range(9, 200)];
        for (first, expected) in [(0, 4), (99, 4), (100, 7), (199, 7), (200, 9), (255, 9)] {
            assert_eq!(PageRange::of(&all, page(first)), Some(RangeId(expected)), "{first}");
        }
        assert_eq!(PageRange::of(&all[1..], page(0)), None);
    }
}
