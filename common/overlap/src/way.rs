//! The two ways of pairing, and what one took.

use serde::Serialize;

use crate::OverlapError;

/// How pairs are counted coarsely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// The logarithm of the number of counters. Fewer are used where memory does not suffice.
    pub counters_log2: u32,
    /// The number of hash functions, 1 to 4.
    pub functions: u32,
}

/// How documents are paired. The pairs are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By sorting all pairs.
    Sort,
    /// By coarse counting, with these parameters or those that a pilot sample chooses.
    Coarse(Option<Parameters>),
}

/// Takes a pair and how much it shares.
pub(crate) type Each<'e> = dyn FnMut(u32, u32, u32) -> Result<(), OverlapError> + 'e;

/// What a way did and took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Work {
    /// Pairs that share a fingerprint, counted once for each that they share.
    pub occurrences: u64,
    /// Pairs that were counted exactly.
    pub candidates: u64,
    /// Pairs that share enough.
    pub pairs: u64,
    /// Scans of the file of fingerprints.
    pub scans: u32,
    /// Counters of each hash function, and hash functions, of coarse counting.
    pub counters: u64,
    /// See `counters`.
    pub functions: u32,
    /// Seconds.
    pub seconds: f64,
    /// The most memory that was claimed, what was there before included.
    pub memory_bytes: u64,
    /// The most bytes of temporary files, what was there before included.
    pub disk_bytes: u64,
}
