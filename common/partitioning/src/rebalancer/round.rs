//! One round of rebalancing: chooses the partitions to split, move and join.

use std::cmp::Reverse;

use doppel_model::NodeId;

use super::Rebalancer;
use super::fan_out::FanOut;
use super::leaves::Leaves;
use crate::limits::PARTITIONS_MAX;
use crate::partition_index::PartitionIndex;
use crate::plan::Plan;

/// Partitions larger than this multiple of the wanted size are split.
const HOT: f64 = 1.5;

/// Maximum number of times that partitions are halved when no partition fits elsewhere.
const HALVINGS: usize = 4;

/// A serving node with less than this share of the mean is filled up.
const UNDERFULL: f64 = 0.5;

/// The fan-out per content that a move must save to be made for this reason alone.
const SAVING_MIN: f64 = 0.1;

/// Cold siblings on two nodes are brought together when the number of partitions exceeds this multiple of the
/// wanted number.
const CROWDED: f64 = 1.5;

/// The state of a round.
pub(super) struct RebalanceRound<'l> {
    rebalancer: Rebalancer,
    pub(super) leaves: Leaves<'l>,
    serving: Vec<NodeId>,
    /// Serving nodes that were underfull at the beginning of the round.
    underfull: Vec<NodeId>,
    total: u64,
    /// The number of contents that may still move.
    budget: u64,
}

/// A candidate move of a partition to a node.
struct CandidateMove {
    leaf: PartitionIndex,
    to: NodeId,
    /// Class and cost of the move. The lowest rank is the best.
    rank: (u8, f64),
}

impl<'l> RebalanceRound<'l> {
    pub(super) fn new(rebalancer: Rebalancer, leaves: Leaves<'l>) -> Self {
        let serving: Vec<NodeId> = leaves.plan.serving().collect();
        let total = leaves.lengths.len() as u64;
        let budget = (rebalancer.moved_max.clamp(0.0, 1.0) * total as f64) as u64;
        let underfull = underfull(&leaves.plan, &leaves.loads).collect();
        Self { rebalancer, leaves, serving, underfull, total, budget }
    }

    pub(super) fn run(&mut self) {
        self.split();
        let mut fan_out = FanOut::new(&self.leaves);
        self.move_from_donors(&mut fan_out);
        for _ in 0..HALVINGS {
            if !self.halve() {
                break;
            }
            fan_out = FanOut::new(&self.leaves);
            self.move_from_donors(&mut fan_out);
        }
        self.reduce_fan_out(&mut fan_out);
        self.join();
    }

    /// The mean number of contents per serving node.
    fn mean(&self) -> f64 {
        self.total as f64 / self.serving.len() as f64
    }

    /// The maximum number of contents that a node should have.
    fn target(&self) -> f64 {
        self.rebalancer.target.max(1.0) * self.mean()
    }

    fn load(&self, node: NodeId) -> u64 {
        self.leaves.loads[node.index()]
    }

    fn is_drained(&self, node: NodeId) -> bool {
        self.serving.binary_search(&node).is_err()
    }

    /// The largest number of contents per serving node divided by the mean.
    pub(super) fn imbalance(&self) -> f64 {
        self.leaves.plan.imbalance(&self.leaves.loads)
    }

    /// The wanted number of partitions.
    fn wanted(&self) -> usize {
        self.serving.len() * self.rebalancer.each.max(1) as usize
    }

    /// The number of contents in a partition of the wanted size.
    fn wanted_contents(&self) -> f64 {
        (self.mean() / f64::from(self.rebalancer.each.max(1))).max(1.0)
    }

