//! Probes: comparing a content that is not stored. A probe never waits for a pass.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use doppel_model::NodeId;
use doppel_model::signature::Signature;
use doppel_partitioning::{LengthVector, PartitionIndex, Plan};
use doppel_protocol::index_node::{NodeError, NodeSearch, SearchBatch, SearchOutcome};
use doppel_protocol::{PartitionLookup, VerifiedPartner};

use super::{Router, RouterError};

/// Number of attempts while the plan changes.
const TRIES: u32 = 200;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

impl Router {
    /// Compares a signature that is not stored with the stored ones, and returns its partners.
    pub(crate) fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, RouterError> {
        if signature.tokens() == 0 {
            return Ok(Vec::new());
        }
        let signature = Arc::new(signature.clone());
        for _ in 0..TRIES {
            match self.probe_under(&self.plan(), &signature) {
                // The nodes switch to a new plan one after the other.
                Err(RouterError::Node(_, NodeError::StalePlan { .. } | NodeError::NoPartition(_))) => {
                    thread::sleep(PAUSE);
                }
                probed => return probed,
            }
        }
        Err(RouterError::Replanned)
    }

    fn probe_under(
        &self,
        plan: &Plan,
        signature: &Arc<Signature>,
    ) -> Result<Vec<VerifiedPartner>, RouterError> {
        let (home, at) = self.home(plan, signature);
        let mut found = Vec::new();
        // The home is asked first: if the content is stored after all, it answers with the stored copy.
        let others = self.nodes_to_probe(plan, &at.lengths).into_iter().filter(|node| *node != home);
        for node in std::iter::once(home).chain(others) {
            let search = NodeSearch::Foreign { signature: Arc::clone(signature), lengths: at.lengths };
            let batch = SearchBatch { pass: None, searches: vec![search] };
            match self.call(node, plan, |node, call| node.search(call, batch))?.pop() {
                Some(SearchOutcome::Copy(pair)) => return Ok(vec![pair]),
                Some(SearchOutcome::Compared { pairs, .. }) => found.push((node, pairs)),
                // `Unfinished` cannot occur, because a probe has no limits.
                Some(SearchOutcome::Absent | SearchOutcome::Unfinished { .. }) | None => {}
            }
        }
        found.sort_unstable_by_key(|(node, _)| *node);
        Ok(found.into_iter().flat_map(|(_, pairs)| pairs).collect())
    }

    /// Nodes, in ascending order, with at least one partition that can contain a near-duplicate of a content
    /// of these lengths.
    pub(super) fn nodes_to_probe(&self, plan: &Plan, lengths: &LengthVector) -> Vec<NodeId> {
        if let [only] = &self.nodes[..] {
            return vec![only.id];
        }
        let mut nodes = Vec::new();
        plan.probed_nodes(lengths, &mut nodes);
        nodes
    }

    /// The home of a signature, and the partitions that a search for it probes.
    pub(crate) fn locate(&self, signature: &Signature) -> PartitionLookup {
        let plan = self.plan();
        let lengths = plan.map().lexicon().lengths(signature);
        let mut probed_partitions = Vec::new();
        plan.map().probed_partitions(&lengths, &mut probed_partitions);
        let id = |partition: PartitionIndex| Self::assignment(&plan, partition).1;
        PartitionLookup {
            home: id(plan.map().home(&lengths)),
            lengths: lengths.as_slice().to_vec(),
            probed_partitions: probed_partitions.into_iter().map(id).collect(),
        }
    }
}
