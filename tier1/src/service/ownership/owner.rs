//! A range that this process owns, as its threads and its callers share it.
//!
//! An [`Owner`] lives from the beginning of an ownership to its end. Callers hand tasks to the writer over a
//! channel and wait for the commit. What waits in that channel has a bound in bytes ([`QueueSpace`]), whether
//! or not its callers still wait.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam::channel::{Receiver, Sender, bounded, unbounded};
use doppel_contract::{Backlog, Counters, SubmissionOutcome};
use doppel_model::{Epoch, PageId, RangeId};
use doppel_protocol::range_owner::PostCallback;
use doppel_protocol::{LogPosition, Moment, SearchResult, Submission, Tier1Error};

use crate::lease::Lease;
use crate::machine::{Command, Hint, Wait};
use crate::peers::{self, PeerError, Post};
use crate::range::Range;
use crate::service::ownership::figures::Figures;
use crate::service::ownership::pending_reply::{PendingReply, why_ended};
use crate::service::submissions::arrivals::Arriving;
use crate::service::upkeep::failures::WorkFailures;
use crate::service::upkeep::job::Job;
use crate::service::writer::queue_space::{self, QueueBudget, QueueSpace, Reply, Reservation};
use crate::service::writer::task::Task;
use crate::statuses::{Snapshot, StatusTable};
use crate::storage::database::Database;
use crate::storage::store::Store;
use doppel_protocol::range_owner::EncodedRow;

/// Number of low bits of an order's index that count orders. The bits above them are the epoch.
const ORDER_BITS: u32 = 40;

/// One ownership of a range: its rows, its queues and its figures.
pub(crate) struct Owner {
    pub(in crate::service) id: RangeId,
    pub(in crate::service) store: Arc<dyn Store>,
    /// The rows that the machine reads, without the cache of rows that questions have read. The reads of the
    /// machine would drive those rows out.
    pub(in crate::service) uncached_store: Arc<dyn Store>,
    /// `None` if the rows are not in a database, as in tests.
    pub(in crate::service) database: Option<Arc<Database>>,
    /// Number of this ownership. A later ownership of the range has a greater one.
    pub(in crate::service) epoch: Epoch,
    /// Index of the last order to tier 2 as of the last commit, whether or not tier 2 has received it.
    pub(in crate::service) ordered: AtomicU64,
    pub(in crate::service) tasks: Sender<Task>,
    pub(in crate::service) jobs: Sender<Job>,
    /// Space in the queue for tasks that are held back while messages cannot leave. All other tasks have a
    /// space of their own, so that neither kind keeps the other out.
    deferrable: Arc<QueueSpace>,
    undeferred: Arc<QueueSpace>,
    /// Ranges whose post waits or is being applied.
    posting: Arc<Mutex<BTreeSet<RangeId>>>,
    /// Whether the writer was told that a caller waits for a flush, and whether the worker was told to retry
    /// failed jobs. Each is told once until it takes note.
    hurries: AtomicBool,
    retries: AtomicBool,
    /// Whether this ownership is over or about to be. Callers no longer find the range here, and its threads
    /// end.
    stopping: Arc<AtomicBool>,
    /// Says whether the owner may answer. `None` if no other node can own the range.
    pub(in crate::service) lease: Option<Arc<dyn Lease>>,
    /// Statuses of the range's pages, kept in memory. `None` if the service keeps no status tables.
    pub(in crate::service) table: Option<Arc<StatusTable>>,
    pub(in crate::service) threads: Mutex<Threads>,
    figures: RwLock<Figures>,
    /// Number of orders of all ranges that waited in tier 2 at the last commit.
    pub(in crate::service) waiting_orders: AtomicU64,
    /// The last moment at which tier 2 had received every order. `None` if no log is kept.
    moment: Mutex<Option<Moment>>,
    /// Whether a caller has asked for a page since the last commit.
    pub(in crate::service) asked: AtomicBool,
    /// Background work that failed.
    pub(in crate::service) failures: WorkFailures,
    /// Directory of the range. `None` if commits are not flushed.
    pub(in crate::service) dir: Option<PathBuf>,
    /// The snapshot that the status table begins from.
    pub(in crate::service) saved_statuses: Mutex<Option<Snapshot>>,
    /// Log position of the snapshot of the status table that is on disk. `None` if there is none that the log
    /// still reaches back to.
    statuses_on_disk: Mutex<Option<LogPosition>>,
}

/// The threads of one range.
#[derive(Default)]
pub(in crate::service) struct Threads {
    pub(in crate::service) writer: Option<JoinHandle<()>>,
    /// All threads but the writer. They may be in the middle of a long job.
    pub(in crate::service) others: Vec<JoinHandle<()>>,
}

/// The open rows of a range, with and without the cache of rows that were read lately.
pub(crate) struct OpenedRange {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) uncached_store: Arc<dyn Store>,
    /// `None` if the rows are not in a database.
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) saved_statuses: Option<Snapshot>,
    /// Number of the ownership that begins. `None` to take it from the database.
    pub(crate) epoch: Option<Epoch>,
    /// `None` if no other node can own the range.
    pub(crate) lease: Option<Arc<dyn Lease>>,
}

