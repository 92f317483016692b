//! Why tier 1 does not take a call.

/// Why tier 1 does not take a call now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tier1Error {
    /// Too many pages are pending.
    #[error("{pending} pages are pending, the limit is {limit}; try again later")]
    Full {
        /// Pages pending.
        pending: u64,
        /// The limit.
        limit: u64,
    },
    /// A write failed; the service is read-only until it is restarted.
    #[error("the store failed and takes no writes until a restart: {0}")]
    ReadOnly(String),
    /// No room on the disk.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The cursor is not of this collection, or what it points to is gone.
    #[error("the cursor is older than the change log or of another collection; export again")]
    CursorGone,
    /// A stored record is damaged.
    #[error("a stored record is damaged: {0}")]
    Damaged(String),
    /// The service is ending.
    #[error("the service is shutting down")]
    Stopping,
}
