//! The numbers that tier 1 keeps: remaining work, and totals of the collection.

use doppel_model::ShardId;
use serde::{Deserialize, Serialize};

use super::decision_times::DecisionTimes;

/// Accepted work that is not yet done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Backlog {
    /// Pages waiting for tier 2 or for partners' answers.
    pub pending: u64,
    /// Confirmed pages that still have to be compared.
    pub deferred_searches: u64,
    /// Groups that have to be recomputed.
    pub dirty_groups: u64,
    /// Groups of which it has to be found out again which members are duplicates of others than the winner. Until then
    /// those are told to be secondary.
    pub uncovered_groups: u64,
    /// Members that still have to be verified against their winner.
    pub unverified: u64,
    /// Messages between shards.
    pub messages: u64,
}

impl Backlog {
    /// Whether nothing is left to do, so that the groups are final for all accepted submissions.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        *self == Self::default()
    }
}

/// Redirects that end at one page, past which operators are told of it ([`Counters::crowded`]). The redirects stay right; each change of the
/// page is told to all of them.
pub const CROWDED_REDIRECTS: u32 = 10_000;

/// Totals. `live` to `secondaries` count the present state, the others everything since the collection was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Counters {
    /// Live pages, including redirects.
    pub live: u64,
    /// Live pages that redirect.
    pub redirects: u64,
    /// Redirects that do not end at a page with content.
    pub unresolved: u64,
    /// Dead pages on record.
    pub dead: u64,
    /// Pages at which more than 10,000 redirects end. Their changes are told to all of these, which takes long.
    pub crowded: u64,
    /// Groups in use.
    pub groups: u64,
    /// Pages with status winner.
    pub winners: u64,
    /// Pages with status duplicate.
    pub duplicates: u64,
    /// Pages with status secondary.
    pub secondaries: u64,
    /// Submissions that were accepted.
    pub submissions: u64,
    /// Submissions that were unchanged.
    pub unchanged: u64,
    /// Submissions that were stale.
    pub stale: u64,
    /// Content updates confirmed by the representative.
    pub confirmed: u64,
    /// Content updates that had to wait for tier 2.
    pub compared_updates: u64,
    /// Comparisons of members with a winner that neither they equal nor their search has found.
    pub verified: u64,
    /// Those of these comparisons that found no near-duplicate.
    pub rejected: u64,
    /// Groups merged into another.
    pub merges: u64,
    /// Groups recomputed because many members differed from the winner.
    pub rechecks: u64,
    /// Members that a recomputation removed from their group.
    pub evictions: u64,
    /// Searches of tier 2 that were answered.
    pub searches: u64,
    /// Answers about contents that were no longer current.
    pub stale_results: u64,
}

/// What one shard has, and what waits in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardTotals {
    /// The shard.
    pub shard: ShardId,
    /// Its live pages.
    pub live: u64,
    /// Its groups in use.
    pub groups: u64,
    /// Its pages that wait for a decision.
    pub pending: u64,
}

/// The numbers of tier 1 at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// The totals of the collection.
    pub counters: Counters,
    /// The work that is not yet done.
    pub backlog: Backlog,
    /// The maximum number of pending pages.
    pub pending_limit: u64,
    /// Bytes of the status table in memory; 0 without one.
    pub status_table_bytes: u64,
    /// How long pages wait for their decision.
    pub decision_times: DecisionTimes,
    /// The figures of every shard, in their order.
    pub shards: Vec<ShardTotals>,
    /// Ranges that take no writes because their disk is full, at whatever node.
    pub full_disks: u64,
    /// How often a range went on at its present node after its disk was full, since that was started.
    pub disk_recoveries: u64,
}
