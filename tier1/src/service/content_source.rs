//! Tier 1 as tier 2 sees it: the contents of every range, their signatures, and where results go.

use std::collections::BTreeMap;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId, RangeId};
use doppel_protocol::range_owner::RangeState;
use doppel_protocol::{
    CONTENTS_MAX, ContentSource, ContentsPage, LogPosition, Moment, PageRange, Repeat, SIGNATURES_MAX,
    SearchResult, SignatureSource, SourceError, Tier1Error,
};

use super::Tier1;
use super::rows::PIECE_ROWS;
use crate::key::{self, Kind};
use crate::record::{PageRecord, decode};

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
            let RangeState { epoch, ordered, .. } = self.at(range)?.state(range)?;
            Ok(PageRange { range, epoch, ordered, first })
        };
        self.map.ranges().map(page_range).collect()
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
        Ok(self.at(range)?.state(range)?.moment)
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        Ok(self.at(range)?.changed_since(range, since)?)
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), SourceError> {
        Ok(self.at(range)?.keep_log(range, after)?)
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        let mut by_range: BTreeMap<RangeId, Vec<SearchResult>> = BTreeMap::new();
        for result in results {
            by_range.entry(self.map.of_page(result.page)).or_default().push(result);
        }
        for (range, results) in by_range {
            match self.ranges.here(range) {
                Some(owner) => owner.deliver(results)?,
                None => self.deliveries.put(range, results)?,
            }
        }
        Ok(())
    }

    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError> {
        Ok(self.at(range)?.repeat(range, repeats)?)
    }
}
