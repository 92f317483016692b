//! The router of tier 2. It owns the plan, and calls nodes only through [`IndexNode`].
//!
//! | module | responsibility |
//! |---|---|
//! | `worker` | collects orders by count or age, and makes passes |
//! | `position` | which orders of a range are accepted, and which cannot be sent again |
//! | `pass` | orders under way: puts and removals, waiting searches, rounds, answers; continues after a failure |
//! | `feed` | tells a node which contents it must store |
//! | `snapshots` | decides when nodes write snapshots for the next start |
//! | `probe` | searches for a content that is not stored |
//! | `scheduler`, `requests` | choose the next plan step: migration, request of an operator, or load |
//! | `migration` | changes from one plan to the next |
//! | `planning` | makes the next plan: learns a map from a sample, or follows the load |
//! | `start`, `persistence` | the plan at a start; the stored plan and requests |
//! | `load` | load per partition |
//!
//! An [`IndexState`] stores the plan and the requests: in files, or in rows of the range whose owner runs the
//! router. A router that was replaced by another one stores nothing, and tells no node what to host.
//!
//! Invariants:
//! - An order is done once every node has acknowledged it. A failed order is sent again before any later one.
//! - A page is stored before any search of its pass starts (G4).
//! - Each round of a pass uses one plan.
//! - The router calls a node only in the incarnation that was fed.
//! - A plan is stored before any node hosts it.

mod error;
mod feed;
mod load;
pub(crate) mod migration;
mod pass;
pub(crate) mod persistence;
mod planning;
mod position;
mod probe;
mod requests;
pub(crate) mod scheduler;
mod snapshot_schedule;
mod start;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use doppel_model::{Incarnation, NodeId, PartitionId, PlanVersion, RangeId, random_number};
use doppel_partitioning::{PartitionIndex, Plan};
use doppel_protocol::index_node::{
    AppliedState, CallContext, HostedPartition, IndexNode, IngestAnswer, NodeError,
};
use doppel_protocol::{ContentSource, IndexState, SourceError};

pub(crate) use error::RouterError;
pub(crate) use pass::Pass;
pub(crate) use worker::{RouterMessage, run_worker};

use crate::config::Config;
use crate::error::Error;
use migration::Migration;
use persistence::stored_plan::LearningBasis;
use position::RangePosition;
use requests::Requests;
use snapshot_schedule::Snapshots;
use start::InitialState;

/// The plan, the nodes, and everything that is under way between them.
pub(crate) struct Router {
    pub(crate) config: Config,
    /// Random number of this router. A node that sees another number forgets what the earlier router told it.
    session: u64,
    nodes: Vec<NodeHandle>,
    source: Arc<dyn ContentSource>,
    /// Stores the plan and the requests.
    state: Arc<dyn IndexState>,
    plan: RwLock<Arc<Plan>>,
    map_history: Mutex<MapHistory>,
    counts: SearchCounts,
    /// The change of the plan that is under way. A thread that locks both locks this before `requests`.
    migration: Mutex<Option<Migration>>,
    requests: Mutex<Requests>,
    positions: Mutex<BTreeMap<RangeId, RangePosition>>,
    snapshots: Mutex<Snapshots>,
    /// Whether a plan may be stored that did not become the present one.
    plan_is_unsure: AtomicBool,
    /// Orders that were accepted and not yet carried out.
    waiting: AtomicUsize,
    /// Orders that were carried out since the start.
    done: AtomicU64,
    /// Whether nodes may have pages to search for again that no pass will hand over: their range could not
    /// take the pages before, or the nodes were just fed.
    owes_repeats: AtomicBool,
    /// Number of steps that have failed since the last success.
    failures: AtomicUsize,
    /// Whether the worker thread had nothing to do in its last step.
    resting: AtomicBool,
    stopping: AtomicBool,
}

/// A node as the router knows it.
struct NodeHandle {
    id: NodeId,
    node: Arc<dyn IndexNode>,
    /// The incarnation that was fed. `None` if the node has to be told first what to host.
    incarnation: Mutex<Option<Incarnation>>,
    /// Number of contents in its serving partitions, as last reported.
    contents: AtomicU64,
    /// Whether the node may have partitions that no plan assigns to it.
    drops: AtomicBool,
    /// Whether the node may have pages to search for again.
    repeats: AtomicBool,
}

/// How the present map came about.
#[derive(Debug, Clone, Copy, Default)]
struct MapHistory {
    /// Basis on which the map was learned.
    learned: Option<LearningBasis>,
    /// Number of contents when the load was last checked and no better plan was found.
    contents_when_planned: u64,
    /// Contents that recent plans have moved.
    moved: RecentMoves,
}

