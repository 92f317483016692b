//! Notices of a patient client while it waits for the server.

use std::time::Duration;

/// A notice of a patient client while it waits for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'n> {
    /// No server answers, and the client keeps trying for `patience`. The client gives one notice until the
    /// server is back.
    Away {
        /// URL of the server.
        url: &'n str,
        /// The error of the connection.
        reason: &'n str,
        /// How long the client tries, counted from the first attempt.
        patience: Duration,
    },
    /// The server has refused requests as busy for some time, and the client keeps trying for `patience`. The
    /// client gives one notice until the server accepts a request.
    Busy {
        /// The server's explanation in words.
        said: &'n str,
        /// How long the client tries, counted from the first attempt.
        patience: Duration,
    },
    /// The server answers again.
    Back,
}
