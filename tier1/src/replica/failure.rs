//! The failure of a replica's database. The keeper must reopen a failed database. If the disk was full, the
//! keeper first waits for free space.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use super::Replica;
use super::replica_store::ReplicaStore;

impl<D: ReplicaStore> Replica<D> {
    /// Whether the database has failed. The replica then copies no more records.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_full_disk()
            || match self.state.try_lock() {
                Ok(state) => state.database_failed,
                Err(TryLockError::Poisoned(_)) => true,
                Err(TryLockError::WouldBlock) => false,
            }
    }

    /// Whether the database has failed because its disk is full.
    pub(crate) fn has_full_disk(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// Records that the disk of the database is full. The owner calls this, because the database may not
    /// report it.
    pub(crate) fn note_full_disk(&self) {
        self.is_full.store(true, Ordering::Release);
    }
}
