//! What a front door has seen of the load in the last hours: the answer of `GET /v1/load/history`.

use doppel_model::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TimeForm;

/// Points of the last hours, as one front door has noted them since it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadHistory {
    /// When the answer was made, in milliseconds since 1970: to be passed as `since` to get what came later.
    pub now_ms: i64,
    /// The points, oldest first: every 5 seconds in the first minute after the start, then every 30. A moment at which a tier did
    /// not answer has none.
    pub points: Vec<LoadSample>,
}

/// The load at some moment, and what happened between it and the point before. A figure of the time between two points is null at
/// the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadSample {
    /// The time, RFC 3339.
    #[schema(value_type = TimeForm)]
    pub at: String,
    /// The same in milliseconds since 1970.
    pub at_ms: i64,
    /// Submissions taken, a second.
    pub submissions_per_s: Option<f64>,
    /// Pages decided by a comparison, a second.
    pub decisions_per_s: Option<f64>,
    /// Half of the pages decided in the time waited no longer than this; null where none was decided. Times are known by classes, so
    /// this is the upper bound of one: 10, 30, 100, ... milliseconds.
    pub decision_p50_ms: Option<u64>,
    /// The same for 95 of 100 pages.
    pub decision_p95_ms: Option<u64>,
    /// Pages that wait for a decision.
    pub pending: u64,
    /// How long the one that has waited longest waits, in milliseconds; null when none does.
    pub oldest_pending_ms: Option<u64>,
    /// Searches of the index, a second.
    pub searches_per_s: Option<f64>,
    /// Partitions that a search of the time was sent to, on average; null where there was none.
    pub fan_out: Option<f64>,
    /// The version of the plan.
    pub plan_version: u64,
    /// The load of every partition; empty where there are more than 64.
    pub partitions: Vec<PartitionSample>,
}

/// The load of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartitionSample {
    /// The partition.
    #[schema(value_type = u32)]
    pub partition: PartitionId,
    /// The node that has it.
    #[schema(value_type = u32)]
    pub node: NodeId,
    /// Contents stored.
    pub contents: u64,
    /// Pages received for comparison, a second.
    pub received_per_s: Option<f64>,
    /// Exact comparisons, a second.
    pub comparisons_per_s: Option<f64>,
}
