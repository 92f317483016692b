//! Types for a backup of the system of record: its pieces, its summary, and its errors.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// Summary of a finished backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupSummary {
    /// Number of rows that were copied.
    pub rows: u64,
    /// Number of row changes that were committed during the backup. A restore applies them after the rows.
    pub changes: u64,
    /// Size of the backup file in bytes.
    pub bytes: u64,
}

/// Maximum length of a piece of a backup, in bytes.
pub const BACKUP_PIECE_BYTES: usize = 1 << 20;

/// A piece of a backup stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupPiece {
    /// The next bytes of the backup file, at most [`BACKUP_PIECE_BYTES`].
    Bytes(Vec<u8>),
    /// The backup is complete. A stream without this final piece is not a backup.
    End(BackupSummary),
}

/// The pieces of a running backup, in order. The consumer sets the pace. The stream ends after
/// [`BackupPiece::End`] or after the first error. Dropping the stream earlier cancels the backup.
pub type BackupStream = Box<dyn Iterator<Item = Result<BackupPiece, BackupError>> + Send>;

/// Why a backup failed or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Tier 1 could not be read, or its writer has stopped.
    #[error(transparent)]
    Tier1Error(#[from] Tier1Error),
    /// The changes that were committed during the backup could not be stored.
    #[error("cannot store the changes during a backup in {dir}: {source}", dir = dir.display())]
    Spill {
        /// The directory for these changes.
        dir: PathBuf,
        /// The I/O error that caused the failure.
        source: io::Error,
    },
    /// The changes during the backup exceed the limit.
    #[error("more than {0} bytes changed during the backup: take it at a quieter time, or to a faster place")]
    TooMuch(u64),
    /// The backup broke off before its end.
    #[error("the backup broke off before its end; take it again")]
    BrokenOff,
    /// Writing the backup failed.
    #[error("cannot write the backup")]
    Write(#[from] io::Error),
}
