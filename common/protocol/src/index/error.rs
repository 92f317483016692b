//! Why tier 2 does not carry out a call of tier 1 or the coordinator.

use doppel_model::Epoch;
use serde::{Deserialize, Serialize};

/// Why tier 2 does not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum IndexError {
    /// A node cannot be reached or is being fed. The call may succeed later.
    #[error("the index cannot answer now: {0}")]
    Unavailable(String),
    /// Tier 2 is shutting down.
    #[error("the index is stopping")]
    Stopping,
    /// Orders before the given orders are missing.
    #[error("orders from {expected} on are missing")]
    Gap {
        /// Index of the order that tier 2 expects next.
        expected: u64,
    },
    /// The range has a newer owner.
    #[error("the call has an old epoch; the range is in epoch {present}")]
    StaleEpoch {
        /// Epoch of the present owner.
        present: Epoch,
    },
    /// The call exceeds a limit.
    #[error("the call exceeds a limit: {0}")]
    TooMuch(String),
}
