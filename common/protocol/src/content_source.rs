//! What tier 2 needs from tier 1: the contents to index, their signatures, and a receiver for search results.
//!
//! Every call is bounded, returns owned data, and can fail. Tier 2 holds no lock while it makes a call.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use serde::{Deserialize, Serialize};

use super::index::SearchResult;
use super::tier1::Tier1Error;

/// Maximum number of contents that [`ContentSource::contents`] returns in one call.
pub const CONTENTS_MAX: usize = 4_096;

/// Maximum number of pages in one call of [`ContentSource::signatures`].
pub const SIGNATURES_MAX: usize = 1_024;

/// A range and its pages: from its first page up to the first page of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRange {
    /// Number of the range.
    pub range: RangeId,
    /// Epoch of the present owner.
    pub epoch: Epoch,
    /// Index of the last order that the owner has made. A later read of the range sees at least the state
    /// after this order.
    pub ordered: u64,
    /// Smallest page id of the range.
    pub first: PageId,
}

impl PageRange {
    /// Finds the range of a page. `all` must be sorted by first page.
    #[must_use]
    pub fn of(all: &[Self], page: PageId) -> Option<RangeId> {
        let after = all.partition_point(|range| range.first <= page);
        all.get(after.checked_sub(1)?).map(|range| range.range)
    }
}

/// A batch of the contents of a range.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentsPage {
    /// Pages with content, and the content of each page.
    pub contents: Vec<(PageId, ContentHash)>,
    /// Where the next batch begins; `None` at the end.
    pub next: Option<PageId>,
}

/// A page that a node wants tier 1 to search for again, without an order from tier 1. The node compared the
/// first page of a content on behalf of all copies, and that page has left. This page is now the first, so
/// its own search has to link the copies again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// Number of this entry. The node counts from 1 for each range.
    pub number: u64,
    /// The page to search for.
    pub page: PageId,
    /// The content of the page.
    pub content: ContentHash,
}

/// A record of a range's log. It stands for the state of the range right after the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// Random id of the log, unique among all logs.
    pub log: u64,
    /// Epoch of the owner that wrote the record.
    pub epoch: u64,
    /// Number of the record in the log.
    pub index: u64,
    /// Hash of the bytes of the record.
    pub hash: u128,
}

/// A state of a range, as both tier 1 and tier 2 count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// A record of the range's log. All orders of its commit and of earlier commits have been handed over.
    pub log: LogPosition,
    /// Index of the last order that was handed over by then; 0 if there was none.
    pub order: u64,
}

/// Why tier 1 does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum SourceError {
    /// Tier 1 cannot be reached or is stopping.
    #[error("tier 1 does not answer: {0}")]
    Unavailable(String),
    /// A record of tier 1 is damaged.
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

/// Signatures of tier 1, as a node of tier 2 reads them.
pub trait SignatureSource: Send + Sync {
    /// Returns the present signatures of at most [`SIGNATURES_MAX`] pages, in order. The entry of a page
    /// without content is `None`.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError>;
}

/// Tier 1 as the router of tier 2 sees it.
pub trait ContentSource: SignatureSource {
    /// Returns all ranges, sorted by first page.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError>;

    /// Returns the next contents of a range after a page, at most `limit` and at most [`CONTENTS_MAX`]. They
    /// cover all live pages with tokens, in a fixed order.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError>;

    /// Returns the present contents of at most [`CONTENTS_MAX`] pages. Pages without a content, or with a
    /// content without tokens, are left out.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn contents_of(&self, pages: &[PageId]) -> Result<Vec<(PageId, ContentHash)>, SourceError> {
        let mut contents = Vec::with_capacity(pages.len());
        for some in pages.chunks(SIGNATURES_MAX) {
            let found = some.iter().zip(self.signatures(some)?);
            let has_tokens = found.filter_map(|(page, found)| Some((*page, found?)));
            contents.extend(
                has_tokens.filter(|(_, one)| one.tokens() > 0).map(|(page, one)| (page, one.content())),
            );
        }
        Ok(contents)
    }

    /// Returns a recent state of a range; `None` if the range keeps no log.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn moment(&self, range: RangeId) -> Result<Option<Moment>, SourceError> {
        let _ = range;
        Ok(None)
    }

    /// Returns the pages of a range that have changed since a record, each once. The list may contain some
    /// unchanged pages. `None` if the log does not reach back to the record.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        let _ = (range, since);
        Ok(None)
    }

    /// Tells a range that tier 2 needs only the log records after an index, or no records if `after` is
    /// `None`. The range keeps the needed records as long as there is room. Until the first call, it keeps
    /// all records.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), SourceError> {
        let _ = (range, after);
        Ok(())
    }

    /// Accepts the results of searches. If a result is lost together with its range, the range searches again
    /// under another ticket.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError>;

    /// Accepts pages of a range that have to be searched for again. When the call returns, the pages are
    /// durable, so the node may forget them.
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
        let range = |range, first| PageRange {
            range: RangeId(range),
            epoch: Epoch(1),
            ordered: 0,
            first: page(first),
        };
        let all = [range(4, 0), range(7, 100), range(9, 200)];
        for (first, expected) in [(0, 4), (99, 4), (100, 7), (199, 7), (200, 9), (255, 9)] {
            assert_eq!(PageRange::of(&all, page(first)), Some(RangeId(expected)), "{first}");
        }
        assert_eq!(PageRange::of(&all[1..], page(0)), None);
    }
}
