//! The present mapping and possible others: the answers of `GET /v1/rebalance` and of the what-if report.

use doppel_model::NodeId;
use doppel_partitioning::WhatIf;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};

/// The present mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Present {
    /// The version of the plan in force.
    pub plan_version: u64,
    /// The number of nodes, including drained ones.
    pub nodes: u32,
    /// The drained nodes, which get no partitions.
    #[schema(value_type = Vec<u32>)]
    pub drained: Vec<NodeId>,
    /// The change that is under way, or null.
    pub progress: Option<RebalanceProgress>,
    /// The request that is being carried out or is next, or null.
    pub request: Option<RebalanceRequest>,
    /// The outcome of the last request that ended since the service started, or null.
    pub outcome: Option<RebalanceOutcome>,
}

/// The mapping of the present contents with other numbers of sub-dictionaries and nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfs {
    /// The number of contents that the figures are computed from: all, or the 100,000 with the smallest hashes.
    pub sample: u64,
    /// The present plan on the same contents.
    pub present: WhatIf,
    /// For 1 to 4 sub-dictionaries and 2 to 128 nodes.
    pub rows: Vec<WhatIf>,
    /// How long ago it was made, in milliseconds; absent where it was made for this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub age_ms: Option<u64>,
}
