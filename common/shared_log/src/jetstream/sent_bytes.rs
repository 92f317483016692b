//! Counts the bytes of the entries and news that a process sends to the log servers. Messages that do not
//! arrive are counted too; headers and other requests are not. The client's own statistics count some
//! messages twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of bytes of entries and news sent over a connection since it was created. Clones share the count.
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
