//! Backups of tier 1. A full backup is one file with every row.
//!
//! [`file_format`] describes the layout of a file.
//!
//! A backup contains no date, so the same state gives the same bytes. The hash of all block checksums,
//! including the checksum of the end, identifies the file ([`BackupHash`]).
//!
//! An [`increment`] has the same format with another signature, and its head names the backup that it
//! follows. It contains every row that is new or changed since that backup, and a deletion for each row that
//! is gone. A full backup and its increments form a [`Series`].
//!
//! A backup leaves out tier 2, which can be rebuilt from tier 1. It also leaves out the state of tier 2's
//! router, because that state names nodes that the restored collection may not have.

pub(crate) mod entry;
mod external_sort;
mod file_format;
mod hash;
mod increment;
mod reader;
mod series;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::Path;

use doppel_model::pairwise::Policy;
use doppel_protocol::range_owner::EncodedRow;
use doppel_protocol::{BackupError, BackupSummary, RangeMap, Tier1Error, WinnerOrder};

use crate::check;
use crate::check::rows::{RowKey, piece};
use crate::rows::key;
use crate::rows::record;
use crate::storage::database::Database;
use crate::storage::range_files::directories;
use crate::storage::store::{JoinedStore, Store, StoreError};
pub use file_format::BackupHead;
pub(crate) use file_format::BlockKind;
pub use hash::BackupHash;
pub use increment::{IncrementError, increment};
pub use reader::{BackupFileError, BackupReader};
pub use series::{Series, SeriesError, VerifiedSeries, refuse_pipes};
pub use state::SeriesState;
pub(crate) use writer::BackupWriter;

/// Number of rows that a restore writes in one commit.
const ROWS_AT_ONCE: usize = 1_000;

/// Why a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backup files cannot be used.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The database cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Size and identity of a backup that was completely written or read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedBackup {
    /// Numbers of rows, changes, and bytes.
    pub summary: BackupSummary,
    /// Hash that identifies the backup.
    pub hash: BackupHash,
}

/// A collection in a directory that no server uses, opened for a backup.
pub struct OfflineCollection(Vec<Database>);

impl OfflineCollection {
    /// Opens the databases in `dir`.
    ///
    /// # Errors
    /// If a database is missing, in use, or damaged. Also if it cannot be written, because the storage engine
    /// may have to complete its files.
    pub fn open(dir: &Path, map: RangeMap) -> Result<Self, StoreError> {
        Database::open_ranges(dir, map).map(Self)
    }

    /// Writes a full backup to `out`.
    ///
    /// # Errors
    /// If a row is damaged, or `out` cannot be written.
    pub fn back_up(&self, manifest: &str, out: &mut dyn io::Write) -> Result<FinishedBackup, BackupError> {
        let mut writer = BackupWriter::begin(out, manifest)?;
        for store in &self.0 {
            let mut from = Vec::new();
            while copy_piece(store, &mut from, &mut writer)? {}
        }
        let summary = writer.end()?;
        Ok(FinishedBackup { summary, hash: writer.hash() })
    }
}

/// Restores a series of backups into new databases in `dir`, and checks them. `dir` must not contain
/// databases. The restored databases are on disk when this function returns.
///
/// # Errors
/// If a backup is damaged, cut off, or does not follow the previous file, or if a database cannot be written.
pub fn restore(
    mut series: Series,
    dir: &Path,
    map: RangeMap,
    policy: Policy,
    winners: WinnerOrder,
) -> Result<(BackupSummary, check::CheckReport), RestoreError> {
    // Commits are not synced, because the databases are flushed once at the end.
    let opened = directories(dir, map)
        .into_iter()
        .map(|(_, dir)| Database::open_share(&dir, false, map.count() as u16));
    let stores = opened.collect::<Result<Vec<_>, _>>()?;
    let store = JoinedStore::new(map, &stores);
    // Later files may replace or delete rows that were already written. Their content stays in the database
    // files until it is erased.
    let mut erases = false;
    while let Some((kind, mut writes)) = series.writes()? {
        erases |= kind == BlockKind::Changes || !series.is_at_full();
        while !writes.is_empty() {
            let rest = writes.split_off(writes.len().min(ROWS_AT_ONCE));
            store.commit(std::mem::replace(&mut writes, rest))?;
        }
    }
    if erases {
        // The databases erase unused content as after a purge, and the next start continues it if necessary.
        stores.iter().try_for_each(|store| store.purge(|| ()))?;
    }
    store.flush()?;
    // The engine releases its files some time after it is dropped, so the check uses the open databases.
    Ok((series.verified().summary, check::check(&store, Some(policy), winners)))
}

/// Writes a piece of the rows from the key `from` on, and moves `from` past the piece. Returns false if there
/// were no more rows.
pub(crate) fn copy_piece<W: io::Write>(
    store: &dyn Store,
    from: &mut Vec<u8>,
    writer: &mut BackupWriter<W>,
) -> Result<bool, BackupError> {
    copy_rows(&piece(store, from).map_err(Tier1Error::from)?, from, writer)
}

/// Like [`copy_piece`], but takes rows that were already read.
pub(crate) fn copy_rows<W: io::Write>(
    rows: &[EncodedRow],
    from: &mut Vec<u8>,
    writer: &mut BackupWriter<W>,
) -> Result<bool, BackupError> {
    each_row(rows, from, |key, value| writer.entry(BlockKind::Rows, key, Some(value)))
}

/// Verifies the rows that belong into a backup, passes them to `each`, and moves `from` past the last row.
/// Returns false if there are no rows.
fn each_row<E: From<BackupError>>(
    rows: &[EncodedRow],
    from: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<bool, E> {
    let Some((last, _)) = rows.last() else { return Ok(false) };
    *from = key::after(last);
    for (key, value) in rows.iter().filter(|(key, _)| is_backed_up(key)) {
        // The damage of a row in a backup would be noticed only when the backup is needed.
        verify(key, value).map_err(|error| BackupError::from(Tier1Error::from(error)))?;
        each(key, value)?;
    }
    Ok(true)
}

/// Whether a row belongs into a backup.
pub(crate) fn is_backed_up(key: &[u8]) -> bool {
    !key::RowKind::IndexState.is_of(key)
}

/// Verifies that a row has a known key, the right shape, and the right checksum.
///
/// # Errors
/// [`StoreError::Damaged`] or [`StoreError::Version`].
pub(crate) fn verify(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let damaged = |reason| record::damaged(key, reason);
    match RowKey::of(key) {
        None => Err(damaged("its key is of no known kind")),
        Some((_, RowKey::Signature(_))) => doppel_model::signature::Signature::from_bytes(value)
            .map(drop)
            .map_err(|_| damaged("it is not a valid signature")),
        Some((_, RowKey::Feed(_))) if value.len() == 16 => Ok(()),
        Some((_, RowKey::InboundRedirect(..) | RowKey::Source(..))) if value.is_empty() => Ok(()),
        Some((_, RowKey::Source(..))) if value.len() == 16 => Ok(()),
        Some((_, RowKey::Feed(_) | RowKey::InboundRedirect(..) | RowKey::Source(..))) => {
            Err(damaged("its value has a wrong length"))
        }
        Some(_) => record::body(key, value).map(drop),
    }
}
