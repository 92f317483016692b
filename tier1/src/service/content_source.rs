//! Tier 1 as tier 2 sees it: the contents of every range, their signatures, and where results go.

use std::sync::{Arc, PoisonError};

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, PageId, RangeId};
use doppel_protocol::{
    CONTENTS_MAX, ContentSource, ContentsPage, LogPosition, Moment, PageRange, Repeat, SIGNATURES_MAX,
    Search, SearchResult, SignatureSource, SourceError, Tier1Error,
};

use super::Tier1;
use super::owner::Owner;
use super::rows::PIECE_ROWS;
use super::task::Task;
use crate::database::Reader;
use crate::key::{self, Kind};
use crate::machine::Command;
use crate::record::{PageRecord, decode};

/// The only epoch of the ranges of a process: tier 2 forgets their orders when a process begins.
pub(super) const EPOCH: Epoch = Epoch(1);

impl Tier1 {
    fn owner(&self, range: RangeId) -> Result<&Arc<Owner>, SourceError> {
        let owner = self.owners.get(usize::from(range.0));
        owner.ok_or_else(|| SourceError::Unavailable(format!("there is no range {range}")))
    }
}

impl SignatureSource for Tier1 {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let signatures = self.rows.signatures(&pages[..pages.len().min(SIGNATURES_MAX)])?;
        Ok(signatures.into_iter().collect::<Result<_, _>>()?)
    }
}

impl ContentSource for Tier1 {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        let page_range = |range| {
            let first = PageId::first_of(self.map.run(range).start, self.settings.shards);
            PageRange { range, epoch: EPOCH, first }
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
        let mut contents: Vec<(PageId, ContentHash)> = Vec::new();
        let first = after.map(|page| self.shard_of(page));
        for shard in self.map.shards_of(range).filter(|shard| first.is_none_or(|first| *shard >= first)) {
            let (mut from, to) = key::all(shard, Kind::Page);
            if let Some(page) = after.filter(|page| self.shard_of(*page) == shard) {
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

    fn contents_of(&self, pages: &[PageId]) -> Result<Vec<(PageId, ContentHash)>, SourceError> {
        let pages = &pages[..pages.len().min(CONTENTS_MAX)];
        let records = self.rows.pages(pages)?;
        let contents = pages.iter().zip(records).filter_map(|(page, record)| {
            let record = record?;
            let state = record.content().filter(|state| state.tokens > 0)?;
            Some((*page, state.content))
        });
        Ok(contents.collect())
    }

    fn moment(&self, range: RangeId) -> Result<Option<Moment>, SourceError> {
        let owner = self.owner(range)?;
        Ok(*owner.moment.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        let Some(database) = &self.owner(range)?.database else { return Ok(None) };
        Ok(database.changed_since(since).map_err(Tier1Error::from)?)
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), SourceError> {
        if let Some(database) = &self.owner(range)?.database {
            database.keep_log(Reader::Index, after);
        }
        Ok(())
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        let mut by_range: Vec<Vec<Command>> = self.owners.iter().map(|_| Vec::new()).collect();
        for result in results {
            by_range[usize::from(self.map.of_page(result.page).0)].push(Command::Searched(result));
        }
        for (owner, commands) in self.owners.iter().zip(by_range) {
            if !commands.is_empty() {
                owner.tasks.send(Task::Commands(commands)).map_err(|_| Tier1Error::Stopping)?;
            }
        }
        Ok(())
    }

    /// Returns after the commit that owes the searches.
    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError> {
        let again = |Repeat { page, content, .. }| {
            Command::Searched(SearchResult { page, content, ticket: Search::UNREQUESTED, pairs: Vec::new() })
        };
        let owner = self.owner(range)?;
        Ok(self.apply_at_once(owner, repeats.into_iter().map(again).collect())?)
    }
}
