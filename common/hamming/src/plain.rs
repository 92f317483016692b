//! A sorted table of permuted fingerprints, with a directory of its leading bits.
//!
//! The directory has the place of the first key for every value of the first bits, about one for each [`SPAN`] keys, and
//! never more bits than must agree. So one read finds the place among keys that are spread evenly, in a third of the time
//! of interpolation search, which the paper has. Where they are not, that search narrows what the directory gives.
//!
//! Invariant: the keys are ascending, and all that share the leading bits of a key are among its candidates.

use crate::search;

/// Keys for each entry of the directory: a cache line of them.
const SPAN: usize = 8;
/// More keys than these are narrowed by a search. The search costs as much as scanning them.
const NARROW: usize = 256;

/// A sorted table, see the module.
#[derive(Debug)]
pub(crate) struct PlainTable {
    keys: Vec<u64>,
    leading: u32,
    /// How many bits the directory takes.
    bits: u32,
    starts: Vec<u32>,
}

impl PlainTable {
    /// A table of ascending keys of which `leading` bits must agree; `keys` are at most `FINGERPRINTS_MAX`.
    pub(crate) fn new(keys: Vec<u64>, leading: u32) -> Self {
        debug_assert!(keys.is_sorted());
        let bits = (keys.len() / SPAN).checked_ilog2().unwrap_or(0).min(leading);
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

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.keys[..]) + size_of_val(&self.starts[..])
    }

    /// All keys that share the leading bits, and perhaps others beside them.
    #[inline]
    pub(crate) fn candidates(&self, key: u64) -> &[u64] {
        let slot = slot(key, self.bits);
        let candidates = &self.keys[self.starts[slot] as usize..self.starts[slot + 1] as usize];
        if candidates.len() > NARROW && self.bits < self.leading {
            return search::with_prefix(candidates, key, self.leading);
        }
        candidates
    }
}

#[inline]
fn slot(key: u64, bits: u32) -> usize {
    key.checked_shr(64 - bits).unwrap_or(0) as usize
}
