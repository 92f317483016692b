//! Limits on the share of common resources that one client may hold.

use super::{BODY_MEMORY_BYTES, FLUSHES, HEAVY_CALLS, LONG_POLLS, REQUESTS, SCRAPES};

/// Default share of one client: a quarter of the requests, long polls and flushes, and half of the exports,
/// scrapes and body memory. While one client uses its whole share, some of each resource remains for other
/// clients.
pub const CLIENT: ClientLimits = ClientLimits {
    requests: REQUESTS / 4,
    long_polls: LONG_POLLS / 4,
    exports: HEAVY_CALLS / 2,
    flushes: FLUSHES / 4,
    scrapes: SCRAPES / 2,
    body_bytes: BODY_MEMORY_BYTES / 2,
    unpacking: 1,
};

/// Resources that one client may hold at once.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Number of requests in progress, including long polls.
    pub requests: usize,
    /// Number of long polls that are waiting.
    pub long_polls: usize,
    /// Number of exports in progress.
    pub exports: usize,
    /// Number of flushes that wait for completion.
    pub flushes: usize,
    /// Number of scrapes in progress.
    pub scrapes: usize,
    /// Bytes of request bodies in memory, and of the answers to their lines.
    pub body_bytes: usize,
    /// Number of bodies that are being decompressed. Further bodies wait.
    pub unpacking: usize,
}
