//! The load that a coordinator observed over the last hours: the answer of `GET /v1/load/history`.

use doppel_model::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::form::TimeForm;

/// Load over the last hours, as one coordinator recorded it since its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadHistory {
    /// Time of the answer in milliseconds since 1970. Pass it as `since` in the next request to get only
    /// later points.
    pub now_ms: i64,
    /// The points, oldest first: every 5 seconds in the first minute after the start, then every 30 seconds.
    /// There is no point for a time at which a tier did not answer.
    pub points: Vec<LoadSample>,
}

/// Load at a point in time, and activity since the previous point. A figure about the time since the previous
/// point is null in the first point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LoadSample {
    /// Time of the measurement (RFC 3339).
    #[schema(value_type = TimeForm)]
    pub at: String,
    /// Time of the measurement in milliseconds since 1970.
    pub at_ms: i64,
    /// Accepted submissions per second.
    pub submissions_per_s: Option<f64>,
    /// Pages decided by a comparison, per second.
    pub decisions_per_s: Option<f64>,
    /// Median time that pages waited for their decision; null if none was decided. Waiting times are counted
    /// in classes, so the value is the upper bound of a class: 10, 30, 100, ... milliseconds.
    pub decision_p50_ms: Option<u64>,
    /// 95th percentile of the time that pages waited for their decision; null if none was decided. The value
    /// is the upper bound of a class.
    pub decision_p95_ms: Option<u64>,
    /// Number of pages that wait for a decision.
    pub pending: u64,
    /// Waiting time of the page that has waited longest, in milliseconds. Null if no page waits.
    pub oldest_pending_ms: Option<u64>,
    /// Searches of the index, per second.
    pub searches_per_s: Option<f64>,
    /// Mean number of partitions that a search was sent to. Null if there was no search.
    pub fan_out: Option<f64>,
    /// Version of the plan in force.
    pub plan_version: u64,
    /// Load of every partition; empty if there are more than 64 partitions.
    pub partitions: Vec<PartitionSample>,
}

/// Load of a partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartitionSample {
    /// Number of the partition.
    #[schema(value_type = u32)]
    pub partition: PartitionId,
    /// Number of the node that stores the partition.
    #[schema(value_type = u32)]
    pub node: NodeId,
    /// Number of contents stored in the partition.
    pub contents: u64,
    /// Pages received for comparison, per second.
    pub received_per_s: Option<f64>,
    /// Exact comparisons per second.
    pub comparisons_per_s: Option<f64>,
}
