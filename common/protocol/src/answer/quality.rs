//! How good the groups are, and what is still to be done: the answer of `GET /v1/reports/quality`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Backlog, Counters};

/// Totals, shares of them, and what is still to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Quality {
    /// Totals.
    pub counters: Counters,
    /// Pages with status unique. Live pages are unique, winners, duplicates, members, unresolved or pending;
    /// a redirect, or a page while messages about it are under way, may be counted here before it is decided.
    pub unique: u64,
    /// Accepted and not yet done.
    pub backlog: Backlog,
    /// The most pages that may be pending.
    pub pending_limit: u64,
    /// Whether nothing is left to do.
    pub quiescent: bool,
    /// Content updates that were confirmed by the representative alone, of all, 0 to 1.
    pub confirm_share: Option<f64>,
    /// Verifications with the winner that fell below tau, of all, 0 to 1.
    pub reject_share: Option<f64>,
}
