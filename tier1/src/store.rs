//! The seam of storage: an ordered map with atomic, durable batches.
//!
//! [`Database`](crate::Database) is that on disk: `Sled` keeps its rows. [`Memory`] is for tests, simulation and
//! benchmarks. One tree holds all shards of a range, each under its own key prefix, so that one batch commits
//! a message's sender and receiver together.

#[cfg(any(test, feature = "simulation"))]
mod intercepted;
mod joined;
mod memory;
mod on_sled;
mod recent;
#[cfg(any(test, feature = "simulation"))]
mod rows;

#[cfg(any(test, feature = "simulation"))]
#[allow(unreachable_pub, reason = "the simulation hands them out")]
pub use intercepted::{Intercept, Intercepted};
pub use joined::Joined;
pub use memory::Memory;
pub(crate) use on_sled::Sled;
pub(crate) use recent::Recent;
#[cfg(any(test, feature = "simulation"))]
pub(crate) use rows::each;

use std::path::Path;

use doppel_model::RangeId;

/// A row's new value; none deletes it.
pub type Write = (Vec<u8>, Option<Vec<u8>>);

/// What an error of a store means to whoever asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There is no room.
    DiskFull,
    /// What is stored is not what was stored, or nothing that this program reads.
    Damage,
    /// It passes by itself: the call may be repeated.
    Passing,
    /// The engine does not do what it is to do.
    Failure,
}

/// Why the store failed. Clones are for everybody who asks, as often as they ask.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The file system has no room.
    #[error("no space left on the device")]
    DiskFull,
    /// There is no database.
    #[error("there is no database in {}: restore it from a backup", .0.display())]
    Missing(std::path::PathBuf),
    /// Another process has it.
    #[error("another process uses it: end that one, or ask it, when it is a server")]
    InUse,
    /// It is read, or rows are being moved, so that it cannot be opened anew at this moment.
    #[error("it is being read, or its rows are being moved")]
    Busy,
    /// It is being opened anew, which takes longer than whoever asks waits.
    #[error("it is being opened anew after its disk was full: ask again")]
    Reopening,
    /// The engine's own files are damaged.
    #[error("the database {} is damaged ({what}): restore it from a backup", .database.display())]
    Corrupt {
        /// Its directory.
        database: std::path::PathBuf,
        /// What is known of the damage.
        what: String,
    },
    /// It is of an earlier moment than one that was flushed.
    #[error(
        "the database {} has lost its last changes: it is at {now} and was at {noted}; restore it from a backup",
        .database.display()
    )]
    Behind {
        /// Its directory.
        database: std::path::PathBuf,
        /// How far it is.
        now: u64,
        /// How far it was.
        noted: u64,
    },
    /// Databases of one collection that are not of one moment.
    #[error(
        "range {behind} is of an earlier moment than range {ahead}: restore the whole collection from a backup, \
         never one range alone"
    )]
    Apart {
        /// The range that is behind.
        behind: RangeId,
        /// One that is not.
        ahead: RangeId,
    },
    /// Anything else the engine reports.
    #[error("the storage engine failed: {0}")]
    Engine(String),
    /// The range has another owner, so nothing more is written here.
    #[error("another node owns range {0} now")]
    Deposed(RangeId),
    /// A record that cannot be written down.
    #[error("a record cannot be encoded: {0}")]
    Unencodable(String),
    /// A row of another program version.
    #[error(
        "it has records of version {found}, and this program has version {expected}: use the program that made it"
    )]
    Version {
        /// The row's version.
        found: u8,
        /// This program's.
        expected: u8,
    },
    /// A row's checksum or shape is wrong.
    #[error("the row {key} is damaged: {reason}")]
    Damaged {
        /// The key in hexadecimal.
        key: String,
        /// What is wrong.
        reason: &'static str,
    },
}

/// Whether a file system has no room, or the user has none on it.
pub(crate) fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl StoreError {
    /// What it means to whoever asks.
    pub(crate) fn trouble(&self) -> Trouble {
        match self {
            Self::DiskFull => Trouble::DiskFull,
            Self::Missing(_)
            | Self::Behind { .. }
            | Self::Apart { .. }
            | Self::Corrupt { .. }
            | Self::Damaged { .. }
            | Self::Version { .. } => Trouble::Damage,
            Self::Deposed(_) | Self::Busy | Self::Reopening => Trouble::Passing,
            Self::InUse | Self::Engine(_) | Self::Unencodable(_) => Trouble::Failure,
        }
    }

    /// A file that cannot be read or written; `doing` begins with a verb.
    pub(crate) fn of_file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        if is_full(error) {
            Self::DiskFull
        } else {
            Self::Engine(format!("cannot {doing} in {}: {error}", path.display()))
        }
    }

    /// A file that is not what was written.
    pub(crate) fn damaged_file(path: &Path, what: String) -> Self {
        Self::Corrupt { database: path.to_owned(), what }
    }
}

/// An ordered map from byte strings to byte strings.
pub trait Store: Send + Sync {
    /// The value of `key`, as the last commit left it.
    ///
    /// # Errors
    /// When the engine fails.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Calls `each` for the rows of `from .. to` in order until it returns false.
    ///
    /// # Errors
    /// When the engine fails.
    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError>;

    /// Applies all writes or none, and returns when they survive a crash (unless the store was opened
    /// as not durable).
    ///
    /// # Errors
    /// When the engine fails; the writes may or may not be there then.
    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError>;

    /// Waits until all that was there when this ownership began may leave the range.
    ///
    /// # Errors
    /// When this ownership is over.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns when all commits survive a crash, also those of a store that was opened as not durable.
    ///
    /// # Errors
    /// When the engine fails.
    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Bytes on disk; none for a store that is not there.
    fn bytes_on_disk(&self) -> u64 {
        0
    }
}
