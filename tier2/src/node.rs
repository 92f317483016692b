//! A node of tier 2. It stores partitions and searches them, and knows of the plan only the boxes that it
//! hosts.
//!
//! | module | responsibility |
//! |---|---|
//! | `orders` | puts and removals, each applied once |
//! | `batch`, `search` | batches of searches; one search, its findings, and how its cost stays low |
//! | `core` | tables and signatures together; storing the findings of a search; the load |
//! | `tables` | where each content is; which page of a content is compared |
//! | `partition` | the entries of a partition: columns, pages, candidate tables, families |
//! | `transfer` | export of entries that leave; ingestion of contents and entries that come |
//! | `feeding` | a range names everything that the node must store |
//! | `repeats` | pages that have to be searched for again |
//! | `signatures` | access to signatures: in a file of the node, in the store of tier 1, or fetched |
//! | `snapshot`, `scan` | filling the tables at a start, from a snapshot or from all signatures |
//! | `renewal` | rebuilding tables, refinement of crowded buckets, and compaction |
//! | `hosting` | partitions that come and go |
//! | `sample` | a sample of the contents, from which the router makes plans |
//!
//! Invariants:
//! - One call at a time changes the node. It holds the lock only for an entry or a few searches, so that a
//!   probe never waits for a batch.
//! - No lock is held during a call to tier 1.
//! - The node answers nothing before every range has fed it.
//! - The node uses no signature whose checksum is wrong.

pub(crate) mod batch;
pub(crate) mod core;
mod feeding;
mod hosting;
mod orders;
pub(crate) mod partition;
mod renewal;
mod repeats;
mod sample;
mod scan;
pub(crate) mod search;
pub(crate) mod signatures;
pub(crate) mod snapshot;
pub(crate) mod tables;
mod transfer;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use doppel_model::pairwise::Policy;
use doppel_model::{Epoch, Incarnation, NodeId, PlanVersion, RangeId};
use doppel_protocol::index_node::{
    AppliedState, CallContext, EntriesPage, EntriesRequest, HostingPlan, IndexNode, IngestAnswer,
    IngestBatch, NodeError, NodeLoadReport, OrderBatch, SampleAnswer, SampleRequest, SearchBatch,
    SearchOutcome,
};
use doppel_protocol::{LogPosition, PageRange, Repeat, SignatureSource, StoredSignatures};

use self::core::Core;
use crate::error::Error;
use feeding::Feedings;
use partition::buckets::CrowdingLimits;
use repeats::Repeats;
use search::interruption::InterruptedSearches;
use snapshot::{SnapshotMoments, SnapshotStatus};
use transfer::{Export, MovedCenters};

/// Name of a node's signature file.
pub(crate) const SIGNATURES: &str = "signatures.dat";

/// Settings with which a node is opened.
#[derive(Clone)]
pub(crate) struct NodeConfig {
    pub(crate) id: NodeId,
    /// Directory of the node. The node creates it if it does not exist.
    pub(crate) dir: PathBuf,
    pub(crate) policy: Policy,
    /// When a bucket of the candidate tables is crowded.
    pub(crate) crowding: CrowdingLimits,
    /// Incarnation with which the node begins. Every start of a node has a different one.
    pub(crate) incarnation: Incarnation,
    /// Threads that compare signatures. `None` if the calling thread compares.
    pub(crate) pool: Option<Arc<rayon::ThreadPool>>,
    /// Access to the signatures that tier 1 stores in this process. `None` if the node stores its signatures
    /// in a file of its own.
    pub(crate) stored: Option<Arc<dyn StoredSignatures>>,
}

/// A node in this process.
pub(crate) struct LocalNode {
    config: NodeConfig,
    /// Number of the present incarnation.
    incarnation: AtomicU64,
    source: Arc<dyn SignatureSource>,
    /// Locked by the one call that changes the node.
    change: Mutex<ChangeState>,
    core: RwLock<Core>,
    hosted: RwLock<HostingState>,
    repeats: Mutex<BTreeMap<RangeId, Repeats>>,
    interrupted: Mutex<InterruptedSearches>,
    saved: Mutex<SnapshotStatus>,
    stopping: AtomicBool,
}

/// State that the calls share which change the node.
#[derive(Default)]
struct ChangeState {
    /// Whether the tables have not been filled since the start. Filling them needs the partitions of the
    /// first [`HostingPlan`].
    is_unfilled: bool,
    /// Export of the entries that leave this node, if an export is under way.
    export: Option<Export>,
    /// Centers among the entries that other nodes have sent.
    moved_centers: MovedCenters,
    feedings: Feedings,
}

