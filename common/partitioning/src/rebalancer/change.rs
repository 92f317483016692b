//! The changes that lead from one plan to the next, in partitions and contents.

use doppel_model::{NodeId, PartitionId};

/// The difference between two plans, and its effect on the load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanChange {
    /// The version of the old plan.
    pub plan_version: u64,
    /// The number of cuts that are added.
    pub splits: u32,
    /// The number of pairs of partitions that are joined.
    pub joins: u32,
    /// The partitions that move to another node, in the order of the map.
    pub moves: Vec<PlannedMove>,
    /// The approximate number of contents that move to another node.
    pub contents_moved: u64,
    /// The approximate number of all contents.
    pub contents: u64,
    /// The largest number of contents per serving node divided by the mean, before.
    pub imbalance_before: f64,
    /// The largest number of contents per serving node divided by the mean, after the change. Counts the
    /// nodes that serve after the change.
    pub imbalance_after: f64,
    /// The share of fan-out saved before, compared to searching every content on every serving node, 0 to 1.
    /// Only given for a map that is learned anew.
    pub fan_out_saved_before: Option<f64>,
    /// The share of fan-out saved after the change, 0 to 1. Only given for a map that is learned anew.
    pub fan_out_saved_after: Option<f64>,
}

/// A partition that moves to another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMove {
    /// The id of the partition in the new plan.
    pub partition: PartitionId,
    /// The node that stores it now.
    pub from: NodeId,
    /// The node to which it moves.
    pub to: NodeId,
    /// The approximate number of contents that move from `from` to `to` with this partition.
    pub contents: u64,
}
