//! An error that is told to everybody who asks, as often as they ask.

use std::path::PathBuf;

use crate::store::StoreError;

/// Why rows cannot be moved, or a database cannot be opened anew.
#[derive(Clone)]
pub(super) enum Failure {
    DiskFull,
    InUse,
    Corrupt { database: PathBuf, what: String },
    Other(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::DiskFull => Self::DiskFull,
            Failure::InUse => Self::InUse,
            Failure::Corrupt { database, what } => Self::Corrupt { database, what },
            Failure::Other(what) => Self::Engine(what),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull => Self::DiskFull,
            StoreError::InUse => Self::InUse,
            StoreError::Corrupt { database, what } => Self::Corrupt { database, what },
            // What it says of itself is said again.
            StoreError::Engine(what) => Self::Other(what),
            other => Self::Other(other.to_string()),
        }
    }
}
