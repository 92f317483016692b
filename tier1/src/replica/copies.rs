//! Where a replica keeps what it has copied.

use crate::database::Database;
use crate::log::{Copied, Position};
use crate::store::StoreError;

/// Where a replica keeps what it has copied.
pub(crate) trait Copies: Send + Sync {
    /// The last record that was copied, and its place in the shared log; 0 before the first.
    fn copied(&self) -> (Position, u64);

    /// Copies a record, which is to be read then.
    ///
    /// # Errors
    /// When it does not continue the last one, or cannot be written. Nothing more is written after an error.
    fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError>;
}

impl Copies for Database {
    fn copied(&self) -> (Position, u64) {
        Self::copied(self)
    }

    fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError> {
        Self::copy(self, copied)
    }
}
