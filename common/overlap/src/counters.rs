//! Counters of pairs by hash, and what is left of them: which buckets are heavy.

use crate::bits::Bits;
use crate::budget::Claim;
use crate::{Budget, OverlapError};

/// The most hash functions.
pub(crate) const FUNCTIONS_MAX: u32 = 4;

/// What parts the hash functions.
const SEEDS: [u64; FUNCTIONS_MAX as usize] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

const MULTIPLIERS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];

/// A hash function of pairs, to so many buckets.
#[derive(Debug, Clone, Copy)]
struct Hash {
    seed: u64,
    shift: u32,
}

impl Hash {
    fn new(function: u32, counters_log2: u32) -> Self {
        Self { seed: SEEDS[function as usize % SEEDS.len()], shift: 64 - counters_log2 }
    }

    #[inline]
    fn bucket(self, pair: u64) -> usize {
        let mixed = (pair ^ self.seed).wrapping_mul(MULTIPLIERS[0]);
        ((mixed ^ mixed >> 32).wrapping_mul(MULTIPLIERS[1]) >> self.shift) as usize
    }
}

/// A[1..m]: how many occurrences of pairs fell into each bucket, up to 255.
#[derive(Debug)]
pub(crate) struct Counters {
    hash: Hash,
    counts: Vec<u8>,
    claim: Claim,
}

impl Counters {
    /// 2 to a power of them, all 0.
    pub(crate) fn new(function: u32, counters_log2: u32, budget: &Budget) -> Result<Self, OverlapError> {
        let count = 1_u64 << counters_log2;
        let claim = budget.claim(count, "counting")?;
        Ok(Self { hash: Hash::new(function, counters_log2), counts: vec![0; count as usize], claim })
    }

    #[inline]
    pub(crate) fn add(&mut self, pair: u64) {
        let count = &mut self.counts[self.hash.bucket(pair)];
        *count = count.saturating_add(1);
    }

    /// Which buckets have at least so many; the counters are given back.
    pub(crate) fn heavy(self, least: u8, budget: &Budget) -> Result<Filter, OverlapError> {
        let claim = budget.claim(Bits::bytes(self.counts.len() as u64), "the bitmap of heavy buckets")?;
        let mut heavy = Bits::new(self.counts.len());
        let all = self.counts.iter().enumerate().filter(|(_, count)| **count >= least);
        all.for_each(|(bucket, _)| heavy.set(bucket));
        drop(self.claim);
        Ok(Filter { hash: self.hash, heavy, _claim: claim })
    }
}

/// BITMAP[1..m]: passes the pairs of heavy buckets. A pair that shares enough is always among them.
#[derive(Debug)]
pub(crate) struct Filter {
    hash: Hash,
    heavy: Bits,
    _claim: Claim,
}

impl Filter {
    #[inline]
    pub(crate) fn passes(&self, pair: u64) -> bool {
        self.heavy.get(self.hash.bucket(pair))
    }
}
