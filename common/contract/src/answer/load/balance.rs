//! The load of nodes and partitions, now and over the last 24 hours: the answer of `GET
//! /v1/reports/load-balance`.

use doppel_model::NodeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::form::TimeForm;
use crate::load_report::LoadReport;
use crate::rebalance::RebalanceProgress;

/// Load of each partition and node, and the owner of each shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadBalance {
    /// Load of the partitions.
    #[serde(flatten)]
    pub load: LoadReport,
    /// Load of each tier-2 node, summed over its partitions.
    pub nodes: Vec<NodeLoad>,
    /// Drained nodes, which receive no partitions.
    #[schema(value_type = Vec<u32>)]
    pub drained: Vec<NodeId>,
    /// Progress of the present change of the mapping; null if there is none.
    pub progress: Option<RebalanceProgress>,
    /// Load once per minute since the service started, oldest first. The history covers at most 24 hours.
    pub history: Vec<LoadPoint>,
    /// Standard deviation of `node_imbalance` over the history, divided by its mean. Null without a history.
    pub variation: Option<f64>,
    /// Version of the table of shards.
    pub shard_map_version: u64,
    /// The tier-1 node of every shard.
    pub shards: Vec<ShardAssignment>,
}

/// Load of a tier-2 node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeLoad {
    /// Number of the node, counted from 0.
    #[schema(value_type = u32)]
    pub node: NodeId,
    /// Number of partitions on the node.
    pub partitions: u64,
    /// Number of contents stored on the node.
    pub contents: u64,
    /// Number of pages stored on the node.
    pub pages: u64,
    /// Number of pages received for comparison, summed over the partitions of the node.
    pub received: u64,
    /// Number of exact comparisons on the node.
    pub comparisons: u64,
    /// Memory of the partitions in bytes.
    pub bytes: u64,
}

/// Load at a point in time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadPoint {
    /// Time of the measurement (RFC 3339).
    #[schema(value_type = TimeForm)]
    pub at: String,
    /// Version of the plan in force.
    pub plan_version: u64,
    /// Number of contents in all partitions.
    pub contents: u64,
    /// Largest number of contents on a serving node, divided by the mean.
    pub node_imbalance: f64,
    /// Value that `node_imbalance` would have if the contents were distributed at random.
    pub node_imbalance_floor: f64,
    /// Share of node requests that the plan saves compared with a broadcast to all nodes. Null if no search
    /// was made under the plan.
    pub node_fan_out_saved: Option<f64>,
}

/// A row of the table of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShardAssignment {
    /// Number of the shard.
    pub shard: u16,
    /// Name of the tier-1 node that owns the shard.
    pub node: String,
}
