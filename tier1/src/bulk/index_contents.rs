//! The contents of a new collection, from which tier 2 makes its index before the first start.
//!
//! Tier 2 reads the signatures in the order of their files, and the content hashes of pages from memory. No row
//! is read.
//!
//! Invariant: content hashes, positions in logs, and places of signatures are those that the service will name at
//! the first start. So the first start can use an index snapshot made from them.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::{
    CONTENTS_MAX, ContentSource, ContentsPage, EachSignature, LogPosition, Moment, PageRange, RangeMap,
    Repeat, SearchResult, SignaturePlace, SignatureSource, SourceError, StoredSignatures, Tier1Error,
};

use crate::storage::signatures::{SignatureId, SignatureStore};

/// The contents of a new collection that is complete on disk.
///
/// Memory: 32 bytes for each page.
pub struct NewContents {
    map: RangeMap,
    ranges: Vec<RangeSignatures>,
    /// Pages whose content has tokens, in ascending order.
    pages: Vec<(PageId, ContentHash)>,
    /// Why a file of signatures could not be read.
    failure: OnceLock<String>,
}

/// The signatures of a new range.
pub(super) struct RangeSignatures {
    /// Position before the first record of the range's log.
    pub(super) log: LogPosition,
    pub(super) signatures: Arc<SignatureStore>,
    /// Signatures that no page has any more.
    pub(super) unused: HashSet<SignatureId>,
}

impl NewContents {
    /// `pages` are all pages whose content has tokens, in ascending order.
    pub(super) fn new(
        map: RangeMap,
        ranges: Vec<RangeSignatures>,
        pages: Vec<(PageId, ContentHash)>,
    ) -> Self {
        Self { map, ranges, pages, failure: OnceLock::new() }
    }

    fn range(&self, number: usize) -> Result<&RangeSignatures, SourceError> {
        let range = self.ranges.get(number);
        range.ok_or_else(|| SourceError::Damaged(format!("range {number} does not exist")))
    }
}

/// Error of calls that need a running tier 1.
fn error_while_writing() -> SourceError {
    SourceError::Unavailable("the collection is being written".to_owned())
}

impl SignatureSource for NewContents {
    /// Always fails. The index asks for the signature of a page only if it did not find the signature in the
    /// files.
    fn signatures(&self, _: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let failure = self.failure.get().map_or("", String::as_str);
        Err(SourceError::Damaged(format!("a signature that was just written cannot be read: {failure}")))
    }
}

impl ContentSource for NewContents {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        let page_range = |range| {
            let first = PageId::first_of(self.map.run(range).start, self.map.shards());
            // The snapshot does not store epochs, so any number will do.
            PageRange { range, epoch: Epoch(1), ordered: 0, first }
        };
        Ok(self.map.ranges().map(page_range).collect())
    }

    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError> {
        let limit = limit.clamp(1, CONTENTS_MAX);
        let is_before = |page: PageId| match after {
            Some(after) => page <= after,
            None => self.map.of_page(page) < range,
        };
        let begin = self.pages.partition_point(|(page, _)| is_before(*page));
        let of_range = self.pages[begin..].iter().take_while(|(page, _)| self.map.of_page(*page) == range);
        let contents: Vec<(PageId, ContentHash)> = of_range.take(limit).copied().collect();
        let next = contents.last().map(|(page, _)| *page).filter(|_| contents.len() == limit);
        Ok(ContentsPage { contents, next })
    }

    fn moment(&self, range: RangeId) -> Result<Option<Moment>, SourceError> {
        Ok(Some(Moment { log: self.range(range.0.into())?.log, order: 0 }))
    }

    fn deliver(&self, _: Vec<SearchResult>) -> Result<(), SourceError> {
        Err(error_while_writing())
    }

    fn repeat(&self, _: RangeId, _: Vec<Repeat>) -> Result<(), SourceError> {
        Err(error_while_writing())
    }
}

impl StoredSignatures for NewContents {
    fn place(&self, _: PageId) -> Result<Option<SignaturePlace>, SourceError> {
        Err(error_while_writing())
    }

    fn read(&self, place: SignaturePlace, buffer: &mut Vec<u8>) -> Result<(), SourceError> {
        let (range, id) = SignatureId::at_place(place);
        Ok(self.range(range)?.signatures.read_into(id, buffer).map_err(Tier1Error::from)?)
    }

    fn each(&self, each: &mut EachSignature<'_>) -> Result<(), SourceError> {
        for (range, stored) in self.map.ranges().zip(&self.ranges) {
            let mut each_used = |id: SignatureId, bytes: &[u8]| {
                stored.unused.contains(&id) || each(id.place_in(range), bytes)
            };
            let read = stored.signatures.for_each(&mut each_used).map_err(Tier1Error::from);
            read.inspect_err(|error| _ = self.failure.set(error.to_string()))?;
        }
        Ok(())
    }
}
