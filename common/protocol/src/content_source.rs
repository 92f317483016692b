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
    /// The index of the last order that the owner has made. What is read of the range afterwards is no older.
    pub ordered: u64,
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

/// A record of a range's log. It names the moment of the range right after the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// A number that no other log has.
    pub log: u64,
    /// The owner that wrote the record.
    pub epoch: u64,
    /// The number of the record.
    pub index: u64,
    /// The hash of its bytes.
    pub hash: u128,
}

/// A moment of a range, as tier 1 and tier 2 count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// A record. What its commit and those before it had to order was handed over.
    pub log: LogPosition,
    /// The index of the last order that was handed over by then; 0 for none.
    pub order: u64,
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

/// The signatures of tier 1, as a node of tier 2 sees them.
pub trait SignatureSource: Send + Sync {
    /// The present signatures of at most [`SIGNATURES_MAX`] pages. The entry of a page without content is `None`.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError>;
}

/// Tier 1 as the router of tier 2 sees it.
pub trait ContentSource: SignatureSource {
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

    /// The present contents of those of these pages, at most [`CONTENTS_MAX`], that have one with tokens.
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

    /// A late moment of a range; none where no log is kept.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn moment(&self, range: RangeId) -> Result<Option<Moment>, SourceError> {
        let _ = range;
        Ok(None)
    }

    /// The pages of a range that have changed since a record, and perhaps some that have not, each once. None when the
    /// log does not reach back to the record.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        let _ = (range, since);
        Ok(None)
    }

    /// Records of a range after this index are of use to tier 2, none when it is `None`. They are kept as long as there
    /// is room for them. Until this is first called, all are.
    ///
    /// # Errors
    /// See [`SourceError`].
    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), SourceError> {
        let _ = (range, after);
        Ok(())
    }

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
