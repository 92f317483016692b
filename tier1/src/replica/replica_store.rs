//! Where a replica keeps what it has copied.

use super::ReplicaError;
use crate::database::Database;
use crate::log::{SequencedPosition, SharedRecord};
use crate::store::StoreError;

/// Takes a record, and the one before.
pub(crate) type EachCopied<'e> =
    dyn FnMut(SequencedPosition, SharedRecord<'static>) -> Result<(), ReplicaError> + 'e;

/// Where a replica keeps what it has copied.
pub(crate) trait Copies: Send + Sync {
    /// The last record that was copied.
    fn last_copied(&self) -> SequencedPosition;

    /// Copies a record, which is to be read then.
    ///
    /// # Errors
    /// When it does not continue the last one, or cannot be written. Nothing more is written after an error.
    fn copy(&self, copied: SharedRecord<'_>) -> Result<(), StoreError>;

    /// Gives the records that were copied from places behind `end`, as they were there. Why they are not all here any more,
    /// where that is so.
    ///
    /// # Errors
    /// When they cannot be read, and those of `each`.
    fn each_copied_after(
        &self,
        end: u64,
        each: &mut EachCopied<'_>,
    ) -> Result<Option<&'static str>, ReplicaError>;
}

impl Copies for Database {
    fn last_copied(&self) -> SequencedPosition {
        Self::last_copied(self)
    }

    fn copy(&self, copied: SharedRecord<'_>) -> Result<(), StoreError> {
        Self::copy(self, copied)
    }

    fn each_copied_after(
        &self,
        end: u64,
        each: &mut EachCopied<'_>,
    ) -> Result<Option<&'static str>, ReplicaError> {
        Self::each_copied_after(self, end, each)
    }
}
