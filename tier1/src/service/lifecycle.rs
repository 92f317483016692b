//! The life of the service and of its ranges: the one module that starts and ends the threads of ranges.
//!
//! A range begins when its rows are open. It ends when another node owns it, or is about to. In between, its
//! threads know of no range but theirs ([`Owner`]), so the end of one range leaves the others alone.
//!
//! Locks are taken in this order: the lock of the range that changes, the phase, the extents of the feed, the
//! registry of ranges. No lock but that of the changing range is held while a thread is joined.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam::channel::unbounded;
use doppel_model::RangeId;
use doppel_protocol::IndexOrders;

use super::index_side::deliveries;
use super::ownership::owner::{OpenedRange, Owner, ThreadStart};
use super::upkeep::worker;
use super::writer::{self, sender};
use super::{Error, Tier1};
use crate::range::Range;

/// How far the service is, and the threads that belong to no range.
#[derive(Default)]
pub(super) struct Lifecycle {
    phase: Mutex<Phase>,
    /// Threads that deliver search results, and threads of ranges that have ended, which may still finish
    /// their last job.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Phase of the service.
enum Phase {
    /// The service is not started yet. Keeps what the threads of each range start with.
    Opened(Vec<(Arc<Owner>, ThreadStart)>),
    /// The service runs. Keeps the index that takes its orders.
    Started(Arc<dyn IndexOrders>),
    /// The service has stopped, for good.
    Stopped,
}

impl Default for Phase {
    fn default() -> Self {
        Self::Opened(Vec::new())
    }
}

impl Lifecycle {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tier1 {
    /// Starts the threads of all ranges. Does nothing the second time.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(&self, tier2: Arc<dyn IndexOrders>) -> Result<(), Error> {
        let mut phase = self.lifecycle.phase();
        let Phase::Opened(waiting) = &mut *phase else { return Ok(()) };
        let waiting = std::mem::take(waiting);
        for (owner, start) in waiting {
            self.run_range(&owner, start, &tier2)?;
        }
        *phase = Phase::Started(tier2);
        let mut threads = self.lifecycle.threads();
        for (range, results) in self.index_side.deliveries.begin() {
            let ranges = Arc::clone(&self.owned.ranges);
            let deliver = move || deliveries::run(&ranges, range, &results);
            threads.push(spawn(format!("tier1-results-{range}"), deliver)?);
        }
        Ok(())
    }

    /// Reads what a range keeps in memory from its rows, for [`begin_range`](Self::begin_range).
    ///
    /// # Errors
    /// If the store fails or is damaged.
    pub(crate) fn open_range(&self, id: RangeId, opened: &OpenedRange) -> Result<Range, Error> {
        Ok(self.owned.read_range(id, &*opened.store)?)
    }

    /// Begins to own a range that [`open_range`](Self::open_range) has opened. Before the start of the
    /// service the range answers questions already, and its threads begin with the others.
    ///
    /// # Errors
    /// If the process owns the range already, if the service has stopped, or if a thread cannot be started.
    /// An ownership that was deposed counts until [`end_range`](Self::end_range) has ended it.
    pub(crate) fn begin_range(&self, opened: OpenedRange, range: Range) -> Result<(), Error> {
        let id = range.id();
        let _changing = self.owned.ranges.lock_change(id);
        let mut phase = self.lifecycle.phase();
        if matches!(*phase, Phase::Stopped) {
            return Err(Error::Stopped);
        }
        let (owner, start) = self.owned.begin_ownership(opened, range).ok_or(Error::Owned(id))?;
        let begun = match &mut *phase {
            Phase::Opened(waiting) => {
                waiting.push((owner, start));
                return Ok(());
            }
            Phase::Started(tier2) => self.run_range(&owner, start, &Arc::clone(tier2)),
            Phase::Stopped => Err(Error::Stopped),
        };
        drop(phase);
        if begun.is_err() {
            self.owned.ranges.unregister(id);
            self.end_ownership(&owner);
        }
        begun
    }

    /// Ends owning a range. Does nothing if this process does not own it.
    ///
    /// On return no call finds the range here, nothing more is written to it, and every caller that waited
    /// for its writer was told to ask again. Long jobs of its worker end soon after. The call waits for the
    /// commit that is under way, so no thread of the range may make it.
    pub fn end_range(&self, range: RangeId) {
        let _changing = self.owned.ranges.lock_change(range);
        if let Some(owner) = self.owned.ranges.unregister(range) {
            self.end_ownership(&owner);
            tracing::info!(range = range.0, "this process no longer owns the range");
        }
    }

