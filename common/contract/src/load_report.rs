//! Load of tier 2, for each partition and node.

use doppel_model::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};

/// A box in the space of length vectors: `lo[m] <= feature m <= hi[m]`. Feature 0 is the total. The m-th
/// division splits the dictionary into two halves. Feature m is the number of a page's shingles in the one
/// half minus the number in the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LengthBox {
    /// Smallest value of each feature; null if there is no limit.
    pub lo: Vec<Option<i64>>,
    /// Largest value of each feature; null if there is no limit.
    pub hi: Vec<Option<i64>>,
}

/// Load of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PartitionLoad {
    /// Number of the partition.
    #[schema(value_type = u32)]
    pub partition: PartitionId,
    /// Number of the node that stores the partition, counted from 0.
    #[schema(value_type = u32)]
    pub node: NodeId,
    /// Box of the partition.
    #[serde(rename = "box")]
    pub bounds: LengthBox,
    /// Number of contents stored in the partition.
    pub contents: u64,
    /// Number of pages stored in the partition. Several pages can have the same content.
    pub pages: u64,
    /// Number of pages received for comparison since the start or the last change of the plan.
    pub received: u64,
    /// Number of exact comparisons in the partition.
    pub comparisons: u64,
    /// Memory of the partition's columns and tables, in bytes.
    pub bytes: u64,
}

/// Load of tier 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoadReport {
    /// Version of the plan. It grows by one whenever the cuts, the nodes of the partitions, or the set of
    /// serving nodes change.
    pub plan_version: u64,
    /// Number of sub-dictionaries of the map (N).
    pub dimensions: u32,
    /// Load of every partition.
    pub partitions: Vec<PartitionLoad>,
    /// Number of searches since the start or the last change of the plan.
    pub searches: u64,
    /// Number of partitions that these searches were sent to, summed over the searches.
    pub fan_out: u64,
    /// Largest number of contents in a partition, divided by the mean; 1 means even.
    pub imbalance: f64,
    /// Noise floor of `imbalance`: its value if the same contents were distributed to the same number of
    /// partitions at random.
    pub imbalance_floor: f64,
    /// Share of fan-out saved relative to comparing every page in every partition, from 0 to 1. Null if there
    /// was no search.
    pub fan_out_saved: Option<f64>,
    /// Number of serving nodes, which may have partitions.
    pub serving_nodes: u32,
    /// Number of nodes that these searches were sent to, summed over the searches. A search for several
    /// partitions of a node counts once.
    pub node_fan_out: u64,
    /// Largest number of contents on a serving node, divided by the mean; 1 means even.
    pub node_imbalance: f64,
    /// Noise floor of `node_imbalance`: its value if the same contents were distributed to the same number of
    /// nodes at random.
    pub node_imbalance_floor: f64,
    /// Share of fan-out saved relative to comparing every page on every serving node, from 0 to 1. Null if
    /// there was no search.
    pub node_fan_out_saved: Option<f64>,
    /// Size of the signature file on disk, in bytes.
    pub file_bytes: u64,
}

/// The load of a single node without pages, where no search was made and everything is even.
impl Default for LoadReport {
    fn default() -> Self {
        Self {
            plan_version: 0,
            dimensions: 1,
            partitions: Vec::new(),
            searches: 0,
            fan_out: 0,
            imbalance: 1.0,
            imbalance_floor: 1.0,
            fan_out_saved: None,
            serving_nodes: 1,
            node_fan_out: 0,
            node_imbalance: 1.0,
            node_imbalance_floor: 1.0,
            node_fan_out_saved: None,
            file_bytes: 0,
        }
    }
}
