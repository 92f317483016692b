//! The definition of tier 2's answers, implemented by comparing every content with every other.
//!
//! [`Exhaustive`] implements the same trait as the index, so a test can ask both. Its answers contain all partners of
//! a page. Each search costs one comparison per stored page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_contract::{LengthBox, LoadReport, PartitionLoad};
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{NodeId, PageId, PartitionId};
use doppel_protocol::{
    IndexCommand, IndexError, IndexOrders, Orders, PartitionLookup, RefusedOrders, SearchResult, Tier2Api,
    VerifiedPartner,
};

/// Receives the results of searches.
type ResultSink = Box<dyn Fn(Vec<SearchResult>) + Send + Sync>;

/// Compares each searched page with every stored page, at once and on the thread of the caller.
pub(super) struct Exhaustive {
    policy: Policy,
    answer: ResultSink,
    stored: Mutex<Vec<(PageId, Arc<Signature>)>>,
}

impl Exhaustive {
    /// Creates an empty collection.
    pub(super) fn new(policy: Policy, answer: ResultSink) -> Self {
        Self { policy, answer, stored: Mutex::default() }
    }

    fn is_linked(&self, a: &Signature, b: &Signature) -> bool {
        // `similar` is cheap and rejects most pairs.
        self.policy.similar(a, b) && self.policy.linked(a, b)
    }

    fn stored(&self) -> MutexGuard<'_, Vec<(PageId, Arc<Signature>)>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All pages that are linked to a content, without the page `asking`.
    fn pairs(&self, signature: &Signature, asking: Option<PageId>) -> Vec<VerifiedPartner> {
        let stored = self.stored();
        let linked =
            stored.iter().filter(|(page, other)| Some(*page) != asking && self.is_linked(signature, other));
        let pair = |(page, other): &(PageId, Arc<Signature>)| VerifiedPartner {
            page: *page,
            content: other.content(),
            similarity: self.policy.compare(signature, other).similarity,
        };
        linked.map(pair).collect()
    }
}

impl IndexOrders for Exhaustive {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let mut searches = Vec::new();
        for command in orders.commands {
            match command {
                IndexCommand::Put { page, signature, search } => {
                    searches.extend(search.map(|search| (page, signature.content(), search)));
                    let same =
                        |(p, s): &(PageId, Arc<Signature>)| *p == page && s.content() == signature.content();
                    let mut stored = self.stored();
                    if !stored.iter().any(same) {
                        stored.push((page, signature));
                    }
                }
                IndexCommand::Remove { page, content } => {
                    self.stored().retain(|(p, s)| *p != page || s.content() != content);
                }
                IndexCommand::Search { page, content, search } => searches.push((page, content, search)),
            }
        }
        let mut results = Vec::new();
        for (page, content, search) in searches {
            let found = self.stored().iter().find(|(p, s)| *p == page && s.content() == content).cloned();
            if let Some((_, signature)) = found {
                let pairs = self.pairs(&signature, Some(page));
                results.push(SearchResult { page, content, ticket: search.ticket, pairs });
            }
        }
        if !results.is_empty() {
            (self.answer)(results);
        }
        Ok(())
    }
}

impl Tier2Api for Exhaustive {
    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(0)
    }

    fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
        Ok(self.pairs(signature, None))
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        let only = PartitionId(0);
        Ok(PartitionLookup { lengths: vec![signature.size()], home: only, probed_partitions: vec![only] })
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        let stored = self.stored();
        let bytes = stored.iter().map(|(_, s)| s.as_bytes().len() as u64).sum();
        let only = PartitionLoad {
            partition: PartitionId(0),
            node: NodeId(0),
            bounds: LengthBox { lo: vec![None], hi: vec![None] },
            contents: stored.len() as u64,
            pages: stored.len() as u64,
            received: 0,
            comparisons: 0,
            bytes,
        };
        Ok(LoadReport { partitions: vec![only], ..LoadReport::default() })
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        Ok(())
    }
}
