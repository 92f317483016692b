//! A backup of the system of record.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// What a backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupSummary {
    /// Rows copied.
    pub rows: u64,
    /// Changes of rows made meanwhile, to be applied after them.
    pub changes: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Why there is no backup, or only a part of it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Tier 1 could not be read, or its writer has ended.
    #[error(transparent)]
    Tier1Error(#[from] Tier1Error),
    /// What changed meanwhile could not be kept.
    #[error("cannot keep what changes during a backup in {dir}: {source}", dir = dir.display())]
    Spill {
        /// Where it is kept.
        dir: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// More changed than is kept.
    #[error("more than {0} bytes changed during the backup: take it at a quieter time, or to a faster place")]
    TooMuch(u64),
    /// The output failed.
    #[error("cannot write the backup: {0}")]
    Write(#[from] io::Error),
}
