//! Writes an increment: the difference between a series of backups and a new full backup.
//!
//! The rows of the collection and the rows of the series both arrive in the order of their keys, so this
//! module compares them while it reads them. An increment contains every row that is new or has changed, and
//! a deletion for every row that is gone. The changes that the server committed while it took the new backup
//! follow unchanged. The comparison relies on no memory of the server. The series with the increment
//! therefore always gives the collection's rows, whatever has happened to the collection in between.

use std::io;
use std::iter::Peekable;
use std::path::PathBuf;

use doppel_protocol::{BackupError, Tier1Error};

use super::state::RemainingChanges;
use super::{
    BackupFileError, BackupReader, BackupWriter, BlockKind, FinishedBackup, OfflineCollection, SeriesError,
    SeriesState, each_row,
};
use crate::check::rows::piece;

/// Why an increment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum IncrementError {
    /// The series that the increment follows cannot be used.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The series is of another collection.
    #[error(
        "{} is a backup of another collection; name a backup of this collection, or make a full backup",
        .0.display()
    )]
    OtherCollection(PathBuf),
    /// The new full backup that a server sends cannot be used.
    #[error(transparent)]
    Unusable(#[from] BackupFileError),
    /// The collection cannot be read, or the increment cannot be written.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The rows of the collection are not in the order of their keys. A database has rows of another range.
    #[error("the rows of the collection are not in order; run `doppel check` on its directory")]
    Unordered,
}

/// Reads a full backup from `input`, and writes the increment that follows the series `since` to `out`.
/// Verifies the full backup and the series to their ends.
///
/// # Errors
/// If the series or the backup is damaged or cut off, they are of different collections, or `out` cannot be
/// written.
pub fn increment(
    since: SeriesState,
    input: &mut dyn io::Read,
    out: &mut dyn io::Write,
) -> Result<FinishedBackup, IncrementError> {
    let mut reader = BackupReader::open(input)?;
    if reader.head().follows.is_some() {
        return Err(BackupFileError::Foreign.into());
    }
    let mut difference = IncrementWriter::begin(since, &reader.head().directory_manifest, out)?;
    while let Some((kind, writes)) = reader.entries()? {
        for (key, value) in writes {
            match (kind, value) {
                (BlockKind::Changes, value) => difference.change(&key, value.as_deref())?,
                (_, Some(value)) => difference.row(&key, &value)?,
                // A deletion among the rows of a full backup means that the row does not exist.
                (_, None) => {}
            }
        }
    }
    difference.end()
}

impl OfflineCollection {
    /// Writes the increment that follows the series `since` to `out`.
    ///
    /// # Errors
    /// If the directory or the series is damaged, they are of different collections, or `out` cannot be
    /// written.
    pub fn back_up_since(
        &self,
        since: SeriesState,
        manifest: &str,
        out: &mut dyn io::Write,
    ) -> Result<FinishedBackup, IncrementError> {
        let mut difference = IncrementWriter::begin(since, manifest, out)?;
        for store in &self.0 {
            let mut from = Vec::new();
            loop {
                let rows = piece(store, &from).map_err(Tier1Error::from).map_err(BackupError::from)?;
                if !each_row(&rows, &mut from, |key, value| difference.row(key, value))? {
                    break;
                }
            }
        }
        difference.end()
    }
}

/// Compares the collection's rows with the rows of a series, and writes the differences.
struct IncrementWriter<W> {
    since: Peekable<SeriesState>,
    writer: BackupWriter<W>,
    /// Key of the last row of the collection.
    last: Option<Vec<u8>>,
    /// Whether all rows of the collection were taken.
    rows_ended: bool,
    /// Unread changes of the series' full backup.
    rest: RemainingChanges,
}

impl<W: io::Write> IncrementWriter<W> {
    fn begin(since: SeriesState, manifest: &str, out: W) -> Result<Self, IncrementError> {
        if since.manifest() != manifest {
            return Err(IncrementError::OtherCollection(since.newest().to_owned()));
        }
        let writer = BackupWriter::begin_after(out, manifest, since.hash())?;
        let rest = since.rest();
        Ok(Self { since: since.peekable(), writer, last: None, rows_ended: false, rest })
    }

    /// Takes the next row of the collection, and writes the row if it is new or has changed.
    fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), IncrementError> {
        if self.rows_ended || self.last.as_ref().is_some_and(|last| last.as_slice() >= key) {
            return Err(IncrementError::Unordered);
        }
        self.last = Some(key.to_vec());
        self.delete_before(Some(key))?;
        let same_key = |row: &Result<(Vec<u8>, _), _>| matches!(row, Ok((other, _)) if other == key);
        if let Some(before) = self.since.next_if(same_key)
            && before?.1 == value
        {
            return Ok(());
        }
        Ok(self.writer.entry(BlockKind::Rows, key, Some(value))?)
    }

    /// Writes a change that was committed after the rows were read.
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), IncrementError> {
        self.end_rows()?;
        Ok(self.writer.entry(BlockKind::Changes, key, value)?)
    }

    fn end(mut self) -> Result<FinishedBackup, IncrementError> {
        self.end_rows()?;
        self.rest.verify()?;
        let summary = self.writer.end()?;
        Ok(FinishedBackup { summary, hash: self.writer.hash() })
    }

    fn end_rows(&mut self) -> Result<(), IncrementError> {
        if !self.rows_ended {
            self.delete_before(None)?;
            self.rows_ended = true;
        }
        Ok(())
    }

    /// Writes deletions for the rows of the series before `key`, or for all remaining rows if `key` is
    /// `None`. The collection no longer has these rows.
    fn delete_before(&mut self, key: Option<&[u8]>) -> Result<(), IncrementError> {
        let is_before = |row: &Result<(Vec<u8>, _), _>| match (row, key) {
            (Ok((gone, _)), Some(key)) => gone.as_slice() < key,
            (Ok(_), None) | (Err(_), _) => true,
        };
        while let Some(row) = self.since.next_if(is_before) {
            self.writer.entry(BlockKind::Rows, &row?.0, None)?;
        }
        Ok(())
    }
}
