//! The rows that a series of backups gives, in order of their keys.
//!
//! The series is read twice. The first time it is verified, and all that changes the rows of the full backup is sorted:
//! increments, and the changes while each backup was taken, which come in the order of commits. The second time the rows
//! of the full backup are merged with that. So memory is bounded, and the files of sorting are at most twice as large as the
//! increments unpacked.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{iter, vec};

use super::runs::{Merged, Runs, Sorted};
use super::series::{self, Series, SeriesError};
use super::{BackupHash, Kind, Reader, Unusable};
use crate::store::Write;
use crate::txn::Row;

/// Bytes of changes that are sorted in memory.
const SORTED_BYTES: usize = 64 << 20;

/// The state of the collection when the last backup of a series was made.
pub struct State {
    rows: Merged<SeriesError>,
    full: Rc<RefCell<FullRows>>,
    newest: PathBuf,
    hash: BackupHash,
    manifest: String,
}

impl State {
    /// Verifies a series and prepares its rows. What has to be sorted is kept in `dir`, in files without a name.
    ///
    /// # Errors
    /// When the files are no series, or one is damaged, or `dir` cannot be written.
    pub fn of(files: &[PathBuf], dir: &Path) -> Result<Self, SeriesError> {
        Self::sorted_in(files, dir, SORTED_BYTES)
    }

    pub(super) fn sorted_in(files: &[PathBuf], dir: &Path, bytes: usize) -> Result<Self, SeriesError> {
        let dir_of = dir.to_owned();
        let sorting = move |source: io::Error| SeriesError::Sorting { dir: dir_of.clone(), source };
        series::refuse_pipes(files)?;
        let (mut series, mut later) = (Series::open(files)?, Runs::new(dir, bytes));
        while let Some((kind, writes)) = series.writes()? {
            if series.is_at_full() && kind == Kind::Rows {
                continue;
            }
            writes.into_iter().try_for_each(|write| later.add(write)).map_err(&sorting)?;
        }
        let (manifest, hashes) = (series.head().manifest.clone(), series.verified().hashes);
        let (Some(full), Some(newest), Some(first), Some(last)) =
            (files.first(), files.last(), hashes.first(), hashes.last())
        else {
            return Err(SeriesError::Empty);
        };
        let reader = series::open(full)?;
        let full = Rc::new(RefCell::new(FullRows {
            path: full.clone(),
            reader,
            hash: *first,
            block: Vec::new().into_iter(),
            last: None,
            ended: false,
            read_to_end: false,
        }));
        let shared = Rc::clone(&full);
        let rows = iter::from_fn(move || shared.borrow_mut().next());
        let later = later.sorted().map(move |write| write.map_err(&sorting));
        let sources: Vec<Sorted<SeriesError>> = vec![Box::new(rows), Box::new(later)];
        Ok(Self { rows: Merged::new(sources), full, newest: newest.clone(), hash: *last, manifest })
    }

    /// The manifest of the collection.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// The hash of the last backup.
    #[must_use]
    pub fn hash(&self) -> BackupHash {
        self.hash
    }

    /// What is still to be read when all rows were.
    pub(super) fn rest(&self) -> Rest {
        Rest(Rc::clone(&self.full))
    }

    /// The file of the last backup.
    pub(super) fn newest(&self) -> &Path {
        &self.newest
    }
}

impl Iterator for State {
    type Item = Result<Row, SeriesError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.rows.next()? {
                Ok((key, Some(value))) => return Some(Ok((key, value))),
                // It was deleted.
                Ok((_, None)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The changes that follow the rows of the full backup. They are among what was sorted, and are read again only to see that the
/// file is the one that was verified. That may take long, so it is done when nobody waits for it.
pub(super) struct Rest(Rc<RefCell<FullRows>>);

impl Rest {
    /// Reads the full backup to its end.
    pub(super) fn verify(self) -> Result<(), SeriesError> {
        let mut full = self.0.borrow_mut();
        full.verify_rest().map_err(|source| SeriesError::unusable(&full.path, source))
    }
}

/// The rows of a full backup, without the changes that follow them.
struct FullRows {
    path: PathBuf,
    reader: Reader<BufReader<File>>,
    /// That of the file when it was read before.
    hash: BackupHash,
    block: vec::IntoIter<Write>,
    last: Option<Vec<u8>>,
    /// All rows were given.
    ended: bool,
    read_to_end: bool,
}

impl FullRows {
    fn next_row(&mut self) -> Result<Option<Write>, Unusable> {
        while !self.ended {
            if let Some(row) = self.block.next() {
                if self.last.as_ref().is_some_and(|last| *last >= row.0) {
                    return Err(Unusable::Unordered);
                }
                self.last = Some(row.0.clone());
                return Ok(Some(row));
            }
            match self.reader.entries()? {
                Some((Kind::Rows, rows)) => self.block = rows.into_iter(),
                Some(_) => self.ended = true,
                None => (self.ended, self.read_to_end) = (true, true),
            }
        }
        Ok(None)
    }

    fn verify_rest(&mut self) -> Result<(), Unusable> {
        while !self.read_to_end {
            self.read_to_end = self.reader.entries()?.is_none();
        }
        if self.reader.hash() == self.hash { Ok(()) } else { Err(Unusable::Replaced) }
    }

    fn next(&mut self) -> Option<Result<Write, SeriesError>> {
        self.next_row().map_err(|source| SeriesError::unusable(&self.path, source)).transpose()
    }
}
