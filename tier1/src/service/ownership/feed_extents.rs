//! How far the change feed of every shard extends, as far as this process knows, and how readers of the feed
//! learn that it grew.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doppel_protocol::range_owner::FeedExtent;

use crate::range::Range;
use crate::rows::record::Meta;

/// Extents of the change feed, one for each shard of the collection.
///
/// The writer of a range updates the shards of its range. Readers of the feed note what other processes
/// report of theirs.
pub(crate) struct FeedExtents {
    extents: Mutex<Vec<FeedExtent>>,
    grew: Condvar,
}

impl FeedExtents {
    /// Creates empty extents for all shards of a collection.
    pub(in crate::service) fn new(shards: u16) -> Self {
        Self { extents: Mutex::new(vec![FeedExtent::default(); usize::from(shards)]), grew: Condvar::new() }
    }

    /// Locks the extents of all shards, indexed by shard.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<FeedExtent>> {
        self.extents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the extents of a range's shards and wakes the readers that wait. `also` runs under the lock of
    /// the extents.
    pub(in crate::service) fn publish(&self, range: &Range, also: impl FnOnce()) {
        let mut extents = self.lock();
        also();
        for shard in range.shards().run().map(|shard| usize::from(shard.0)) {
            extents[shard] = extent(&range.shards().metas[shard]);
        }
        self.grew.notify_all();
    }

    /// Wakes all readers that wait for the feed to grow, because the service stops or a range begins or ends.
    pub(in crate::service) fn wake_readers(&self) {
        self.grew.notify_all();
    }

    /// Waits until the feed grows beyond `known`, at most for `limit`. Returns at once if it already has.
    pub(in crate::service) fn wait_beyond(&self, known: &[FeedExtent], limit: impl FnOnce() -> Duration) {
        let extents = self.lock();
        if *extents == known {
            drop(self.grew.wait_timeout(extents, limit()));
        }
    }
}

/// The extent of a shard's feed.
pub(crate) fn extent(meta: &Meta) -> FeedExtent {
    FeedExtent { end: meta.events, dropped: meta.events_dropped }
}
