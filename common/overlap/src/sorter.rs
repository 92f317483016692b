//! Sorts records that do not fit into memory: a buffer is sorted when it is full, and written as a run; runs are merged.

use std::ops::RangeInclusive;

use crate::budget::Claim;
use crate::record::Record;
use crate::sorted::{Run, Sorted, merge};
use crate::spill::Spill;
use crate::{Budget, OverlapError};

/// Bytes of a piece of a run that is written or read at once, at least and at most.
const PIECE_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// Bytes of a piece where there are so many of them in so many bytes.
fn piece_bytes(bytes: u64, pieces: u64) -> u64 {
    (bytes / pieces).clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end())
}

/// Takes records in any order.
#[derive(Debug)]
pub(crate) struct Sorter<R> {
    budget: Budget,
    /// Bytes of memory, the buffer included.
    bytes: u64,
    claim: Claim,
    buffer: Vec<R>,
    capacity: usize,
    /// Whether equal records are one.
    distinct: bool,
    spill: Option<Spill>,
    runs: Vec<Run>,
}

impl<R: Record> Sorter<R> {
    /// None yet, in so many bytes of memory.
    pub(crate) fn new(budget: &Budget, bytes: u64, distinct: bool) -> Result<Self, OverlapError> {
        // A piece of a run is written from it, and two are merged into a third.
        let bytes = bytes.max(4 * PIECE_BYTES.start());
        let claim = budget.claim(bytes, "sorting")?;
        let capacity = (bytes - piece_bytes(bytes, 64)) as usize / size_of::<R>();
        let (budget, buffer) = (budget.clone(), Vec::with_capacity(capacity));
        Ok(Self { budget, bytes, claim, buffer, capacity, distinct, spill: None, runs: Vec::new() })
    }

    pub(crate) fn push(&mut self, record: R) -> Result<(), OverlapError> {
        if self.buffer.len() == self.capacity {
            self.sort();
            // Room made by equal records is used before a run is written.
            if self.buffer.len() > self.capacity / 2 {
                self.write_run()?;
            }
        }
        self.buffer.push(record);
        Ok(())
    }

    fn sort(&mut self) {
        self.buffer.sort_unstable();
        if self.distinct {
            self.buffer.dedup();
        }
    }

    fn write_run(&mut self) -> Result<(), OverlapError> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(&self.budget)?),
        };
        self.runs.push(Run { from: spill.len(), records: self.buffer.len() as u64 });
        let mut piece = Vec::with_capacity(piece_bytes(self.bytes, 64) as usize);
        for records in self.buffer.chunks(piece.capacity() / R::BYTES) {
            piece.clear();
            records.iter().for_each(|record| record.write(&mut piece));
            spill.append(&piece)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// All records in order. A scan of them takes no more memory than this sorter had.
    pub(crate) fn finish(mut self) -> Result<Sorted<R>, OverlapError> {
        self.sort();
        if self.runs.is_empty() {
            // A copy of half the buffer, the rest of which was never touched, takes no more than was claimed.
            if !self.distinct && self.buffer.len() <= self.capacity / 2 {
                self.buffer = self.buffer.as_slice().into();
                self.claim.shrink((self.buffer.len() * size_of::<R>()) as u64);
            }
            return Ok(Sorted::in_memory(self.buffer, self.claim));
        }
        self.write_run()?;
        self.buffer = Vec::new();
        // One piece of each run, and one that is written.
        let most = (self.bytes / PIECE_BYTES.start() - 1) as usize;
        let piece = |runs: usize| piece_bytes(self.bytes, runs as u64 + 1) as usize / R::BYTES * R::BYTES;
        let (mut runs, mut spill) = (self.runs, self.spill);
        while runs.len() > most {
            let Some(from) = spill.take() else { break };
            let (mut into, mut merged) = (Spill::new(&self.budget)?, Vec::new());
            for some in runs.chunks(most) {
                merged.push(merge::<R>(&from, some, piece(some.len()), self.distinct, &mut into)?);
            }
            (runs, spill) = (merged, Some(into));
        }
        let piece = piece(runs.len());
        drop(self.claim);
        Ok(Sorted::in_runs(self.budget, spill, runs, piece, self.distinct))
    }
}
