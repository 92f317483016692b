//! A sorted table of permuted fingerprints, with a directory of their leading bits.
//!
//! For every value of the first bits, the directory stores the index of the first key that has this value or
//! a greater one. The directory has about one entry per [`KEYS_PER_ENTRY`] keys, and never uses more bits
//! than must agree. If the keys are evenly spread, one read of the directory finds the candidates, in a third
//! of the time of the interpolation search in the paper. If the keys are not evenly spread, interpolation
//! search narrows the range that the directory gives.
//!
//! Invariant: the keys are ascending. The candidates of a key include all keys that share its leading bits.

use crate::search;

/// Average number of keys per entry of the directory: a cache line of keys.
const KEYS_PER_ENTRY: usize = 8;
/// If a query has more than this number of candidates, a search narrows the range. Such a search costs as
/// much as scanning this many keys.
const NARROW_ABOVE: usize = 256;

/// A sorted table of keys that is not compressed. See the module documentation.
#[derive(Debug)]
pub(crate) struct PlainTable {
    keys: Vec<u64>,
    leading: u32,
    /// Number of leading bits that index the directory.
    bits: u32,
    starts: Vec<u32>,
}

impl PlainTable {
    /// Creates a table of at most `FINGERPRINTS_MAX` ascending keys. `leading` is the number of leading bits
    /// in which a query and a key must agree.
    pub(crate) fn new(keys: Vec<u64>, leading: u32) -> Self {
        debug_assert!(keys.is_sorted());
        let bits = (keys.len() / KEYS_PER_ENTRY).checked_ilog2().unwrap_or(0).min(leading);
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (at, &key) in keys.iter().enumerate() {
            let value = slot(key, bits);
            while starts.len() <= value {
                starts.push(at as u32);
            }
        }
        starts.resize((1 << bits) + 1, keys.len() as u32);
        Self { keys, leading, bits, starts }
    }

    pub(crate) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// Bytes of memory that the table takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.starts[..])
    }

    /// A range of keys that includes all keys with the leading bits of `key`. It may include other keys.
    #[inline]
    pub(crate) fn candidates(&self, key: u64) -> &[u64] {
        let slot = slot(key, self.bits);
        let candidates = &self.keys[self.starts[slot] as usize..self.starts[slot + 1] as usize];
        if candidates.len() > NARROW_ABOVE && self.bits < self.leading {
            return search::with_prefix(candidates, key, self.leading);
        }
        candidates
    }
}

#[inline]
fn slot(key: u64, bits: u32) -> usize {
    key.checked_shr(64 - bits).unwrap_or(0) as usize
}
