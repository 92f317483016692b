//! Why tier 2 does not do what tier 1 or the coordinator asks.

use doppel_model::Epoch;
use serde::{Deserialize, Serialize};

/// Why tier 2 does not do what it is asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum IndexError {
    /// A node cannot be reached, or is being fed; later it can.
    #[error("the index cannot answer now: {0}")]
    Unavailable(String),
    /// It is stopping.
    #[error("the index is stopping")]
    Stopping,
    /// Orders before these are missing.
    #[error("orders from {expected} on are missing")]
    Gap {
        /// The index that comes next.
        expected: u64,
    },
    /// The range has another owner by now.
    #[error("the range is in epoch {present}")]
    StaleEpoch {
        /// The present one.
        present: Epoch,
    },
    /// It is too much for one call.
    #[error("this is too much for one call: {0}")]
    TooMuch(String),
}
