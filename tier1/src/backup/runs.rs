//! Writes in order of their keys, whatever order they come in and however many there are. Of each key the newest counts.
//!
//! As many as fit are in memory. When they are more they become a run: a sorted file without a name, which goes when it
//! is closed. Runs of a size are merged into one when there are many, so that few files are open, and an entry is written
//! once for each size.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write as _};
use std::iter::{self, Peekable};
use std::path::{Path, PathBuf};

use super::entry;
use crate::store::Write;

/// Bytes of memory that an entry takes besides its key and value.
const ENTRY_BYTES: usize = 64;

/// So many runs are merged into one.
const RUNS_MAX: usize = 32;

/// Writes in order of their keys, one for each.
pub(super) type Sorted<E> = Box<dyn Iterator<Item = Result<Write, E>>>;

/// Writes that are being sorted.
pub(super) struct Runs {
    dir: PathBuf,
    bytes_max: usize,
    newest: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
    /// Runs by size, each `RUNS_MAX` times the one before; of a size the oldest first. Larger ones are older.
    sizes: Vec<Vec<File>>,
}

impl Runs {
    /// None yet. About `bytes_max` bytes of them are kept in memory, and the others in files in `dir`.
    pub(super) fn new(dir: &Path, bytes_max: usize) -> Self {
        Self { dir: dir.to_owned(), bytes_max, newest: BTreeMap::new(), bytes: 0, sizes: Vec::new() }
    }

    /// Adds one, which is newer than all before.
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
            file = write(&self.dir, Merged::new(files.drain(..).map(read).collect()))?;
        }
        Ok(())
    }

    /// All of them; a write that deletes is among them.
    pub(super) fn sorted(self) -> Merged<io::Error> {
        let newest: Sorted<io::Error> = Box::new(self.newest.into_iter().map(Ok));
        let files = self.sizes.into_iter().rev().flatten();
        Merged::new(files.map(read).chain([newest]).collect())
    }
}

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

fn read(file: File) -> Sorted<io::Error> {
    let mut input = BufReader::new(file);
    Box::new(iter::from_fn(move || entry::read(&mut input, usize::MAX).transpose()))
}

/// Several sorted sources as one. Of the writes of one key that of the last source counts.
pub(super) struct Merged<E> {
    sources: Vec<Peekable<Sorted<E>>>,
}

impl<E> Merged<E> {
    /// The oldest source comes first.
    pub(super) fn new(sources: Vec<Sorted<E>>) -> Self {
        Self { sources: sources.into_iter().map(Iterator::peekable).collect() }
    }
}

impl<E> Iterator for Merged<E> {
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

    /// Runs that are spilled, and merged, and spilled again, give what a map gives.
    #[test]
    fn the_newest_write_of_each_key_comes_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for bytes_max in [1, 300, 5_000, usize::MAX] {
            let (mut runs, mut expected) = (Runs::new(dir.path(), bytes_max), BTreeMap::new());
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
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a file has a name");
    }
}
