//! Whether the database of a replica has failed: it has to be opened anew then, on a full disk once there is room.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use super::Replica;
use super::replica_store::Copies;

impl<D: Copies> Replica<D> {
    /// Whether the database has failed, so that nothing more is copied.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_full_disk()
            || match self.state.try_lock() {
                Ok(state) => state.failed,
                Err(TryLockError::Poisoned(_)) => true,
                Err(TryLockError::WouldBlock) => false,
            }
    }

    /// Whether it has failed because its disk is full.
    pub(crate) fn has_full_disk(&self) -> bool {
        self.is_full.load(Ordering::Acquire)
    }

    /// The owner has met a full disk, where the database may not say so itself.
    pub(crate) fn disk_is_full(&self) {
        self.is_full.store(true, Ordering::Release);
    }
}
