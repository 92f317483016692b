//! Bounds of advice, exports and reports (G6).

/// Forwards followed from a merged group. A chain grows by one for each later merge of the survivor
/// into an older group, while members are still being transferred.
pub const FORWARDS: usize = 64;

/// Redirects followed from a page to its final target, as many as tier 1 follows.
pub const REDIRECTS: usize = 20;

/// How often advice starts again because a record changed while it was made.
pub const ADVICE_ATTEMPTS: usize = 4;

/// Members of a group that an explanation or a probe looks at.
pub const EXPLAINED_MEMBERS: usize = 10_000;

/// The most members, groups or repairs of one answer.
pub const LIST: usize = 1_000;

/// Members that one `POST /v1/status` looks at for market winners, all groups together.
pub const MARKET_MEMBERS_TOTAL: usize = 50_000;

/// Groups of which the pages that stand for them in a market are remembered at a time.
pub const MARKET_GROUPS: usize = 100_000;

/// Example shingles of `GET /v1/explain`, of each kind.
pub const EXAMPLES: usize = 5;

/// Bytes of lines that the export sorts in memory at a time.
pub const EXPORT_CHUNK_BYTES: usize = 32 << 20;

/// Sorted runs that the export merges at a time: at 64 kB of buffer each, 4 MB and 64 open files.
pub const EXPORT_RUNS: usize = 64;

/// Pairs of hosts that the savings report lists.
pub const MIRRORS: usize = 100;

/// Pairs of hosts that the savings report counts at a time: about 10 MB, and 35 MB if every name were as long as may be. Past it the rarer
/// half is forgotten.
pub const MIRRORS_COUNTED: usize = 50_000;

/// Longest host name by which the savings report counts, in bytes. No name of DNS is as long. A longer one is cut.
pub const MIRROR_NAME_BYTES: usize = 255;

/// Kept pages of a group that a probe is compared with, the first in the winner order.
pub const PROBE_KEPT: usize = 1_000;

/// Partners of a probe that are looked at, the most similar first.
pub const PROBE_PARTNERS: usize = 64;
