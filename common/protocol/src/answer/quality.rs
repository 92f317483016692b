//! The quality of the groups and the remaining work: the answer of `GET /v1/reports/quality`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Backlog, Counters};

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
    /// Share of the verifications with the winner in which the page was not similar enough, 0 to 1.
    pub reject_share: Option<f64>,
}
