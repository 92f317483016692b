//! The state that the router of the index keeps durably. It is the only part of the index that cannot be
//! derived from the contents of tier 1.

use serde::{Deserialize, Serialize};

use crate::tier1::Tier1Error;

/// Maximum size of an item in bytes. The largest plan needs less than a third.
pub const INDEX_STATE_BYTES_MAX: usize = 2 << 20;

/// An item of the router's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexStateItem {
    /// The partition map and the node of each partition.
    Plan,
    /// The requests of operators to change the mapping.
    Requests,
}

impl IndexStateItem {
    /// All items of the state.
    pub const ALL: [Self; 2] = [Self::Plan, Self::Requests];
}

/// Why an item is not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexStateError {
    /// The item cannot be accessed now, or no longer by this router, because another router may have replaced
    /// it.
    #[error("{0}")]
    Unavailable(String),
    /// The stored item cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The item cannot be written, and another attempt would not help.
    #[error("{0}")]
    Refused(String),
}

impl From<Tier1Error> for IndexStateError {
    fn from(error: Tier1Error) -> Self {
        let text = error.to_string();
        match error {
            // An owner that cannot write gives way to another replica, and the router moves with the
            // ownership.
            Tier1Error::Unavailable(_)
            | Tier1Error::Stopping
            | Tier1Error::Full { .. }
            | Tier1Error::ClientFull { .. }
            | Tier1Error::ReadOnly(_)
            | Tier1Error::DiskFull(_) => Self::Unavailable(text),
            Tier1Error::BatchTooLarge { .. } | Tier1Error::CursorGone | Tier1Error::Damaged(_) => {
                Self::Refused(text)
            }
        }
    }
}

/// The place where a router keeps its state: its files, or rows of the range whose owner runs the router.
/// Only the router knows the meaning of an item.
///
/// Another router may have replaced this router without its knowledge. Then the replaced router can store
/// nothing, and the items that it reads may be old.
pub trait IndexState: Send + Sync {
    /// Ensures that no other router has replaced this router, as far as this process knows.
    ///
    /// # Errors
    /// [`IndexStateError::Unavailable`] if another router may have replaced this one.
    fn check(&self) -> Result<(), IndexStateError>;

    /// Returns the item that was stored last; `None` if there is no such item.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn load(&self, item: IndexStateItem) -> Result<Option<Vec<u8>>, IndexStateError>;

    /// Replaces an item atomically. When the call returns, every later router loads the new item, whichever
    /// process dies. After an error, the new item may still have been stored.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn store(&self, item: IndexStateItem, bytes: &[u8]) -> Result<(), IndexStateError>;

    /// Removes an item, with the same guarantees as [`store`](Self::store).
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn remove(&self, item: IndexStateItem) -> Result<(), IndexStateError>;

    /// Sets aside an item that the router cannot use, so that no router loads it again. If operators can
    /// inspect the store, the item stays available to them.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn put_aside(&self, item: IndexStateItem) -> Result<(), IndexStateError>;
}
