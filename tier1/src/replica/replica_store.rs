//! The interface of the database that stores a replica's copied records.

use super::ReplicaError;
use crate::storage::database::Database;
use crate::storage::log::{SequencedPosition, SharedRecord};
use crate::storage::store::StoreError;

/// Callback for a copied record. Its first argument is the position of the previous record.
pub(crate) type RecordVisitor<'e> =
    dyn FnMut(SequencedPosition, SharedRecord<'static>) -> Result<(), ReplicaError> + 'e;

/// A database that stores the copied records of a replica.
pub(crate) trait ReplicaStore: Send + Sync {
    /// Position of the last copied record.
    fn last_copied(&self) -> SequencedPosition;

    /// Copies a record. Readers see its rows when the call returns.
    ///
    /// # Errors
    /// If the record does not continue the last one, or cannot be written. After an error the database
    /// accepts no more records.
    fn copy(&self, copied: SharedRecord<'_>) -> Result<(), StoreError>;

    /// Passes to `each`, in order, every copied record whose sequence number is greater than `end`. Returns
    /// the reason if the database no longer keeps all of these records, and `None` if it does.
    ///
    /// # Errors
    /// If a record cannot be read, or `each` fails.
    fn records_after(
        &self,
        end: u64,
        each: &mut RecordVisitor<'_>,
    ) -> Result<Option<&'static str>, ReplicaError>;
}

impl ReplicaStore for Database {
    fn last_copied(&self) -> SequencedPosition {
        Self::last_copied(self)
    }

    fn copy(&self, copied: SharedRecord<'_>) -> Result<(), StoreError> {
        Self::copy(self, copied)
    }

    fn records_after(
        &self,
        end: u64,
        each: &mut RecordVisitor<'_>,
    ) -> Result<Option<&'static str>, ReplicaError> {
        Self::each_copied_after(self, end, each)
    }
}
