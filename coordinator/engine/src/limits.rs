//! Bounds on the work and memory of advice, exports, and reports (guarantee G6).

/// Number of forwards that advice follows from a merged group. The chain of forwards grows by one each time
/// the surviving group merges into an older group, while members are still being transferred.
pub const FORWARDS: usize = 64;

/// Number of attempts to compute advice. An attempt fails if a record changes during the attempt.
pub const ADVICE_ATTEMPTS: usize = 4;

/// Number of group members that an explanation or a probe reads.
pub const EXPLAINED_MEMBERS: usize = 10_000;

/// Maximum number of members, groups, or repairs in one answer.
pub const LIST: usize = 1_000;

/// Number of members, over all groups, that one `POST /v1/status` reads to find market winners.
pub const MARKET_MEMBERS_TOTAL: usize = 50_000;

/// Number of groups whose market winner is cached at a time.
pub const MARKET_GROUPS: usize = 100_000;

/// Number of example shingles of each kind in an answer of `GET /v1/explain`.
pub const EXAMPLES: usize = 5;

/// Number of bytes that the export sorts in memory at a time.
pub const EXPORT_CHUNK_BYTES: usize = 32 << 20;

/// Number of sorted runs that the export merges at a time. With a buffer of 64 kB for each run, a merge takes
/// 4 MB of memory and 64 open files.
pub const EXPORT_RUNS: usize = 64;

/// Maximum number of host pairs that the savings report lists.
pub const MIRRORS: usize = 100;

/// Number of host pairs that the savings report counts at a time. The counters take about 10 MB, or 35 MB if
/// every name has the maximum length. Beyond this number, the report discards the rarer half of the pairs.
pub const MIRRORS_COUNTED: usize = 50_000;

/// Maximum length in bytes of a host name in the savings report. Longer names are truncated. DNS does not
/// allow names of this length.
pub const MIRROR_NAME_BYTES: usize = 255;

/// Number of kept pages of a group that a probe is compared with, first in the winner order.
pub const PROBE_KEPT: usize = 1_000;

/// Number of partners that a probe examines, most similar first.
pub const PROBE_PARTNERS: usize = 64;
