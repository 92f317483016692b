//! What one client may hold of what all share.

use super::{BODY_MEMORY_BYTES, FLUSHES, HEAVY_CALLS, LONG_POLLS, REQUESTS, SCRAPES};

/// What one client may hold of these at once: a quarter of the requests, of the long polls and of the flushes, half of the exports, of the scrapes and of the
/// memory for bodies, so that there is some of each for others while one takes all that it can.
pub const CLIENT: ClientLimits = ClientLimits {
    requests: REQUESTS / 4,
    long_polls: LONG_POLLS / 4,
    exports: HEAVY_CALLS / 2,
    flushes: FLUSHES / 4,
    scrapes: SCRAPES / 2,
    body_bytes: BODY_MEMORY_BYTES / 2,
    unpacking: 1,
};

/// What one client may hold at once.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Requests in work, long polls among them.
    pub requests: usize,
    /// Long polls.
    pub long_polls: usize,
    /// Exports.
    pub exports: usize,
    /// Flushes that wait.
    pub flushes: usize,
    /// Scrapes.
    pub scrapes: usize,
    /// Bytes of request bodies in memory, and of the answers to their lines.
    pub body_bytes: usize,
    /// Bodies that are being unpacked; further ones wait.
    pub unpacking: usize,
}
