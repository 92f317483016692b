//! The service around the ranges: threads, queues, and the one front door over all of them.
//!
//! Each range has one writer thread, which owns its shards. Callers hand it tasks over a channel and wait for the
//! commit; while one commit is flushed the next tasks gather, so load makes the commits larger by itself.

mod api;
mod audit;
mod background;
mod backup;
mod changes;
mod content_source;
pub(crate) mod cover;
mod deliveries;
mod feed;
mod flush;
mod group_work;
mod groups;
mod hint;
pub(crate) mod job;
mod members;
mod open;
mod owner;
mod queue;
mod range_backups;
mod range_owner;
mod ranges;
mod read;
pub(crate) mod repair;
mod rows;
mod sender;
mod statuses;
mod stored_signatures;
mod stuck;
mod sweep;
mod task;
#[cfg(test)]
mod tests;
mod throttle;
mod winner_signatures;
pub(crate) mod worker;
mod writer;

#[cfg(feature = "simulation")]
pub(crate) use feed::extent;
pub use open::{Config, Error};
pub use ranges::OtherRanges;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam::channel::unbounded;
use doppel_model::{PageId, RangeId, ShardId, Timestamp};
use doppel_protocol::range_owner::{FeedExtent, PeerError, RangeOwner};
use doppel_protocol::{Backlog, Counters, IndexOrders, Tier1Error};

use crate::machine::Settings;
use crate::peers::Peers;
use crate::range_map::RangeMap;
use crate::statuses::Statuses;
use crate::store::StoreError;
use crate::totals;
use deliveries::Deliveries;
use job::Job;
use owner::{Owner, Start};
use range_backups::RangeBackups;
use ranges::Ranges;
use rows::Rows;
use task::Task;
use winner_signatures::WinnerSignatures;