    /// The underfull nodes that have not been filled up yet.
    fn still_underfull(&self) -> impl Iterator<Item = NodeId> + '_ {
        let least = (2.0 * self.mean() - self.target()).max(UNDERFULL * self.mean());
        self.underfull.iter().copied().filter(move |node| (self.load(*node) as f64) < least)
    }

    /// The nodes that must give away partitions: first drained nodes, then nodes above the target, from the
    /// fullest on. While other nodes are underfull, nodes above the mean are donors, too.
    fn donors(&self) -> Vec<NodeId> {
        let load_max = if self.still_underfull().next().is_some() { self.mean() } else { self.target() };
        let is_donor = |node: &NodeId| self.load(*node) as f64 > load_max;
        let mut donors: Vec<NodeId> = self.serving.iter().copied().filter(is_donor).collect();
        let nodes = (0..self.leaves.plan.nodes()).map(NodeId);
        donors.extend(
            nodes.filter(|node| self.is_drained(*node) && self.leaves.of_node(*node).next().is_some()),
        );
        donors.sort_by_key(|node| (!self.is_drained(*node), Reverse(self.load(*node)), *node));
        donors
    }

    /// Splits hot partitions of the donors, the largest first, up to the maximum number of partitions.
    fn split(&mut self) {
        let wanted_contents = self.wanted_contents();
        let mut hot: Vec<(u64, PartitionIndex)> = Vec::new();
        for node in self.donors() {
            let of_node = self.leaves.of_node(node).map(|leaf| (self.leaves.contents(leaf), leaf));
            hot.extend(of_node.filter(|(contents, _)| *contents as f64 > HOT * wanted_contents));
        }
        hot.sort_unstable_by_key(|(contents, leaf)| (Reverse(*contents), *leaf));
        let partitions_max = (2 * self.wanted()).min(PARTITIONS_MAX);
        let mut room = partitions_max.saturating_sub(self.leaves.plan.assignments().len());
        let mut parts: Vec<(PartitionIndex, u32)> = Vec::new();
        for (contents, leaf) in hot {
            let more = ((contents as f64 / wanted_contents).round() as usize - 1).min(room);
            room -= more;
            parts.push((leaf, more as u32 + 1));
        }
        // In descending order, because a split increases the places of later partitions.
        parts.sort_unstable_by_key(|(leaf, _)| Reverse(*leaf));
        parts
            .into_iter()
            .filter(|(_, parts)| *parts > 1)
            .for_each(|(leaf, parts)| self.leaves.split(leaf, parts));
    }

    /// Halves the largest partition of every remaining donor, up to the maximum number of partitions. Returns
    /// whether a partition was split.
    fn halve(&mut self) -> bool {
        let largest =
            |node| self.leaves.of_node(node).max_by_key(|leaf| (self.leaves.contents(*leaf), Reverse(*leaf)));
        let mut largest: Vec<PartitionIndex> = self.donors().into_iter().filter_map(largest).collect();
        largest.retain(|leaf| self.leaves.contents(*leaf) > 1);
        let partitions_max = (2 * self.wanted()).min(PARTITIONS_MAX);
        largest.truncate(if self.budget == 0 {
            0
        } else {
            partitions_max.saturating_sub(self.leaves.plan.assignments().len())
        });
        // In descending order, because a split increases the places of later partitions.
        largest.sort_unstable_by_key(|leaf| Reverse(*leaf));
        let before = self.leaves.splits;
        largest.into_iter().for_each(|leaf| self.leaves.split(leaf, 2));
        self.leaves.splits > before
    }

    /// Moves pieces until there is no donor, no move helps, or the limit is reached.
    fn move_from_donors(&mut self, fan_out: &mut FanOut) {
        let mut done: Vec<NodeId> = Vec::new();
        while let Some(donor) = self.donors().into_iter().find(|node| !done.contains(node)) {
            match self.best_of(donor, fan_out) {
                Some(best) => self.apply(&best, fan_out),
                None => done.push(donor),
            }
        }
    }

    /// The best move of a partition away from `donor`.
    fn best_of(&self, donor: NodeId, fan_out: &FanOut) -> Option<CandidateMove> {
        let (drained, have, target) = (self.is_drained(donor), self.load(donor), self.target());
        let receivers: Vec<NodeId> = if drained || have as f64 > target {
            self.serving.clone()
        } else {
            self.still_underfull().collect()
        };
        let mut best: Option<CandidateMove> = None;
        for leaf in self.leaves.of_node(donor) {
            std::thread::yield_now();
            let contents = self.leaves.contents(leaf);
            if contents > self.budget || (contents == 0 && !drained) {
                continue;
            }
            for to in receivers.iter().copied().filter(|to| *to != donor) {
                let then = self.load(to) + contents;
                let rank = if then as f64 <= target {
                    let class = if self.leaves.is_piece(leaf) { 0 } else { 1 };
                    (class, fan_out.cost(leaf, to) as f64 / contents.max(1) as f64)
                } else if drained || then < have {
                    // If the partition fits nowhere, prefer the node that will have the fewest contents.
                    (2, then as f64)
                } else {
                    continue;
                };
                keep_better(&mut best, CandidateMove { leaf, to, rank });
            }
        }
        best
    }

    /// Moves partitions only to reduce fan-out.
    fn reduce_fan_out(&mut self, fan_out: &mut FanOut) {
        let keep = self
            .budget
            .saturating_sub((self.rebalancer.tidied_max.clamp(0.0, 1.0) * self.total as f64) as u64);
        self.budget -= keep;
        while let Some(best) = self.best_saving(fan_out) {
            self.apply(&best, fan_out);
        }
        self.budget += keep;
    }

    /// The move that saves the most fan-out per content.
    fn best_saving(&self, fan_out: &FanOut) -> Option<CandidateMove> {
        let mut best = None;
        for (leaf, assignment) in self.leaves.plan.partitions() {
            std::thread::yield_now();
            let contents = self.leaves.contents(leaf);
            if contents == 0 || contents > self.budget || self.is_drained(assignment.node) {
                continue;
            }
            let has_room =
                |to: &NodeId| *to != assignment.node && (self.load(*to) + contents) as f64 <= self.target();
            for to in self.serving.iter().copied().filter(has_room) {
                let cost = fan_out.cost(leaf, to) as f64 * fan_out.weight() / contents as f64;
                if cost <= -SAVING_MIN {
                    keep_better(&mut best, CandidateMove { leaf, to, rank: (0, cost) });
                }
            }
        }
        best
    }

    fn apply(&mut self, one: &CandidateMove, fan_out: &mut FanOut) {
        self.budget -= self.leaves.contents(one.leaf);
        fan_out.move_partition(one.leaf, one.to);
        self.leaves.move_partition(one.leaf, one.to);
    }

    /// Joins cold siblings, the coldest first, while there are more partitions than wanted.
    fn join(&mut self) {
        loop {
            let count = self.leaves.plan.assignments().len();
            if count as f64 > CROWDED * self.wanted() as f64 {
                self.gather();
            }
            let mut cold = self.leaves.siblings(self.wanted_contents());
            cold.retain(|leaf| self.leaves.plan.node(*leaf) == self.leaves.plan.node(leaf.plus(1)));
            cold.truncate(count.saturating_sub(self.wanted()));
            if cold.is_empty() {
                return;
            }
            // In descending order, because a join decreases the places of later partitions.
            cold.sort_unstable_by_key(|leaf| Reverse(*leaf));
            cold.into_iter().for_each(|leaf| self.leaves.join(leaf));
        }
    }

    /// Moves cold siblings to one node, the coldest first, so that they can be joined.
    fn gather(&mut self) {
        for leaf in self.leaves.siblings(self.wanted_contents()) {
            let sibling = leaf.plus(1);
            let (one, next) = (self.leaves.contents(leaf), self.leaves.contents(sibling));
            let (less, more) = if one < next { (leaf, sibling) } else { (sibling, leaf) };
            let (contents, to) = (one.min(next), self.leaves.plan.node(more));
            let fits = (self.load(to) + contents) as f64 <= self.target() && !self.is_drained(to);
            if fits && contents <= self.budget && self.leaves.plan.node(less) != to {
                self.budget -= contents;
                self.leaves.move_partition(less, to);
            }
        }
    }
}

