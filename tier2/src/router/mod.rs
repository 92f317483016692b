//! The router of tier 2: it has the plan, and sees the nodes through [`IndexNode`] alone.
//!
//! | module | what |
//! |---|---|
//! | `worker` | collects orders by count or age, makes passes |
//! | `position` | which orders are accepted, and which are not sent any more |
//! | `pass` | orders that are under way: store, search, answer; goes on where a failure left it |
//! | `storing`, `search_queue`, `round` | puts and removals; searches that wait, by client; searches that are made together |
//! | `feed` | tells a node that was started anew what it must have |
//! | `snapshots` | when the nodes write what they have for the next start |
//! | `probe` | a content that is not stored |
//! | `scheduler`, `requests` | what changes the mapping next: what was begun, an operator's request, the load |
//! | `migration` | from one plan to the next while everything goes on |
//! | `planning`, `learn`, `sample` | the next plan |
//! | `start`, `stored_plan`, `stored_requests` | the plan of a start; what is kept for the next one |
//! | `load` | load per partition |
//!
//! What is kept is in files, or in rows of the range that the router sits with: it has an [`IndexState`]. A router that has lost
//! its place to another one stores nothing there, and tells no node what to have.
//!
//! Invariants: an order is done when every node has acknowledged it, and one that fails is sent again before any that
//! follows it; a page is stored before anything of its pass is searched for (G4); a pass is made under one plan; a node
//! is called only in the incarnation that was fed; a plan is kept before any node has it.

mod error;
mod feed;
mod learn;
mod load;
pub(crate) mod migration;
mod pass;
mod planning;
mod position;
mod probe;
mod requests;
mod round;
mod sample;
pub(crate) mod scheduler;
mod search_queue;
mod snapshots;
mod start;
pub(crate) mod stored_plan;
pub(crate) mod stored_requests;
mod storing;
mod worker;

#[cfg(any(test, feature = "simulation"))]
pub(crate) mod any_plan;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use doppel_model::{Incarnation, NodeId, PartitionId, PlanVersion, RangeId, random_number};
use doppel_partitioning::{PartitionIndex, Plan};
use doppel_protocol::index_node::{Applied, CallContext, HostedPartition, IndexNode, Ingested, NodeError};
use doppel_protocol::{ContentSource, IndexState, SourceError};

pub(crate) use error::RouterError;
pub(crate) use pass::Pass;
pub(crate) use worker::{Message, work};

use crate::config::Config;
use crate::error::Error;
use migration::Migration;
use position::Position;
use requests::Requests;
use snapshots::Snapshots;
use stored_plan::LearnedFrom;

/// The plan, the nodes, and what is under way between them.
pub(crate) struct Router {
    pub(crate) config: Config,
    /// Another one for every router, so that nodes forget what an earlier one has told them.
    session: u64,
    nodes: Vec<Handle>,
    source: Arc<dyn ContentSource>,
    /// Where the plan and the requests are kept.
    state: Arc<dyn IndexState>,
    plan: RwLock<Arc<Plan>>,
    mapped: Mutex<Mapped>,
    counts: Counts,
    /// The change of the plan that is under way. Taken before the requests where both are.
    migration: Mutex<Option<Migration>>,
    requests: Mutex<Requests>,
    positions: Mutex<BTreeMap<RangeId, Position>>,
    snapshots: Mutex<Snapshots>,
    /// A plan that did not follow may be kept all the same.
    plan_is_unsure: AtomicBool,
    /// Orders handed over and not yet carried out.
    waiting: AtomicUsize,
    /// Orders carried out since the start.
    done: AtomicU64,
    /// A range was not there to take what nodes have for it.
    owes_repeats: AtomicBool,
    /// Steps that failed, since the last one that was made.
    failures: AtomicUsize,
    /// The thread has nothing to do.
    resting: AtomicBool,
    stopping: AtomicBool,
}

