//! Sorted records, either in memory or in several sorted runs on disk. A scan merges the runs while it reads
//! them. Records can be scanned any number of times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::budget::{Budget, MemoryClaim};
use crate::error::OverlapError;
use crate::external_sort::fixed_record::FixedRecord;
use crate::external_sort::temporary_file::TemporaryFile;

/// A sorted run of records in a temporary file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortedRun {
    /// Offset, in the file, of the first byte of the run.
    pub(crate) from: u64,
    pub(crate) records: u64,
}

/// A sorted sequence of records that can be scanned repeatedly.
#[derive(Debug)]
pub(crate) struct Sorted<R> {
    store: RecordStore<R>,
    distinct: bool,
}

#[derive(Debug)]
enum RecordStore<R> {
    Memory(Vec<R>, #[expect(dead_code, reason = "holds the claim of the memory")] MemoryClaim),
    Runs { budget: Budget, file: Option<TemporaryFile>, runs: Vec<SortedRun>, piece: usize },
}

impl<R: FixedRecord> Sorted<R> {
    /// Creates the sequence from a sorted buffer, which stays in memory. `claim` is the claim of the memory
    /// of the buffer.
    pub(crate) fn in_memory(records: Vec<R>, claim: MemoryClaim) -> Self {
        Self { store: RecordStore::Memory(records, claim), distinct: false }
    }

    /// Creates the sequence from sorted runs in a file. A scan reads `piece` bytes of each run at a time. If
    /// `distinct` is true, the scan passes equal records once.
    pub(crate) fn in_runs(
        budget: Budget,
        file: Option<TemporaryFile>,
        runs: Vec<SortedRun>,
        piece: usize,
        distinct: bool,
    ) -> Self {
        Self { store: RecordStore::Runs { budget, file, runs, piece }, distinct }
    }

    /// Number of records in memory or in all runs. Equal records in different runs count separately, even if
    /// `distinct` is set and a scan passes only one of them.
    pub(crate) fn len(&self) -> u64 {
        match &self.store {
            RecordStore::Memory(records, _) => records.len() as u64,
            RecordStore::Runs { runs, .. } => runs.iter().map(|run| run.records).sum(),
        }
    }

    /// Bytes of memory that a scan claims: 0 if the records are in memory, because a scan of memory needs no
    /// buffer.
    pub(crate) fn scan_bytes(&self) -> u64 {
        match &self.store {
            RecordStore::Memory(..) => 0,
            RecordStore::Runs { runs, piece, .. } => (runs.len() * piece) as u64,
        }
    }

    /// Starts a scan over all records. Claims the memory of the scan until the scan is dropped.
    pub(crate) fn scan(&self) -> Result<RecordScan<'_, R>, OverlapError> {
        Ok(match &self.store {
            RecordStore::Memory(records, _) => RecordScan::Memory(records.iter()),
            RecordStore::Runs { budget, file, runs, piece } => {
                let claim = budget.claim(self.scan_bytes(), "merging sorted runs")?;
                let merging = match file {
                    Some(file) => MergeScan::new(file, runs, *piece, self.distinct)?,
                    None => MergeScan::empty(),
                };
                RecordScan::Runs(merging, claim)
            }
        })
    }
}

/// Reads sorted records one by one.
pub(crate) enum RecordScan<'s, R> {
    Memory(std::slice::Iter<'s, R>),
    Runs(MergeScan<'s, R>, #[expect(dead_code, reason = "holds the claim of the memory")] MemoryClaim),
}

impl<R: FixedRecord> RecordScan<'_, R> {
    /// Reads the next record. `None` after the last record.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<R>, OverlapError> {
        match self {
            Self::Memory(records) => Ok(records.next().copied()),
            Self::Runs(merging, _) => merging.next(),
        }
    }

    /// Passes each distinct remaining record to `each` once, with the number of times that the record occurs.
    pub(crate) fn counted(
        mut self,
        mut each: impl FnMut(R, u32) -> Result<(), OverlapError>,
    ) -> Result<(), OverlapError> {
        let mut head = self.next()?;
        while let Some(record) = head {
            let mut count = 0;
            while head == Some(record) {
                count += 1;
                head = self.next()?;
            }
            each(record, count)?;
        }
        Ok(())
    }
}

