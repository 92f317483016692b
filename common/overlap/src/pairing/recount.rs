//! Counts exactly how many fingerprints each candidate pair shares.

use crate::budget::{Budget, MemoryClaim};
use crate::error::OverlapError;

/// Maximum bytes of memory for a candidate: the pair, its count, and at most four slots of the hash table.
pub(crate) const CANDIDATE_BYTES: u64 = 8 + 4 + 4 * 4;

/// Candidate pairs with their counts, in a hash table.
#[derive(Debug)]
pub(crate) struct Recount {
    /// Distinct candidate pairs in ascending order. A pair is packed into one number by
    /// [`pair`](crate::pairing::pair_source::pair).
    pairs: Vec<u64>,
    counts: Vec<u32>,
    /// Slots of an open-addressed hash table. A slot holds the index of a candidate plus one, or 0 if it is
    /// free. At least half of the slots are free.
    slots: Vec<u32>,
    shift: u32,
    _claim: MemoryClaim,
}

impl Recount {
    /// Creates the table with a count of 0 for each pair. `pairs` must contain fewer than 2^31 pairs, in
    /// ascending order and without repetition.
    pub(crate) fn new(pairs: Vec<u64>, budget: &Budget) -> Result<Self, OverlapError> {
        let claim = budget.claim(pairs.len() as u64 * CANDIDATE_BYTES, "candidate pairs")?;
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

    /// Finds the slot of a candidate, or the free slot where it would go.
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

    /// Counts an occurrence of `pair` if the pair is a candidate.
    #[inline]
    pub(crate) fn add(&mut self, pair: u64) {
        let number = self.slots[self.slot(pair)];
        if number > 0 {
            self.counts[number as usize - 1] += 1;
        }
    }

    /// Candidates in ascending order, each with its number of occurrences so far.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.pairs.iter().copied().zip(self.counts.iter().copied())
    }
}
