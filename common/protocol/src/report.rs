//! The load of tier 2 per partition and node.

use doppel_model::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};

/// A box of length-vector space: `lo[m] <= feature m <= hi[m]`. Feature 0 is the total. For the m-th division of the
/// dictionary into two halves, feature m is the number of a page's shingles in the one half minus that in the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LengthBox {
    /// The smallest value of each feature; null means no limit.
    pub lo: Vec<Option<i64>>,
    /// The largest value of each feature; null means no limit.
    pub hi: Vec<Option<i64>>,
}

/// The load of one partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PartitionLoad {
    /// Its id.
    #[schema(value_type = u32)]
    pub partition: PartitionId,
    /// The node that has it, from 0.
    #[schema(value_type = u32)]
    pub node: NodeId,
    /// Its box.
    #[serde(rename = "box")]
    pub bounds: LengthBox,
    /// The number of contents stored.
    pub contents: u64,
    /// The number of pages stored. A content may have several.
    pub pages: u64,
    /// The number of pages received for comparison since the start or the last change of the plan.
    pub received: u64,
    /// The number of exact comparisons made in it.
    pub comparisons: u64,
    /// Memory of its columns and tables, in bytes.
    pub bytes: u64,
}

/// The load of tier 2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LoadReport {
    /// The version of the plan. It grows by one whenever the cuts, the nodes of the partitions, or the nodes that may
    /// have partitions change.
    pub plan_version: u64,
    /// The number of sub-dictionaries of the map (N).
    pub dimensions: u32,
    /// All partitions.
    pub partitions: Vec<PartitionLoad>,
    /// The number of searches since the start or the last change of the plan.
    pub searches: u64,
    /// The number of partitions that these searches were sent to, summed over the searches.
    pub fan_out: u64,
    /// The largest number of contents in a partition, divided by the mean; 1 is even.
    pub imbalance: f64,
    /// The noise floor of `imbalance`: its value if the same contents were distributed to as many partitions at random.
    pub imbalance_floor: f64,
    /// Share of fan-out saved in relation to comparing every page in every partition, 0 to 1; null without searches.
    pub fan_out_saved: Option<f64>,
    /// The number of nodes that may have partitions.
    pub serving_nodes: u32,
    /// The number of nodes that these searches were sent to, summed over the searches. A node with several of the
    /// partitions gets a search once.
    pub node_fan_out: u64,
    /// The largest number of contents on a serving node, divided by the mean; 1 is even.
    pub node_imbalance: f64,
    /// The noise floor of `node_imbalance`: its value if the same contents were distributed to as many nodes at random.
    pub node_imbalance_floor: f64,
    /// Share of fan-out saved in relation to comparing every page on every serving node, 0 to 1; null without searches.
    pub node_fan_out_saved: Option<f64>,
    /// The size of the signature file on disk, in bytes.
    pub file_bytes: u64,
}

/// One node without pages: nothing is searched, and everything is even.
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
