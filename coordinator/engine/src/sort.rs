//! External merge sort of more lines than fit in memory (Knuth, *The Art of Computer Programming*, volume 3,
//! section 5.4).
//!
//! The sorter collects lines in one buffer of bounded size. When the buffer is full, the sorter sorts it and
//! writes it to an unnamed temporary file, called a run. At the end it merges the runs, at most a fixed
//! number at a time. Memory use is bounded: one buffer while collecting, then one read buffer for each run of
//! a merge.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Size of the read buffer and of the write buffer of a run, in bytes.
const RUN_BUFFER: usize = 64 << 10;

/// Collects lines with keys and returns the lines in byte order of their keys.
pub struct Sorter {
    dir: PathBuf,
    chunk_bytes: usize,
    fan_in: usize,
    arena: Vec<u8>,
    entries: Vec<LinePosition>,
    runs: Vec<File>,
}

/// Position of a key and its line in the buffer. The line directly follows its key.
#[derive(Clone, Copy)]
struct LinePosition {
    begin: usize,
    key: u32,
    line: u32,
}

impl Sorter {
    /// Creates an empty sorter. It spills to `dir` whenever it has collected `chunk_bytes`, and merges up to
    /// `fan_in` runs at a time (at least 2).
    pub fn new(dir: &Path, chunk_bytes: usize, fan_in: usize) -> Self {
        Self {
            dir: dir.to_owned(),
            chunk_bytes,
            fan_in: fan_in.max(2),
            arena: Vec::new(),
            entries: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a line under `key`. The sorter calls `write` once, to append the line to its buffer.
    ///
    /// # Errors
    /// If the key or the line is 4 GiB or longer, if `write` fails, or if a run cannot be written.
    pub fn push(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        if self.arena.len() + self.entries.len() * size_of::<LinePosition>() >= self.chunk_bytes {
            self.spill()?;
        }
        let begin = self.arena.len();
        self.arena.extend_from_slice(key);
        write(&mut self.arena)?;
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a line of 4 GB or more");
        let key_bytes = u32::try_from(key.len()).map_err(too_long)?;
        let line = u32::try_from(self.arena.len() - begin - key.len()).map_err(too_long)?;
        self.entries.push(LinePosition { begin, key: key_bytes, line });
        Ok(())
    }

    /// Passes every line to `each` in order of the keys. Lines with equal keys keep the order of their
    /// pushes.
    ///
    /// # Errors
    /// If a temporary file cannot be read or written, or if `each` fails.
    pub fn finish(self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.finish_unless(&|| false, each)
    }

    /// Like [`finish`](Self::finish), but fails with [`io::ErrorKind::Interrupted`] soon after `stops`
    /// returns true.
    pub fn finish_unless(
        mut self,
        stops: &dyn Fn() -> bool,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut stop_check = StopCheck { stops, records: 0 };
        if self.runs.is_empty() {
            self.sort();
            return self.entries.iter().try_for_each(|entry| {
                stop_check.check()?;
                each(self.line(*entry))
            });
        }
        self.spill()?;
        (self.arena, self.entries) = (Vec::new(), Vec::new());
        while self.runs.len() > self.fan_in {
            // Only neighbouring runs are merged, because that keeps the order of equal keys.
            let mut merged = Vec::with_capacity(self.runs.len().div_ceil(self.fan_in));
            let mut runs = std::mem::take(&mut self.runs).into_iter().peekable();
            while runs.peek().is_some() {
                let mut out = BufWriter::with_capacity(RUN_BUFFER, tempfile::tempfile_in(&self.dir)?);
                let some = runs.by_ref().take(self.fan_in).collect();
                merge(some, |key, line| {
                    stop_check.check()?;
                    write_record(&mut out, key, line)
                })?;
                merged.push(out.into_inner()?);
            }
            self.runs = merged;
        }
        merge(std::mem::take(&mut self.runs), |_, line| {
            stop_check.check()?;
            each(line)
        })
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        // Lines lie in the buffer in push order, so the position of a line breaks ties between equal keys.
        self.entries.sort_unstable_by(|a, b| key(arena, *a).cmp(key(arena, *b)).then(a.begin.cmp(&b.begin)));
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let mut out = BufWriter::with_capacity(RUN_BUFFER, tempfile::tempfile_in(&self.dir)?);
        for &entry in &self.entries {
            write_record(&mut out, key(&self.arena, entry), self.line(entry))?;
        }
        self.runs.push(out.into_inner()?);
        self.arena.clear();
        self.entries.clear();
        Ok(())
    }

    fn line(&self, entry: LinePosition) -> &[u8] {
        let begin = entry.begin + entry.key as usize;
        &self.arena[begin..begin + entry.line as usize]
    }
}

/// Number of records between two calls of `stops`.
const STOP_RECORDS: u64 = 4_096;

/// Calls `stops` once for every [`STOP_RECORDS`] records.
struct StopCheck<'s> {
    stops: &'s dyn Fn() -> bool,
    records: u64,
}

impl StopCheck<'_> {
    fn check(&mut self) -> io::Result<()> {
        let is_asked = self.records.is_multiple_of(STOP_RECORDS);
        self.records += 1;
        if is_asked && (self.stops)() { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }
}

fn key(arena: &[u8], entry: LinePosition) -> &[u8] {
    &arena[entry.begin..entry.begin + entry.key as usize]
}

/// Writes a record of a run: key length and line length (32 bits each, little-endian), key, line.
fn write_record(out: &mut impl Write, key: &[u8], line: &[u8]) -> io::Result<()> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map(u32::to_le_bytes).map_err(io::Error::other);
    out.write_all(&length(key)?)?;
    out.write_all(&length(line)?)?;
    out.write_all(key)?;
    out.write_all(line)
}

