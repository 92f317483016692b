//! The present mapping of partitions to nodes, and alternatives: the answers of `GET /v1/rebalance` and of
//! the what-if report.

use doppel_model::NodeId;
use doppel_partitioning::WhatIf;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rebalance::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};

/// The present mapping of partitions to nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Present)]
pub struct PresentMapping {
    /// Version of the plan in force.
    pub plan_version: u64,
    /// Number of nodes, including drained nodes.
    pub nodes: u32,
    /// Drained nodes, which receive no partitions.
    #[schema(value_type = Vec<u32>)]
    pub drained: Vec<NodeId>,
    /// Progress of the present change of the mapping; null if there is none.
    pub progress: Option<RebalanceProgress>,
    /// The request that is being carried out or comes next; null if there is none.
    pub request: Option<RebalanceRequest>,
    /// Outcome of the last request that ended since the service started; null if there is none.
    pub outcome: Option<RebalanceOutcome>,
}

/// Mappings of the present contents with other numbers of sub-dictionaries and nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = WhatIfs)]
pub struct WhatIfReport {
    /// Number of contents from which the figures are computed: all contents, or the 100,000 with the smallest
    /// hashes.
    pub sample: u64,
    /// Figures of the present plan for the same contents.
    pub present: WhatIf,
    /// Figures for 1 to 4 sub-dictionaries and 2 to 128 nodes.
    pub rows: Vec<WhatIf>,
    /// Age of the report in milliseconds; absent if the report was computed for this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub age_ms: Option<u64>,
}
