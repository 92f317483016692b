//! Sorts records that do not fit into memory. When the buffer is full, the sorter sorts the buffer and writes
//! it to disk as a run. Finally, the sorter merges runs until one scan can read all of them.

use std::ops::RangeInclusive;

use crate::budget::{Budget, MemoryClaim};
use crate::error::OverlapError;
use crate::external_sort::fixed_record::FixedRecord;
use crate::external_sort::sorted::{Sorted, SortedRun, merge};
use crate::external_sort::temporary_file::TemporaryFile;

/// Minimum and maximum size, in bytes, of the piece of a run that is read or written at once. The last piece
/// of a run can be smaller.
const PIECE_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// Size, in bytes, of one piece of a run, if `pieces` pieces share `bytes` bytes of memory. A piece is the
/// part of a run that is read or written at once. [`PIECE_BYTES`] limits the size in any case.
fn piece_bytes(bytes: u64, pieces: u64) -> u64 {
    (bytes / pieces).clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end())
}

/// Collects records in any order and sorts them, in memory or in a temporary file.
#[derive(Debug)]
pub(crate) struct Sorter<R> {
    budget: Budget,
    /// Bytes of memory that the sorter may use, including the buffer.
    bytes: u64,
    claim: MemoryClaim,
    buffer: Vec<R>,
    capacity: usize,
    /// Whether to keep only one of several equal records.
    distinct: bool,
    file: Option<TemporaryFile>,
    runs: Vec<SortedRun>,
}

impl<R: FixedRecord> Sorter<R> {
    /// Creates an empty sorter that claims `bytes` bytes of memory, but at least the 4 KiB that a merge
    /// needs. If `distinct` is true, the sorter keeps only one of several equal records.
    pub(crate) fn new(budget: &Budget, bytes: u64, distinct: bool) -> Result<Self, OverlapError> {
        // The memory must hold a piece for writing a run, and three pieces for merging two runs into a third.
        let bytes = bytes.max(4 * PIECE_BYTES.start());
        let claim = budget.claim(bytes, "sorting")?;
        let capacity = (bytes - piece_bytes(bytes, 64)) as usize / size_of::<R>();
        let (budget, buffer) = (budget.clone(), Vec::with_capacity(capacity));
        Ok(Self { budget, bytes, claim, buffer, capacity, distinct, file: None, runs: Vec::new() })
    }

    pub(crate) fn push(&mut self, record: R) -> Result<(), OverlapError> {
        if self.buffer.len() == self.capacity {
            self.sort();
            // Removing equal records may have freed enough room, so that no run needs to be written yet.
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
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(TemporaryFile::new(&self.budget)?),
        };
        self.runs.push(SortedRun { from: file.len(), records: self.buffer.len() as u64 });
        let mut piece = Vec::with_capacity(piece_bytes(self.bytes, 64) as usize);
        for records in self.buffer.chunks(piece.capacity() / R::BYTES) {
            piece.clear();
            records.iter().for_each(|record| record.write(&mut piece));
            file.append(&piece)?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Returns all records in order. A scan of the result takes no more memory than this sorter claimed. If
    /// the sorter is `distinct`, the scan passes equal records once.
    pub(crate) fn finish(mut self) -> Result<Sorted<R>, OverlapError> {
        self.sort();
        if self.runs.is_empty() {
            // At most half of the buffer was ever touched. So the buffer and its copy together take no more
            // memory than was claimed.
            if !self.distinct && self.buffer.len() <= self.capacity / 2 {
                self.buffer = self.buffer.as_slice().into();
                self.claim.shrink((self.buffer.len() * size_of::<R>()) as u64);
            }
            return Ok(Sorted::in_memory(self.buffer, self.claim));
        }
        self.write_run()?;
        self.buffer = Vec::new();
        // A merge needs a piece for each run that it reads, and a piece for the run that it writes.
        let runs_max = (self.bytes / PIECE_BYTES.start() - 1) as usize;
        let piece = |runs: usize| piece_bytes(self.bytes, runs as u64 + 1) as usize / R::BYTES * R::BYTES;
        let (mut runs, mut file) = (self.runs, self.file);
        while runs.len() > runs_max {
            let Some(from) = file.take() else { break };
            let (mut into, mut merged) = (TemporaryFile::new(&self.budget)?, Vec::new());
            for group in runs.chunks(runs_max) {
                merged.push(merge::<R>(&from, group, piece(group.len()), self.distinct, &mut into)?);
            }
            (runs, file) = (merged, Some(into));
        }
        let piece = piece(runs.len());
        drop(self.claim);
        Ok(Sorted::in_runs(self.budget, file, runs, piece, self.distinct))
    }
}
