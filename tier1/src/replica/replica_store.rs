//! Where a replica keeps what it has copied.

use super::ReplicaError;
use crate::database::Database;
use crate::log::{Copied, Reached};
use crate::store::StoreError;

/// Takes a record, and the one before.
pub(crate) type EachCopied<'e> = dyn FnMut(Reached, Copied<'static>) -> Result<(), ReplicaError> + 'e;

/// Where a replica keeps what it has copied.
pub(crate) trait Copies: Send + Sync {
    /// The last record that was copied.
    fn copied(&self) -> Reached;

    /// Copies a record, which is to be read then.
    ///
    /// # Errors
    /// When it does not continue the last one, or cannot be written. Nothing more is written after an error.
    fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError>;

    /// Gives the records that were copied from places behind `end`, as they were there. Why they are not all here any more,
    /// where that is so.
    ///
    /// # Errors
    /// When they cannot be read, and those of `each`.
    fn copied_behind(
        &self,
        end: u64,
        each: &mut EachCopied<'_>,
    ) -> Result<Option<&'static str>, ReplicaError>;
}

impl Copies for Database {
    fn copied(&self) -> Reached {
        Self::copied(self)
    }

    fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError> {
        Self::copy(self, copied)
    }

    fn copied_behind(
        &self,
        end: u64,
        each: &mut EachCopied<'_>,
    ) -> Result<Option<&'static str>, ReplicaError> {
        Self::copied_behind(self, end, each)
    }
}
