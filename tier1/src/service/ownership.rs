//! Ownership of ranges: which ranges this process owns at present, how every range is reached, and whether
//! writes are accepted.
//!
//! A range has one owner at a time. While this process owns a range, an [`Owner`] holds the state that the
//! range's threads and their callers share. An ownership that has ended keeps its own `Owner`: late work
//! reaches the queues of that `Owner`, which no thread reads any more, and never those of a later ownership.
//!
//! Invariant: the registry ([`RangeRegistry`]), the status table of a range and the extents of its feed
//! change together, under the lock of the extents. A reader of the feed therefore never sees what another
//! process said about a range that this process has begun to own.

pub(crate) mod collection;
pub(in crate::service) mod disk_space;
pub(crate) mod feed_extents;
pub(in crate::service) mod figures;
pub(crate) mod owner;
mod pending_reply;
pub(crate) mod ranges;
pub(in crate::service) mod refusals;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use doppel_model::RangeId;
use doppel_protocol::range_owner::{PeerError, RangeState};
use refusals::Refusals;

use crate::peers::Peers;
use crate::range::Range;
use crate::service::writer::queue_space::QueueBudget;
use crate::statuses::{Statuses, TrackedStore};
use crate::storage::store::{Store, StoreError};
use collection::CollectionFacts;
use feed_extents::FeedExtents;
use owner::{OpenedRange, Owner, ThreadStart};
use ranges::RangeRegistry;

/// The ranges that this process owns, with the state that their threads share.
pub(crate) struct OwnedRanges {
    pub(in crate::service) collection: CollectionFacts,
    pub(in crate::service) ranges: Arc<RangeRegistry>,
    /// How posts and reads reach any range. Tests and the simulation put faults in between.
    pub(in crate::service) peers: Arc<dyn Peers>,
    pub(in crate::service) refusals: Arc<Refusals>,
    pub(crate) feed: Arc<FeedExtents>,
    /// The status tables of all ranges. `None` if the service keeps none.
    statuses: Option<Arc<Statuses>>,
    /// Memory for tasks that wait for the writers of this process.
    queue_budget: QueueBudget,
}

impl OwnedRanges {
    /// Creates the state of a process that owns no range yet.
    pub(in crate::service) fn new(
        collection: CollectionFacts,
        ranges: Arc<RangeRegistry>,
        peers: Arc<dyn Peers>,
        statuses: Option<Arc<Statuses>>,
    ) -> Self {
        Self {
            collection,
            ranges,
            peers,
            refusals: Arc::default(),
            feed: Arc::new(FeedExtents::new(collection.map.shards())),
            statuses,
            queue_budget: QueueBudget::default(),
        }
    }

    /// Reads from the rows what a range keeps in memory.
    ///
    /// # Errors
    /// If the store fails or is damaged.
    pub(in crate::service) fn read_range(&self, id: RangeId, rows: &dyn Store) -> Result<Range, StoreError> {
        Range::open(rows, self.collection.settings, id, self.collection.map)
    }

    /// Registers the owner of a range, so that callers find it. Its threads are not started yet.
    ///
    /// Returns `None` if this process owns the range already. An ownership that was deposed counts until it
    /// is taken out of the registry.
    pub(in crate::service) fn begin_ownership(
        &self,
        mut opened: OpenedRange,
        range: Range,
    ) -> Option<(Arc<Owner>, ThreadStart)> {
        let id = range.id();
        if !self.ranges.is_free(id) {
            return None;
        }
        let mut table = None;
        if let Some(statuses) = &self.statuses {
            // Entries that were written under another key mean nothing.
            opened.saved_statuses.take_if(|saved| saved.key != statuses.key());
            let empty = statuses.begin(id, opened.lease.clone());
            opened.store = Arc::new(TrackedStore::new(opened.store, Arc::clone(&empty)));
            table = Some(empty);
        }
        let (owner, start) = Owner::new(range, opened, table, &self.queue_budget);
        self.feed.publish(&start.range, || self.ranges.register(&owner));
        Some((owner, start))
    }

    /// Ends an ownership that callers no longer find: its threads take no more tasks, and its status table
    /// answers nothing.
    pub(in crate::service) fn end_ownership(&self, owner: &Owner) {
        owner.end();
        self.end_statuses(owner.id);
    }

    /// Ends the status table of a range, which then answers nothing.
    pub(in crate::service) fn end_statuses(&self, range: RangeId) {
        if let Some(statuses) = &self.statuses {
            statuses.end(range);
        }
    }

    /// The state of a range that this process owns and may answer for.
    pub(in crate::service) fn state(&self, range: RangeId) -> Result<RangeState, PeerError> {
        let owner = self.ranges.answering_owner(range)?;
        let (counters, backlog) = owner.totals();
        let (decision_times, shards) = {
            let figures = owner.figures();
            (figures.decision_times(Instant::now()), figures.shards().to_vec())
        };
        let feeds = {
            let extents = self.feed.lock();
            self.collection.map.shards_of(range).map(|shard| extents[usize::from(shard.0)]).collect()
        };
        let (disk_full, disk_recoveries) = self.refusals.disk_state(range);
        Ok(RangeState {
            collection: self.collection.id,
            epoch: owner.epoch,
            ordered: owner.ordered.load(Ordering::Acquire),
            counters,
            backlog,
            decision_times,
            shards,
            feeds,
            moment: owner.moment(),
            copied: owner.database.as_ref().and_then(|database| database.last_copied_place()),
            failures: owner.failures.count(),
            refused: self.refusals.check().err(),
            disk_full,
            disk_recoveries,
        })
    }
}
