//! An external merge sort of writes by their keys. It keeps only the newest write of each key.
//!
//! The sorter collects writes in memory. When they exceed the memory limit, it writes them to a *run*: a
//! sorted, unnamed file, which the system deletes when it is closed. When there are many runs of a size, the
//! sorter merges them into one larger run. So few files are open, and each write is copied only once per run
//! size.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write as _};
use std::iter::{self, Peekable};
use std::path::{Path, PathBuf};

use super::entry;
use crate::storage::store::Write;

/// Bytes of memory that a write takes in addition to its key and value.
const ENTRY_BYTES: usize = 64;

/// Number of runs of a size that are merged into one larger run.
const RUNS_MAX: usize = 32;

/// Writes in the order of their keys, with one write per key.
pub(super) type SortedWrites<E> = Box<dyn Iterator<Item = Result<Write, E>>>;

/// Sorts writes by their keys in bounded memory.
pub(super) struct ExternalSorter {
    dir: PathBuf,
    bytes_max: usize,
    /// Writes in memory, all newer than the writes in the runs.
    newest: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Approximate size of `newest` in bytes.
    bytes: usize,
    /// Runs by size class. Runs of a class are [`RUNS_MAX`] times as large as runs of the class before. In a
    /// class the oldest run comes first, and runs of a larger class are older.
    sizes: Vec<Vec<File>>,
}

impl ExternalSorter {
    /// Creates a sorter that keeps about `bytes_max` bytes of writes in memory, and the others in files in
    /// `dir`.
    pub(super) fn new(dir: &Path, bytes_max: usize) -> Self {
        Self { dir: dir.to_owned(), bytes_max, newest: BTreeMap::new(), bytes: 0, sizes: Vec::new() }
    }

    /// Adds a write that is newer than all earlier ones.
    pub(super) fn add(&mut self, (key, value): Write) -> io::Result<()> {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + ENTRY_BYTES;
        self.newest.insert(key, value);
        if self.bytes < self.bytes_max {
            return Ok(());
        }
        self.bytes = 0;
        let newest = std::mem::take(&mut self.newest);
        let mut file = write(&self.dir, newest.into_iter().map(Ok))?;
        for size in 0.. {
            if size == self.sizes.len() {
                self.sizes.push(Vec::new());
            }
            let files = &mut self.sizes[size];
            files.push(file);
            if files.len() < RUNS_MAX {
                break;
            }
            file = write(&self.dir, MergedWrites::new(files.drain(..).map(read).collect()))?;
        }
        Ok(())
    }

    /// Returns the newest write of each key, in the order of the keys. Deletions are included.
    pub(super) fn sorted(self) -> MergedWrites<io::Error> {
        let newest: SortedWrites<io::Error> = Box::new(self.newest.into_iter().map(Ok));
        let files = self.sizes.into_iter().rev().flatten();
        MergedWrites::new(files.map(read).chain([newest]).collect())
    }
}

/// Writes a run.
fn write(dir: &Path, writes: impl Iterator<Item = io::Result<Write>>) -> io::Result<File> {
    let mut out = BufWriter::new(tempfile::tempfile_in(dir)?);
    let mut bytes = Vec::new();
    for write in writes {
        let (key, value) = write?;
        bytes.clear();
        entry::put(&mut bytes, &key, value.as_deref())?;
        out.write_all(&bytes)?;
    }
    let mut file = out.into_inner()?;
    file.rewind()?;
    Ok(file)
}

/// Reads a run.
fn read(file: File) -> SortedWrites<io::Error> {
    let mut input = BufReader::new(file);
    Box::new(iter::from_fn(move || entry::read(&mut input, usize::MAX).transpose()))
}

/// Merges sorted sources of writes. If several sources have a write of the same key, the last source wins.
pub(super) struct MergedWrites<E> {
    sources: Vec<Peekable<SortedWrites<E>>>,
}

impl<E> MergedWrites<E> {
    /// Merges `sources`, which must be in the order from the oldest to the newest.
    pub(super) fn new(sources: Vec<SortedWrites<E>>) -> Self {
        Self { sources: sources.into_iter().map(Iterator::peekable).collect() }
    }
}

impl<E> Iterator for MergedWrites<E> {
    type Item = Result<Write, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut least: Option<(usize, &[u8])> = None;
        let mut failed = None;
        for (at, source) in self.sources.iter_mut().enumerate() {
            match source.peek() {
                Some(Ok((key, _))) if least.is_none_or(|(_, least)| key.as_slice() <= least) => {
                    least = Some((at, key));
                }
                Some(Err(_)) => failed = Some(at),
                Some(Ok(_)) | None => {}
            }
        }
        if let Some(failed) = failed {
            return self.sources[failed].next();
        }
        let (at, key) = least?;
        if at > 0 {
            let key = key.to_vec();
            for older in &mut self.sources[..at] {
                older.next_if(|write| matches!(write, Ok((other, _)) if *other == key));
            }
        }
        self.sources[at].next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sorter_returns_the_newest_write_of_each_key_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for bytes_max in [1, 300, 5_000, usize::MAX] {
            let (mut runs, mut expected) = (ExternalSorter::new(dir.path(), bytes_max), BTreeMap::new());
            for number in 0..2_000_u32 {
                let key = (number.wrapping_mul(7_919) % 331).to_be_bytes().to_vec();
                let value = (number % 5 > 0).then(|| number.to_le_bytes().to_vec());
                expected.insert(key.clone(), value.clone());
                runs.add((key, value)).unwrap();
            }
            assert!(runs.sizes.iter().all(|files| files.len() < RUNS_MAX));
            assert_eq!(runs.sizes.is_empty(), bytes_max == usize::MAX);
            let sorted: Vec<Write> = runs.sorted().map(Result::unwrap).collect();
            assert!(sorted == expected.into_iter().collect::<Vec<_>>(), "{bytes_max} bytes in memory");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a run has a file name");
    }
}
