//! An increment: what leads from the state of a series of backups to that of a new one.
//!
//! The rows of the collection and those of the series both come in order of their keys, so they are compared as they come. An increment has
//! every row that is new or differs, and the deletion of every row that is gone. The changes that were committed while the
//! new backup was taken follow as they are. Nothing is taken from what a server remembers: whatever happened to the collection since,
//! the increment leads to its rows.

use std::io;
use std::iter::Peekable;
use std::path::PathBuf;

use doppel_protocol::{BackupError, Tier1Error};

use super::state::Rest;
use super::{Kind, Offline, Reader, SeriesError, State, Unusable, Writer, Written, each_row};
use crate::check::rows::piece;

/// Why there is no increment.
#[derive(Debug, thiserror::Error)]
pub enum IncrementError {
    /// The series that it is to follow.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// That series is of something else.
    #[error("{} is a backup of another collection: give one of this collection, or take a full one", .0.display())]
    OtherCollection(PathBuf),
    /// The new backup, as a server gives it.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// The new backup, as it is made.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The databases of the collection have rows of each other.
    #[error("the rows of the collection are not in order: `doppel check` the directory")]
    Unordered,
}

/// Makes an increment of a full backup that is read from `input`, verified to its end.
///
/// # Errors
/// When the series or the backup is damaged or cut off, they are of different collections, or `out` cannot be written.
pub fn increment(
    since: State,
    input: &mut dyn io::Read,
    out: &mut dyn io::Write,
) -> Result<Written, IncrementError> {
    let mut reader = Reader::open(input)?;
    if reader.head().follows.is_some() {
        return Err(Unusable::Foreign.into());
    }
    let mut difference = Difference::begin(since, &reader.head().manifest, out)?;
    while let Some((kind, writes)) = reader.entries()? {
        for (key, value) in writes {
            match (kind, value) {
                (Kind::Changes, value) => difference.change(&key, value.as_deref())?,
                (_, Some(value)) => difference.row(&key, &value)?,
                // It says of a row that there is none.
                (_, None) => {}
            }
        }
    }
    difference.end()
}

impl Offline {
    /// Makes an increment that follows a series.
    ///
    /// # Errors
    /// When the directory or the series is damaged, they are of different collections, or `out` cannot be written.
    pub fn back_up_since(
        &self,
        since: State,
        manifest: &str,
        out: &mut dyn io::Write,
    ) -> Result<Written, IncrementError> {
        let mut difference = Difference::begin(since, manifest, out)?;
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

/// An increment that is being made.
struct Difference<W> {
    since: Peekable<State>,
    writer: Writer<W>,
    last: Option<Vec<u8>>,
    rows_ended: bool,
    rest: Rest,
}

impl<W: io::Write> Difference<W> {
    fn begin(since: State, manifest: &str, out: W) -> Result<Self, IncrementError> {
        if since.manifest() != manifest {
            return Err(IncrementError::OtherCollection(since.newest().to_owned()));
        }
        let writer = Writer::begin_after(out, manifest, since.hash())?;
        let rest = since.rest();
        Ok(Self { since: since.peekable(), writer, last: None, rows_ended: false, rest })
    }

    /// Takes the next row of the collection.
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
        Ok(self.writer.entry(Kind::Rows, key, Some(value))?)
    }

    /// Takes a change that was committed after the rows were read.
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), IncrementError> {
        self.end_rows()?;
        Ok(self.writer.entry(Kind::Changes, key, value)?)
    }

    fn end(mut self) -> Result<Written, IncrementError> {
        self.end_rows()?;
        self.rest.verify()?;
        let summary = self.writer.end()?;
        Ok(Written { summary, hash: self.writer.hash() })
    }

    fn end_rows(&mut self) -> Result<(), IncrementError> {
        if !self.rows_ended {
            self.delete_before(None)?;
            self.rows_ended = true;
        }
        Ok(())
    }

    /// Deletes the rows of the series before a key, or all that are left: the collection has them no more.
    fn delete_before(&mut self, key: Option<&[u8]>) -> Result<(), IncrementError> {
        let is_before = |row: &Result<(Vec<u8>, _), _>| match (row, key) {
            (Ok((gone, _)), Some(key)) => gone.as_slice() < key,
            (Ok(_), None) | (Err(_), _) => true,
        };
        while let Some(row) = self.since.next_if(is_before) {
            self.writer.entry(Kind::Rows, &row?.0, None)?;
        }
        Ok(())
    }
}
