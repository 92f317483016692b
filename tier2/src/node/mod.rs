//! A node of tier 2: it has partitions and searches them, and knows no plan beyond the boxes it is told to host.
//!
//! | module | what |
//! |---|---|
//! | `orders` | puts and removals, each applied once |
//! | `batch`, `search`, `found` | a batch of searches; one search: why its cost does not grow with a cluster |
//! | `interrupted`, `decoded` | searches that have cost as much as they may; signatures that a batch reads once |
//! | `core`, `learning` | tables and signatures together; what they learn from a search |
//! | `tables`, `roles`, `partition` | which content is where; who is compared for its copies |
//! | `columns`, `pages`, `bands`, `buckets` | what a partition is made of |
//! | `export`, `ingest` | entries that leave, and what is taken in |
//! | `feeding` | a range tells everything that the node must have |
//! | `repeats` | pages that are to be searched for again |
//! | `signatures`, `file` | where signatures are: in a file of the node, or where tier 1 keeps them |
//! | `snapshot`, `scan` | the start: tables as they were, or made of all signatures |
//! | `fetched` | signatures that are not there |
//! | `renewal`, `hosting`, `sample`, `load` | tables made anew and compaction; partitions that come and go; what is told |
//!
//! Invariants: one call at a time changes the node, and the lock is held for an entry or a few searches of it, so that a
//! probe never waits for a batch; no lock is held while tier 1 is asked; before every range has told what there is,
//! nothing is answered; no signature is used that does not check.

pub(crate) mod bands;
pub(crate) mod batch;
pub(crate) mod buckets;
pub(crate) mod columns;
pub(crate) mod core;
mod cursor;
mod decoded;
mod export;
mod feeding;
mod fetched;
pub(crate) mod file;
mod found;
mod hosting;
mod ingest;
mod interrupted;
mod learning;
mod load;
mod local_index;
mod orders;
pub(crate) mod pages;
pub(crate) mod partition;
mod renewal;
mod repeats;
mod roles;
mod sample;
mod scan;
mod search;
pub(crate) mod signatures;
pub(crate) mod snapshot;
pub(crate) mod tables;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use doppel_model::pairwise::Policy;
use doppel_model::{Epoch, Incarnation, NodeId, PlanVersion, RangeId};
use doppel_protocol::index_node::{
    Applied, CallContext, EntriesPage, EntriesRequest, Hosting, IndexNode, IngestBatch, Ingested, NodeError,
    NodeLoad, OrderBatch, SampleRequest, Sampled, SearchBatch, SearchOutcome,
};
use doppel_protocol::{LogPosition, PageRange, Repeat, SignatureSource, StoredSignatures};

use self::core::Core;
use crate::error::Error;
use export::Export;
use feeding::Feedings;
use ingest::Origins;
use interrupted::InterruptedSearches;
use repeats::Repeats;
use snapshot::{Moments, Saved};

/// The name of a node's signature file.
pub(crate) const SIGNATURES: &str = "signatures.dat";

/// What a node is opened with.
#[derive(Clone)]
pub(crate) struct NodeConfig {
    pub(crate) id: NodeId,
    /// Where its file is; made if it is not there.
    pub(crate) dir: PathBuf,
    pub(crate) policy: Policy,
    /// The first incarnation: another one for every start.
    pub(crate) incarnation: Incarnation,
    /// Of the comparison; none for a single thread.
    pub(crate) pool: Option<Arc<rayon::ThreadPool>>,
    /// Where tier 1 keeps its signatures, in the same process; none for a file of its own.
    pub(crate) stored: Option<Arc<dyn StoredSignatures>>,
}

/// A node in this process.
pub(crate) struct LocalNode {
    config: NodeConfig,
    /// The number of the present incarnation.
    incarnation: AtomicU64,
    source: Arc<dyn SignatureSource>,
    /// Held by the one call that changes the node.
    change: Mutex<Change>,
    core: RwLock<Core>,
    hosted: RwLock<Hosted>,
    repeats: Mutex<BTreeMap<RangeId, Repeats>>,
    interrupted: Mutex<InterruptedSearches>,
    saved: Mutex<Saved>,
    stopping: AtomicBool,
}

/// What the calls that change the node know of each other.
#[derive(Default)]
struct Change {
    /// The signatures from before this start, until it is known what they are for.
    unread: bool,
    /// Entries that leave.
    export: Option<Export>,
    /// Entries that came.
    origins: Origins,
    feedings: Feedings,
}

/// What the node was told.
#[derive(Debug, Clone, Default)]
struct Hosted {
    /// None before it was told anything.
    plan: Option<PlanVersion>,
    ranges: Vec<PageRange>,
    /// The last order applied of each range that has fed the node.
    positions: BTreeMap<RangeId, (Epoch, u64)>,
    /// The moments of the snapshot that was taken up, of the ranges that have not fed the node since.
    resumed: Moments,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hosted {
    /// The ranges that have not fed the node.
    fn unfed_ranges(&self) -> impl Iterator<Item = RangeId> {
        self.ranges.iter().map(|one| one.range).filter(|range| !self.positions.contains_key(range))
    }
}

impl LocalNode {
    /// Opens the files of a node. It has nothing until it is told what to host.
    ///
    /// # Errors
    /// When the directory cannot be used.
    pub(crate) fn open(config: NodeConfig, source: Arc<dyn SignatureSource>) -> Result<Self, Error> {
        let core = scan::open(&config)?;
        Ok(Self {
            incarnation: AtomicU64::new(config.incarnation.0),
            config,
            source,
            change: Mutex::new(Change { unread: true, ..Change::default() }),
            core: RwLock::new(core),
            hosted: RwLock::default(),
            repeats: Mutex::default(),
            interrupted: Mutex::default(),
            saved: Mutex::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// Breaks off what is being done. From now on only its state is told and a snapshot written.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Writes signatures that are in memory alone to the file, and waits for a snapshot that is on its way.
    pub(crate) fn flush(&self) {
        let _change = self.change();
        if let Some(file) = self.write().signatures.own_mut() {
            file.flush();
        }
        self.finish_snapshot();
    }

    /// Memory of all columns and tables, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.read().tables.bytes()
    }

    /// Pages of a range that are to be searched for again.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn waiting_repeats(&self, range: RangeId) -> Vec<Repeat> {
        self.with_repeats(range, |repeats| repeats.after(0))
    }

    /// Searches that were interrupted and not continued yet.
    #[cfg(test)]
    pub(crate) fn interrupted_searches(&self) -> usize {
        lock(&self.interrupted).len()
    }

    /// They were taken.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn forget_repeats(&self, range: RangeId, through: u64) {
        self.with_repeats(range, |repeats| repeats.forget(through));
    }

