//! The counts of a collection: remaining work, and totals.

use serde::{Deserialize, Serialize};

/// Accepted work that is not done yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Backlog {
    /// Number of pages that wait for tier 2 or for the answers of their partners.
    pub pending: u64,
    /// Number of confirmed pages that still have to be compared.
    pub deferred_searches: u64,
    /// Number of groups that have to be recomputed.
    pub dirty_groups: u64,
    /// Number of groups that still have to determine which dissimilar members are duplicates of other
    /// members. Until then these members have status `secondary`.
    pub uncovered_groups: u64,
    /// Number of members that still have to be verified against their winner.
    pub unverified: u64,
    /// Number of messages between shards that are under way.
    pub messages: u64,
}

impl Backlog {
    /// Whether no work remains, so that the groups are final for all accepted submissions.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        *self == Self::default()
    }
}

/// Number of redirects to one page above which the page counts as crowded ([`Counters::crowded`]), which
/// operators can see. The redirects stay correct, but each change of the page sends a message to each of
/// them.
pub const CROWDED_REDIRECTS: u32 = 10_000;

/// Totals of the collection. `live` to `secondaries` count the present state. The other fields count events
/// since the collection was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Counters {
    /// Number of live pages, including redirects.
    pub live: u64,
    /// Number of live pages that redirect.
    pub redirects: u64,
    /// Number of redirects that do not end at a page with content.
    pub unresolved: u64,
    /// Number of dead pages on record.
    pub dead: u64,
    /// Number of pages that are the end of more than 10,000 redirects. A change of such a page takes long,
    /// because it is sent to all of its redirects.
    pub crowded: u64,
    /// Number of groups in use.
    pub groups: u64,
    /// Number of pages with status `winner`.
    pub winners: u64,
    /// Number of pages with status `duplicate`.
    pub duplicates: u64,
    /// Number of pages with status `secondary`.
    pub secondaries: u64,
    /// Number of submissions that were accepted.
    pub submissions: u64,
    /// Number of submissions with outcome `unchanged`.
    pub unchanged: u64,
    /// Number of submissions with outcome `stale`.
    pub stale: u64,
    /// Number of content updates that the comparison with the representative confirmed.
    pub confirmed: u64,
    /// Number of content updates that had to wait for tier 2.
    pub compared_updates: u64,
    /// Number of comparisons between a member and the winner. Members that equal the winner, or whose search
    /// found the winner, are not compared.
    pub verified: u64,
    /// Number of these comparisons that found no near-duplicate.
    pub rejected: u64,
    /// Number of groups that were merged into another group.
    pub merges: u64,
    /// Number of groups that were recomputed because many members differed from the winner.
    pub rechecks: u64,
    /// Number of members that a recomputation removed from their group.
    pub evictions: u64,
    /// Number of searches that tier 2 answered.
    pub searches: u64,
    /// Number of answers about contents that were no longer current.
    pub stale_results: u64,
}
