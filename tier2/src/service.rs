//! Tier 2 as a service: a thread of its own that collects orders and makes passes.

use std::fs::File;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{MappingError, NODES_MAX, PARTITIONS_MAX};
use doppel_protocol::{
    IndexCommand, LoadReport, MappingApi, Pair, PartitionLookup, RebalanceOutcome, RebalanceRequest,
    SearchResult, Tier2Api,
};

use crate::cluster::Cluster;
use crate::error::Error;
use crate::index::Fetch;
use crate::migration::Migration;
use crate::open::REBALANCE;
use crate::rebalance_file::RebalanceRequests;
use crate::{load, open, pass, rebalance_file, rebuild};

/// Takes the answers of a pass. Called on the index's own thread, with nothing locked.
pub type ResultSink = Box<dyn Fn(Vec<SearchResult>) + Send + Sync>;

/// Settings of an index.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where its files are; made if it is not there.
    pub dir: PathBuf,
    /// How contents are compared.
    pub policy: Policy,
    /// Nodes, each with tables and files of its own.
    pub nodes: u32,
    /// Partitions wanted, on all nodes together; at least one for each. There is one until there are enough contents to
    /// learn a map from.
    pub partitions: u32,
    /// Sub-dictionaries of a length vector, N.
    pub dimensions: usize,
    /// Orders that make a pass start.
    pub batch_max: usize,
    /// How long the first order of a pass waits for more.
    pub batch_age: Duration,
    /// Threads that compare.
    pub threads: usize,
    /// Contents copied or dropped at a time when the mapping changes.
    pub step: usize,
}

impl Config {
    /// The defaults: one node, 16 partitions, 3 dimensions, passes of 5,000 orders or 50 ms, a thread per core.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>, policy: Policy) -> Self {
        Self {
            dir: dir.into(),
            policy,
            nodes: 1,
            partitions: 16,
            dimensions: 3,
            batch_max: 5_000,
            batch_age: Duration::from_millis(50),
            threads: thread::available_parallelism().map_or(1, usize::from),
            step: 128,
        }
    }

    /// Partitions wanted: at least one for each node.
    pub(crate) fn wanted(&self) -> u32 {
        self.partitions.max(self.nodes)
    }

    fn check(&self) -> Result<(), Error> {
        let settings = [
            ("partitions", self.partitions as usize),
            ("batch_max", self.batch_max),
            ("threads", self.threads),
            ("step", self.step),
        ];
        if let Some((name, _)) = settings.into_iter().find(|(_, value)| *value == 0) {
            return Err(Error::Zero(name));
        }
        if self.partitions as usize > PARTITIONS_MAX {
            return Err(MappingError::Partitions(self.partitions as usize).into());
        }
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return Err(MappingError::Nodes(self.nodes).into());
        }
        Ok(())
    }
}

