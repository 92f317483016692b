//! Where a replica keeps what it has copied.

use crate::database::Database;
use crate::log::{Copied, Reached};
use crate::store::StoreError;

/// Where a replica keeps what it has copied.
pub(crate) trait Copies: Send + Sync {
    /// The last record that was copied.
    fn copied(&self) -> Reached;

    /// Copies a record, which is to be read then.
    ///
    /// # Errors
    /// When it does not continue the last one, or cannot be written. Nothing more is written after an error.
    fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError>;
}

impl Copies for Database {
    fn copied(&self) -> Reached {
        Self::copied(self)
    }

    fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError> {
        Self::copy(self, copied)
    }
}