    /// Ends all threads, after everything that was accepted is committed. The next start finds in the rows
    /// what is owed.
    pub fn stop(&self) {
        self.owned.ranges.stop();
        // From now on no range begins.
        let waiting = std::mem::replace(&mut *self.lifecycle.phase(), Phase::Stopped);
        drop(waiting);
        // Ranges that are about to end hand their threads over first.
        for range in self.collection.map.ranges() {
            drop(self.owned.ranges.lock_change(range));
        }
        let owners = self.owned.ranges.all_owners();
        for owner in &owners {
            owner.stop();
        }
        self.index_side.deliveries.end();
        for owner in &owners {
            let (writer, others) = owner.take_threads();
            writer.into_iter().chain(others).for_each(join);
        }
        let threads = std::mem::take(&mut *self.lifecycle.threads());
        threads.into_iter().for_each(join);
        // The rows of a deposed owner belong to the process that keeps them now.
        for owner in owners.iter().filter(|owner| !owner.is_stopping()) {
            self.upkeep.save_statuses(owner);
            if let Some(Err(error)) = owner.database.as_ref().map(|database| database.move_all_rows()) {
                tracing::warn!(%error, range = owner.id.0, "cannot move all rows out of the log; the next start reads the log");
            }
        }
        self.owned.feed.wake_readers();
    }

    /// Starts the threads of a range.
    fn run_range(
        &self,
        owner: &Arc<Owner>,
        start: ThreadStart,
        tier2: &Arc<dyn IndexOrders>,
    ) -> Result<(), Error> {
        let ThreadStart { range, tasks, jobs } = start;
        let number = owner.id.0;
        let (sender, posts) = unbounded();
        let mut threads = owner.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let (owned, peer_backups) = (Arc::clone(&self.owned), Arc::clone(&self.backups.of_peers));
        let (of, tier2) = (Arc::clone(owner), Arc::clone(tier2));
        let write = move || writer::run((&owned, &peer_backups, &of), &tier2, range, &tasks, sender);
        threads.writer = Some(spawn(format!("tier1-writer-{number}"), write)?);
        let (upkeep, of) = (Arc::clone(&self.upkeep), Arc::clone(owner));
        let work = move || worker::run(&upkeep, &of, &jobs);
        threads.others.push(spawn(format!("tier1-worker-{number}"), work)?);
        if let Some(table) = owner.table.clone() {
            let (upkeep, of) = (Arc::clone(&self.upkeep), Arc::clone(owner));
            let tend = move || upkeep.tend_statuses(&of, &table);
            threads.others.push(spawn(format!("tier1-statuses-{number}"), tend)?);
        }
        if self.collection.map.count() > 1 {
            let (peers, of) = (Arc::clone(&self.owned.peers), Arc::clone(owner));
            let send = move || sender::run(&*peers, &of, &posts);
            threads.others.push(spawn(format!("tier1-sender-{number}"), send)?);
        }
        Ok(())
    }

    /// Ends a range that callers no longer find here.
    fn end_ownership(&self, owner: &Owner) {
        self.owned.end_ownership(owner);
        if let Phase::Opened(waiting) = &mut *self.lifecycle.phase() {
            waiting.retain(|(other, _)| other.id != owner.id);
        }
        self.backups.of_peers.forget_all_of(owner.id);
        let (writer, others) = owner.take_threads();
        if let Some(writer) = writer {
            join(writer);
        }
        let mut threads = self.lifecycle.threads();
        threads.retain(|thread| !thread.is_finished());
        threads.extend(others.into_iter().inspect(|thread| thread.thread().unpark()));
        self.owned.feed.wake_readers();
    }
}

impl Owner {
    /// Takes the writer, if it was started, and the other threads.
    fn take_threads(&self) -> (Option<JoinHandle<()>>, Vec<JoinHandle<()>>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        (threads.writer.take(), std::mem::take(&mut threads.others))
    }
}

/// Starts a thread whose panic ends the process. Half a commit may be in memory after a panic, so only a
/// restart is safe.
fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    doppel_threads::spawn_vital(name, run).map_err(Error::Thread)
}

fn join(thread: JoinHandle<()>) {
    thread.thread().unpark();
    if thread.join().is_err() {
        tracing::error!("a thread of tier 1 panicked");
    }
}
