//! The definition of tier 2's answers: every content compared with every other.
//!
//! It stands behind the same seam as the index, so that whatever uses tier 2 can be held against it. It
//! answers with all partners, leaving none out, and costs as much as that says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_protocol::{
    IndexCommand, LengthBox, LoadReport, LookResult, Pair, PartitionLoad, Placement, Tier2Api,
};

use crate::service::Answer;

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
    answer: Answer,
    stored: Mutex<Vec<(PageId, Arc<Signature>)>>,
}

impl Exhaustive {
    /// An empty collection.
    #[must_use]
    pub fn new(policy: Policy, rule: Rule, answer: Answer) -> Self {
        Self { policy, rule, answer, stored: Mutex::default() }
    }

    /// Whether two contents are tied under the rule.
    #[must_use]
    pub fn ties(&self, a: &Signature, b: &Signature) -> bool {
        match self.rule {
            // Most pairs are not similar, and that is seen at once.
            Rule::Linked => self.policy.similar(a, b) && self.policy.linked(a, b),
            Rule::Similar => self.policy.similar(a, b),
        }
    }

    fn stored(&self) -> MutexGuard<'_, Vec<(PageId, Arc<Signature>)>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All pages tied to a content but the one that asks.
    fn pairs(&self, signature: &Signature, asking: Option<PageId>) -> Vec<Pair> {
        let stored = self.stored();
        let tied = stored.iter().filter(|(page, other)| Some(*page) != asking && self.ties(signature, other));
        let pair = |(page, other): &(PageId, Arc<Signature>)| Pair {
            page: *page,
            content: other.content(),
            shared: self.policy.compare(signature, other).shared,
            shingles: other.shingles(),
        };
        tied.map(pair).collect()
    }
}

impl Tier2Api for Exhaustive {
    fn submit(&self, commands: Vec<IndexCommand>) {
        let mut looks = Vec::new();
        for command in commands {
            match command {
                IndexCommand::Put { page, signature, look } => {
                    looks.extend(look.map(|look| (page, signature.content(), look)));
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
                IndexCommand::Look { page, content, look } => looks.push((page, content, look)),
            }
        }
        let mut results = Vec::new();
        for (page, content, look) in looks {
            let found = self.stored().iter().find(|(p, s)| *p == page && s.content() == content).cloned();
            if let Some((_, signature)) = found {
                let pairs = self.pairs(&signature, Some(page));
                results.push(LookResult { page, content, ticket: look.ticket, pairs });
            }
        }
        if !results.is_empty() {
            (self.answer)(results);
        }
    }

    fn waiting(&self) -> usize {
        0
    }

    fn probe(&self, signature: &Signature) -> Vec<Pair> {
        self.pairs(signature, None)
    }

    fn placement(&self, signature: &Signature) -> Placement {
        Placement { lengths: vec![signature.shingles()], home: 0, contacts: vec![0] }
    }

    fn load(&self) -> LoadReport {
        let stored = self.stored();
        let bytes = stored.iter().map(|(_, s)| s.as_bytes().len() as u64).sum();
        let only = PartitionLoad {
            partition: 0,
            node: 0,
            bounds: LengthBox { lo: vec![None], hi: vec![None] },
            contents: stored.len() as u64,
            pages: stored.len() as u64,
            received: 0,
            comparisons: 0,
            bytes,
        };
        LoadReport {
            epoch: 0,
            dimensions: 1,
            partitions: vec![only],
            looks: 0,
            sends: 0,
            imbalance: 1.0,
            imbalance_floor: 1.0,
            sends_saved: None,
            serving: 1,
            node_sends: 0,
            node_imbalance: 1.0,
            node_imbalance_floor: 1.0,
            node_sends_saved: None,
            file_bytes: 0,
        }
    }

    fn hurry(&self) {}
}
