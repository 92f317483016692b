//! The errors of tier 1.

use serde::{Deserialize, Serialize};

/// Why tier 1 does not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Tier1Error {
    /// Too many pages are pending.
    #[error("{pending} pages are pending, the limit is {limit}; try again later")]
    Full {
        /// The number of pending pages.
        pending: u64,
        /// The limit.
        limit: u64,
    },
    /// Too many of the pages that are pending are of the client that calls.
    #[error("{pending} pages of this client are pending, one client may have {limit}; try again later")]
    ClientFull {
        /// The number of pending pages of the client.
        pending: u64,
        /// The limit of one client.
        limit: u64,
    },
    /// A call handed over too long a list. Nothing was done.
    #[error("{found} entries in one call, the limit is {limit}")]
    BatchTooLarge {
        /// The number of entries.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A write failed. The service is read-only until it is restarted.
    #[error("the store failed and takes no writes until a restart: {0}")]
    ReadOnly(String),
    /// The disk is full.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The cursor is from another collection, or the events that it points to have been dropped.
    #[error("the cursor is older than the change log or of another collection; export again")]
    CursorGone,
    /// A row or a database is damaged; the text says which.
    #[error("{0}")]
    Damaged(String),
    /// A part of tier 1 does not answer now; later it may.
    #[error("{0}; try again later")]
    Unavailable(String),
    /// The service is shutting down.
    #[error("the service is shutting down")]
    Stopping,
}

impl Tier1Error {
    /// Whether whoever was asked is away, so that somebody else, or the same later, may have an answer.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Stopping)
    }
}
