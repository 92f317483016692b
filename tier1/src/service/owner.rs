//! A range that this process owns, as its threads and its callers share it, from the moment it begins to own it to its end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use doppel_contract::{Backlog, Counters, Outcome};
use doppel_model::{Epoch, PageId, RangeId};
use doppel_protocol::range_owner::PostDone;
use doppel_protocol::{LogPosition, Moment, SearchResult, Submission, Tier1Error};

use super::figures::Figures;
use super::job::Job;
use super::room::{self, Arriving, Place, Reply, Room, Rooms};
use super::stuck::Stuck;
use super::task::Task;
use crate::database::Database;
use crate::lease::Lease;
use crate::machine::{Command, Hint, Wait};
use crate::peers::{self, PeerError, Post};
use crate::range::Range;
use crate::statuses::{Snapshot, StatusTable};
use crate::store::Store;
use crate::txn::Row;

/// How long a caller waits for the writer: longer than the largest commit takes on a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of low bits of an order's index that count orders. The bits above them are the epoch.
const ORDER_BITS: u32 = 40;

/// One ownership of a range: its rows, its queues and its figures.
pub(crate) struct Owner {
    pub(super) id: RangeId,
    pub(super) store: Arc<dyn Store>,
    /// The rows that the machine reads, without the cache of rows that questions have read. The reads of the
    /// machine would drive those rows out.
    pub(super) uncached_store: Arc<dyn Store>,
    /// None where the rows are somewhere else.
    pub(super) database: Option<Arc<Database>>,
    /// Number of this ownership. A later ownership of the range has a greater one.
    pub(super) epoch: Epoch,
    /// Index of the last order to tier 2 as of the last commit, whether or not tier 2 has received it.
    pub(super) ordered: AtomicU64,
    pub(super) tasks: Sender<Task>,
    pub(super) jobs: Sender<Job>,
    /// Room for what may be held back while messages do not leave, and for what is not: else the one would keep the other out.
    held_back: Arc<Room>,
    at_once: Arc<Room>,
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
    pub(super) lease: Option<Arc<dyn Lease>>,
    /// Statuses of the range's pages, kept in memory. `None` if the service keeps no status tables.
    pub(super) table: Option<Arc<StatusTable>>,
    pub(super) threads: Mutex<Threads>,
    figures: RwLock<Figures>,
    /// Number of orders of all ranges that waited in tier 2 at the last commit.
    pub(super) waiting_orders: AtomicU64,
    /// The last moment at which tier 2 had received every order. `None` if no log is kept.
    pub(super) moment: Mutex<Option<Moment>>,
    /// Whether a caller has asked for a page since the last commit.
    pub(super) asked: AtomicBool,
    /// Background work that failed.
    pub(super) stuck: Stuck,
    /// Directory of the range. `None` if commits are not flushed.
    pub(super) dir: Option<PathBuf>,
    /// The snapshot that the status table begins from.
    pub(super) saved_statuses: Mutex<Option<Snapshot>>,
    /// Log position of the snapshot of the status table that is on disk. `None` if there is none that the log
    /// still reaches back to.
    statuses_on_disk: Mutex<Option<LogPosition>>,
}

/// The threads of one range.
#[derive(Default)]
pub(super) struct Threads {
    pub(super) writer: Option<JoinHandle<()>>,
    /// All threads but the writer. They may be in the middle of a long job.
    pub(super) others: Vec<JoinHandle<()>>,
}

/// The open rows of a range, with and without the cache of rows that were read lately.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) uncached_store: Arc<dyn Store>,
    /// None where the rows are somewhere else.
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) saved_statuses: Option<Snapshot>,
    /// Number of the ownership that begins. `None` to take it from the database.
    pub(crate) epoch: Option<Epoch>,
    /// `None` if no other node can own the range.
    pub(crate) lease: Option<Arc<dyn Lease>>,
}

impl Opened {
    /// Rows that are not in a database.
    pub(crate) fn over(store: Arc<dyn Store>, dir: Option<PathBuf>) -> Self {
        let uncached_store = Arc::clone(&store);
        Self { store, uncached_store, database: None, dir, saved_statuses: None, epoch: None, lease: None }
    }
}

/// An answer that the writer will send.
pub(super) struct PendingReply<T> {
    range: RangeId,
    stopping: Arc<AtomicBool>,
    answer: Receiver<T>,
    deadline: Instant,
}

impl<T> PendingReply<T> {
    /// Waits for the answer. If none comes in time, the writer may still do what was asked.
    pub(super) fn wait(self) -> Result<T, Tier1Error> {
        self.answer.recv_deadline(self.deadline).map_err(|failed| match failed {
            RecvTimeoutError::Timeout => {
                PeerError::unreachable(self.range, "its writer has not answered in time").into()
            }
            RecvTimeoutError::Disconnected => ended(self.range, &self.stopping),
        })
    }