impl OpenedRange {
    /// Rows that are not in a database.
    pub(crate) fn over(store: Arc<dyn Store>, dir: Option<PathBuf>) -> Self {
        let uncached_store = Arc::clone(&store);
        Self { store, uncached_store, database: None, dir, saved_statuses: None, epoch: None, lease: None }
    }
}

/// What the threads of a range start with.
pub(in crate::service) struct ThreadStart {
    pub(in crate::service) range: Range,
    pub(in crate::service) tasks: Receiver<Task>,
    pub(in crate::service) jobs: Receiver<Job>,
}

impl Owner {
    pub(in crate::service) fn new(
        range: Range,
        OpenedRange { store, uncached_store, database, dir, saved_statuses, epoch, lease }: OpenedRange,
        table: Option<Arc<StatusTable>>,
        budget: &QueueBudget,
    ) -> (Arc<Self>, ThreadStart) {
        let in_database = || Epoch(database.as_ref().map_or(1, |database| database.epoch()));
        let epoch = epoch.unwrap_or_else(in_database);
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
            deferrable: budget.new_space(),
            undeferred: budget.new_space(),
            posting: Arc::default(),
            hurries: AtomicBool::new(false),
            retries: AtomicBool::new(false),
            stopping: Arc::default(),
            lease,
            table,
            threads: Mutex::default(),
            figures: RwLock::new(Figures::new(&range, Instant::now())),
            waiting_orders: AtomicU64::new(0),
            moment: Mutex::default(),
            asked: AtomicBool::new(false),
            failures: WorkFailures::default(),
            dir,
            saved_statuses: Mutex::new(saved_statuses),
            statuses_on_disk: Mutex::default(),
        };
        (Arc::new(this), ThreadStart { range, tasks, jobs })
    }

    /// Hands the writer a task of `bytes` that is never held back. The answer comes later.
    pub(in crate::service) fn ask<T>(
        &self,
        bytes: usize,
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Result<PendingReply<T>, Tier1Error> {
        self.ask_in(&self.undeferred, bytes, task)
    }

    fn ask_in<T>(
        &self,
        space: &Arc<QueueSpace>,
        bytes: usize,
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Result<PendingReply<T>, Tier1Error> {
        let reservation = self.reserve(space, bytes)?;
        let (reply, answer) = bounded(1);
        self.send_task(task(Reply::new(reply, reservation)))?;
        Ok(PendingReply::new(self.id, Arc::clone(&self.stopping), answer))
    }

    /// Hands submissions to the writer. They are refused if a commit has waited too long for the log or a
    /// standby.
    pub(in crate::service) fn submit(
        &self,
        submissions: Vec<(Submission, Option<Hint>)>,
        arriving: Arriving,
    ) -> Result<PendingReply<Result<Vec<SubmissionOutcome>, Tier1Error>>, Tier1Error> {
        self.check_commits()?;
        let bytes = submissions.iter().map(|(submission, _)| queue_space::size(submission)).sum();
        self.ask_in(&self.deferrable, bytes, |reply| Task::Submit { submissions, arriving, reply })
    }

    /// Hands commands to the writer. Commands that `may_wait` are held back while too many messages wait to
    /// leave the range.
    pub(in crate::service) fn apply(
        &self,
        commands: Vec<Command>,
        may_wait: bool,
    ) -> Result<PendingReply<Result<(), Tier1Error>>, Tier1Error> {
        self.check_commits()?;
        let space = if may_wait { &self.deferrable } else { &self.undeferred };
        let bytes = size_of_val(&*commands);
        self.ask_in(space, bytes, |reply| Task::Apply { commands, may_wait, reply })
    }

    /// Takes a post of another range. Refuses it if an earlier post of that range is not answered yet.
    pub(in crate::service) fn post(&self, post: Post, done: PostCallback) {
        if let Err(refused) = self.check_commits() {
            return done(Err(refused));
        }
        let Some(posting) = PostInProgress::begin(&self.posting, post.from) else {
            return done(Err(PeerError::Busy(post.from)));
        };
        let done: PostCallback = Box::new(move |answer| {
            drop(posting);
            done(answer);
        });
        // A writer that has ended drops the task, and with it the channel of the caller.
        drop(self.tasks.send(Task::Post { post, done }));
    }

    /// Hands the writer a task without a bound: one of the range's own threads, or of a kind of which there
    /// are few.
    pub(in crate::service) fn send_task(&self, task: Task) -> Result<(), Tier1Error> {
        self.tasks.send(task).map_err(|_| self.why_ended())
    }

    /// Takes search results, whether or not the range may answer.
    pub(in crate::service) fn deliver(&self, results: Vec<SearchResult>) -> Result<(), Tier1Error> {
        let pairs: usize = results.iter().map(|result| size_of_val(&*result.pairs)).sum();
        let reservation = self.reserve(&self.undeferred, size_of_val(&*results) + pairs)?;
        self.send_task(Task::SearchResults { results, reservation })
    }

    /// Asks the writer to do background work at once, because a caller waits for a flush.
    pub(in crate::service) fn hurry(&self) -> Result<(), Tier1Error> {
        if self.hurries.swap(true, Ordering::AcqRel) { Ok(()) } else { self.send_task(Task::FlushBatch) }
    }

    /// Notes that the writer has seen the request to hurry. The next request is sent again.
    pub(in crate::service) fn clear_hurry(&self) {
        self.hurries.store(false, Ordering::Release);
    }

    /// Asks the worker to retry the jobs that failed.
    pub(in crate::service) fn retry(&self) -> Result<(), Tier1Error> {
        if self.retries.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.jobs.send(Job::Retry).map_err(|_| self.why_ended())
    }

    /// Notes that the worker has seen the request to retry. The next request is sent again.
    pub(in crate::service) fn clear_retry(&self) {
        self.retries.store(false, Ordering::Release);
    }

    fn reserve(&self, space: &Arc<QueueSpace>, bytes: usize) -> Result<Reservation, Tier1Error> {
        let full = || PeerError::unreachable(self.id, "the queue of its writer is full; try again later");
        Ok(space.reserve(bytes).ok_or_else(full)?)
    }

    /// Whether the range accepts tasks that need a commit. It does not while a commit has waited too long.
    pub(in crate::service) fn check_commits(&self) -> Result<(), PeerError> {
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check_commits())
    }

    /// Why the threads of this ownership accept no more tasks.
    pub(in crate::service) fn why_ended(&self) -> Tier1Error {
        why_ended(self.id, &self.stopping)
    }

    /// Whether this ownership is over, or about to be.
    pub(in crate::service) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends this ownership. Its threads accept no more tasks.
    pub(in crate::service) fn end(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop();
    }

    /// Wakes the threads that wait for tasks, so that they end.
    pub(in crate::service) fn stop(&self) {
        // A thread that has ended needs no order.
        let _ = self.tasks.send(Task::Stop);
        let _ = self.jobs.send(Job::Stop);
    }

    /// Whether the range may answer now.
    pub(in crate::service) fn check(&self) -> Result<(), PeerError> {
        if self.is_stopping() {
            return Err(PeerError::NotOwner(self.id));
        }
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check())
    }

    /// See [`Peers::rows`](crate::peers::Peers::rows).
    pub(in crate::service) fn rows(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        peers::rows_of(&*self.store, keys)
    }

    /// See [`Peers::scan`](crate::peers::Peers::scan).
    pub(in crate::service) fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        peers::piece_of(&*self.store, from, to, limit)
    }

    /// Notes that tier 2 has received all orders up to `order`, and that no commit so far has made a later
    /// one.
    pub(in crate::service) fn note_handed_over(&self, order: u64) {
        let log = self.database.as_ref().and_then(|database| database.log_position());
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner) = log.map(|log| Moment { log, order });
    }

    /// The last moment at which tier 2 had received every order of the range. `None` if no log is kept.
    pub(in crate::service) fn moment(&self) -> Option<Moment> {
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::service) fn statuses_on_disk(&self) -> MutexGuard<'_, Option<LogPosition>> {
        self.statuses_on_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::service) fn totals(&self) -> (Counters, Backlog) {
        self.figures().totals()
    }

    /// The figures of the range, with those of its shards and its decision times.
    pub(in crate::service) fn figures(&self) -> RwLockReadGuard<'_, Figures> {
        self.figures.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the figures after a commit. `waits` lists the pages that became pending or stopped being
    /// pending with it.
    pub(in crate::service) fn update_figures(&self, range: &Range, waits: &[(PageId, Wait)]) {
        let mut figures = self.figures.write().unwrap_or_else(PoisonError::into_inner);
        figures.update(range, waits, Instant::now());
    }

    /// Starts the figures again after the range was opened anew.
    pub(in crate::service) fn restart_figures(&self, range: &Range) {
        self.figures.write().unwrap_or_else(PoisonError::into_inner).restart(range, Instant::now());
    }
}

/// A post that waits or is being applied, as long as this value is kept.
struct PostInProgress {
    all: Arc<Mutex<BTreeSet<RangeId>>>,
    from: RangeId,
}

impl PostInProgress {
    /// `None` if another post of the range is not answered yet.
    fn begin(all: &Arc<Mutex<BTreeSet<RangeId>>>, from: RangeId) -> Option<Self> {
        let is_first = all.lock().unwrap_or_else(PoisonError::into_inner).insert(from);
        is_first.then(|| Self { all: Arc::clone(all), from })
    }
}

impl Drop for PostInProgress {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.from);
    }
}

/// Index of the first order of an owner. All orders of a later owner have greater indexes, because no owner
/// makes 2^40 orders.
pub(in crate::service) fn first_order(epoch: Epoch) -> u64 {
    (epoch.0 << ORDER_BITS) + 1
}