/// A node as the router knows it.
struct Handle {
    id: NodeId,
    node: Arc<dyn IndexNode>,
    /// The incarnation that was fed; none where the node has to be told first what it has.
    incarnation: Mutex<Option<Incarnation>>,
    /// Contents of its serving partitions, when they were last told.
    contents: AtomicU64,
    /// It may have something that no plan says it has.
    drops: AtomicBool,
    /// It may have pages that are to be searched for again.
    repeats: AtomicBool,
}

/// How the present map came about.
#[derive(Debug, Clone, Copy, Default)]
struct Mapped {
    /// When and for what it was learned.
    learned: Option<LearnedFrom>,
    /// Contents when a plan was last sought for the load, and none was found.
    contents_when_planned: u64,
    /// What recent plans for the load have moved.
    moved: Moved,
}

/// Contents that changed their node since there were `since` contents.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    since: u64,
    contents: u64,
}

/// Searches made under the present plan, and partitions and nodes they were sent to.
#[derive(Debug, Default)]
struct Counts {
    searches: AtomicU64,
    fan_out: AtomicU64,
    node_fan_out: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Router {
    /// Takes the plan that is kept, or the one to begin with. The nodes have to be [fed](Self::feed_lost) before they answer.
    ///
    /// # Errors
    /// When the plan cannot be made, or it cannot be known now which one is kept.
    pub(crate) fn open(
        config: Config,
        nodes: Vec<Arc<dyn IndexNode>>,
        source: Arc<dyn ContentSource>,
        state: Arc<dyn IndexState>,
    ) -> Result<Self, Error> {
        let (plan, learned, requests) = start::plan(&config, &*state)?;
        let handle = |(id, node)| Handle {
            id: NodeId(id),
            node,
            incarnation: Mutex::default(),
            contents: AtomicU64::new(0),
            drops: AtomicBool::new(false),
            repeats: AtomicBool::new(true),
        };
        let begun = version(&plan);
        Ok(Self {
            nodes: (0..).zip(nodes).map(handle).collect(),
            config,
            session: random_number(),
            source,
            state,
            plan: RwLock::new(Arc::new(plan)),
            mapped: Mutex::new(Mapped { learned, ..Mapped::default() }),
            counts: Counts::default(),
            migration: Mutex::default(),
            requests: Mutex::new(requests),
            positions: Mutex::default(),
            snapshots: Mutex::new(Snapshots::new(begun)),
            plan_is_unsure: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            owes_repeats: AtomicBool::new(false),
            failures: AtomicUsize::new(0),
            resting: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        })
    }

    /// A number that no other router has.
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// The plan that is served.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends passes and steps that are under way.
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

    fn mapped(&self) -> Mapped {
        *lock(&self.mapped)
    }

    fn handle(&self, node: NodeId) -> &Handle {
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
            return Err(RouterError::Node(
                node,
                NodeError::Unavailable("it is still being told what it has".to_owned()),
            ));
        };
        let answer = call(&*handle.node, CallContext { plan: version(plan), incarnation });
        answer.map_err(|error| {
            if handle.is_lost_by(&error, incarnation) {
                tracing::warn!(%node, %error, "a node has to be told anew what it has");
            }
            RouterError::Node(node, error)
        })
    }

    /// Marks the nodes that were started anew, and those that lack orders which are not sent any more.
    pub(crate) fn check_nodes(&self) {
        let ranges = self.ranges();
        for (handle, range) in self.nodes.iter().flat_map(|handle| ranges.iter().map(move |r| (handle, *r))) {
            // Whoever is to be told anew is not asked.
            let Some(known) = *lock(&handle.incarnation) else { continue };
            let Ok(applied) = handle.node.applied(range) else { continue };
            if applied.incarnation != known || self.needs_feeding(range, &applied) {
                *lock(&handle.incarnation) = None;
            }
        }
    }

    /// Nodes that have to be told what they have.
    pub(crate) fn has_lost(&self) -> bool {
        self.nodes.iter().any(|handle| lock(&handle.incarnation).is_none())
    }

