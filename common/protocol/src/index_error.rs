//! Why tier 2 does not do what tier 1 or the coordinator asks.

use doppel_model::Epoch;
use serde::{Deserialize, Serialize};

/// Why tier 2 does not do what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum IndexError {
    /// A node cannot be reached or is being fed. The call may succeed later.
    #[error("the index cannot answer now: {0}")]
    Unavailable(String),
    /// Tier 2 is stopping.
    #[error("the index is stopping")]
    Stopping,
    /// Orders before the given ones are missing.
    #[error("orders from {expected} on are missing")]
    Gap {
        /// The index that is expected next.
        expected: u64,
    },
    /// The range has a newer owner.
    #[error("the range is in epoch {present}")]
    StaleEpoch {
        /// The present epoch.
        present: Epoch,
    },
    /// The call exceeds a limit.
    #[error("this is too much for one call: {0}")]
    TooMuch(String),
}
