//! The load of nodes and partitions, now and in the last hours: the answer of `GET /v1/reports/load-balance`.

use doppel_model::NodeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TimeForm;
use crate::{LoadReport, RebalanceProgress};

/// The load per partition and node, and the owner of each shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadBalance {
    /// The load of the partitions.
    #[serde(flatten)]
    pub load: LoadReport,
    /// The partitions' figures added up per tier-2 node.
    pub nodes: Vec<NodeLoad>,
    /// The drained nodes, which get no partitions.
    #[schema(value_type = Vec<u32>)]
    pub drained: Vec<NodeId>,
    /// The change of the mapping that is under way.
    pub progress: Option<RebalanceProgress>,
    /// One point per minute since the service started, at most of the last 24 hours, oldest first.
    pub history: Vec<LoadPoint>,
    /// Standard deviation of `node_imbalance` in the history, divided by its mean; null without a history.
    pub variation: Option<f64>,
    /// The version of the table of shards.
    pub shard_map_version: u64,
    /// The tier-1 node of every shard.
    pub shards: Vec<ShardAssignment>,
}

/// One tier-2 node's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeLoad {
    /// The node, from 0.
    #[schema(value_type = u32)]
    pub node: NodeId,
    /// Its partitions.
    pub partitions: u64,
    /// Contents stored.
    pub contents: u64,
    /// Pages stored.
    pub pages: u64,
    /// Pages received for comparison, by all its partitions together.
    pub received: u64,
    /// Exact comparisons.
    pub comparisons: u64,
    /// Memory, in bytes.
    pub bytes: u64,
}

/// The load at some moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadPoint {
    /// The time, RFC 3339.
    #[schema(value_type = TimeForm)]
    pub at: String,
    /// The version of the plan.
    pub plan_version: u64,
    /// All contents.
    pub contents: u64,
    /// The largest number of contents on a serving node, divided by the mean.
    pub node_imbalance: f64,
    /// The same for the contents distributed at random.
    pub node_imbalance_floor: f64,
    /// Share of fan-out to nodes saved in relation to a broadcast; null if there were no searches under the plan.
    pub node_fan_out_saved: Option<f64>,
}

/// One row of the table of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShardAssignment {
    /// The shard.
    pub shard: u16,
    /// The tier-1 node that owns it.
    pub node: String,
}
