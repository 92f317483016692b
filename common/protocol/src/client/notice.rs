//! What a patient client tells while it waits.

use std::time::Duration;

/// What a patient client tells while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'n> {
    /// Nothing answers; it is tried again for as long as `patience`. Told once until the server is back.
    Away {
        /// The server's URL.
        url: &'n str,
        /// What the connection said.
        reason: &'n str,
        /// The time from the first try.
        patience: Duration,
    },
    /// The server answers again.
    Back,
}
