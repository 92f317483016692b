//! The types of a pairing: the method and its parameters, which the caller chooses, the receiver of the pairs,
//! and the statistics.

use serde::Serialize;

use crate::error::OverlapError;

/// The parameters of coarse counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoarseParameters {
    /// Base-2 logarithm of the number of counters for each hash function. Coarse counting uses fewer counters
    /// if memory is too small, but always at least 64.
    pub counters_log2: u32,
    /// Number of hash functions that assign pairs to counters, 1 to 4. Coarse counting replaces any other
    /// number by the nearest limit.
    pub functions: u32,
}

/// Method that finds the pairs of documents, or of hosts, that share enough fingerprints. Both methods find
/// the same pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairingMethod {
    /// Writes a pair once for every shared fingerprint, sorts the written pairs, and counts equal pairs.
    Sort,
    /// First counts pairs by hash bucket, once for every shared fingerprint. Then counts exactly the pairs in
    /// buckets whose count reaches the minimum number of shared fingerprints. `None` lets a pilot sample
    /// choose the parameters.
    Coarse(Option<CoarseParameters>),
}

/// Receives the numbers of two documents or of two hosts, the smaller number first, and the number of
/// fingerprints that the two share.
pub(crate) type PairSink<'e> = dyn FnMut(u32, u32, u32) -> Result<(), OverlapError> + 'e;

/// Statistics of a pairing: the pairs and scans that it needed, its running time, memory, and disk space.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PairingStatistics {
    /// Number of pairs, where a pair counts once for each fingerprint that it shares.
    pub occurrences: u64,
    /// Number of distinct pairs that were counted exactly.
    pub candidates: u64,
    /// Number of pairs that share at least the minimum number of fingerprints.
    pub pairs: u64,
    /// Number of scans over the sorted fingerprints of documents or hosts, including the scans of a pilot
    /// sample.
    pub scans: u32,
    /// Number of counters for each hash function. 0 for sort-based pairing.
    pub counters: u64,
    /// Number of hash functions. 0 for sort-based pairing.
    pub functions: u32,
    /// Running time of the pairing in seconds, including the time of the function that receives the pairs.
    pub seconds: f64,
    /// Peak of claimed memory in bytes, including memory that was claimed before the pairing.
    pub memory_bytes: u64,
    /// Peak size of temporary files in bytes, including files from before the pairing.
    pub disk_bytes: u64,
}
