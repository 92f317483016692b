//! Load of tier 2, per partition and node.

use serde::{Deserialize, Serialize};

/// A box of length-vector space: `lo[m] <= feature m <= hi[m]`. Feature 0 is the total; feature m is what the m-th half
/// of the dictionary has in a page, less what the other half has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LengthBox {
    /// Smallest value of each feature; null is no limit.
    pub lo: Vec<Option<i64>>,
    /// Largest value of each feature; null is no limit.
    pub hi: Vec<Option<i64>>,
}

/// One partition's load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PartitionLoad {
    /// Its id.
    pub partition: u32,
    /// The node that has it, from 0.
    pub node: u32,
    /// Its box.
    #[serde(rename = "box")]
    pub bounds: LengthBox,
    /// Contents stored.
    pub contents: u64,
    /// Pages stored (a content may have several).
    pub pages: u64,
    /// Pages received for comparison since the start or the last change of the plan.
    pub received: u64,
    /// Exact comparisons made in it.
    pub comparisons: u64,
    /// Memory of its columns and tables, in bytes.
    pub bytes: u64,
}

/// Load of tier 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoadReport {
    /// Number of the plan; grows by one with every change of the cuts, of the partitions' nodes, or of the nodes that
    /// may have partitions.
    pub plan_version: u64,
    /// Sub-dictionaries of the map (N).
    pub dimensions: u32,
    /// Every partition.
    pub partitions: Vec<PartitionLoad>,
    /// Searches made since the start or the last change of the plan.
    pub searches: u64,
    /// Partitions those searches were sent to, together.
    pub fan_out: u64,
    /// Largest over mean of contents per partition; 1 is even.
    pub imbalance: f64,
    /// The same contents dealt at random to as many partitions: the noise floor of `imbalance`.
    pub imbalance_floor: f64,
    /// Share of fan-out saved against comparing every page in every partition, 0 to 1; null without searches.
    pub fan_out_saved: Option<f64>,
    /// Nodes that may have partitions.
    pub serving: u32,
    /// Nodes those searches were sent to, together: a node with several of the partitions has a search once.
    pub node_fan_out: u64,
    /// Largest over mean of contents per serving node; 1 is even.
    pub node_imbalance: f64,
    /// The same contents dealt at random to as many nodes: the noise floor of `node_imbalance`.
    pub node_imbalance_floor: f64,
    /// Share of fan-out saved against comparing every page on every serving node, 0 to 1; null without searches.
    pub node_fan_out_saved: Option<f64>,
    /// Bytes of the signature file on disk.
    pub file_bytes: u64,
}
