//! Tier 1 as tier 2 sees it: what there is, its signatures, and where results go.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId, ShardId};
use doppel_protocol::{
    CONTENTS_MAX, ContentSource, ContentsPage, PageRange, Repeat, SIGNATURES_MAX, Search, SearchResult,
    SourceError, Tier1Error,
};

use super::Tier1;
use super::writer::Task;
use crate::key::{self, Kind};
use crate::machine::Command;
use crate::record::{PageRecord, decode};
use crate::store::StoreError;

/// The only range of a process, and its only epoch: tier 2 forgets all when the process ends.
pub(super) const RANGE: RangeId = RangeId(0);
pub(super) const EPOCH: Epoch = Epoch(1);

impl ContentSource for Tier1 {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        Ok(vec![PageRange { range: RANGE, plan_version: EPOCH, first: PageId::from_bytes([0; 16]) }])
    }

    fn contents(&self, _: RangeId, after: Option<PageId>, limit: usize) -> Result<ContentsPage, SourceError> {
        let limit = limit.clamp(1, CONTENTS_MAX);
        let mut contents: Vec<(PageId, ContentHash)> = Vec::new();
        let first = after.map_or(0, |page| self.owner(page).0);
        for shard in (first..self.settings.shards).map(ShardId) {
            let (mut from, to) = key::all(shard, Kind::Page);
            if let Some(page) = after.filter(|page| self.owner(*page) == shard) {
                from = key::page(shard, page);
                // The next key there can be.
                from.push(0);
            }
            let mut damaged: Result<(), StoreError> = Ok(());
            let read = self.beneath.range(&from, &to, &mut |key, bytes| {
                match decode::<PageRecord>(key, bytes) {
                    Ok(record) => {
                        let state = record.content().filter(|state| state.tokens > 0);
                        contents.extend(key::last_page(key).zip(state.map(|state| state.content)));
                    }
                    Err(error) => damaged = Err(error),
                }
                damaged.is_ok() && contents.len() < limit
            });
            read.and(damaged).map_err(Tier1Error::from)?;
            if contents.len() == limit {
                let next = contents.last().map(|(page, _)| *page);
                return Ok(ContentsPage { contents, next });
            }
        }
        Ok(ContentsPage { contents, next: None })
    }

    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let some = pages.iter().take(SIGNATURES_MAX);
        some.map(|page| Ok(self.read_signature(*page)?)).collect()
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        let commands = results.into_iter().map(Command::Searched).collect();
        let sent = self.tasks.send(Task::Commands(commands));
        sent.map_err(|_| Tier1Error::Stopping.into())
    }

    /// Returns after the commit that owes the searches.
    fn repeat(&self, _: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError> {
        let again = |Repeat { page, content, .. }| {
            Command::Searched(SearchResult { page, content, ticket: Search::AGAIN, pairs: Vec::new() })
        };
        Ok(self.apply(repeats.into_iter().map(again).collect())?)
    }
}
