//! What tier 1 counts: the work that is left, and totals of the collection.

use serde::{Deserialize, Serialize};

/// Work that is accepted and not yet done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Backlog {
    /// Pages waiting for tier 2 or for partners' answers.
    pub pending: u64,
    /// Confirmed pages that are still to be compared.
    pub deferred_searches: u64,
    /// Groups that owe a recomputation.
    pub dirty_groups: u64,
    /// Members that are still to be verified against their winner.
    pub unverified: u64,
    /// Messages between shards.
    pub messages: u64,
}

impl Backlog {
    /// Nothing to do: the groups are final for what was accepted.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        *self == Self::default()
    }
}

/// Totals since the collection was created (`live` to `groups`: at present).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Counters {
    /// Live pages, redirects among them.
    pub live: u64,
    /// Live pages that redirect.
    pub redirects: u64,
    /// Redirects that do not end at a content.
    pub unresolved: u64,
    /// Dead pages on record.
    pub dead: u64,
    /// Groups in use.
    pub groups: u64,
    /// Pages with status winner.
    pub winners: u64,
    /// Pages with status duplicate.
    pub duplicates: u64,
    /// Pages with status member.
    pub members: u64,
    /// Submissions taken.
    pub submissions: u64,
    /// Submissions that were unchanged.
    pub unchanged: u64,
    /// Submissions that were stale.
    pub stale: u64,
    /// Content updates confirmed by the representative.
    pub confirmed: u64,
    /// Content updates that had to wait for tier 2.
    pub compared_updates: u64,
    /// Comparisons of members with their winner.
    pub verified: u64,
    /// Of those, below tau.
    pub rejected: u64,
    /// Groups merged into another.
    pub merges: u64,
    /// Groups recomputed because many members differed from the winner.
    pub rechecks: u64,
    /// Members that a recomputation put out of a group.
    pub splits: u64,
    /// Searches of tier 2 that were answered.
    pub searches: u64,
    /// Answers about contents that were no longer current.
    pub stale_results: u64,
}