/// Contents that changed their node since the collection had `since` contents.
#[derive(Debug, Clone, Copy, Default)]
struct RecentMoves {
    since: u64,
    contents: u64,
}

/// Searches made under the present plan, and the partitions and nodes that they were sent to.
#[derive(Debug, Default)]
struct SearchCounts {
    searches: AtomicU64,
    fan_out: AtomicU64,
    node_fan_out: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Router {
    /// Opens a router with the stored plan, or with the initial one. The nodes have to be
    /// [fed](Self::feed_lost_nodes) before they answer.
    ///
    /// # Errors
    /// Fails if no plan can be made, or if `state` cannot tell now which plan it stores.
    pub(crate) fn open(
        config: Config,
        nodes: Vec<Arc<dyn IndexNode>>,
        source: Arc<dyn ContentSource>,
        state: Arc<dyn IndexState>,
    ) -> Result<Self, Error> {
        let InitialState { plan, learned, requests } = start::load(&config, &*state)?;
        let handle = |(id, node)| NodeHandle {
            id: NodeId(id),
            node,
            incarnation: Mutex::default(),
            contents: AtomicU64::new(0),
            drops: AtomicBool::new(false),
            repeats: AtomicBool::new(true),
        };
        let initial_plan = version(&plan);
        Ok(Self {
            nodes: (0..).zip(nodes).map(handle).collect(),
            config,
            session: random_number(),
            source,
            state,
            plan: RwLock::new(Arc::new(plan)),
            map_history: Mutex::new(MapHistory { learned, ..MapHistory::default() }),
            counts: SearchCounts::default(),
            migration: Mutex::default(),
            requests: Mutex::new(requests),
            positions: Mutex::default(),
            snapshots: Mutex::new(Snapshots::new(initial_plan)),
            plan_is_unsure: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            owes_repeats: AtomicBool::new(false),
            failures: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        })
    }

    /// Random number of this router, which no other router has.
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// The plan that is served.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Interrupts passes and steps that are under way.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn check_running(&self) -> Result<(), RouterError> {
        if self.is_stopping() { Err(RouterError::Stopping) } else { Ok(()) }
    }

