//! The mapping at present, and what another would be: the answers of `GET /v1/rebalance` and of the what-if report.

use doppel_partitioning::WhatIf;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};

/// The mapping at present.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Present {
    /// Number of the plan that is served.
    pub plan_version: u64,
    /// Nodes, those that are drained among them.
    pub nodes: u32,
    /// Nodes that are to have no partitions.
    pub drained: Vec<u32>,
    /// The change that is under way; null where there is none.
    pub progress: Option<RebalanceProgress>,
    /// The request that is being carried out, or comes next; null where there is none.
    pub request: Option<RebalanceRequest>,
    /// How the last request ended since the start; null where there was none.
    pub outcome: Option<RebalanceOutcome>,
}

/// What other numbers of sub-dictionaries and nodes would make of the present contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfs {
    /// Contents that the figures are from, those with the least hashes: all, or 100,000.
    pub sample: u64,
    /// The present plan on the same contents.
    pub present: WhatIf,
    /// For 1 to 4 sub-dictionaries and 2 to 128 nodes.
    pub rows: Vec<WhatIf>,
}
