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
    /// Room for what may be held back while messages do not leave, and for what is not: else the one would keep the other out.
    held_back: Arc<Room>,
    at_once: Arc<Room>,
    /// Ranges of which a post waits, or is being applied.
    posting: Arc<Mutex<BTreeSet<RangeId>>>,
    /// The writer is told already that a caller waits for a flush, and the worker to try what has failed again.
    hurries: AtomicBool,
    retries: AtomicBool,
    /// This ownership is over, or about to be: the range is not found here any more, and its threads end.
    stopping: Arc<AtomicBool>,
    /// Whether it may answer; none where no other node can own the range.
    pub(super) lease: Option<Arc<dyn Lease>>,
    /// What it tells of its pages without reading; none where nobody asks.
    pub(super) table: Option<Arc<StatusTable>>,
    pub(super) threads: Mutex<Threads>,
    figures: RwLock<Figures>,
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

/// The threads of a range.
#[derive(Default)]
pub(super) struct Threads {
    pub(super) writer: Option<JoinHandle<()>>,
    /// They may be in the middle of a long job.
    pub(super) others: Vec<JoinHandle<()>>,
}

/// The rows of a range: with what was lately read in front, and without.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) uncached_store: Arc<dyn Store>,
    /// None where the rows are somewhere else.
    pub(crate) database: Option<Arc<Database>>,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) saved_statuses: Option<Snapshot>,
    /// Number of the ownership that begins; none where the database says it.
    pub(crate) epoch: Option<Epoch>,
    /// None where no other node can own the range.
    pub(crate) lease: Option<Arc<dyn Lease>>,
}

impl Opened {
    /// Rows that are not those of a database.
    pub(crate) fn over(store: Arc<dyn Store>, dir: Option<PathBuf>) -> Self {
        let uncached_store = Arc::clone(&store);
        Self { store, uncached_store, database: None, dir, saved_statuses: None, epoch: None, lease: None }
    }
}

/// An answer of the writer that is still to come.
pub(super) struct PendingReply<T> {
    range: RangeId,
    stopping: Arc<AtomicBool>,
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
            RecvTimeoutError::Disconnected => ended(self.range, &self.stopping),
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

    /// Hands the writer a task of so many bytes that is not held back; its answer comes later.
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

    /// Hands the writer submissions, which are refused while commits wait.
    pub(super) fn submit(
        &self,
        submissions: Vec<(Submission, Option<Hint>)>,
        arriving: Arriving,
    ) -> Result<PendingReply<Result<Vec<Outcome>, Tier1Error>>, Tier1Error> {
        self.check_commits()?;
        let bytes = submissions.iter().map(|(submission, _)| room::size(submission)).sum();
        self.ask_in(&self.held_back, bytes, |reply| Task::Submit { submissions, arriving, reply })
    }

    /// The same for commands, which may be held back or not.
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

    /// Takes a post of another range, of which none may wait.
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
        // A writer that has ended drops it: whoever waits is told so by that.
        drop(self.tasks.send(Task::Posted { post, done }));
    }

    /// Hands the writer a task of the range's own threads, or one of which there are few. Nobody waits for it.
    pub(super) fn tell(&self, task: Task) -> Result<(), Tier1Error> {
        self.tasks.send(task).map_err(|_| self.ended())
    }

    /// Takes results of searches, whether or not it may answer.
    pub(super) fn deliver(&self, results: Vec<SearchResult>) -> Result<(), Tier1Error> {
        let pairs: usize = results.iter().map(|result| size_of_val(&*result.pairs)).sum();
        let place = self.place(&self.at_once, size_of_val(&*results) + pairs)?;
        self.tell(Task::Found { results, place })
    }

    /// A caller waits for a flush: background work is wanted at once.
    pub(super) fn hurry(&self) -> Result<(), Tier1Error> {
        if self.hurries.swap(true, Ordering::AcqRel) { Ok(()) } else { self.tell(Task::FlushBatch) }
    }

    /// The writer has taken note of that.
    pub(super) fn take_hurry(&self) {
        self.hurries.store(false, Ordering::Release);
    }

    /// What has failed is wanted again.
    pub(super) fn retry(&self) -> Result<(), Tier1Error> {
        if self.retries.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.jobs.send(Job::Retry).map_err(|_| self.ended())
    }

    /// The worker has taken note of that.
    pub(super) fn take_retry(&self) {
        self.retries.store(false, Ordering::Release);
    }

    fn place(&self, room: &Arc<Room>, bytes: usize) -> Result<Place, Tier1Error> {
        let full = || PeerError::unreachable(self.id, "more waits for its writer than there is room for");
        Ok(room.place(bytes).ok_or_else(full)?)
    }

    /// Whether it takes what is to be committed.
    pub(super) fn check_commits(&self) -> Result<(), PeerError> {
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check_commits())
    }

    /// Why its threads take nothing any more.
    pub(super) fn ended(&self) -> Tier1Error {
        ended(self.id, &self.stopping)
    }

    /// Whether this ownership is over, or about to be.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends this ownership: its threads take nothing more.
    pub(super) fn end(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop();
    }

    /// Wakes those of its threads that wait for something to do, so that they end.
    pub(super) fn stop(&self) {
        // Those that have ended need no order.
        let _ = self.tasks.send(Task::Stop);
        let _ = self.jobs.send(Job::Stop);
    }

    /// Whether it may answer now.
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

    /// All orders up to this one are handed over, and there is none behind it of a commit so far.
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

    /// The same with the figures of shards and the times of decisions.
    pub(super) fn figures(&self) -> RwLockReadGuard<'_, Figures> {
        self.figures.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a commit, by which pages began to be pending, or ended.
    pub(super) fn set_totals(&self, range: &Range, waits: &[(PageId, Wait)]) {
        let mut figures = self.figures.write().unwrap_or_else(PoisonError::into_inner);
        figures.update(range, waits, Instant::now());
    }

    /// Once the range was opened anew.
    pub(super) fn set_totals_anew(&self, range: &Range) {
        self.figures.write().unwrap_or_else(PoisonError::into_inner).begin_again(range, Instant::now());
    }
}

/// A post of a range that waits or is being applied, as long as this is kept.
struct Posting {
    all: Arc<Mutex<BTreeSet<RangeId>>>,
    from: RangeId,
}

impl Posting {
    /// None where there is one already.
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

/// The index of the first order of an owner. Those of a later owner are greater, and none has so many that they meet.
pub(super) fn first_order(epoch: Epoch) -> u64 {
    (epoch.0 << ORDER_BITS) + 1
}

/// Why an answer of the range's threads does not come.
fn ended(range: RangeId, stopping: &AtomicBool) -> Tier1Error {
    if stopping.load(Ordering::Acquire) { PeerError::NotOwner(range).into() } else { Tier1Error::Stopping }
}
