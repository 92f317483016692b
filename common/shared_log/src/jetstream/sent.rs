//! Counts what is sent to the engine. The client's own figure has some messages twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of messages that were sent over a connection since it was made. Clones count together.
#[derive(Debug, Clone, Default)]
pub(super) struct Sent(Arc<AtomicU64>);

impl Sent {
    pub(super) fn count(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
