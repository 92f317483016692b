//! Tier 1 as tier 2 sees it: every range of the collection, whoever owns it.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId, RangeId};
use doppel_protocol::range_owner::RangeState;
use doppel_protocol::{
    ContentSource, ContentsPage, LogPosition, Moment, PageRange, Repeat, SearchResult, SignatureSource,
    SourceError,
};

use super::Tier1;

impl SignatureSource for Tier1 {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        self.index_side.signatures(pages)
    }
}

impl ContentSource for Tier1 {
    fn ranges(&self) -> Result<Vec<PageRange>, SourceError> {
        let page_range = |range| {
            let first =
                PageId::first_of(self.collection.map.run(range).start, self.collection.settings.shards);
            let RangeState { epoch, ordered, .. } = self.node_of(range)?.state(range)?;
            Ok(PageRange { range, epoch, ordered, first })
        };
        self.collection.map.ranges().map(page_range).collect()
    }

    fn contents(
        &self,
        range: RangeId,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<ContentsPage, SourceError> {
        self.index_side.contents(range, after, limit)
    }

    fn contents_of(&self, pages: &[PageId]) -> Result<Vec<(PageId, ContentHash)>, SourceError> {
        self.index_side.contents_of(pages)
    }

    fn moment(&self, range: RangeId) -> Result<Option<Moment>, SourceError> {
        Ok(self.node_of(range)?.state(range)?.moment)
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, SourceError> {
        Ok(self.node_of(range)?.changed_since(range, since)?)
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), SourceError> {
        Ok(self.node_of(range)?.keep_log(range, after)?)
    }

    fn deliver(&self, results: Vec<SearchResult>) -> Result<(), SourceError> {
        self.index_side.deliver(results)
    }

    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), SourceError> {
        Ok(self.node_of(range)?.repeat(range, repeats)?)
    }
}
