//! Ranges that this process begins and ends to own, at the start or while it runs, and the threads of each.
//!
//! A range begins when its rows are open and ends when another node owns it, or is to. Between the two its threads know of
//! nothing but its [`Owner`], so the end of one range leaves the others alone; and what is late of an earlier ownership reaches
//! the queues and the tables of that one, which nobody looks at any more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam::channel::unbounded;
use doppel_model::RangeId;
use doppel_protocol::IndexOrders;

use super::feed::extent;
use super::owner::{Opened, Owner, Start};
use super::{Error, Tier1, deliveries, sender, worker, writer};
use crate::range::Range;
use crate::statuses::TrackedStore;

/// How far the process is.
pub(super) enum Phase {
    /// What waits for the start.
    Opened(Vec<(Arc<Owner>, Start)>),
    /// With the index that takes the orders.
    Started(Arc<dyn IndexOrders>),
    Stopped,
}

impl Default for Phase {
    fn default() -> Self {
        Self::Opened(Vec::new())
    }
}

impl Tier1 {
    /// Starts the threads of all ranges. Does nothing the second time.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(self: &Arc<Self>, tier2: Arc<dyn IndexOrders>) -> Result<(), Error> {
        let mut phase = self.phase();
        let Phase::Opened(waiting) = &mut *phase else { return Ok(()) };
        let waiting = std::mem::take(waiting);
        for (owner, start) in waiting {
            self.run_range(&owner, start, &tier2)?;
        }
        *phase = Phase::Started(tier2);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for (range, results) in self.deliveries.begin() {
            let tier1 = Arc::clone(self);
            let deliver = move || deliveries::run(&tier1, range, &results);
            threads.push(spawn(format!("tier1-results-{range}"), deliver)?);
        }
        Ok(())
    }

    /// Begins to own a range, whose rows were opened by [`open_range`](Self::open_range). Before the start it is answered for,
    /// and its threads begin with the others.
    ///
    /// # Errors
    /// When the process owns it already, where also an ownership counts that a deposition has ended and
    /// [`end_range`](Self::end_range) has not; when it has stopped; and when a thread cannot be started.
    pub(crate) fn begin_range(self: &Arc<Self>, mut opened: Opened, range: Range) -> Result<(), Error> {
        let id = range.id();
        let _changing = self.ranges.changing(id);
        let mut phase = self.phase();
        if matches!(*phase, Phase::Stopped) {
            return Err(Error::Stopped);
        }
        if !self.ranges.is_free(id) {
            return Err(Error::Owned(id));
        }
        let mut table = None;
        if let Some(statuses) = &self.statuses {
            // Entries of another key mean nothing.
            opened.saved_statuses.take_if(|saved| saved.key != statuses.key());
            let empty = statuses.begin(id, opened.lease.clone());
            opened.store = Arc::new(TrackedStore::new(opened.store, Arc::clone(&empty)));
            table = Some(empty);
        }
        let metas = range.shards().run().map(|shard| usize::from(shard.0));
        let extents: Vec<_> = metas.map(|shard| (shard, extent(&range.shards().metas[shard]))).collect();
        let (owner, start) = Owner::new(range, opened, table, &self.waiting_rooms);
        {
            // Together: what another process says of it is not taken any more, and nobody is told what was before.
            let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            self.ranges.put(&owner);
            for (shard, extent) in extents {
                feed[shard] = extent;
            }
            self.feed_grew.notify_all();
        }
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
            self.ranges.take(id);
            self.end(&owner);
        }
        begun
    }

    /// Ends owning a range; does nothing where another node owns it. On return no call finds it here, nothing more is written to
    /// it, and whoever waited for its writer was told to ask again. Long jobs of its worker end soon after.
    ///
    /// It waits for the commit that is under way, so no thread of the range may call it.
    pub fn end_range(&self, range: RangeId) {
        let _changing = self.ranges.changing(range);
        if let Some(owner) = self.ranges.take(range) {
            self.end(&owner);
            tracing::info!(range = range.0, "this process does not own the range any more");
        }
    }

    /// Ends the threads after what was accepted is committed. What is owed is found at the next start.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        // From now on no range begins.
        let waiting = std::mem::replace(&mut *self.phase(), Phase::Stopped);
        drop(waiting);
        // Those that are about to end leave their threads.
        for range in self.map.ranges() {
            drop(self.ranges.changing(range));
        }
        let owners = self.ranges.all();
        for owner in &owners {
            owner.stop();
        }
        self.deliveries.end();
        for owner in &owners {
            let (writer, others) = owner.take_threads();
            writer.into_iter().chain(others).for_each(join);
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        threads.into_iter().for_each(join);
        // What a deposed owner has is for whoever keeps its rows now.
        for owner in owners.iter().filter(|owner| !owner.is_stopping()) {
            self.save_statuses(owner);
            if let Some(Err(error)) = owner.database.as_ref().map(|database| database.move_all_rows()) {
                tracing::warn!(%error, range = owner.id.0, "the next start reads the log");
            }
        }
        self.feed_grew.notify_all();
    }

    pub(super) fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the threads of a range are to end.
    pub(super) fn is_over(&self, owner: &Owner) -> bool {
        self.stopping.load(Ordering::Relaxed) || owner.is_stopping()
    }

    /// Starts the threads of a range.
    fn run_range(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        start: Start,
        tier2: &Arc<dyn IndexOrders>,
    ) -> Result<(), Error> {
        let Start { range, tasks, jobs } = start;
        let number = owner.id.0;
        let (sender, posts) = unbounded();
        let mut threads = owner.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let (tier1, of, tier2) = (Arc::clone(self), Arc::clone(owner), Arc::clone(tier2));
        let write = move || writer::run((&tier1, &of), &tier2, range, &tasks, sender);
        threads.writer = Some(spawn(format!("tier1-writer-{number}"), write)?);
        let (tier1, of) = (Arc::clone(self), Arc::clone(owner));
        let work = move || worker::run(&tier1, &of, &jobs);
        threads.others.push(spawn(format!("tier1-worker-{number}"), work)?);
        if let Some(table) = owner.table.clone() {
            let (tier1, of) = (Arc::clone(self), Arc::clone(owner));
            let tend = move || tier1.tend_statuses(&of, &table);
            threads.others.push(spawn(format!("tier1-statuses-{number}"), tend)?);
        }
        if self.map.count() > 1 {
            let (tier1, of) = (Arc::clone(self), Arc::clone(owner));
            let send = move || sender::run(&tier1, &of, &posts);
            threads.others.push(spawn(format!("tier1-sender-{number}"), send)?);
        }
        Ok(())
    }

    /// Ends a range that is not found here any more.
    fn end(&self, owner: &Owner) {
        owner.end();
        if let Some(statuses) = &self.statuses {
            statuses.end(owner.id);
        }
        if let Phase::Opened(waiting) = &mut *self.phase() {
            waiting.retain(|(other, _)| other.id != owner.id);
        }
        self.range_backups.forget_all_of(owner.id);
        let (writer, others) = owner.take_threads();
        if let Some(writer) = writer {
            join(writer);
        }
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.extend(others.into_iter().inspect(|thread| thread.thread().unpark()));
        self.feed_grew.notify_all();
    }
}

impl Owner {
    /// Its writer, if it was started, and the others.
    fn take_threads(&self) -> (Option<JoinHandle<()>>, Vec<JoinHandle<()>>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        (threads.writer.take(), std::mem::take(&mut threads.others))
    }
}

/// Half a group of commands may be in memory after a panic: nothing but a restart is safe then.
fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    doppel_threads::spawn_vital(name, run).map_err(Error::Thread)
}

fn join(thread: JoinHandle<()>) {
    thread.thread().unpark();
    if thread.join().is_err() {
        tracing::error!("a tier-1 thread panicked");
    }
}