/// Reader of a run, positioned at the current record.
struct RunReader {
    reader: BufReader<File>,
    /// Index of this run among the merged runs. The index breaks ties between equal keys.
    position: usize,
    record: Vec<u8>,
    key: usize,
}

fn merge(runs: Vec<File>, mut each: impl FnMut(&[u8], &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut heads = BinaryHeap::with_capacity(runs.len());
    for (position, mut run) in runs.into_iter().enumerate() {
        run.rewind()?;
        let reader = BufReader::with_capacity(RUN_BUFFER, run);
        let mut head = RunReader { reader, position, record: Vec::new(), key: 0 };
        if head.advance()? {
            heads.push(head);
        }
    }
    while let Some(mut first) = heads.peek_mut() {
        let (key, line) = first.record.split_at(first.key);
        each(key, line)?;
        if !first.advance()? {
            PeekMut::pop(first);
        }
    }
    Ok(())
}

impl RunReader {
    /// Reads the next record. Returns false at the end of the run.
    fn advance(&mut self) -> io::Result<bool> {
        if io::BufRead::fill_buf(&mut self.reader)?.is_empty() {
            return Ok(false);
        }
        let mut lengths = [0; 8];
        self.reader.read_exact(&mut lengths)?;
        let [a, b, c, d, e, f, g, h] = lengths;
        self.key = u32::from_le_bytes([a, b, c, d]) as usize;
        let line = u32::from_le_bytes([e, f, g, h]) as usize;
        self.record.resize(self.key + line, 0);
        self.reader.read_exact(&mut self.record)?;
        Ok(true)
    }
}

/// Reverse order of the keys: `BinaryHeap` returns its greatest element, and the merge needs the smallest
/// key.
impl Ord for RunReader {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (&self.record[..self.key], &other.record[..other.key]);
        theirs.cmp(mine).then(other.position.cmp(&self.position))
    }
}

impl PartialOrd for RunReader {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunReader {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunReader {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(lines: &[(Vec<u8>, Vec<u8>)], chunk_bytes: usize, fan_in: usize) -> (Vec<Vec<u8>>, usize) {
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(dir.path(), chunk_bytes, fan_in);
        for (key, line) in lines {
            sorter.push(key, |out| out.write_all(line)).unwrap();
        }
        let runs = sorter.runs.len();
        let mut out = Vec::new();
        sorter
            .finish(&mut |line| {
                out.push(line.to_vec());
                Ok(())
            })
            .unwrap();
        (out, runs)
    }

    proptest! {
        #[test]
        fn the_result_equals_a_stable_sort_in_memory(
            lines in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..4), any::<[u8; 3]>()), 0..200),
            chunk_bytes in 1_usize..2_000,
            fan_in in 0_usize..5,
        ) {
            let lines: Vec<_> = lines.into_iter().map(|(key, line)| (key, line.to_vec())).collect();
            let mut expected = lines.clone();
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            let expected: Vec<_> = expected.into_iter().map(|(_, line)| line).collect();
            prop_assert_eq!(sorted(&lines, chunk_bytes, fan_in).0, expected);
        }
    }

    #[test]
    fn the_sorter_stops_in_every_round() {
        let dir = tempfile::tempdir().unwrap();
        // Three cases: no runs, runs that one merge finishes, and runs that need an intermediate merge first.
        for (chunk_bytes, fan_in) in [(1 << 20, 2), (50_000, 9), (50_000, 2)] {
            let run = |asked_max: u32| {
                let mut sorter = Sorter::new(dir.path(), chunk_bytes, fan_in);
                for n in 0..9_000_u32 {
                    sorter.push(&n.to_be_bytes(), |out| out.write_all(b"line")).unwrap();
                }
                let (asked, mut lines) = (std::cell::Cell::new(0), 0);
                let stops = || {
                    asked.set(asked.get() + 1);
                    asked.get() > asked_max
                };
                let done = sorter.finish_unless(&stops, &mut |_| {
                    lines += 1;
                    Ok(())
                });
                (done.map_err(|error| error.kind()), lines, asked.get())
            };
            let (done, lines, asked) = run(u32::MAX);
            assert_eq!((done, lines), (Ok(()), 9_000));
            for asked_max in 0..asked {
                let (done, lines, _) = run(asked_max);
                assert!(
                    done == Err(io::ErrorKind::Interrupted) && lines < 9_000,
                    "{chunk_bytes}: {asked_max}"
                );
            }
        }
    }

    #[test]
    fn spills_and_merges_in_several_rounds() {
        let lines: Vec<_> = (0..500_u32).rev().map(|n| (n.to_be_bytes().to_vec(), vec![b'x'; 40])).collect();
        let (out, runs) = sorted(&lines, 200, 3);
        assert!(runs > 27, "{runs} runs do not take four rounds of three");
        assert_eq!(out.len(), 500);
    }

    #[test]
    fn an_unwritable_directory_is_an_error() {
        let mut sorter = Sorter::new(Path::new("/nowhere"), 1, 2);
        sorter.push(b"a", |_| Ok(())).unwrap();
        assert!(sorter.push(b"b", |_| Ok(())).is_err());
    }
}
