//! The rows that result from a series of backups, in the order of their keys.
//!
//! This module reads the series twice. The first pass verifies the series, and sorts everything that changes
//! the rows of the full backup: the increments, and the changes that were committed while each backup was
//! taken. The second pass reads the rows of the full backup, and merges them with the sorted changes. So
//! memory is bounded. The temporary files are at most twice as large as the unpacked increments.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{iter, vec};

use super::external_sort::{ExternalSorter, MergedWrites, SortedWrites};
use super::series::{self, Series, SeriesError};
use super::{BackupFileError, BackupHash, BackupReader, BlockKind};
use crate::storage::store::Write;
use doppel_protocol::range_owner::EncodedRow;

/// Memory for sorting changes, in bytes.
const SORTED_BYTES: usize = 64 << 20;

/// Rows of the collection at the time of the last backup of a series, in the order of their keys.
pub struct SeriesState {
    rows: MergedWrites<SeriesError>,
    full: Rc<RefCell<FullRows>>,
    newest: PathBuf,
    hash: BackupHash,
    manifest: String,
}

impl SeriesState {
    /// Verifies a series and prepares its rows. Sorting uses unnamed temporary files in `dir`.
    ///
    /// # Errors
    /// If the files are not a series, a file is damaged, or `dir` cannot be written.
    pub fn of(files: &[PathBuf], dir: &Path) -> Result<Self, SeriesError> {
        Self::sorted_in(files, dir, SORTED_BYTES)
    }

    pub(super) fn sorted_in(files: &[PathBuf], dir: &Path, bytes: usize) -> Result<Self, SeriesError> {
        let dir_of = dir.to_owned();
        let sorting = move |source: io::Error| SeriesError::Sorting { dir: dir_of.clone(), source };
        series::refuse_pipes(files)?;
        let (mut series, mut later) = (Series::open(files)?, ExternalSorter::new(dir, bytes));
        while let Some((kind, writes)) = series.writes()? {
            if series.is_at_full() && kind == BlockKind::Rows {
                continue;
            }
            writes.into_iter().try_for_each(|write| later.add(write)).map_err(&sorting)?;
        }
        let (manifest, hashes) = (series.head().directory_manifest.clone(), series.verified().hashes);
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
        let sources: Vec<SortedWrites<SeriesError>> = vec![Box::new(rows), Box::new(later)];
        Ok(Self { rows: MergedWrites::new(sources), full, newest: newest.clone(), hash: *last, manifest })
    }

    /// Manifest of the collection.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// Hash of the last backup.
    #[must_use]
    pub fn hash(&self) -> BackupHash {
        self.hash
    }

    /// Returns the part of the full backup that remains unread after all rows.
    pub(super) fn rest(&self) -> RemainingChanges {
        RemainingChanges(Rc::clone(&self.full))
    }

    /// Path of the last backup.
    pub(super) fn newest(&self) -> &Path {
        &self.newest
    }
}

impl Iterator for SeriesState {
    type Item = Result<EncodedRow, SeriesError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.rows.next()? {
                Ok((key, Some(value))) => return Some(Ok((key, value))),
                // A later file deletes the row.
                Ok((_, None)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The changes that follow the rows of the full backup. They were sorted in the first pass. They are read
/// again only to verify that the file has not changed since. This may take long, so it happens at the very
/// end, when no server waits.
pub(super) struct RemainingChanges(Rc<RefCell<FullRows>>);

impl RemainingChanges {
    /// Reads the full backup to its end, and verifies that it is the file of the first pass.
    ///
    /// # Errors
    /// If the file is damaged or was changed.
    pub(super) fn verify(self) -> Result<(), SeriesError> {
        let mut full = self.0.borrow_mut();
        full.verify_rest().map_err(|source| SeriesError::unusable(&full.path, source))
    }
}

/// Reads the rows of a full backup, without the changes that follow the rows.
struct FullRows {
    path: PathBuf,
    reader: BackupReader<BufReader<File>>,
    /// Hash of the file in the first pass.
    hash: BackupHash,
    /// Remaining rows of the present block.
    block: vec::IntoIter<Write>,
    /// Key of the last row.
    last: Option<Vec<u8>>,
    /// Whether all rows were returned.
    ended: bool,
    /// Whether the file was read to its end.
    read_to_end: bool,
}

impl FullRows {
    fn next_row(&mut self) -> Result<Option<Write>, BackupFileError> {
        while !self.ended {
            if let Some(row) = self.block.next() {
                if self.last.as_ref().is_some_and(|last| *last >= row.0) {
                    return Err(BackupFileError::Unordered);
                }
                self.last = Some(row.0.clone());
                return Ok(Some(row));
            }
            match self.reader.entries()? {
                Some((BlockKind::Rows, rows)) => self.block = rows.into_iter(),
                Some(_) => self.ended = true,
                None => (self.ended, self.read_to_end) = (true, true),
            }
        }
        Ok(None)
    }

    fn verify_rest(&mut self) -> Result<(), BackupFileError> {
        while !self.read_to_end {
            self.read_to_end = self.reader.entries()?.is_none();
        }
        if self.reader.hash() == self.hash { Ok(()) } else { Err(BackupFileError::Replaced) }
    }

    fn next(&mut self) -> Option<Result<Write, SeriesError>> {
        self.next_row().map_err(|source| SeriesError::unusable(&self.path, source)).transpose()
    }
}
