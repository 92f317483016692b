//! Counts pairs by hash bucket. A pair counts once for every fingerprint that it shares. A [`Filter`] then
//! passes only pairs in *heavy* buckets, whose count reaches the minimum number of shared fingerprints.

use crate::bits::Bits;
use crate::budget::{Budget, MemoryClaim};
use crate::error::OverlapError;

/// Maximum number of hash functions that coarse counting uses.
pub(crate) const FUNCTIONS_MAX: u32 = 4;

/// One seed per hash function, so that the functions differ.
const SEEDS: [u64; FUNCTIONS_MAX as usize] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

const MULTIPLIERS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];

/// A hash function that maps pairs to a power of two of buckets.
#[derive(Debug, Clone, Copy)]
struct PairHash {
    seed: u64,
    shift: u32,
}

impl PairHash {
    fn new(function: u32, counters_log2: u32) -> Self {
        Self { seed: SEEDS[function as usize % SEEDS.len()], shift: 64 - counters_log2 }
    }

    #[inline]
    fn bucket(self, pair: u64) -> usize {
        let mixed = (pair ^ self.seed).wrapping_mul(MULTIPLIERS[0]);
        ((mixed ^ mixed >> 32).wrapping_mul(MULTIPLIERS[1]) >> self.shift) as usize
    }
}

/// Counts, in each hash bucket, the occurrences of the pairs that were added. A pair is added once for each
/// fingerprint that it shares. For a second or later hash function, coarse counting adds only pairs that all
/// earlier bitmaps pass. A count stays at 255 once it reaches 255. Shivakumar and Garcia-Molina (1998) call
/// the array of counts A\[1..m\].
#[derive(Debug)]
pub(crate) struct BucketCounters {
    hash: PairHash,
    counts: Vec<u8>,
    claim: MemoryClaim,
}

impl BucketCounters {
    /// Creates 2^`counters_log2` counters, all zero, for the hash function with number `function`.
    pub(crate) fn new(function: u32, counters_log2: u32, budget: &Budget) -> Result<Self, OverlapError> {
        let count = 1_u64 << counters_log2;
        let claim = budget.claim(count, "the counters of pairs")?;
        Ok(Self { hash: PairHash::new(function, counters_log2), counts: vec![0; count as usize], claim })
    }

    #[inline]
    pub(crate) fn add(&mut self, pair: u64) {
        let count = &mut self.counts[self.hash.bucket(pair)];
        *count = count.saturating_add(1);
    }

    /// Returns a filter that passes the pairs of heavy buckets: the buckets with a count of at least
    /// `min_shared`. Frees the counters.
    pub(crate) fn heavy(self, min_shared: u8, budget: &Budget) -> Result<Filter, OverlapError> {
        let claim = budget.claim(Bits::bytes(self.counts.len() as u64), "the bitmap of heavy buckets")?;
        let mut heavy = Bits::new(self.counts.len());
        let all = self.counts.iter().enumerate().filter(|(_, count)| **count >= min_shared);
        all.for_each(|(bucket, _)| heavy.set(bucket));
        drop(self.claim);
        Ok(Filter { hash: self.hash, heavy, _claim: claim })
    }
}

/// Passes the pairs of heavy buckets, which include every pair that shares enough fingerprints. Shivakumar
/// and Garcia-Molina (1998) call the bitmap of heavy buckets BITMAP\[1..m\].
#[derive(Debug)]
pub(crate) struct Filter {
    hash: PairHash,
    heavy: Bits,
    _claim: MemoryClaim,
}

impl Filter {
    #[inline]
    pub(crate) fn passes(&self, pair: u64) -> bool {
        self.heavy.get(self.hash.bucket(pair))
    }
}
