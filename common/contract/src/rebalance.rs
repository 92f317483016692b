//! Changes of the mapping of partitions to nodes: requests, plans, progress and outcomes.

use doppel_model::{NodeId, PartitionId};
use doppel_partitioning::{PlanChange, PlannedMove};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A request to change the mapping of partitions to nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum RebalanceRequest {
    /// Balances the load with few moves.
    Balance,
    /// Learns a new map from the present contents. A new map reduces the fan-out, but nearly all contents
    /// move.
    Learn,
    /// Moves all partitions away from a node.
    Drain {
        /// Number of the node, counted from 0.
        #[schema(value_type = u32)]
        node: NodeId,
    },
    /// Moves one partition to another node.
    Move {
        /// Id of the partition.
        #[schema(value_type = u32)]
        partition: PartitionId,
        /// Number of the node, counted from 0.
        #[schema(value_type = u32)]
        node: NodeId,
    },
    /// Allows a drained node to have partitions again, and moves its share to it.
    Join {
        /// Number of the node, counted from 0.
        #[schema(value_type = u32)]
        node: NodeId,
    },
}

/// A planned or running change of the mapping, with its effects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalancePlan {
    /// Version of the present plan.
    pub plan_version: u64,
    /// Whether the change is being carried out.
    pub started: bool,
    /// Why there is nothing to do; null if there is something to do.
    pub nothing_to_do: Option<String>,
    /// Number of partitions that are cut in two.
    pub splits: u32,
    /// Number of pairs of partitions that are joined into one.
    pub joins: u32,
    /// The partitions that move to another node, in the order of the map.
    pub moves: Vec<PartitionMove>,
    /// Approximate number of contents that change their node. The progress of the change counts more,
    /// because it includes the contents of partitions that are split or joined on their node.
    pub contents_moved: u64,
    /// Number of all contents.
    pub contents: u64,
    /// Imbalance before the change: the largest number of contents on a serving node, divided by the mean.
    pub imbalance_before: f64,
    /// Imbalance after the change, over the nodes that serve then.
    pub imbalance_after: f64,
    /// Share of fan-out saved before the change, from 0 to 1, relative to comparing every content on every
    /// serving node. Null unless the map is learned anew.
    pub fan_out_saved_before: Option<f64>,
    /// Share of fan-out saved after the change, from 0 to 1. Null unless the map is learned anew.
    pub fan_out_saved_after: Option<f64>,
}

/// A partition that moves to another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionMove {
    /// Id of the partition in the new plan.
    #[schema(value_type = u32)]
    pub partition: PartitionId,
    /// The node that stores the partition now.
    #[schema(value_type = u32)]
    pub from: NodeId,
    /// The node to which the partition moves.
    #[schema(value_type = u32)]
    pub to: NodeId,
    /// Approximate number of contents in the partition.
    pub contents: u64,
}

impl From<PlannedMove> for PartitionMove {
    fn from(planned: PlannedMove) -> Self {
        let PlannedMove { partition, from, to, contents } = planned;
        Self { partition, from, to, contents }
    }
}

impl From<PlanChange> for RebalancePlan {
    /// Creates the description of a change that has not started.
    fn from(change: PlanChange) -> Self {
        Self {
            plan_version: change.plan_version,
            started: false,
            nothing_to_do: None,
            splits: change.splits,
            joins: change.joins,
            moves: change.moves.into_iter().map(Into::into).collect(),
            contents_moved: change.contents_moved,
            contents: change.contents,
            imbalance_before: change.imbalance_before,
            imbalance_after: change.imbalance_after,
            fan_out_saved_before: change.fan_out_saved_before,
            fan_out_saved_after: change.fan_out_saved_after,
        }
    }
}

/// Progress of a change of the mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalanceProgress {
    /// Version of the plan that stays in force until the change is complete.
    pub plan_version: u64,
    /// Version of the plan that follows.
    pub next_version: u64,
    /// Number of contents copied so far.
    pub copied: u64,
    /// Number of contents to copy.
    pub contents: u64,
    /// Number of contents that changed after they were copied and are copied again.
    pub changed: u64,
    /// Seconds since the change began.
    pub seconds: f64,
}

/// Outcome of a request to change the mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalanceOutcome {
    /// The request that ended.
    #[serde(flatten)]
    pub request: RebalanceRequest,
    /// Why the request was not carried out; null if it was carried out.
    pub failed: Option<String>,
    /// Whether the request ended because an operator cancelled it.
    #[serde(default)]
    pub cancelled: bool,
    /// Version of the plan in force when the request ended.
    pub plan_version: u64,
    /// Number of contents copied for the request.
    pub copied: u64,
    /// Seconds from the beginning to the end of the request.
    pub seconds: f64,
}
