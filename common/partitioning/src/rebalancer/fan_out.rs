//! Computes the fan-out cost of moving a partition. A content is sent once to each node that stores at least
//! one of the content's probed partitions.

use doppel_model::NodeId;

use super::leaves::Leaves;
use crate::partition_index::PartitionIndex;

/// The maximum number of contents on which the fan-out is counted.
const CONTENTS_MAX: usize = 16_384;

/// The maximum of contents times nodes, and of partitions times nodes. This bounds the counts to 16 MB.
const COUNTS_MAX: usize = 4 << 20;

/// Counts which contents are compared on which nodes. The counts are updated incrementally as partitions
/// move.
pub(super) struct FanOut {
    nodes: usize,
    /// The number of contents for which each counted content stands.
    weight: usize,
    /// The probed partitions of each content.
    probed_partitions: Vec<Vec<PartitionIndex>>,
    /// The contents that are compared in each partition.
    received: Vec<Vec<u32>>,
    /// The node of each partition.
    node_of: Vec<NodeId>,
    /// By content and node: how many probed partitions of the content are on the node.
    counts: Vec<u16>,
    /// By partition and node: how many contents of the partition are sent to the node.
    sent: Vec<u32>,
    /// By partition: how many of its contents are sent to its node only because of this partition.
    only_there: Vec<u32>,
}

impl FanOut {
    pub(super) fn new(leaves: &Leaves<'_>) -> Self {
        let nodes = leaves.plan.nodes() as usize;
        let assignments = leaves.plan.assignments();
        let contents_max = (COUNTS_MAX / nodes).clamp(1, CONTENTS_MAX);
        let step = leaves.lengths.len().div_ceil(contents_max).max(1);
        let mut fan_out = Self {
            nodes,
            weight: step,
            probed_partitions: Vec::new(),
            received: vec![Vec::new(); assignments.len()],
            node_of: assignments.iter().map(|assignment| assignment.node).collect(),
            counts: Vec::new(),
            sent: vec![0; assignments.len() * nodes],
            only_there: vec![0; assignments.len()],
        };
        for vector in leaves.lengths.iter().step_by(step) {
            let mut probed_partitions = Vec::new();
            leaves.plan.map().probed_partitions(vector, &mut probed_partitions);
            fan_out.add(probed_partitions);
        }
        fan_out
    }

    fn add(&mut self, probed_partitions: Vec<PartitionIndex>) {
        let content = self.probed_partitions.len();
        let row = content * self.nodes;
        self.counts.resize(row + self.nodes, 0);
        for leaf in &probed_partitions {
            self.received[leaf.index()].push(content as u32);
            self.counts[row + self.node_of[leaf.index()].index()] += 1;
        }
        let counts = &self.counts[row..];
        for leaf in probed_partitions.iter().map(|leaf| leaf.index()) {
            let sent = &mut self.sent[leaf * self.nodes..][..self.nodes];
            sent.iter_mut().zip(counts).for_each(|(sent, count)| *sent += u32::from(*count > 0));
            self.only_there[leaf] += u32::from(counts[self.node_of[leaf].index()] == 1);
        }
        self.probed_partitions.push(probed_partitions);
    }

    /// The number of contents for which each counted content stands.
    pub(super) fn weight(&self) -> f64 {
        self.weight as f64
    }

    /// The fan-out that is added, minus the fan-out that is saved, if the partition moves to node `to`.
    pub(super) fn cost(&self, leaf: PartitionIndex, to: NodeId) -> i64 {
        let index = leaf.index();
        let sent = self.sent[index * self.nodes + to.index()];
        self.received[index].len() as i64 - i64::from(sent) - i64::from(self.only_there[index])
    }

    /// Updates the counts for a partition that moves to node `to`.
    pub(super) fn move_partition(&mut self, leaf: PartitionIndex, to: NodeId) {
        let index = leaf.index();
        let from = std::mem::replace(&mut self.node_of[index], to);
        for at in 0..self.received[index].len() {
            let content = self.received[index][at] as usize;
            self.leave(content, from);
            self.arrive(content, to);
        }
        let is_alone = |content: &&u32| self.counts[**content as usize * self.nodes + to.index()] == 1;
        self.only_there[index] = self.received[index].iter().filter(is_alone).count() as u32;
    }

    /// Removes one probed partition of a content from a node.
    fn leave(&mut self, content: usize, node: NodeId) {
        let count = &mut self.counts[content * self.nodes + node.index()];
        *count -= 1;
        match *count {
            0 => {
                for leaf in &self.probed_partitions[content] {
                    self.sent[leaf.index() * self.nodes + node.index()] -= 1;
                }
            }
            1 => {
                let last =
                    self.probed_partitions[content].iter().find(|leaf| self.node_of[leaf.index()] == node);
                if let Some(last) = last {
                    self.only_there[last.index()] += 1;
                }
            }
            _ => {}
        }
    }

    /// Adds one probed partition of a content to a node.
    fn arrive(&mut self, content: usize, node: NodeId) {
        let count = &mut self.counts[content * self.nodes + node.index()];
        *count += 1;
        match *count {
            1 => {
                for leaf in &self.probed_partitions[content] {
                    self.sent[leaf.index() * self.nodes + node.index()] += 1;
                }
            }
            2 => {
                for leaf in &self.probed_partitions[content] {
                    if self.node_of[leaf.index()] == node {
                        self.only_there[leaf.index()] = self.only_there[leaf.index()].saturating_sub(1);
                    }
                }
            }
            _ => {}
        }
    }
}
