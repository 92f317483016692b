//! What tier 2 asks of tier 1: the contents it must have, their signatures, and somebody who takes its results.
//!
//! Every call is bounded, gives owned data and can fail. Tier 2 makes none while it holds a lock.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use serde::{Deserialize, Serialize};

use super::{SearchResult, Tier1Error};

/// Contents of a page of [`ContentSource::contents`] at most.
pub const CONTENTS_MAX: usize = 4_096;

/// Pages whose signatures are asked for in one call at most.
pub const SIGNATURES_MAX: usize = 1_024;

/// A range, and the pages that are its own: from the first one to the first of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// The range.
    pub range: RangeId,
    /// Number of its present ownership.
    pub epoch: Epoch,
    /// The least page id that belongs to it.
    pub first: PageId,
}

impl PageRange {
    /// The range of a page; `all` are in the order of their first pages.
    #[must_use]
    pub fn of(all: &[Self], page: PageId) -> Option<RangeId> {
        let after = all.partition_point(|range| range.first <= page);
        all.get(after.checked_sub(1)?).map(|range| range.range)
    }
}

/// Some of the contents of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsPage {
    /// Pages with content, and what they have.
    pub contents: Vec<(PageId, ContentHash)>,
    /// Where the next page begins; none at the end.
    pub next: Option<PageId>,
}

/// A content that is to be searched for again although nobody asked: the first of its pages has left, and this one is
/// the first now. Its copies are linked to the one that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// Counted by the node for the page's range, from 1.
    pub number: u64,
    /// The page.
    pub page: PageId,
    /// The content.
    pub content: ContentHash,
}

/// Why tier 1 does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SourceError {
    /// It cannot be reached, or is stopping.
    #[error("tier 1 does not answer: {0}")]
    Unavailable(String),
    /// A record cannot be read.
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
    /// See [`SourceError`]; so of all calls.
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError>;

    /// The next contents of a range after a page, at most `limit` and [`CONTENTS_MAX`]: of all live pages that have
    /// tokens, in an order that does not change.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError>;

    /// The present signature of each of at most [`SIGNATURES_MAX`] pages; none of a page without content.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError>;

    /// Takes the results of searches. One that is lost with its range is asked for again, under another ticket.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError>;

    /// Takes pages of a range that are to be searched for again. When this returns they are durable: the node forgets
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
