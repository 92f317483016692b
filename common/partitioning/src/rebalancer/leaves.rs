//! A plan that is being changed, with the contents of each of its partitions.

use std::collections::BTreeMap;

use doppel_model::NodeId;

use super::change::PlannedMove;
use crate::bounding_space::BoundingSpace;
use crate::length_vector::LengthVector;
use crate::partition_index::PartitionIndex;
use crate::partition_map::cut::{self, CutNode};
use crate::plan::Plan;

/// A plan, the contents of its partitions, and the nodes where these contents were before the round.
pub(super) struct Leaves<'l> {
    pub(super) plan: Plan,
    pub(super) lengths: &'l [LengthVector],
    /// The contents of each partition, in the order of the map.
    members: Vec<Vec<u32>>,
    /// For each partition, the nodes on which its box was before the round, in ascending order.
    origins: Vec<Vec<NodeId>>,
    /// The node of each content before the round.
    origin: Vec<NodeId>,
    /// For each partition, whether this round split it off a larger partition.
    pieces: Vec<bool>,
    /// The number of contents on each node.
    pub(super) loads: Vec<u64>,
    pub(super) splits: u32,
    pub(super) joins: u32,
}

impl<'l> Leaves<'l> {
    pub(super) fn new(plan: &Plan, lengths: &'l [LengthVector]) -> Self {
        let plan = plan.clone();
        let mut members = vec![Vec::new(); plan.assignments().len()];
        let mut loads = vec![0; plan.nodes() as usize];
        let mut origin = Vec::with_capacity(lengths.len());
        for (content, vector) in (0..).zip(lengths) {
            let home = plan.map().home(vector);
            members[home.index()].push(content);
            origin.push(plan.node(home));
            loads[plan.node(home).index()] += 1;
        }
        let origins = plan.assignments().iter().map(|assignment| vec![assignment.node]).collect();
        let pieces = vec![false; plan.assignments().len()];
        Self { plan, pieces, lengths, members, origins, origin, loads, splits: 0, joins: 0 }
    }

    /// The number of contents in a partition.
    pub(super) fn contents(&self, leaf: PartitionIndex) -> u64 {
        self.members[leaf.index()].len() as u64
    }

    /// The partitions of a node.
    pub(super) fn of_node(&self, node: NodeId) -> impl Iterator<Item = PartitionIndex> + '_ {
        self.plan.partitions().filter(move |(_, assignment)| assignment.node == node).map(|(leaf, _)| leaf)
    }

    /// Cuts a partition into at most `parts` pieces with about the same number of contents.
    pub(super) fn split(&mut self, leaf: PartitionIndex, parts: u32) {
        let lengths: Vec<LengthVector> =
            self.members[leaf.index()].iter().map(|content| self.lengths[*content as usize]).collect();
        let tau = self.plan.map().tau();
        let spaces: Vec<BoundingSpace> = lengths.iter().map(|one| BoundingSpace::new(*one, tau)).collect();
        let dimensions = self.plan.map().lexicon().dimensions();
        let (tree, _) = cut::grow(&lengths, &spaces, dimensions, parts, 1);
        self.apply(&tree, 0, leaf);
    }

    /// Cuts a partition as in the subtree at `node`. Returns the resulting number of partitions.
    fn apply(&mut self, tree: &[CutNode], node: usize, leaf: PartitionIndex) -> u32 {
        let Some(CutNode::Cut { feature, at, right }) = tree.get(node).copied() else { return 1 };
        if self.plan.split(leaf, feature, at).is_err() {
            return 1;
        }
        self.splits += 1;
        let index = leaf.index();
        let members = std::mem::take(&mut self.members[index]);
        let is_left = |content: &u32| self.lengths[*content as usize].feature(feature) <= at;
        let sides: (Vec<u32>, Vec<u32>) = members.into_iter().partition(is_left);
        self.members.splice(index..=index, [sides.0, sides.1]);
        self.origins.insert(index, self.origins[index].clone());
        self.pieces[index] = true;
        self.pieces.insert(index, true);
        let left = self.apply(tree, node + 1, leaf);
        left + self.apply(tree, right, leaf.plus(left))
    }

    /// Whether this round split the partition off a larger partition.
    pub(super) fn is_piece(&self, leaf: PartitionIndex) -> bool {
        self.pieces[leaf.index()]
    }

    /// The partitions that can be joined with the next one and have at most `contents_max` contents together
    /// with it, coldest pair first.
    pub(super) fn siblings(&self, contents_max: f64) -> Vec<PartitionIndex> {
        let both = |leaf: PartitionIndex| self.contents(leaf) + self.contents(leaf.plus(1));
        let is_cold =
            |leaf: &PartitionIndex| both(*leaf) as f64 <= contents_max && self.plan.map().is_joinable(*leaf);
        let mut cold: Vec<PartitionIndex> =
            PartitionIndex::first(self.members.len() - 1).filter(is_cold).collect();
        cold.sort_by_key(|leaf| (both(*leaf), *leaf));
        cold
    }

    /// Joins a partition with the next one.
    pub(super) fn join(&mut self, leaf: PartitionIndex) {
        if self.plan.join(leaf).is_err() {
            return;
        }
        self.joins += 1;
        let index = leaf.index();
        let (members, origins) = (self.members.remove(index + 1), self.origins.remove(index + 1));
        self.members[index].extend(members);
        self.pieces.remove(index + 1);
        self.origins[index].extend(origins);
        self.origins[index].sort_unstable();
        self.origins[index].dedup();
    }

    /// Moves a partition to another node.
    pub(super) fn move_partition(&mut self, leaf: PartitionIndex, to: NodeId) {
        let (from, contents) = (self.plan.node(leaf), self.contents(leaf));
        if self.plan.place(leaf, to).is_ok() {
            self.loads[from.index()] -= contents;
            self.loads[to.index()] += contents;
        }
    }

    /// The moves of the round, in the order of the map.
    pub(super) fn moves(&self, weight: u64) -> Vec<PlannedMove> {
        let mut moves = Vec::new();
        for ((assignment, members), origins) in
            self.plan.assignments().iter().zip(&self.members).zip(&self.origins)
        {
            let mut counts: BTreeMap<NodeId, u64> = origins.iter().map(|node| (*node, 0)).collect();
            for content in members {
                *counts.entry(self.origin[*content as usize]).or_default() += weight;
            }
            let away = counts.into_iter().filter(|(from, _)| *from != assignment.node);
            moves.extend(away.map(|(from, contents)| PlannedMove {
                partition: assignment.id,
                from,
                to: assignment.node,
                contents,
            }));
        }
        moves
    }
}
