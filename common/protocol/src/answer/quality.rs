//! The quality of the groups and the remaining work: the answer of `GET /v1/reports/quality`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Backlog, CLASS_BOUNDS_MS, Counters, DecisionTimes};

/// Totals, shares of them, and the remaining work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Quality {
    /// Totals.
    pub counters: Counters,
    /// Pages with status unique. Live pages are unique, winners, duplicates, members, unresolved or pending;
    /// a redirect, or a page while messages about it are under way, may be counted here before it is decided.
    pub unique: u64,
    /// Accepted work that is not yet done.
    pub backlog: Backlog,
    /// The most pages that may be pending.
    pub pending_limit: u64,
    /// Whether nothing is left to do.
    pub quiescent: bool,
    /// Share of the content updates that were confirmed by the representative alone, 0 to 1.
    pub confirm_share: Option<f64>,
    /// Share of the comparisons with a winner in which the page was no near-duplicate of it, 0 to 1, since the collection was made. A
    /// page that equals the winner, or whose search has found the winner, is not compared once more, so it is no share of members.
    pub reject_share: Option<f64>,
    /// How long pages wait for their decision.
    #[serde(default)]
    pub decisions: Decisions,
    /// Ranges that take no pages because their disk is full.
    #[serde(default)]
    pub full_disks: u64,
    /// Why the service takes no pages at present, or in a cluster some ranges take none; null where all do.
    #[serde(default)]
    pub not_ready: Option<String>,
}

/// How long pages wait for their decision, from their record to the end of their comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Decisions {
    /// How long the page that has waited longest waits by now, in milliseconds; null when nothing is pending. Of a page that was
    /// pending before the service started, the time before that does not count.
    pub oldest_pending_ms: Option<u64>,
    /// Pages decided since the service started, by how long they had waited, the shortest first; classes without pages are left out.
    pub waited: Vec<DecisionClass>,
}

/// Pages that had waited about as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionClass {
    /// No longer than this, in milliseconds, and longer than the bound of the class before; null for the last class.
    pub up_to_ms: Option<u64>,
    /// The pages.
    pub pages: u64,
}

impl From<DecisionTimes> for Decisions {
    fn from(times: DecisionTimes) -> Self {
        let bounds = CLASS_BOUNDS_MS.iter().map(|bound| Some(*bound)).chain([None]);
        let waited = bounds.zip(times.classes).map(|(up_to_ms, pages)| DecisionClass { up_to_ms, pages });
        Self { oldest_pending_ms: times.oldest_ms, waited: waited.filter(|class| class.pages > 0).collect() }
    }
}