/// The index, on one node or several.
pub struct Tier2 {
    pub(crate) shared: Arc<Shared>,
    orders: Sender<Order>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// What the callers and the worker share.
pub(crate) struct Shared {
    cluster: RwLock<Cluster>,
    /// The change of the plan that is under way. Taken before the cluster where both are.
    migration: Mutex<Option<Migration>>,
    /// What is requested of the mapping, until it is done. Stored as long as it is here.
    requests: Mutex<RebalanceRequests>,
    /// How the last of them ended.
    outcome: Mutex<Option<RebalanceOutcome>>,
    pub(crate) answer: ResultSink,
    /// Of the comparison; none for a single thread.
    pub(crate) pool: Option<rayon::ThreadPool>,
    pub(crate) stopping: AtomicBool,
    /// Orders handed over and not yet carried out.
    waiting: AtomicUsize,
    pub(crate) config: Config,
    /// Held for as long as the index is open.
    _lock: File,
}

pub(crate) enum Order {
    Commands(Vec<IndexCommand>),
    Hurry,
    /// There is something to do between passes.
    Wake,
    Stop,
}

impl Tier2 {
    /// Opens the index of `config.dir` and makes it that of `contents`, the contents of all live pages
    /// as tier 1 has them: what is missing is fetched, what is not among them is left out. Damaged files
    /// are made anew.
    ///
    /// `fetch` must not call the index, and gives the current signature of a page. `answer` takes what
    /// searches found.
    ///
    /// # Errors
    /// When a setting is out of range, the directory cannot be used, or another process uses it.
    pub fn open(
        config: Config,
        contents: &mut dyn Iterator<Item = (PageId, ContentHash)>,
        fetch: Fetch,
        answer: ResultSink,
    ) -> Result<Arc<Self>, Error> {
        let shared = Arc::new(Shared::open(config, contents, fetch, answer)?);
        let (orders, received) = mpsc::channel();
        let worker = {
            let shared = Arc::clone(&shared);
            let work = move || {
                // Without this thread nothing is ever decided; a restart makes the index anew.
                if panic::catch_unwind(AssertUnwindSafe(|| work(&shared, &received))).is_err() {
                    process::abort();
                }
            };
            thread::Builder::new().name("tier2".to_owned()).spawn(work)
        };
        let worker = Mutex::new(Some(worker.map_err(|e| Error::Threads(e.to_string()))?));
        Ok(Arc::new(Self { shared, orders, worker }))
    }

    /// Ends the index's thread and waits for it. A pass that has begun is broken off without an answer and
    /// orders that wait are dropped: tier 1 has them.
    pub fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // The worker is gone already if this fails.
        let _ = self.orders.send(Order::Stop);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last owner may be the answer itself, on the index's own thread.
        if let Some(worker) = worker.filter(|w| w.thread().id() != thread::current().id())
            && worker.join().is_err()
        {
            tracing::error!("the thread of tier 2 ended in a panic");
        }
    }

    pub(crate) fn order(&self, order: Order) -> Result<(), mpsc::SendError<Order>> {
        self.orders.send(order)
    }

    /// Memory of all columns and tables, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.shared.read().bytes()
    }
}

impl Drop for Tier2 {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Tier2Api for Tier2 {
    fn submit(&self, commands: Vec<IndexCommand>) {
        self.shared.waiting.fetch_add(commands.len(), Ordering::Relaxed);
        // After `stop` nobody receives: the orders are dropped, as those that were waiting.
        let _ = self.orders.send(Order::Commands(commands));
    }

    fn probe(&self, signature: &Signature) -> Vec<Pair> {
        pass::probe(&self.shared.read(), signature)
    }

    fn locate(&self, signature: &Signature) -> PartitionLookup {
        let plan = Arc::clone(&self.shared.read().plan);
        let lengths = plan.map().lexicon().lengths(signature);
        let mut probed_partitions = Vec::new();
        plan.map().probed_partitions(&lengths, &mut probed_partitions);
        let id = |number: u32| plan.assignments()[number as usize].id;
        probed_partitions.iter_mut().for_each(|probe| *probe = id(*probe));
        let home = id(plan.map().home(&lengths));
        PartitionLookup { home, lengths: lengths.as_slice().to_vec(), probed_partitions }
    }

    fn load(&self) -> LoadReport {
        load::report(&self.shared)
    }

    fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    fn mapping(&self) -> Option<&dyn MappingApi> {
        Some(self)
    }

    fn flush_batch(&self) {
        let _ = self.orders.send(Order::Hurry);
    }
}

impl Shared {
    pub(crate) fn open(
        config: Config,
        contents: &mut dyn Iterator<Item = (PageId, ContentHash)>,
        fetch: Fetch,
        answer: ResultSink,
    ) -> Result<Self, Error> {
        config.check()?;
        let pool = match config.threads {
            1 => None,
            threads => {
                let name = |i| format!("tier2-compare-{i}");
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
                Some(pool.map_err(|e| Error::Threads(e.to_string()))?)
            }
        };
        let open::Opened { cluster, requests, lock } = open::open(&config, contents, fetch)?;
        Ok(Self {
            cluster: RwLock::new(cluster),
            migration: Mutex::new(None),
            requests: Mutex::new(requests),
            outcome: Mutex::new(None),
            answer,
            pool,
            stopping: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            config,
            _lock: lock,
        })
    }

