//! Counts the bytes that are sent to the log servers. The client's own statistics count some messages twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bytes sent over a connection since it was created. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(super) struct SentBytes(Arc<AtomicU64>);

impl SentBytes {
    pub(super) fn count(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