/// The underfull serving nodes. Yields no node if there are too few contents to tell.
pub(super) fn underfull<'a>(plan: &'a Plan, by_node: &'a [u64]) -> impl Iterator<Item = NodeId> + 'a {
    let least = if has_enough(plan, by_node) { UNDERFULL * mean(plan, by_node) } else { 0.0 };
    plan.serving().filter(move |node| (by_node[node.index()] as f64) < least)
}

/// Whether there are enough contents for imbalance to be more than chance.
pub(super) fn has_enough(plan: &Plan, by_node: &[u64]) -> bool {
    mean(plan, by_node) >= Rebalancer::CONTENTS_MIN as f64
}

/// The mean number of contents per serving node.
fn mean(plan: &Plan, by_node: &[u64]) -> f64 {
    by_node.iter().sum::<u64>() as f64 / plan.serving().count() as f64
}

/// Keeps the better of two moves; the earlier one if they are equal.
fn keep_better(best: &mut Option<CandidateMove>, other: CandidateMove) {
    let is_better = |best: &CandidateMove| {
        other.rank.0.cmp(&best.rank.0).then(other.rank.1.total_cmp(&best.rank.1)).is_lt()
    };
    if best.as_ref().is_none_or(is_better) {
        *best = Some(other);
    }
}
