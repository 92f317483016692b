//! Interface to storage: an ordered map with atomic, durable batches.
//!
//! [`Database`](crate::Database) implements it on disk and stores its rows in `Sled`. [`Memory`] is for
//! tests, the simulation and benchmarks. One tree holds all shards of a range, each under its own key prefix.
//! So one batch commits the sender and the receiver of a message together.

#[cfg(any(test, feature = "simulation"))]
mod intercepted;
mod joined;
mod memory;
mod on_sled;
mod row_cache;
#[cfg(any(test, feature = "simulation"))]
mod scan;

#[cfg(any(test, feature = "simulation"))]
#[allow(unreachable_pub, reason = "the simulation hands them out")]
pub use intercepted::{Intercept, Intercepted};
pub use joined::JoinedStore;
pub use memory::Memory;
pub(crate) use on_sled::Sled;
pub(crate) use row_cache::RowCache;
#[cfg(any(test, feature = "simulation"))]
pub(crate) use scan::for_each_row;

use std::path::Path;

use doppel_model::RangeId;

/// A key and the new value of its row. `None` deletes the row.
pub type Write = (Vec<u8>, Option<Vec<u8>>);

/// How a caller should treat an error of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The disk is full.
    DiskFull,
    /// Stored data has changed since it was written, or this program cannot read it.
    Damage,
    /// The error is temporary, and the caller may repeat the call.
    Transient,
    /// The storage engine does not work.
    Failure,
}

/// Why the store failed. Clones go to all callers that meet the same failure.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The file system is full.
    #[error("no space left on the device")]
    DiskFull,
    /// The directory contains no database.
    #[error("there is no database in {}: restore it from a backup", .0.display())]
    Missing(std::path::PathBuf),
    /// Another process has the database open.
    #[error("another process uses it: stop that process, or send requests to it if it is a server")]
    InUse,
    /// The database cannot be opened anew now, because it is being read or its rows are being moved.
    #[error("the database is being read, or its rows are being moved: try again")]
    Busy,
    /// The database is being opened anew, and the caller has waited long enough.
    #[error("the database is being opened anew after its disk was full: try again")]
    Reopening,
    /// Files of the database are damaged.
    #[error("the database {} is damaged ({what}): restore it from a backup", .database.display())]
    Corrupt {
        /// Its directory.
        database: std::path::PathBuf,
        /// Description of the damage.
        what: String,
    },
    /// The database is in an earlier state than one that was already on disk.
    #[error(
        "the database {} has lost its last changes: it is at {now} and was at {noted}; restore it from a backup",
        .database.display()
    )]
    Behind {
        /// Its directory.
        database: std::path::PathBuf,
        /// Present progress of the database, see `progress`.
        now: u64,
        /// Progress that was noted earlier.
        noted: u64,
    },
    /// The databases of one collection are in states of different moments.
    #[error(
        "range {behind} is of an earlier moment than range {ahead}: restore the whole collection from a backup, \
         never one range alone"
    )]
    Apart {
        /// The range whose database is older.
        behind: RangeId,
        /// A range whose database is newer.
        ahead: RangeId,
    },
    /// Any other error of the storage engine.
    #[error("the storage engine failed: {0}")]
    Engine(String),
    /// Another node owns the range, so this node writes nothing more.
    #[error("another node owns range {0} now")]
    Deposed(RangeId),
    /// A record cannot be encoded.
    #[error("a record cannot be encoded: {0}")]
    Unencodable(String),
    /// A row was written by another program version.
    #[error(
        "it has records of version {found}, but this program reads version {expected}: use the program that made it"
    )]
    Version {
        /// Version of the row.
        found: u8,
        /// Version that this program reads.
        expected: u8,
    },
    /// The checksum or the content of a row is wrong.
    #[error("the row {key} is damaged: {reason}")]
    Damaged {
        /// The key in hexadecimal.
        key: String,
        /// Description of the damage.
        reason: &'static str,
    },
}

/// Returns whether an I/O error says that the file system or the user's quota is full.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl StoreError {
    /// Returns how a caller should treat the error.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::DiskFull => ErrorClass::DiskFull,
            Self::Missing(_)
            | Self::Behind { .. }
            | Self::Apart { .. }
            | Self::Corrupt { .. }
            | Self::Damaged { .. }
            | Self::Version { .. } => ErrorClass::Damage,
            Self::Deposed(_) | Self::Busy | Self::Reopening => ErrorClass::Transient,
            Self::InUse | Self::Engine(_) | Self::Unencodable(_) => ErrorClass::Failure,
        }
    }

    /// Creates the error for a file that cannot be read or written. `doing` begins with a verb.
    pub(crate) fn of_file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        if is_full(error) {
            Self::DiskFull
        } else {
            Self::Engine(format!("cannot {doing} in {}: {error}", path.display()))
        }
    }

    /// Creates the error for a file whose content has changed since it was written.
    pub(crate) fn damaged_file(path: &Path, what: String) -> Self {
        Self::Corrupt { database: path.to_owned(), what }
    }
}

/// An ordered map from byte strings to byte strings.
pub trait Store: Send + Sync {
    /// Returns the value of `key` after the last commit.
    ///
    /// # Errors
    /// Fails if the engine fails.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Calls `each` for the rows of `from .. to` in order until it returns `false`.
    ///
    /// # Errors
    /// Fails if the engine fails.
    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError>;

    /// Applies all writes or none. Returns when the writes survive a crash, unless the store was opened as
    /// not durable.
    ///
    /// # Errors
    /// Fails if the engine fails. The writes may or may not be applied then.
    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError>;

    /// Waits until all rows from before this ownership are settled, so that they may leave the range.
    ///
    /// # Errors
    /// Fails if this ownership has ended.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns when all commits survive a crash, even if the store was opened as not durable.
    ///
    /// # Errors
    /// Fails if the engine fails.
    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns the size of the store on disk in bytes; 0 for a store in memory.
    fn bytes_on_disk(&self) -> u64 {
        0
    }
}
