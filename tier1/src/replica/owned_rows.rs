//! The rows of a replica, as the owner of the range reads and writes them.

use std::sync::Arc;

use doppel_model::Epoch;

use super::Replica;
use crate::storage::store::{Store, StoreError, Write};

/// The rows of the owner of one epoch. After another node has taken over, reads continue to work and commits
/// fail.
pub(crate) struct OwnedRows {
    replica: Arc<Replica>,
    epoch: Epoch,
}

impl OwnedRows {
    /// Creates the rows for the epoch that [`Replica::take_over`] has returned.
    pub(crate) fn new(replica: Arc<Replica>, epoch: Epoch) -> Self {
        Self { replica, epoch }
    }
}

impl Store for OwnedRows {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.replica.database.get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.replica.database.range(from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.replica.commit(self.epoch, writes)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.replica.settle(self.epoch)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.replica.database.flush()
    }

    fn bytes_on_disk(&self) -> u64 {
        self.replica.database.bytes_on_disk()
    }
}
