//! A backup: one file with every row of tier 1.
//!
//! The file is 16 bytes that say what it is, then blocks. All integers are little-endian.
//!
//! | bytes | field of a block |
//! |---|---|
//! | 1 | kind: `h` head, `r` rows, `c` changes, `e` end |
//! | 4 | bytes of the content as stored |
//! | 4 | bytes of the content unpacked |
//! | 8 | XXH3-64 of the 9 bytes before, and of the content as stored |
//! | | the content, packed with zstd |
//!
//! The head and the end are JSON: the version of the records and the directory's manifest; and how many
//! blocks, rows and changes there are, with a checksum of all their checksums. So damage is found where it
//! is, and a file that was cut, even between two blocks, has no end. The content of the other blocks is a
//! list of entries ([`entry`]); applied one after the other they give the state that was backed up.
//!
//! The same state gives the same bytes: there is no date in it. The hash of all checksums, that of the end included, names the file
//! ([`BackupHash`]).
//!
//! An increment ([`increment`]) has the same form with another first line, and its head names the backup that it follows. Its rows
//! are those that differ, and a deletion for each that is gone; applied to the state of that backup they give the new one.
//! A full backup and its increments are a [`Series`].
//!
//! Tier 2 is derived and not in it, and what its router keeps
//! is about nodes that the restored collection may not have.

pub(crate) mod entry;
mod hash;
mod increment;
mod reader;
mod runs;
mod series;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use std::io;
use std::path::Path;

use doppel_model::pairwise::Policy;
use doppel_protocol::{BackupError, BackupSummary, RangeMap, Tier1Error, WinnerOrder};
use serde::{Deserialize, Serialize};

pub use hash::BackupHash;
pub use increment::{IncrementError, increment};
pub use reader::{Reader, Unusable};
pub use series::{Series, SeriesError, Verified, refuse_pipes};
pub use state::State;

use crate::check;
use crate::check::rows::{RowKey, piece};
use crate::database::Database;
use crate::key;
use crate::range_files::directories;
use crate::record;
use crate::store::{Joined, Store, StoreError};
use crate::txn::Row;
pub(crate) use writer::Writer;

/// "doppel", a backup, and the version of the layout.
const MAGIC: [u8; 16] = *b"doppel backup 1\n";
/// The same of an increment. A program that knows none does not take it for a backup.
const MAGIC_INCREMENT: [u8; 16] = *b"doppel increm 1\n";

/// Bytes of a block before its content.
const HEAD_BYTES: usize = 17;

/// No block is longer, packed or unpacked; one row is always in one block. The longest signature, of a page
/// of 16 MB, is a third of it.
const BLOCK_BYTES_MAX: usize = 1 << 27;

/// What a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Head = b'h',
    Rows = b'r',
    Changes = b'c',
    End = b'e',
}

/// Rows of a commit.
const ROWS_AT_ONCE: usize = 1_000;

/// Why there is no database of a backup.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The backups.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a backup is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The version of the records.
    pub records: u8,
    /// The data directory's manifest, as it is.
    pub manifest: String,
    /// The backup that an increment follows; none for a full one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<BackupHash>,
}

/// A backup that was written, or read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// What it has.
    pub summary: BackupSummary,
    /// What names it.
    pub hash: BackupHash,
}

/// What a whole backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct End {
    blocks: u64,
    rows: u64,
    changes: u64,
    checksum: u64,
}

/// A directory that no server uses, open to be backed up.
pub struct Offline(Vec<Database>);

impl Offline {
    /// Opens the databases in `dir`.
    ///
    /// # Errors
    /// When one is missing, in use or damaged, or cannot be written: the engine may have files to complete.
    pub fn open(dir: &Path, map: RangeMap) -> Result<Self, StoreError> {
        Database::open_ranges(dir, map).map(Self)
    }

    /// Backs it up.
    ///
    /// # Errors
    /// When it is damaged, or `out` cannot be written.
    pub fn back_up(&self, manifest: &str, out: &mut dyn io::Write) -> Result<Written, BackupError> {
        let mut writer = Writer::begin(out, manifest)?;
        for store in &self.0 {
            let mut from = Vec::new();
            while copy_piece(store, &mut from, &mut writer)? {}
        }
        let summary = writer.end()?;
        Ok(Written { summary, hash: writer.hash() })
    }
}

