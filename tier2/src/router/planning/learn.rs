//! Learning a new map from the stored contents, and the moves that it needs.
//!
//! Under another lexicon, nearly every content gets another home. Each part of the new map goes to the node
//! that already stores most of its contents. Then few contents also change their node.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use doppel_model::NodeId;
use doppel_partitioning::{
    NextPlan, PARTITIONS_MAX, PartitionIndex, Plan, PlanChange, PlanSize, PlannedMove, fan_out_saved,
};

use super::sample;
use crate::router::persistence::stored_plan::LearningBasis;
use crate::router::{Router, RouterError};

/// Largest number of contents that a map is learned from.
const SAMPLE_MAX: usize = 20_000;

/// A map is learned once there are this many contents per partition, and at least [`CONTENTS_MIN`].
const CONTENTS_PER_PARTITION: usize = 4;
/// Smallest number of contents that a map is learned from.
const CONTENTS_MIN: usize = 256;

/// Number of contents that are needed to learn a map of this many partitions.
pub(crate) fn contents_min(partitions: u32) -> usize {
    CONTENTS_MIN.max(CONTENTS_PER_PARTITION * partitions as usize)
}

/// Basis of a map that would be learned now.
pub(crate) fn learning_basis(router: &Router) -> LearningBasis {
    LearningBasis { contents: router.contents() as usize, partitions: router.config.partitions_wanted() }
}

/// Learns a map for the serving nodes. Returns the plan and its changes.
pub(crate) fn learn(router: &Router) -> Result<NextPlan, RouterError> {
    let (present, by_node) = (router.plan(), router.node_contents());
    let sample = sample::take(router, SAMPLE_MAX)?;
    let serving: Vec<NodeId> = present.serving().collect();
    let parts = serving.len() as u32;
    let map = present.map();
    let plan_version = map.version();
    let each = router.config.partitions_wanted().div_ceil(parts).min(PARTITIONS_MAX as u32 / parts).max(1);
    let size = PlanSize { nodes: parts, each };
    let mut plan =
        Plan::learn(&sample, size, map.tau(), map.lexicon().dimensions(), plan_version + 1)?.after(&present);
    // Number of the sample's contents, by new partition and present node.
    let mut flows: BTreeMap<(PartitionIndex, NodeId), u64> = BTreeMap::new();
    for signature in &sample {
        let to = plan.map().home(&plan.map().lexicon().lengths(signature));
        let from = present.node(map.home(&map.lexicon().lengths(signature)));
        *flows.entry((to, from)).or_default() += 1;
    }
    let nodes = nodes_of_parts(&plan, &flows, &serving);
    plan.extend(present.nodes())?;
    for partition in PartitionIndex::first(plan.map().partitions()) {
        plan.place(partition, nodes[plan.node(partition).index()])?;
    }
    for node in present.drained() {
        plan.set_drained(*node, true)?;
    }
    let contents: u64 = by_node.iter().sum();
    let scaled = |count: u64| (count * contents).div_ceil(sample.len().max(1) as u64);
    let mut after = vec![0; by_node.len()];
    let mut moves = Vec::new();
    for ((place, from), count) in flows {
        let to = plan.node(place);
        after[to.index()] += count;
        if from != to {
            let partition = plan.assignments()[place.index()].id;
            moves.push(PlannedMove { partition, from, to, contents: scaled(count) });
        }
    }
    let saved = |plan: &Plan| {
        let lengths: Vec<_> =
            sample.iter().map(|signature| plan.map().lexicon().lengths(signature)).collect();
        let load = plan.measure(&lengths);
        fan_out_saved(sample.len() as u64, load.received.iter().sum(), serving.len())
    };
    let change = PlanChange {
        plan_version,
        fan_out_saved_before: saved(&present),
        fan_out_saved_after: saved(&plan),
        contents_moved: moves.iter().map(|one| one.contents).sum(),
        moves,
        contents,
        imbalance_before: present.imbalance(&by_node),
        imbalance_after: plan.imbalance(&after),
        ..PlanChange::default()
    };
    Ok(NextPlan { plan, change })
}

/// Assigns the parts of a plan to the serving nodes. In `plan`, each part is a node. The pair of part and
/// node that share the most contents is assigned first.
fn nodes_of_parts(
    plan: &Plan,
    flows: &BTreeMap<(PartitionIndex, NodeId), u64>,
    serving: &[NodeId],
) -> Vec<NodeId> {
    let mut common: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
    for ((partition, from), count) in flows {
        *common.entry((plan.node(*partition), *from)).or_default() += count;
    }
    let mut common: Vec<((NodeId, NodeId), u64)> = common.into_iter().collect();
    common.sort_by_key(|(pair, count)| (Reverse(*count), *pair));
    let mut nodes: Vec<Option<NodeId>> = vec![None; serving.len()];
    let mut free: Vec<NodeId> = serving.to_vec();
    for ((part, node), _) in common {
        if let (None, Some(at)) = (nodes[part.index()], free.iter().position(|one| *one == node)) {
            nodes[part.index()] = Some(free.remove(at));
        }
    }
    let mut rest = free.into_iter();
    // The plan has as many parts as there are serving nodes, so each part gets a node.
    nodes.into_iter().filter_map(|node| node.or_else(|| rest.next())).collect()
}