    /// Contents of every node, as last told.
    fn node_contents(&self) -> Vec<u64> {
        self.nodes.iter().map(|handle| handle.contents.load(Ordering::Relaxed)).collect()
    }

    /// All contents.
    fn contents(&self) -> u64 {
        self.node_contents().iter().sum()
    }

    /// The node of a partition, and its name.
    fn place(plan: &Plan, partition: PartitionIndex) -> (NodeId, PartitionId) {
        let assignment = plan.assignments()[partition.index()];
        (assignment.node, assignment.id)
    }

    /// Hands over what nodes say is to be searched for again, and has them forget it.
    ///
    /// # Errors
    /// When a node or tier 1 does not answer: they keep it.
    pub(crate) fn take_repeats(&self) -> Result<(), RouterError> {
        let (plan, ranges) = (self.plan(), self.ranges());
        for handle in self.nodes.iter().filter(|handle| handle.repeats.load(Ordering::Relaxed)) {
            // What is new from here on says so again.
            handle.repeats.store(false, Ordering::Relaxed);
            for range in &ranges {
                let taken = self.take_repeats_of(*range, handle, &plan);
                if taken.is_err() {
                    handle.repeats.store(true, Ordering::Relaxed);
                }
                match taken {
                    // The node keeps them, and no other range waits for this one.
                    Err(RouterError::Source(SourceError::Unavailable(why))) => {
                        tracing::debug!(range = range.0, why, "a range takes its pages later");
                        self.owes_repeats.store(true, Ordering::Relaxed);
                    }
                    taken => taken?,
                }
            }
        }
        Ok(())
    }

    /// Tries again what a range was not there to take.
    pub(super) fn take_owed_repeats(&self) {
        if self.owes_repeats.swap(false, Ordering::Relaxed)
            && let Err(error) = self.take_repeats()
        {
            self.owes_repeats.store(true, Ordering::Relaxed);
            tracing::debug!(%error, "pages to be searched for again stay with their nodes");
        }
    }

    fn take_repeats_of(&self, range: RangeId, handle: &Handle, plan: &Plan) -> Result<(), RouterError> {
        loop {
            let repeats = self.call(handle.id, plan, |node, call| node.repeats(call, range, 0))?;
            let Some(last) = repeats.last().map(|repeat| repeat.number) else { return Ok(()) };
            self.source.repeat(range, repeats)?;
            self.call(handle.id, plan, |node, call| node.acknowledge_repeats(call, range, last))?;
        }
    }
}

impl Counts {
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

impl Handle {
    fn told(&self, applied: &Applied) {
        self.contents.store(applied.contents, Ordering::Relaxed);
        self.repeats.fetch_or(applied.has_repeats, Ordering::Relaxed);
    }

    /// It has taken contents in, and may have taken others from pages.
    fn ingested(&self, ingested: &Ingested) {
        self.contents.store(ingested.contents, Ordering::Relaxed);
        self.repeats.store(true, Ordering::Relaxed);
    }

    /// Whether a failure says that the node is not what it was; then it is told anew.
    fn is_lost_by(&self, error: &NodeError, called: Incarnation) -> bool {
        let lost = matches!(
            error,
            NodeError::WrongIncarnation { .. }
                | NodeError::NotFed(_)
                | NodeError::Gap { .. }
                | NodeError::NoPartition(_)
        );
        let mut present = lock(&self.incarnation);
        // Another thread may have fed it meanwhile.
        let lost = lost && *present == Some(called);
        if lost {
            *present = None;
        }
        lost
    }
}

/// The version of a plan.
fn version(plan: &Plan) -> PlanVersion {
    PlanVersion(plan.map().version())
}

/// The partitions of a plan that a node has.
fn hosted(plan: &Plan, node: NodeId) -> Vec<HostedPartition> {
    let all = plan.assignments().iter().zip(plan.map().bounds());
    let here = all.filter(|(assignment, _)| assignment.node == node);
    here.map(|(assignment, bounds)| HostedPartition { id: assignment.id, bounds: *bounds }).collect()
}
