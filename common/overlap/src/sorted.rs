//! Sorted records, in memory or in runs on disk that are merged while they are read. They can be scanned again and again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::budget::Claim;
use crate::record::Record;
use crate::spill::Spill;
use crate::{Budget, OverlapError};

/// Sorted records in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Its first byte.
    pub(crate) from: u64,
    pub(crate) records: u64,
}

/// All records.
#[derive(Debug)]
pub(crate) struct Sorted<R> {
    place: Place<R>,
    distinct: bool,
}

#[derive(Debug)]
enum Place<R> {
    Memory(Vec<R>, #[expect(dead_code, reason = "it holds the claim")] Claim),
    Runs { budget: Budget, spill: Option<Spill>, runs: Vec<Run>, piece: usize },
}

impl<R: Record> Sorted<R> {
    /// Those of a buffer that is sorted.
    pub(crate) fn in_memory(records: Vec<R>, claim: Claim) -> Self {
        Self { place: Place::Memory(records, claim), distinct: false }
    }

    /// Those of sorted runs, which are read in pieces of so many bytes.
    pub(crate) fn in_runs(
        budget: Budget,
        spill: Option<Spill>,
        runs: Vec<Run>,
        piece: usize,
        distinct: bool,
    ) -> Self {
        Self { place: Place::Runs { budget, spill, runs, piece }, distinct }
    }

    /// How many there are; of runs, those included that are in several.
    pub(crate) fn len(&self) -> u64 {
        match &self.place {
            Place::Memory(records, _) => records.len() as u64,
            Place::Runs { runs, .. } => runs.iter().map(|run| run.records).sum(),
        }
    }

    /// Bytes of memory that a scan takes.
    pub(crate) fn scan_bytes(&self) -> u64 {
        match &self.place {
            Place::Memory(..) => 0,
            Place::Runs { runs, piece, .. } => (runs.len() * piece) as u64,
        }
    }

    /// Begins to read all of them.
    pub(crate) fn scan(&self) -> Result<Scan<'_, R>, OverlapError> {
        Ok(match &self.place {
            Place::Memory(records, _) => Scan::Memory(records.iter()),
            Place::Runs { budget, spill, runs, piece } => {
                let claim = budget.claim(self.scan_bytes(), "merging")?;
                let merging = match spill {
                    Some(spill) => Merging::new(spill, runs, *piece, self.distinct)?,
                    None => Merging::empty(),
                };
                Scan::Runs(merging, claim)
            }
        })
    }
}

/// Reads sorted records.
pub(crate) enum Scan<'s, R> {
    Memory(std::slice::Iter<'s, R>),
    Runs(Merging<'s, R>, #[expect(dead_code, reason = "it holds the claim")] Claim),
}

impl<R: Record> Scan<'_, R> {
    /// The next record; none at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<R>, OverlapError> {
        match self {
            Self::Memory(records) => Ok(records.next().copied()),
            Self::Runs(merging, _) => merging.next(),
        }
    }

    /// Hands over each record that is left, once, and how often it comes.
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

/// Merges runs into one that is appended to a file.
pub(crate) fn merge<R: Record>(
    from: &Spill,
    runs: &[Run],
    piece: usize,
    distinct: bool,
    into: &mut Spill,
) -> Result<Run, OverlapError> {
    let mut merging = Merging::<R>::new(from, runs, piece, distinct)?;
    let mut run = Run { from: into.len(), records: 0 };
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

/// Several runs as one.
pub(crate) struct Merging<'s, R> {
    readers: Vec<Reader<'s>>,
    /// The next record of each run that has one.
    heads: BinaryHeap<Reverse<(R, usize)>>,
    last: Option<R>,
    distinct: bool,
}

impl<'s, R: Record> Merging<'s, R> {
    fn empty() -> Self {
        Self { readers: Vec::new(), heads: BinaryHeap::new(), last: None, distinct: false }
    }

    fn new(spill: &'s Spill, runs: &[Run], piece: usize, distinct: bool) -> Result<Self, OverlapError> {
        let mut merging = Self { distinct, ..Self::empty() };
        for (number, run) in runs.iter().enumerate() {
            let (next, end) = (run.from, run.from + run.records * R::BYTES as u64);
            let mut reader = Reader { spill, next, end, piece: Vec::with_capacity(piece), at: 0 };
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
                // The heap is mended once, when the head is let go.
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

/// Reads a run.
struct Reader<'s> {
    spill: &'s Spill,
    /// The first byte that is not read yet, and the end of the run.
    next: u64,
    end: u64,
    piece: Vec<u8>,
    at: usize,
}

impl Reader<'_> {
    fn next<R: Record>(&mut self) -> Result<Option<R>, OverlapError> {
        if self.at == self.piece.len() {
            let bytes =
                (self.end - self.next).min(self.piece.capacity() as u64 / R::BYTES as u64 * R::BYTES as u64);
            if bytes == 0 {
                return Ok(None);
            }
            self.piece.resize(bytes as usize, 0);
            self.spill.read(&mut self.piece, self.next)?;
            self.next += bytes;
            self.at = 0;
        }
        let record = R::read(&self.piece[self.at..]);
        self.at += R::BYTES;
        Ok(Some(record))
    }
}
