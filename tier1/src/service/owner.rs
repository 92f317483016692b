//! A range that this process owns, as its threads and its callers share it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use doppel_model::{Epoch, RangeId};
use doppel_protocol::{Backlog, Counters, LogPosition, Moment, Tier1Error};

use super::job::Job;
use super::stuck::Stuck;
use super::task::Task;
use crate::database::Database;
use crate::peers::PeerError;
use crate::range::Range;
use crate::statuses::Snapshot;
use crate::store::Store;
use crate::totals;

/// How long a caller waits for the writer: longer than the largest commit takes on a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bits of the index of an order below the epoch.
const ORDER_BITS: u32 = 40;

/// A range: its rows, its queues, its totals.
pub(crate) struct Owner {
    pub(super) id: RangeId,
    pub(super) store: Arc<dyn Store>,
    /// What the machine reads: the same rows, without those kept for questions, which its reading would drive out.
    pub(super) uncached_store: Arc<dyn Store>,
    /// None where the rows are somewhere else.
    pub(super) database: Option<Arc<Database>>,
    /// Number of this ownership.
    pub(super) epoch: Epoch,
    /// Index of the last order to tier 2, handed over or not, as of the last commit.
    pub(super) ordered: AtomicU64,
    pub(super) tasks: Sender<Task>,
    pub(super) jobs: Sender<Job>,
    totals: RwLock<(Counters, Backlog)>,
    /// Orders of all ranges that wait in tier 2, as of the last commit.
    pub(super) waiting_orders: AtomicU64,
    /// Up to where everything is handed over to tier 2; none where no log is kept.
    pub(super) moment: Mutex<Option<Moment>>,
    /// A page was asked for since the last commit.
    pub(super) asked: AtomicBool,
    /// Work that could not be done.
    pub(super) stuck: Stuck,
    /// Its directory; none where commits are not flushed.
    pub(super) dir: Option<PathBuf>,
    /// The snapshot that its status table begins from.
    pub(super) saved_statuses: Mutex<Option<Snapshot>>,
    /// The moment of the snapshot of its status table that is on disk, and no older than what the log tells.
    statuses_on_disk: Mutex<Option<LogPosition>>,
}

/// The rows of a range: with what was lately read in front, and without.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) uncached_store: Arc<dyn Store>,
    /// None where the rows are somewhere else.
    pub(super) database: Option<Arc<Database>>,
    pub(super) dir: Option<PathBuf>,
    pub(super) saved_statuses: Option<Snapshot>,
}

impl Opened {
    /// Rows that are not those of a database.
    pub(super) fn over(store: Arc<dyn Store>, dir: Option<PathBuf>) -> Self {
        Self { uncached_store: Arc::clone(&store), store, database: None, dir, saved_statuses: None }
    }
}

/// An answer of the writer that is still to come.
pub(super) struct PendingReply<T> {
    range: RangeId,
    answer: Receiver<T>,
    deadline: Instant,
}

impl<T> PendingReply<T> {
    /// Waits for it. What was asked for may be done all the same when none comes in time.
    pub(super) fn wait(self) -> Result<T, Tier1Error> {
        self.answer.recv_deadline(self.deadline).map_err(|failed| match failed {
            RecvTimeoutError::Timeout => {
                PeerError::unreachable(self.range, "its writer has not answered in time").into()
            }
            RecvTimeoutError::Disconnected => Tier1Error::Stopping,
        })
    }

    /// The same, up to another moment.
    pub(super) fn wait_until(self, deadline: Instant) -> Result<T, Tier1Error> {
        Self { deadline, ..self }.wait()
    }
}

/// What waits for the threads to be started.
pub(super) struct Start {
    pub(super) range: Range,
    pub(super) tasks: Receiver<Task>,
    pub(super) jobs: Receiver<Job>,
}

impl Owner {
    pub(super) fn new(
        range: Range,
        Opened { store, uncached_store, database, dir, saved_statuses }: Opened,
    ) -> (Arc<Self>, Start) {
        let epoch = Epoch(database.as_ref().map_or(1, |database| database.epoch()));
        let ((task_sender, tasks), (job_sender, jobs)) = (unbounded(), unbounded());
        let this = Self {
            id: range.id(),
            store,
            uncached_store,
            database,
            epoch,
            ordered: AtomicU64::new(first_order(epoch) - 1),
            tasks: task_sender,
            jobs: job_sender,
            totals: RwLock::new(totals_of(&range)),
            waiting_orders: AtomicU64::new(0),
            moment: Mutex::default(),
            asked: AtomicBool::new(false),
            stuck: Stuck::default(),
            dir,
            saved_statuses: Mutex::new(saved_statuses),
            statuses_on_disk: Mutex::default(),
        };
        (Arc::new(this), Start { range, tasks, jobs })
    }

    /// Hands the writer a task; its answer comes later.
    pub(super) fn ask<T>(&self, task: impl FnOnce(Sender<T>) -> Task) -> Result<PendingReply<T>, Tier1Error> {
        let (reply, answer) = bounded(1);
        self.tasks.send(task(reply)).map_err(|_| Tier1Error::Stopping)?;
        Ok(PendingReply { range: self.id, answer, deadline: Instant::now() + PATIENCE })
    }

    /// All orders up to this one are handed over, and there is none behind it of a commit so far.
    pub(super) fn handed_over(&self, order: u64) {
        let log = self.database.as_ref().and_then(|database| database.log_position());
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner) = log.map(|log| Moment { log, order });
    }

    pub(super) fn statuses_on_disk(&self) -> MutexGuard<'_, Option<LogPosition>> {
        self.statuses_on_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn totals(&self) -> (Counters, Backlog) {
        *self.totals.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_totals(&self, range: &Range) {
        *self.totals.write().unwrap_or_else(PoisonError::into_inner) = totals_of(range);
    }
}

/// The index of the first order of an owner. Those of a later owner are greater, and none has so many that they meet.
pub(super) fn first_order(epoch: Epoch) -> u64 {
    (epoch.0 << ORDER_BITS) + 1
}

fn totals_of(range: &Range) -> (Counters, Backlog) {
    totals::sum(&range.shards().metas, range.backlog().messages)
}
