//! Notices of a patient client while it waits.

use std::time::Duration;

/// A notice of a patient client while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'n> {
    /// No server answers; the client tries again for `patience`. There is one notice until the server is back.
    Away {
        /// The server's URL.
        url: &'n str,
        /// The error of the connection.
        reason: &'n str,
        /// How long the client tries, from the first attempt on.
        patience: Duration,
    },
    /// The server has said for some time that it cannot take a request; the client tries again for `patience`. There is one
    /// notice until it takes one.
    Busy {
        /// The server's own words.
        said: &'n str,
        /// How long the client tries, from the first attempt on.
        patience: Duration,
    },
    /// The server answers again.
    Back,
}
