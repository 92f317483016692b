//! An error that is told to everybody who asks, as often as they ask.

use crate::store::StoreError;

/// Why rows cannot be moved.
#[derive(Clone)]
pub(super) enum Failure {
    DiskFull,
    Other(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::DiskFull => Self::DiskFull,
            Failure::Other(what) => Self::Engine(what),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull => Self::DiskFull,
            other => Self::Other(other.to_string()),
        }
    }
}
