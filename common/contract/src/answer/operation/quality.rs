//! The quality of the groups, and the remaining work: the answer of `GET /v1/reports/quality`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::counters::{Backlog, Counters};

/// Totals of the collection, shares, and the remaining work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Quality {
    /// Totals of the collection.
    pub counters: Counters,
    /// Number of pages with status `unique`. Every live page is unique, a winner, a duplicate, secondary,
    /// unresolved or pending. The number may include redirects that are not decided yet, and pages that wait
    /// for messages about them.
    pub unique: u64,
    /// Accepted work that is not done yet.
    pub backlog: Backlog,
    /// Maximum number of pending pages.
    pub pending_limit: u64,
    /// Whether no work remains.
    pub quiescent: bool,
    /// Share of the content updates that the comparison with the representative alone confirmed, from 0 to 1.
    pub confirm_share: Option<f64>,
    /// Share of the comparisons between a member and the winner that found no near-duplicate, from 0 to 1,
    /// since the collection was created. A page is not compared again if it equals the winner or its search
    /// found the winner. Hence this is not a share of all members.
    pub reject_share: Option<f64>,
    /// How long pages wait for their decision.
    #[serde(default)]
    pub decisions: DecisionWaits,
    /// Number of ranges that accept no pages because their disk is full.
    #[serde(default)]
    pub full_disks: u64,
    /// Why the service accepts no pages at present, or in a cluster, why some ranges accept none. Null if all
    /// accept pages.
    #[serde(default)]
    pub not_ready: Option<String>,
}

/// How long pages wait for their decision, from being recorded to the end of their comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Decisions)]
pub struct DecisionWaits {
    /// Waiting time of the page that has waited longest, in milliseconds. Null if no page is pending. Time
    /// before the service started does not count.
    pub oldest_pending_ms: Option<u64>,
    /// Number of pages decided since the service started, by class of waiting times, shortest first. Empty
    /// classes are left out.
    pub waited: Vec<DecisionClass>,
}

/// Pages in a class of waiting times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionClass {
    /// Longest waiting time in the class, in milliseconds. The class begins above the bound of the class
    /// before it. Null for the last class.
    pub up_to_ms: Option<u64>,
    /// Number of pages in the class.
    pub pages: u64,
}