/// Merges several runs of the file `from` into one run, which is appended to the file `into`. Reads and
/// writes about `piece` bytes at a time. If `distinct` is true, the new run contains equal records once.
pub(crate) fn merge<R: FixedRecord>(
    from: &TemporaryFile,
    runs: &[SortedRun],
    piece: usize,
    distinct: bool,
    into: &mut TemporaryFile,
) -> Result<SortedRun, OverlapError> {
    let mut merging = MergeScan::<R>::new(from, runs, piece, distinct)?;
    let mut run = SortedRun { from: into.len(), records: 0 };
    let mut written = Vec::with_capacity(piece);
    while let Some(record) = merging.next()? {
        record.write(&mut written);
        run.records += 1;
        if written.len() >= piece {
            into.append(&written)?;
            written.clear();
        }
    }
    into.append(&written)?;
    Ok(run)
}

/// Reads several runs as one sorted sequence of records.
pub(crate) struct MergeScan<'s, R> {
    readers: Vec<RunReader<'s>>,
    /// The next record of each run that is not at its end, with the index of the run in `readers`.
    heads: BinaryHeap<Reverse<(R, usize)>>,
    last: Option<R>,
    distinct: bool,
}

impl<'s, R: FixedRecord> MergeScan<'s, R> {
    fn empty() -> Self {
        Self { readers: Vec::new(), heads: BinaryHeap::new(), last: None, distinct: false }
    }

    fn new(
        file: &'s TemporaryFile,
        runs: &[SortedRun],
        piece: usize,
        distinct: bool,
    ) -> Result<Self, OverlapError> {
        let mut merging = Self { distinct, ..Self::empty() };
        for (number, run) in runs.iter().enumerate() {
            let (next, end) = (run.from, run.from + run.records * R::BYTES as u64);
            let mut reader = RunReader { file, next, end, piece: Vec::with_capacity(piece), at: 0 };
            if let Some(head) = reader.next()? {
                merging.heads.push(Reverse((head, number)));
            }
            merging.readers.push(reader);
        }
        Ok(merging)
    }

    fn next(&mut self) -> Result<Option<R>, OverlapError> {
        while let Some(mut head) = self.heads.peek_mut() {
            let Reverse((record, number)) = *head;
            match self.readers[number].next()? {
                // `PeekMut` restores the heap once, when `head` goes out of scope.
                Some(next) => *head = Reverse((next, number)),
                None => drop(std::collections::binary_heap::PeekMut::pop(head)),
            }
            if !self.distinct || self.last.replace(record) != Some(record) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
}

/// Reads the records of one run one by one, and the bytes of the run in larger pieces.
struct RunReader<'s> {
    file: &'s TemporaryFile,
    /// Offset, in the file, of the first byte that is not read yet.
    next: u64,
    /// Offset, in the file, of the end of the run.
    end: u64,
    piece: Vec<u8>,
    at: usize,
}

impl RunReader<'_> {
    fn next<R: FixedRecord>(&mut self) -> Result<Option<R>, OverlapError> {
        if self.at == self.piece.len() {
            let bytes =
                (self.end - self.next).min(self.piece.capacity() as u64 / R::BYTES as u64 * R::BYTES as u64);
            if bytes == 0 {
                return Ok(None);
            }
            self.piece.resize(bytes as usize, 0);
            self.file.read(&mut self.piece, self.next)?;
            self.next += bytes;
            self.at = 0;
        }
        let record = R::read(&self.piece[self.at..]);
        self.at += R::BYTES;
        Ok(Some(record))
    }
}
