//! Types for a backup of the system of record.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// The contents of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupSummary {
    /// The number of rows copied.
    pub rows: u64,
    /// The number of row changes that were committed during the backup. They are applied after the rows.
    pub changes: u64,
    /// The size of the backup file, in bytes.
    pub bytes: u64,
}

/// The maximum length of one piece of a backup, in bytes.
pub const BACKUP_PIECE_BYTES: usize = 1 << 20;

/// A piece of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupPiece {
    /// The next bytes of the file, at most [`BACKUP_PIECE_BYTES`].
    Bytes(Vec<u8>),
    /// The backup is complete. Without this piece, what came so far is no backup.
    End(BackupSummary),
}

/// A backup on its way: the pieces in order, at the pace at which they are taken. It ends after [`BackupPiece::End`] or the
/// first error. To drop it earlier ends the backup.
pub type BackupStream = Box<dyn Iterator<Item = Result<BackupPiece, BackupError>> + Send>;

/// Why a backup failed or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Tier 1 could not be read, or its writer has stopped.
    #[error(transparent)]
    Tier1Error(#[from] Tier1Error),
    /// The changes that were committed during the backup could not be stored.
    #[error("cannot keep what changes during a backup in {dir}: {source}", dir = dir.display())]
    Spill {
        /// The directory for these changes.
        dir: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The changes during the backup exceed the limit.
    #[error("more than {0} bytes changed during the backup: take it at a quieter time, or to a faster place")]
    TooMuch(u64),
    /// The backup broke off before its end.
    #[error("the backup broke off before its end")]
    BrokenOff,
    /// Writing the backup failed.
    #[error("cannot write the backup")]
    Write(#[from] io::Error),
}
