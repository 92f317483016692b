//! Who has how much to do, now and in the last hours: the answer of `GET /v1/reports/load-balance`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{LoadReport, RebalanceProgress};

/// Load per partition and node, and who owns which shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadBalance {
    /// The load of the partitions.
    #[serde(flatten)]
    pub load: LoadReport,
    /// The partitions' figures added up per tier-2 node.
    pub nodes: Vec<NodeLoad>,
    /// Nodes that are to have no partitions.
    pub drained: Vec<u32>,
    /// The change of the mapping that is under way.
    pub progress: Option<RebalanceProgress>,
    /// A point per minute for as long as the service runs, the last 24 hours of it, oldest first.
    pub history: Vec<LoadPoint>,
    /// Standard deviation over mean of `node_imbalance` in the history; null where there is none.
    pub variation: Option<f64>,
    /// Number of the table of shards.
    pub shard_map_version: u64,
    /// The tier-1 node of every shard.
    pub shards: Vec<ShardAssignment>,
}

/// One tier-2 node's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeLoad {
    /// The node, from 0.
    pub node: u32,
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
    /// When.
    pub at: String,
    /// Number of the map.
    pub plan_version: u64,
    /// All contents.
    pub contents: u64,
    /// Largest over mean of contents per serving node.
    pub node_imbalance: f64,
    /// The same contents dealt at random.
    pub node_imbalance_floor: f64,
    /// Share of fan-out to nodes saved against a broadcast; null where there were no searches under the plan.
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