/// Tier 1 of one process: ranges of a collection, all of them or some. Those of other processes are reached through
/// [`RangeOwner`], so that every question may be asked of every process.
pub struct Tier1 {
    settings: Settings,
    map: RangeMap,
    /// The ranges that it owns.
    owners: Vec<Arc<Owner>>,
    ranges: Arc<Ranges>,
    deliveries: Deliveries,
    range_backups: RangeBackups,
    peers: Arc<dyn Peers>,
    /// What is mostly asked of pages; none where nobody asks.
    pub(crate) statuses: Option<Statuses>,
    pub(crate) rows: Rows,
    pending_max: u64,
    collection: u64,
    manifest: String,
    /// Where the changes during a backup are kept.
    dir: PathBuf,
    /// Between two snapshots of a status table.
    snapshot_pause: Duration,
    winner_signatures: WinnerSignatures,
    /// Pages handed in and not yet committed.
    arriving: AtomicU64,
    /// How far the feed of every shard goes, and news of its growth.
    pub(crate) feed: Mutex<Vec<FeedExtent>>,
    feed_grew: Condvar,
    /// What other processes have said of theirs.
    other_feeds: Mutex<feed::Others>,
    broken: Arc<OnceLock<Tier1Error>>,
    stopping: AtomicBool,
    start: Mutex<Vec<Start>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Tier1 {
    /// Starts the threads of all ranges. Does nothing the second time.
    ///
    /// # Errors
    /// When a thread cannot be started.
    #[allow(clippy::needless_pass_by_value, reason = "each range keeps one")]
    pub fn start(self: &Arc<Self>, tier2: Arc<dyn IndexOrders>) -> Result<(), Error> {
        let starts = std::mem::take(&mut *self.start.lock().unwrap_or_else(PoisonError::into_inner));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spawn = |name: String, run: Box<dyn FnOnce() + Send>| {
            // Half a group of commands may be in memory after a panic: nothing but a restart is safe then.
            threads.push(doppel_threads::spawn_vital(name, run).map_err(Error::Thread)?);
            Ok::<(), Error>(())
        };
        for (owner, start) in self.owners.iter().zip(starts) {
            let Start { range, tasks, jobs } = start;
            let number = owner.id.0;
            let (sender, posts) = unbounded();
            let (tier1, of, tier2) = (Arc::clone(self), Arc::clone(owner), Arc::clone(&tier2));
            let write = move || writer::run((&tier1, &of), &tier2, range, &tasks, sender);
            spawn(format!("tier1-writer-{number}"), Box::new(write))?;
            let (tier1, of) = (Arc::clone(self), Arc::clone(owner));
            spawn(format!("tier1-worker-{number}"), Box::new(move || worker::run(&tier1, &of, &jobs)))?;
            if self.statuses.is_some() {
                let (tier1, of) = (Arc::clone(self), Arc::clone(owner));
                spawn(format!("tier1-statuses-{number}"), Box::new(move || tier1.tend_statuses(&of)))?;
            }
            if self.map.count() > 1 {
                let (tier1, of) = (Arc::clone(self), Arc::clone(owner));
                spawn(format!("tier1-sender-{number}"), Box::new(move || sender::run(&tier1, &of, &posts)))?;
            }
        }
        for (range, results) in self.deliveries.begin() {
            let tier1 = Arc::clone(self);
            let deliver = move || deliveries::run(&tier1, range, &results);
            spawn(format!("tier1-results-{range}"), Box::new(deliver))?;
        }
        Ok(())
    }

    /// Ends the threads after what was accepted is committed. What is owed is found at the next start.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        for owner in &self.owners {
            let _ = owner.tasks.send(Task::Stop);
            let _ = owner.jobs.send(Job::Stop);
        }
        self.deliveries.end();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a tier-1 thread panicked");
            }
        }
        for owner in &self.owners {
            self.save_statuses(owner);
            if let Some(Err(error)) = owner.database.as_ref().map(|database| database.rest()) {
                tracing::warn!(%error, range = %owner.id, "the next start reads the log");
            }
        }
        self.feed_grew.notify_all();
    }

    /// What the ranges of this process have counted.
    #[must_use]
    pub fn own_counters(&self) -> Counters {
        totals::add(self.owners.iter().map(|owner| owner.totals())).0
    }

    /// Bytes of the databases on disk.
    #[must_use]
    pub fn bytes_on_disk(&self) -> u64 {
        self.owners.iter().map(|owner| owner.store.bytes_on_disk()).sum()
    }

    fn check(&self) -> Result<(), Tier1Error> {
        self.broken.get().map_or(Ok(()), |refused| Err(refused.clone()))
    }

    fn shard_of(&self, page: PageId) -> ShardId {
        page.shard(self.settings.shards)
    }

    /// A range that this process owns.
    fn own(&self, range: RangeId) -> Result<&Arc<Owner>, PeerError> {
        self.ranges.own(range)
    }

    /// Whether all ranges are of this process.
    fn owns_all(&self) -> bool {
        self.owners.len() == self.map.count()
    }

    /// Whoever owns a range.
    fn at(&self, range: RangeId) -> &dyn RangeOwner {
        self.ranges.other(range).map_or(self, |other| &**other)
    }

    /// Pages pending in the ranges of this process.
    fn pending(&self) -> u64 {
        self.owners.iter().map(|owner| owner.totals().1.pending).sum()
    }

    /// Whether nothing is on its way from these ranges to any group: no page is to be decided or searched for, no message waits.
    fn is_quiet(&self) -> bool {
        self.owners.iter().all(|owner| {
            let Backlog { pending, deferred_searches, messages, .. } = owner.totals().1;
            pending + deferred_searches + messages == 0
        })
    }
}

fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

impl From<StoreError> for Tier1Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull => Self::DiskFull(error.to_string()),
            StoreError::Deposed(_) => Self::Unavailable(error.to_string()),
            StoreError::InUse | StoreError::Engine(_) | StoreError::Unencodable(_) => {
                Self::ReadOnly(error.to_string())
            }
            StoreError::Missing(_)
            | StoreError::Behind { .. }
            | StoreError::Apart { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Damaged { .. }
            | StoreError::Version { .. } => Self::Damaged(error.to_string()),
        }
    }
}