/// Makes the databases of a series of backups in `dir`, where there must be none, and checks them. They are on disk when this
/// returns.
///
/// # Errors
/// When a backup is damaged or cut off or does not follow that before it, or the database cannot be written.
pub fn restore(
    mut series: Series,
    dir: &Path,
    map: RangeMap,
    policy: Policy,
    winners: WinnerOrder,
) -> Result<(BackupSummary, check::Report), RestoreError> {
    // Flushed once, at the end: nothing relies on it before.
    let opened = directories(dir, map)
        .into_iter()
        .map(|(_, dir)| Database::open_share(&dir, false, map.count() as u16));
    let stores = opened.collect::<Result<Vec<_>, _>>()?;
    let store = Joined::new(map, &stores);
    // What is replaced or purged by a later part was written, too, and is in the files until they are erased.
    let mut erases = false;
    while let Some((kind, mut writes)) = series.writes()? {
        erases |= kind == Kind::Changes || !series.is_at_full();
        while !writes.is_empty() {
            let rest = writes.split_off(writes.len().min(ROWS_AT_ONCE));
            store.commit(std::mem::replace(&mut writes, rest))?;
        }
    }
    if erases {
        // As after a purge: a start goes on with it.
        stores.iter().try_for_each(|store| store.purge(|| ()))?;
    }
    store.flush()?;
    // The engine lets go of its files some time after it is dropped, so it is not opened again.
    Ok((series.verified().summary, check::check(&store, Some(policy), winners)))
}

/// Copies a piece of the rows from `from` on, and moves `from` behind it; false when there are no more.
pub(crate) fn copy_piece<W: io::Write>(
    store: &dyn Store,
    from: &mut Vec<u8>,
    writer: &mut Writer<W>,
) -> Result<bool, BackupError> {
    copy_rows(&piece(store, from).map_err(Tier1Error::from)?, from, writer)
}

/// The same with rows that were read.
pub(crate) fn copy_rows<W: io::Write>(
    rows: &[Row],
    from: &mut Vec<u8>,
    writer: &mut Writer<W>,
) -> Result<bool, BackupError> {
    each_row(rows, from, |key, value| writer.entry(Kind::Rows, key, Some(value)))
}

/// Gives those of the rows that go into a backup, verified, and moves `from` behind the last; false when there are none.
fn each_row<E: From<BackupError>>(
    rows: &[Row],
    from: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<bool, E> {
    let Some((last, _)) = rows.last() else { return Ok(false) };
    *from = key::after(last);
    for (key, value) in rows.iter().filter(|(key, _)| is_backed_up(key)) {
        // A backup of damaged rows would be found out when it is needed.
        verify(key, value).map_err(|error| BackupError::from(Tier1Error::from(error)))?;
        each(key, value)?;
    }
    Ok(true)
}

/// Whether a row goes into a backup.
pub(crate) fn is_backed_up(key: &[u8]) -> bool {
    !key::Kind::IndexState.is_of(key)
}

/// Whether a row is what was written.
pub(crate) fn verify(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let damaged = |reason| record::damaged(key, reason);
    match RowKey::of(key) {
        None => Err(damaged("no key of this program")),
        Some((_, RowKey::Signature(_))) => doppel_model::signature::Signature::from_bytes(value)
            .map(drop)
            .map_err(|_| damaged("no signature of this program")),
        Some((_, RowKey::Feed(_))) if value.len() == 16 => Ok(()),
        Some((_, RowKey::InboundRedirect(..) | RowKey::Source(..))) if value.is_empty() => Ok(()),
        Some((_, RowKey::Source(..))) if value.len() == 16 => Ok(()),
        Some((_, RowKey::Feed(_) | RowKey::InboundRedirect(..) | RowKey::Source(..))) => {
            Err(damaged("wrong length"))
        }
        Some(_) => record::body(key, value).map(drop),
    }
}
