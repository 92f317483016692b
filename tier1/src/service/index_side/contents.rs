//! Contents and signatures of the pages of any range, as tier 2 reads them, and the hand-over of search
//! results.

use std::collections::BTreeMap;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId, RangeId};
use doppel_protocol::{CONTENTS_MAX, ContentsPage, SIGNATURES_MAX, SearchResult, SourceError, Tier1Error};

use super::IndexSide;
use crate::rows::key::{self, RowKind};
use crate::rows::record::{PageRecord, decode};
use crate::service::questions::rows::PIECE_ROWS;

impl IndexSide {
    /// Signatures of the first [`SIGNATURES_MAX`] pages, in the order of the pages. `None` for a page without
    /// a signature.
    pub(in crate::service) fn signatures(
        &self,
        pages: &[PageId],
    ) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let signatures = self.rows.signatures(&pages[..pages.len().min(SIGNATURES_MAX)])?;
        Ok(signatures.into_iter().collect::<Result<_, _>>()?)
    }

    /// Up to `limit` contents of a range that have tokens, in the order of their pages, after the page
    /// `after`.
    pub(in crate::service) fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError> {
        let limit = limit.clamp(1, CONTENTS_MAX);
        let mut contents: Vec<(PageId, ContentHash)> = Vec::new();
        let first = after.map(|page| self.collection.shard_of(page));
        for shard in
            self.collection.map.shards_of(range).filter(|shard| first.is_none_or(|first| *shard >= first))
        {
            let (mut from, to) = key::all(shard, RowKind::Page);
            if let Some(page) = after.filter(|page| self.collection.shard_of(*page) == shard) {
                from = key::after(&key::page(shard, page));
            }
            loop {
                let rows = self.rows.piece(&from, &to, PIECE_ROWS)?;
                let Some((last, _)) = rows.last() else { break };
                from = key::after(last);
                for (key, bytes) in &rows {
                    let record: PageRecord = decode(key, bytes).map_err(Tier1Error::from)?;
                    let state = record.content().filter(|state| state.tokens > 0);
                    contents.extend(key::last_page(key).zip(state.map(|state| state.content)));
                    if contents.len() == limit {
                        let next = contents.last().map(|(page, _)| *page);
                        return Ok(ContentsPage { contents, next });
                    }
                }
            }
        }
        Ok(ContentsPage { contents, next: None })
    }

    /// The contents of the first [`CONTENTS_MAX`] pages. Pages without tokens are left out.
    pub(in crate::service) fn contents_of(
        &self,
        pages: &[PageId],
    ) -> Result<Vec<(PageId, ContentHash)>, SourceError> {
        let pages = &pages[..pages.len().min(CONTENTS_MAX)];
        let records = self.rows.pages(pages)?;
        let contents = pages.iter().zip(records).filter_map(|(page, record)| {
            let record = record?;
            let state = record.content().filter(|state| state.tokens > 0)?;
            Some((*page, state.content))
        });
        Ok(contents.collect())
    }

    /// Hands search results to the owners of their pages.
    pub(in crate::service) fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        let mut by_range: BTreeMap<RangeId, Vec<SearchResult>> = BTreeMap::new();
        for result in results {
            by_range.entry(self.collection.map.of_page(result.page)).or_default().push(result);
        }
        for (range, results) in by_range {
            match self.ranges.local_owner(range) {
                Some(owner) => owner.deliver(results)?,
                None => self.deliveries.put(range, results)?,
            }
        }
        Ok(())
    }
}
