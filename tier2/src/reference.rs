//! The definition of tier 2's answers: every content compared with every other.
//!
//! It stands behind the same seam as the index, so that whatever uses tier 2 can be held against it. It
//! answers with all partners, leaving none out, and costs as much as that says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{NodeId, PageId, PartitionId};
use doppel_protocol::{
    IndexCommand, IndexError, IndexOrders, LengthBox, LoadReport, Orders, Pair, PartitionLoad,
    PartitionLookup, RefusedOrders, SearchResult, Tier2Api,
};

/// Takes the results of searches.
pub type ResultSink = Box<dyn Fn(Vec<SearchResult>) + Send + Sync>;

/// Which pairs are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Those that groups are made of ([`Policy::linked`]).
    Linked,
    /// Those that are similar, whether or not they have a band in common: what the bands lose is the
    /// difference.
    Similar,
}

/// Compares everything with everything, at once and on the caller's thread.
pub struct Exhaustive {
    policy: Policy,
    rule: Rule,
    answer: ResultSink,
    stored: Mutex<Vec<(PageId, Arc<Signature>)>>,
}

impl Exhaustive {
    /// An empty collection.
    #[must_use]
    pub fn new(policy: Policy, rule: Rule, answer: ResultSink) -> Self {
        Self { policy, rule, answer, stored: Mutex::default() }
    }

    /// Whether two contents are linked under the rule.
    #[must_use]
    pub fn links(&self, a: &Signature, b: &Signature) -> bool {
        match self.rule {
            // Most pairs are not similar, and that is seen at once.
            Rule::Linked => self.policy.similar(a, b) && self.policy.linked(a, b),
            Rule::Similar => self.policy.similar(a, b),
        }
    }

    fn stored(&self) -> MutexGuard<'_, Vec<(PageId, Arc<Signature>)>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All pages linked to a content but the one that asks.
    fn pairs(&self, signature: &Signature, asking: Option<PageId>) -> Vec<Pair> {
        let stored = self.stored();
        let linked =
            stored.iter().filter(|(page, other)| Some(*page) != asking && self.links(signature, other));
        let pair = |(page, other): &(PageId, Arc<Signature>)| Pair {
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

    fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError> {
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
