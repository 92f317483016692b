//! The exact count of candidates.

use crate::budget::Claim;
use crate::{Budget, OverlapError};

/// Bytes for a candidate: itself, its count, and at most four slots of the table that finds it.
pub(crate) const CANDIDATE_BYTES: u64 = 8 + 4 + 4 * 4;

/// Candidates with their counts, found by hash.
#[derive(Debug)]
pub(crate) struct Recount {
    /// Ascending.
    pairs: Vec<u64>,
    counts: Vec<u32>,
    /// The number of a candidate plus one; 0 where there is none. More than half of them are free.
    slots: Vec<u32>,
    shift: u32,
    _claim: Claim,
}

impl Recount {
    /// Takes candidates, each once and ascending, of fewer than 2^31.
    pub(crate) fn new(pairs: Vec<u64>, budget: &Budget) -> Result<Self, OverlapError> {
        let claim = budget.claim(pairs.len() as u64 * CANDIDATE_BYTES, "the candidates")?;
        let slots = (2 * pairs.len()).next_power_of_two().max(2);
        let shift = 64 - slots.trailing_zeros();
        let mut recount =
            Self { counts: vec![0; pairs.len()], slots: vec![0; slots], pairs, shift, _claim: claim };
        for number in 0..recount.pairs.len() {
            let slot = recount.slot(recount.pairs[number]);
            recount.slots[slot] = number as u32 + 1;
        }
        Ok(recount)
    }

    /// Where a candidate is, or would be.
    #[inline]
    fn slot(&self, pair: u64) -> usize {
        let mixed = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = ((mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb) >> self.shift) as usize;
        loop {
            match self.slots[slot] {
                0 => return slot,
                number if self.pairs[number as usize - 1] == pair => return slot,
                _ => slot = (slot + 1) % self.slots.len(),
            }
        }
    }

    /// Counts an occurrence, if it is one of a candidate.
    #[inline]
    pub(crate) fn add(&mut self, pair: u64) {
        let number = self.slots[self.slot(pair)];
        if number > 0 {
            self.counts[number as usize - 1] += 1;
        }
    }

    /// The candidates in order, with their counts.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.pairs.iter().copied().zip(self.counts.iter().copied())
    }
}