/// What the router told the node, and how far each range has come.
#[derive(Debug, Clone, Default)]
struct HostingState {
    /// Version of the plan. `None` until the first call of `host`.
    plan: Option<PlanVersion>,
    ranges: Vec<PageRange>,
    /// Epoch and index of the last applied order, for each range that has fed the node.
    positions: BTreeMap<RangeId, (Epoch, u64)>,
    /// Moments of the restored snapshot, for the ranges that have not fed the node since.
    resumed: SnapshotMoments,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostingState {
    /// The ranges that have not fed the node.
    fn unfed_ranges(&self) -> impl Iterator<Item = RangeId> {
        self.ranges.iter().map(|one| one.range).filter(|range| !self.positions.contains_key(range))
    }
}

impl LocalNode {
    /// Opens the files of a node. It has no partitions until a router tells it what to host.
    ///
    /// # Errors
    /// Fails if the directory cannot be used.
    pub(crate) fn open(config: NodeConfig, source: Arc<dyn SignatureSource>) -> Result<Self, Error> {
        let core = scan::open(&config)?;
        Ok(Self {
            incarnation: AtomicU64::new(config.incarnation.0),
            config,
            source,
            change: Mutex::new(ChangeState { is_unfilled: true, ..ChangeState::default() }),
            core: RwLock::new(core),
            hosted: RwLock::default(),
            repeats: Mutex::default(),
            interrupted: Mutex::default(),
            saved: Mutex::default(),
            stopping: AtomicBool::new(false),
        })
    }

    /// Interrupts running calls. From now on, the node only reports its state and writes a snapshot.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Writes signatures that are only in memory to the file, and waits for a snapshot that is being synced.
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

    /// Pages of a range that have to be searched for again.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn waiting_repeats(&self, range: RangeId) -> Vec<Repeat> {
        self.with_repeats(range, |repeats| repeats.after(0))
    }

    /// Number of interrupted searches that were not continued yet.
    #[cfg(test)]
    pub(crate) fn interrupted_searches(&self) -> usize {
        lock(&self.interrupted).len()
    }

    /// Forgets repeats up to this number, because their range has taken them.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn forget_repeats(&self, range: RangeId, through: u64) {
        self.with_repeats(range, |repeats| repeats.forget(through));
    }

    /// Gives a test access to the tables and signatures.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn with_core(&self, work: impl FnOnce(&mut Core)) {
        work(&mut self.write());
    }

    /// Locks the tables for reading. Never held during a call to tier 1.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tables for writing. The caller must hold `change`.
    fn write(&self) -> RwLockWriteGuard<'_, Core> {
        self.core.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> MutexGuard<'_, ChangeState> {
        lock(&self.change)
    }

    fn hosted(&self) -> RwLockReadGuard<'_, HostingState> {
        self.hosted.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn hosted_mut(&self) -> RwLockWriteGuard<'_, HostingState> {
        self.hosted.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_running(&self) -> Result<(), NodeError> {
        let stops = self.stopping.load(Ordering::Relaxed);
        if stops { Err(NodeError::Unavailable("it is stopping".to_owned())) } else { Ok(()) }
    }

    fn incarnation(&self) -> Incarnation {
        Incarnation(self.incarnation.load(Ordering::Acquire))
    }

    /// Refuses a call for another incarnation or plan, or while the node is stopping.
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

    /// Like [`check`](Self::check), but also refuses a call before every range has fed the node.
    fn check_fed(&self, call: CallContext) -> Result<(), NodeError> {
        self.check(call)?;
        self.check_all_fed()
    }

    fn check_all_fed(&self) -> Result<(), NodeError> {
        self.hosted().unfed_ranges().next().map_or(Ok(()), |range| Err(NodeError::NotFed(range)))
    }

    /// Whether entries are being exported, or partitions come or go.
    fn is_changing(&self, change: &ChangeState) -> bool {
        change.export.is_some() || self.read().tables.is_changing()
    }

    fn applied_state(&self, range: RangeId) -> AppliedState {
        let (position, resumed) = {
            let hosted = self.hosted();
            (hosted.positions.get(&range).copied(), hosted.resumed.get(&range).copied())
        };
        let contents = self.read().tables.len() as u64;
        let saved = self.saved_moment(range);
        let has_repeats = self.has_repeats();
        AppliedState { incarnation: self.incarnation(), position, contents, resumed, saved, has_repeats }
    }
}

/// Refuses a call that has more items than the limit.
fn check_limit(given: usize, most: usize) -> Result<(), NodeError> {
    if given > most { Err(NodeError::TooMuch { given, most }) } else { Ok(()) }
}

impl IndexNode for LocalNode {
    fn host(&self, hosting: HostingPlan) -> Result<Incarnation, NodeError> {
        self.check_running()?;
        self.take_hosting(hosting)
    }

    fn applied(&self, range: RangeId) -> Result<AppliedState, NodeError> {
        Ok(self.applied_state(range))
    }

    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<AppliedState, NodeError> {
        let mut change = self.change();
        self.check_fed(call)?;
        let range = batch.range;
        self.carry_out(batch)?;
        self.maintain(&mut change)?;
        Ok(self.applied_state(range))
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

    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<IngestAnswer, NodeError> {
        let mut change = self.change();
        self.check(call)?;
        self.ingest_batch(&mut change, batch)
    }

    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError> {
        let mut change = self.change();
        self.check(call)?;
        let more = self.drop_outgoing(limit);
        if !more {
            self.maintain(&mut change)?;
        }
        Ok(more)
    }

    /// Works also while the node is stopping, because its contents do not change any more.
    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError> {
        let change = self.change();
        self.check_context(call)?;
        self.check_all_fed()?;
        self.write_snapshot(&change, moments.into_iter().collect())
    }

    fn load(&self, call: CallContext) -> Result<NodeLoadReport, NodeError> {
        self.check(call)?;
        Ok(core::load::of(&self.read()))
    }

    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<SampleAnswer, NodeError> {
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
