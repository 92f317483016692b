//! Errors of tier 1.

use serde::{Deserialize, Serialize};

/// Why tier 1 does not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Tier1Error {
    /// Too many pages are pending.
    #[error("{pending} pages are pending, the limit is {limit}; try again later")]
    Full {
        /// Number of pending pages.
        pending: u64,
        /// Maximum number of pending pages.
        limit: u64,
    },
    /// Too many pages of the calling client are pending.
    #[error("{pending} pages of this client are pending, one client may have {limit}; try again later")]
    ClientFull {
        /// Number of pending pages of the client.
        pending: u64,
        /// Maximum number of pending pages of one client.
        limit: u64,
    },
    /// A list in the call is too long. The call changed nothing.
    #[error("{found} entries in one call, the limit is {limit}")]
    BatchTooLarge {
        /// Number of entries in the list.
        found: usize,
        /// Maximum number of entries.
        limit: usize,
    },
    /// A write failed. The service is read-only until it is restarted.
    #[error("the store failed and takes no writes until a restart: {0}")]
    ReadOnly(String),
    /// The disk is full.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The cursor is from another collection, or the events after it have been dropped.
    #[error("the cursor is older than the change log or of another collection; export again")]
    CursorGone,
    /// A row or a database is damaged; the text names it.
    #[error("{0}")]
    Damaged(String),
    /// A part of tier 1 does not answer now. It may answer later.
    #[error("{0}; try again later")]
    Unavailable(String),
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Stopping,
}

impl Tier1Error {
    /// Whether the called node is unavailable, so that another node may answer, or this one later.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Stopping)
    }
}