    /// Reaches into the node.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn with_core(&self, work: impl FnOnce(&mut Core)) {
        work(&mut self.write());
    }

    /// Never held across a call to tier 1.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken by whoever holds `change`.
    fn write(&self) -> RwLockWriteGuard<'_, Core> {
        self.core.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> MutexGuard<'_, Change> {
        lock(&self.change)
    }

    fn hosted(&self) -> RwLockReadGuard<'_, Hosted> {
        self.hosted.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn hosted_mut(&self) -> RwLockWriteGuard<'_, Hosted> {
        self.hosted.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_running(&self) -> Result<(), NodeError> {
        let stops = self.stopping.load(Ordering::Relaxed);
        if stops { Err(NodeError::Unavailable("it is stopping".to_owned())) } else { Ok(()) }
    }

    fn incarnation(&self) -> Incarnation {
        Incarnation(self.incarnation.load(Ordering::Acquire))
    }

    /// Whether the caller means this life of the node, and follows the plan that it was told.
    fn check(&self, call: CallContext) -> Result<(), NodeError> {
        self.check_running()?;
        self.check_context(call)
    }

    fn check_context(&self, call: CallContext) -> Result<(), NodeError> {
        let present = self.incarnation();
        if call.incarnation != present {
            return Err(NodeError::WrongIncarnation { present });
        }
        match self.hosted().plan {
            Some(plan) if plan == call.plan => Ok(()),
            plan => Err(NodeError::StalePlan { present: plan.unwrap_or_default() }),
        }
    }

    /// The same, and whether it knows all that it should have.
    fn check_fed(&self, call: CallContext) -> Result<(), NodeError> {
        self.check(call)?;
        self.check_knows_all()
    }

    fn check_knows_all(&self) -> Result<(), NodeError> {
        self.hosted().unfed_ranges().next().map_or(Ok(()), |range| Err(NodeError::NotFed(range)))
    }

    /// Whether entries are on their way, or partitions come or go.
    fn is_changing(&self, change: &Change) -> bool {
        change.export.is_some() || self.read().tables.is_changing()
    }

    fn state_of(&self, range: RangeId) -> Applied {
        let (position, resumed) = {
            let hosted = self.hosted();
            (hosted.positions.get(&range).copied(), hosted.resumed.get(&range).copied())
        };
        let contents = self.read().tables.len() as u64;
        let saved = self.saved_moment(range);
        let has_repeats = self.has_repeats();
        Applied { incarnation: self.incarnation(), position, contents, resumed, saved, has_repeats }
    }
}

fn bounded(given: usize, most: usize) -> Result<(), NodeError> {
    if given > most { Err(NodeError::TooMuch { given, most }) } else { Ok(()) }
}

impl IndexNode for LocalNode {
    fn host(&self, hosting: Hosting) -> Result<Incarnation, NodeError> {
        self.check_running()?;
        self.take_hosting(hosting)
    }

    fn applied(&self, range: RangeId) -> Result<Applied, NodeError> {
        Ok(self.state_of(range))
    }

    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<Applied, NodeError> {
        let mut change = self.change();
        self.check_fed(call)?;
        let range = batch.range;
        self.carry_out(batch)?;
        self.maintain(&mut change)?;
        Ok(self.state_of(range))
    }

    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError> {
        if batch.pass.is_none() {
            self.check_fed(call)?;
            return self.search_batch(call, batch);
        }
        let mut change = self.change();
        self.check_fed(call)?;
        let searched = self.search_batch(call, batch)?;
        self.maintain(&mut change)?;
        Ok(searched)
    }

    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError> {
        let mut change = self.change();
        self.check_fed(call)?;
        self.export(&mut change.export, request)
    }

    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<Ingested, NodeError> {
        let mut change = self.change();
        self.check(call)?;
        self.take_in(&mut change, batch)
    }

    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError> {
        let mut change = self.change();
        self.check(call)?;
        let more = self.drop_some(limit);
        if !more {
            self.maintain(&mut change)?;
        }
        Ok(more)
    }

    /// Also while the node is stopping: then nothing is changed any more.
    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError> {
        let change = self.change();
        self.check_context(call)?;
        self.check_knows_all()?;
        self.write_snapshot(&change, moments.into_iter().collect())
    }

    fn load(&self, call: CallContext) -> Result<NodeLoad, NodeError> {
        self.check(call)?;
        Ok(load::of(&self.read()))
    }

    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<Sampled, NodeError> {
        self.check_fed(call)?;
        sample::of(self, request)
    }

    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError> {
        self.check(call)?;
        Ok(self.with_repeats(range, |repeats| repeats.after(after)))
    }

    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError> {
        self.check(call)?;
        self.with_repeats(range, |repeats| repeats.forget(through));
        Ok(())
    }
}
