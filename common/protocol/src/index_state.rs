//! What the router of the index keeps: the one thing about the index that cannot be made from tier 1's contents.

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// The most bytes of an item that are kept. The largest plan has less than a third of them.
pub const INDEX_STATE_BYTES_MAX: usize = 2 << 20;

/// An item that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexStateItem {
    /// The partition map and the node of each partition.
    Plan,
    /// What an operator requests of it.
    Requests,
}

impl IndexStateItem {
    /// Every item.
    pub const ALL: [Self; 2] = [Self::Plan, Self::Requests];
}

/// Why an item is not read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexStateError {
    /// Not now, or not by this router any more: another one may have taken its place.
    #[error("{0}")]
    Unavailable(String),
    /// What is kept cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It cannot be written; another try would not help.
    #[error("{0}")]
    Refused(String),
}

impl From<Tier1Error> for IndexStateError {
    fn from(error: Tier1Error) -> Self {
        let text = error.to_string();
        match error {
            // An owner that cannot write gives way to another replica, and that one to another router.
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

/// Where a router keeps its items: its files, or rows of the range that it sits with. What an item means is known to the router
/// alone.
///
/// A router may have lost its place to another one without knowing it. Then it stores nothing, and what it has read may be old.
pub trait IndexState: Send + Sync {
    /// Ensures that no other router has the place, as far as that is known here.
    ///
    /// # Errors
    /// [`IndexStateError::Unavailable`] when another one may have it.
    fn check(&self) -> Result<(), IndexStateError>;

    /// What was stored last; none when there is nothing.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn load(&self, item: IndexStateItem) -> Result<Option<Vec<u8>>, IndexStateError>;

    /// Keeps an item in the place of what was there, as a whole or not at all. When this returns, every router that begins later
    /// loads it, whatever process dies. After an error it may be kept all the same.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn store(&self, item: IndexStateItem, bytes: &[u8]) -> Result<(), IndexStateError>;

    /// Keeps nothing any more, under the same rules.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn remove(&self, item: IndexStateItem) -> Result<(), IndexStateError>;

    /// An item that its router cannot use is not loaded again. Where people can look at it, it stays for them.
    ///
    /// # Errors
    /// See [`IndexStateError`].
    fn put_aside(&self, item: IndexStateItem) -> Result<(), IndexStateError>;
}
