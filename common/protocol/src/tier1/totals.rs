//! The counts of tier 1 at one moment, in total and for each shard.

use doppel_contract::{Backlog, Counters};
use doppel_model::ShardId;
use serde::{Deserialize, Serialize};

use super::decision_times::DecisionTimes;

/// Counts of a shard: its pages and groups, and its pending pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardTotals {
    /// Number of the shard.
    pub shard: ShardId,
    /// Number of live pages.
    pub live: u64,
    /// Number of groups in use.
    pub groups: u64,
    /// Number of pages that wait for a decision.
    pub pending: u64,
}

/// The counts of tier 1 at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Totals of the collection.
    pub counters: Counters,
    /// Work that is not done yet.
    pub backlog: Backlog,
    /// Maximum number of pending pages.
    pub pending_limit: u64,
    /// Memory of the status table in bytes; 0 without a status table.
    pub status_table_bytes: u64,
    /// How long pages wait for their decision.
    pub decision_times: DecisionTimes,
    /// Counts of every shard, in the order of shards.
    pub shards: Vec<ShardTotals>,
    /// Number of ranges, on any node, that accept no writes because their disk is full.
    pub full_disks: u64,
    /// How often a range resumed after its disk was full, counted since its present node started.
    pub disk_recoveries: u64,
}