    fn migration(&self) -> MutexGuard<'_, Option<Migration>> {
        lock(&self.migration)
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        lock(&self.requests)
    }

    fn map_history(&self) -> MapHistory {
        *lock(&self.map_history)
    }

    fn handle(&self, node: NodeId) -> &NodeHandle {
        &self.nodes[node.index()]
    }

    /// Calls a node under a plan, in the incarnation that was fed.
    fn call<T>(
        &self,
        node: NodeId,
        plan: &Plan,
        call: impl FnOnce(&dyn IndexNode, CallContext) -> Result<T, NodeError>,
    ) -> Result<T, RouterError> {
        self.check_running()?;
        let handle = self.handle(node);
        let Some(incarnation) = *lock(&handle.incarnation) else {
            return Err(RouterError::Node(node, NodeError::Unavailable("it is still being fed".to_owned())));
        };
        let answer = call(&*handle.node, CallContext { plan: version(plan), incarnation });
        answer.map_err(|error| {
            if handle.mark_lost_on(&error, incarnation) {
                tracing::warn!(%node, %error, "a node has lost its state; feeding it again");
            }
            RouterError::Node(node, error)
        })
    }

    /// Marks nodes as lost that were started anew, or that lack orders which cannot be sent again.
    pub(crate) fn check_nodes(&self) {
        let ranges = self.ranges();
        for (handle, range) in self.nodes.iter().flat_map(|handle| ranges.iter().map(move |r| (handle, *r))) {
            // A node that is marked already need not be asked.
            let Some(known) = *lock(&handle.incarnation) else { continue };
            let Ok(applied) = handle.node.applied(range) else { continue };
            if applied.incarnation != known || self.needs_feeding(range, &applied) {
                *lock(&handle.incarnation) = None;
            }
        }
    }

    /// Whether a node has to be told what to host.
    pub(crate) fn has_lost_nodes(&self) -> bool {
        self.nodes.iter().any(|handle| lock(&handle.incarnation).is_none())
    }

    /// Number of contents on each node, as last reported.
    fn node_contents(&self) -> Vec<u64> {
        self.nodes.iter().map(|handle| handle.contents.load(Ordering::Relaxed)).collect()
    }

    /// Number of contents on all nodes.
    fn contents(&self) -> u64 {
        self.node_contents().iter().sum()
    }

    /// The node of a partition, and its id.
    fn assignment(plan: &Plan, partition: PartitionIndex) -> (NodeId, PartitionId) {
        let assignment = plan.assignments()[partition.index()];
        (assignment.node, assignment.id)
    }

    /// Hands over to their ranges the pages that nodes report as to be searched for again, and has the nodes
    /// forget them.
    ///
    /// # Errors
    /// Fails if a node or tier 1 does not answer. Then the nodes keep the pages.
    pub(crate) fn deliver_repeats(&self) -> Result<(), RouterError> {
        let (plan, ranges) = (self.plan(), self.ranges());
        for handle in self.nodes.iter().filter(|handle| handle.repeats.load(Ordering::Relaxed)) {
            // Pages that are added from now on set the flag again.
            handle.repeats.store(false, Ordering::Relaxed);
            for range in &ranges {
                let taken = self.deliver_repeats_to(*range, handle, &plan);
                if taken.is_err() {
                    handle.repeats.store(true, Ordering::Relaxed);
                }
                match taken {
                    // The node keeps the pages. Other ranges need not wait for this one.
                    Err(RouterError::Source(SourceError::Unavailable(why))) => {
                        tracing::debug!(
                            range = range.0,
                            why,
                            "a range cannot take its repeats; trying later"
                        );
                        self.owes_repeats.store(true, Ordering::Relaxed);
                    }
                    taken => taken?,
                }
            }
        }
        Ok(())
    }

    /// Hands over again the pages that a range could not take before.
    pub(super) fn deliver_owed_repeats(&self) {
        if self.owes_repeats.swap(false, Ordering::Relaxed)
            && let Err(error) = self.deliver_repeats()
        {
            self.owes_repeats.store(true, Ordering::Relaxed);
            tracing::debug!(%error, "cannot hand over repeats of nodes; trying later");
        }
    }

    fn deliver_repeats_to(&self, range: RangeId, from: &NodeHandle, plan: &Plan) -> Result<(), RouterError> {
        loop {
            let repeats = self.call(from.id, plan, |node, call| node.repeats(call, range, 0))?;
            let Some(last) = repeats.last().map(|repeat| repeat.number) else { return Ok(()) };
            self.source.repeat(range, repeats)?;
            self.call(from.id, plan, |node, call| node.acknowledge_repeats(call, range, last))?;
        }
    }
}

impl SearchCounts {
    fn add(&self, partitions: u64, nodes: u64) {
        self.searches.fetch_add(1, Ordering::Relaxed);
        self.fan_out.fetch_add(partitions, Ordering::Relaxed);
        self.node_fan_out.fetch_add(nodes, Ordering::Relaxed);
    }

    fn reset(&self) {
        for count in [&self.searches, &self.fan_out, &self.node_fan_out] {
            count.store(0, Ordering::Relaxed);
        }
    }
}

impl NodeHandle {
    fn record_applied(&self, applied: &AppliedState) {
        self.contents.store(applied.contents, Ordering::Relaxed);
        self.repeats.fetch_or(applied.has_repeats, Ordering::Relaxed);
    }

    /// Notes that the node has taken in contents. Its pages may have changed, so it may have pages to search
    /// for again.
    fn record_ingested(&self, ingested: &IngestAnswer) {
        self.contents.store(ingested.contents, Ordering::Relaxed);
        self.repeats.store(true, Ordering::Relaxed);
    }

    /// Marks the node as lost if the error shows that the node is not in the state that the router assumes.
    /// The mark is not set if another thread has fed the node since the call. Returns whether this call has
    /// set the mark.
    fn mark_lost_on(&self, error: &NodeError, called: Incarnation) -> bool {
        let lost = matches!(
            error,
            NodeError::WrongIncarnation { .. }
                | NodeError::NotFed(_)
                | NodeError::Gap { .. }
                | NodeError::NoPartition(_)
        );
        let mut present = lock(&self.incarnation);
        // Another thread may have fed the node meanwhile.
        let lost = lost && *present == Some(called);
        if lost {
            *present = None;
        }
        lost
    }
}

fn version(plan: &Plan) -> PlanVersion {
    PlanVersion(plan.map().version())
}

/// The partitions that a plan assigns to a node.
fn hosted(plan: &Plan, node: NodeId) -> Vec<HostedPartition> {
    let all = plan.assignments().iter().zip(plan.map().bounds());
    let here = all.filter(|(assignment, _)| assignment.node == node);
    here.map(|(assignment, bounds)| HostedPartition { id: assignment.id, bounds: *bounds }).collect()
}