    /// Like [`wait`](Self::wait), but waits until `deadline`.
    pub(super) fn wait_until(self, deadline: Instant) -> Result<T, Tier1Error> {
        Self { deadline, ..self }.wait()
    }
}

/// What the threads of a range start with.
pub(super) struct Start {
    pub(super) range: Range,
    pub(super) tasks: Receiver<Task>,
    pub(super) jobs: Receiver<Job>,
}

impl Owner {
    pub(super) fn new(
        range: Range,
        Opened { store, uncached_store, database, dir, saved_statuses, epoch, lease }: Opened,
        table: Option<Arc<StatusTable>>,
        rooms: &Rooms,
    ) -> (Arc<Self>, Start) {
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
            held_back: rooms.begin(),
            at_once: rooms.begin(),
            posting: Arc::default(),
            hurries: AtomicBool::new(false),
            retries: AtomicBool::new(false),
            stopping: Arc::default(),
            lease,
            table,
            threads: Mutex::default(),
            figures: RwLock::new(Figures::of(&range, Instant::now())),
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

    /// Hands the writer a task of `bytes` that is never held back. The answer comes later.
    pub(super) fn ask<T>(
        &self,
        bytes: usize,
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Result<PendingReply<T>, Tier1Error> {
        self.ask_in(&self.at_once, bytes, task)
    }

    fn ask_in<T>(
        &self,
        room: &Arc<Room>,
        bytes: usize,
        task: impl FnOnce(Reply<T>) -> Task,
    ) -> Result<PendingReply<T>, Tier1Error> {
        let place = self.place(room, bytes)?;
        let (reply, answer) = bounded(1);
        self.tell(task(Reply::new(reply, place)))?;
        let (stopping, deadline) = (Arc::clone(&self.stopping), Instant::now() + PATIENCE);
        Ok(PendingReply { range: self.id, stopping, answer, deadline })
    }

    /// Hands submissions to the writer. They are refused while commits wait for the log or a standby.
    pub(super) fn submit(
        &self,
        submissions: Vec<(Submission, Option<Hint>)>,
        arriving: Arriving,
    ) -> Result<PendingReply<Result<Vec<Outcome>, Tier1Error>>, Tier1Error> {
        self.check_commits()?;
        let bytes = submissions.iter().map(|(submission, _)| room::size(submission)).sum();
        self.ask_in(&self.held_back, bytes, |reply| Task::Submit { submissions, arriving, reply })
    }

    /// Hands commands to the writer. Commands that `may_wait` are held back while too many messages wait to
    /// leave the range.
    pub(super) fn apply(
        &self,
        commands: Vec<Command>,
        may_wait: bool,
    ) -> Result<PendingReply<Result<(), Tier1Error>>, Tier1Error> {
        self.check_commits()?;
        let room = if may_wait { &self.held_back } else { &self.at_once };
        let bytes = size_of_val(&*commands);
        self.ask_in(room, bytes, |reply| Task::Apply { commands, may_wait, reply })
    }

    /// Takes a post of another range. Refuses it if an earlier post of that range is not answered yet.
    pub(super) fn post(&self, post: Post, done: PostDone) {
        if let Err(refused) = self.check_commits() {
            return done(Err(refused));
        }
        let Some(posting) = Posting::begin(&self.posting, post.from) else {
            return done(Err(PeerError::Busy(post.from)));
        };
        let done: PostDone = Box::new(move |answer| {
            drop(posting);
            done(answer);
        });
        // A writer that has ended drops the task, and with it the channel of the caller.
        drop(self.tasks.send(Task::Posted { post, done }));
    }

    /// Hands the writer a task without a bound: one of the range's own threads, or of a kind of which there
    /// are few.
    pub(super) fn tell(&self, task: Task) -> Result<(), Tier1Error> {
        self.tasks.send(task).map_err(|_| self.ended())
    }

    /// Takes search results, whether or not the range may answer.
    pub(super) fn deliver(&self, results: Vec<SearchResult>) -> Result<(), Tier1Error> {
        let pairs: usize = results.iter().map(|result| size_of_val(&*result.pairs)).sum();
        let place = self.place(&self.at_once, size_of_val(&*results) + pairs)?;
        self.tell(Task::Found { results, place })
    }

    /// Asks the writer to do background work at once, because a caller waits for a flush.
    pub(super) fn hurry(&self) -> Result<(), Tier1Error> {
        if self.hurries.swap(true, Ordering::AcqRel) { Ok(()) } else { self.tell(Task::FlushBatch) }
    }

    /// Notes that the writer has seen the request to hurry. The next request is sent again.
    pub(super) fn take_hurry(&self) {
        self.hurries.store(false, Ordering::Release);
    }

    /// Asks the worker to retry the jobs that failed.
    pub(super) fn retry(&self) -> Result<(), Tier1Error> {
        if self.retries.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.jobs.send(Job::Retry).map_err(|_| self.ended())
    }

    /// Notes that the worker has seen the request to retry. The next request is sent again.
    pub(super) fn take_retry(&self) {
        self.retries.store(false, Ordering::Release);
    }

    fn place(&self, room: &Arc<Room>, bytes: usize) -> Result<Place, Tier1Error> {
        let full = || PeerError::unreachable(self.id, "more waits for its writer than there is room for");
        Ok(room.place(bytes).ok_or_else(full)?)
    }

    /// Whether the range accepts tasks that need a commit. It does not while a commit has waited too long.
    pub(super) fn check_commits(&self) -> Result<(), PeerError> {
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check_commits())
    }

    /// Why the threads of this ownership accept no more tasks.
    pub(super) fn ended(&self) -> Tier1Error {
        ended(self.id, &self.stopping)
    }

    /// Whether this ownership is over, or about to be.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends this ownership. Its threads accept no more tasks.
    pub(super) fn end(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop();
    }

    /// Wakes the threads that wait for tasks, so that they end.
    pub(super) fn stop(&self) {
        // A thread that has ended needs no order.
        let _ = self.tasks.send(Task::Stop);
        let _ = self.jobs.send(Job::Stop);
    }

    /// Whether the range may answer now.
    pub(super) fn check(&self) -> Result<(), PeerError> {
        if self.is_stopping() {
            return Err(PeerError::NotOwner(self.id));
        }
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check())
    }