    /// Never held across a call to tier 1's `answer`.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Cluster> {
        self.cluster.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken by the worker alone (and by tests, which have none).
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Cluster> {
        self.cluster.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The change of the plan that is under way.
    pub(crate) fn migration(&self) -> MutexGuard<'_, Option<Migration>> {
        self.migration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is requested and not done.
    pub(crate) fn requested(&self) -> Option<RebalanceRequest> {
        self.requests().front().copied()
    }

    fn requests(&self) -> MutexGuard<'_, RebalanceRequests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the last request ended.
    pub(crate) fn outcome(&self) -> Option<RebalanceOutcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The first request is done, or not possible. One that is to be tried `again` is left for the next start.
    pub(crate) fn end_request(&self, outcome: RebalanceOutcome, again: bool) {
        let mut requests = self.requests();
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        requests.pop_front();
        let stored = (!again).then(|| rebalance_file::write(&self.config.dir.join(REBALANCE), &requests));
        if let Some(Err(error)) = stored {
            tracing::error!(%error, "a request that is done stays stored; the next start carries it out again");
        }
    }

    /// Stores a request and has it planned and carried out as soon as no other change is under way; false where there
    /// is a request already.
    pub(crate) fn request(&self, request: RebalanceRequest) -> Result<bool, Error> {
        let mut requests = self.requests();
        if !requests.is_empty() {
            return Ok(false);
        }
        let one = RebalanceRequests::from([request]);
        rebalance_file::write(&self.config.dir.join(REBALANCE), &one)?;
        *requests = one;
        Ok(true)
    }

    /// Writes what is in memory alone to the files.
    pub(crate) fn flush(&self) {
        self.write().nodes.iter_mut().for_each(|index| index.file.flush());
    }
}

/// The worker: collects orders by count or age, and makes passes, until it is stopped. Between them it changes the
/// mapping, one step after the other.
fn work(shared: &Shared, received: &Receiver<Order>) {
    let mut waiting: Vec<IndexCommand> = Vec::new();
    rebuild::maintain(shared, 0);
    while collect(shared, received, &mut waiting) {
        let batch_max = shared.config.batch_max;
        while !waiting.is_empty() && !shared.stopping.load(Ordering::Relaxed) {
            let rest = waiting.split_off(batch_max.min(waiting.len()));
            let batch = std::mem::replace(&mut waiting, rest);
            let orders = batch.len();
            pass::run(shared, batch);
            shared.waiting.fetch_sub(orders, Ordering::Relaxed);
            rebuild::maintain(shared, orders);
        }
    }
    shared.flush();
}

/// Waits until a pass is due; false when it is time to stop.
fn collect(shared: &Shared, received: &Receiver<Order>, waiting: &mut Vec<IndexCommand>) -> bool {
    let Config { batch_max, batch_age, .. } = shared.config;
    let mut deadline: Option<Instant> = None;
    while waiting.len() < batch_max {
        let order = match deadline {
            Some(deadline) if deadline <= Instant::now() => Err(RecvTimeoutError::Timeout),
            _ => match received.try_recv() {
                Ok(order) => Ok(order),
                Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
                // Nobody waits for this.
                Err(TryRecvError::Empty) if rebuild::work(shared) => {
                    thread::yield_now();
                    continue;
                }
                Err(TryRecvError::Empty) => match deadline {
                    None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                    Some(deadline) => {
                        received.recv_timeout(deadline.saturating_duration_since(Instant::now()))
                    }
                },
            },
        };
        match order {
            Ok(Order::Commands(commands)) => {
                waiting.extend(commands);
                deadline = deadline.or_else(|| Instant::now().checked_add(batch_age));
            }
            Ok(Order::Wake) => {}
            Ok(Order::Hurry) if waiting.is_empty() => (),
            Ok(Order::Hurry) | Err(RecvTimeoutError::Timeout) => return true,
            Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}