    /// See [`Peers::rows`](crate::peers::Peers::rows).
    pub(super) fn rows(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        peers::rows_of(&*self.store, keys)
    }

    /// See [`Peers::scan`](crate::peers::Peers::scan).
    pub(super) fn scan(&self, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        peers::piece_of(&*self.store, from, to, limit)
    }

    /// Notes that tier 2 has received all orders up to `order`, and that no commit so far has made a later
    /// one.
    pub(super) fn handed_over(&self, order: u64) {
        let log = self.database.as_ref().and_then(|database| database.log_position());
        *self.moment.lock().unwrap_or_else(PoisonError::into_inner) = log.map(|log| Moment { log, order });
    }

    pub(super) fn statuses_on_disk(&self) -> MutexGuard<'_, Option<LogPosition>> {
        self.statuses_on_disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn totals(&self) -> (Counters, Backlog) {
        self.figures().totals()
    }

    /// The figures of the range, with those of its shards and its decision times.
    pub(super) fn figures(&self) -> RwLockReadGuard<'_, Figures> {
        self.figures.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the figures after a commit. `waits` lists the pages that became pending or stopped being
    /// pending with it.
    pub(super) fn set_totals(&self, range: &Range, waits: &[(PageId, Wait)]) {
        let mut figures = self.figures.write().unwrap_or_else(PoisonError::into_inner);
        figures.update(range, waits, Instant::now());
    }

    /// Starts the figures again after the range was opened anew.
    pub(super) fn set_totals_anew(&self, range: &Range) {
        self.figures.write().unwrap_or_else(PoisonError::into_inner).begin_again(range, Instant::now());
    }
}

/// A post that waits or is being applied, as long as this value is kept.
struct Posting {
    all: Arc<Mutex<BTreeSet<RangeId>>>,
    from: RangeId,
}

impl Posting {
    /// `None` if another post of the range is not answered yet.
    fn begin(all: &Arc<Mutex<BTreeSet<RangeId>>>, from: RangeId) -> Option<Self> {
        let is_first = all.lock().unwrap_or_else(PoisonError::into_inner).insert(from);
        is_first.then(|| Self { all: Arc::clone(all), from })
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.from);
    }
}

/// Index of the first order of an owner. All orders of a later owner have greater indexes, because no owner
/// makes 2^40 orders.
pub(super) fn first_order(epoch: Epoch) -> u64 {
    (epoch.0 << ORDER_BITS) + 1
}

/// Why an answer of the range's threads does not come.
fn ended(range: RangeId, stopping: &AtomicBool) -> Tier1Error {
    if stopping.load(Ordering::Acquire) { PeerError::NotOwner(range).into() } else { Tier1Error::Stopping }
}
