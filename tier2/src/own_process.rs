//! A node in a process of its own, which outlives the router.
//!
//! A new router does not know what an earlier router told the node. It may have started from a backup, and
//! number its orders and plans like the earlier one. The node therefore starts anew from its files whenever
//! the session number of its router changes, as if its process had restarted.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use doppel_model::pairwise::Policy;
use doppel_model::{Incarnation, NodeId, RangeId};
use doppel_protocol::index_node::{
    AppliedState, CallContext, EntriesPage, EntriesRequest, HostingPlan, IndexNode, IngestAnswer,
    IngestBatch, NodeError, NodeLoadReport, OrderBatch, SampleAnswer, SampleRequest, SearchBatch,
    SearchOutcome,
};
use doppel_protocol::{LogPosition, Repeat, SignatureSource};

use crate::error::Error;
use crate::incarnations::next_incarnation;
use crate::node::partition::buckets::CrowdingLimits;
use crate::node::{LocalNode, NodeConfig};
use crate::setup::{lock, pool};

/// Settings of a node in a process of its own.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Directory of the node. The node creates it if it does not exist.
    pub dir: PathBuf,
    /// Number of the node in the plan.
    pub id: NodeId,
    /// Policy that decides which contents are near-duplicates.
    pub policy: Policy,
    /// Number of threads that compare signatures.
    pub threads: usize,
}

/// A node in a process of its own. It has no partitions until a router tells it what to host.
pub struct NodeProcess {
    config: NodeConfig,
    source: Arc<dyn SignatureSource>,
    current: RwLock<CurrentNode>,
    /// Lock of the directory. Released when the node is dropped.
    _lock: File,
}

/// The node as it serves one router.
struct CurrentNode {
    /// Session number of the router. `None` until a router has called.
    session: Option<u64>,
    node: Arc<LocalNode>,
}

impl NodeProcess {
    /// Opens the files of a node. The node fetches missing signatures from `source`.
    ///
    /// # Errors
    /// Fails if the directory cannot be used, or another process uses it.
    pub fn open(settings: NodeSettings, source: Arc<dyn SignatureSource>) -> Result<Self, Error> {
        let NodeSettings { dir, id, policy, threads } = settings;
        let lock = lock(&dir)?;
        let pool = pool(threads)?;
        let config = NodeConfig {
            id,
            dir,
            policy,
            crowding: CrowdingLimits::DEFAULT,
            incarnation: next_incarnation(),
            pool,
            stored: None,
        };
        let node = Arc::new(LocalNode::open(config.clone(), Arc::clone(&source))?);
        Ok(Self { config, source, current: RwLock::new(CurrentNode { session: None, node }), _lock: lock })
    }

    /// Interrupts running calls, and writes to the files what is only in memory.
    pub fn stop(&self) {
        let node = self.node();
        node.stop();
        node.flush();
    }

    fn node(&self) -> Arc<LocalNode> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).node)
    }

    /// Returns the node that serves the router with this session number. If another router used the node
    /// before, a new node opens the same files.
    fn for_session(&self, session: u64) -> Result<Arc<LocalNode>, NodeError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if current.session.is_some_and(|known| known != session) {
            tracing::info!("another router has taken over; this node starts anew from its files");
            // After `stop`, no call changes the old node. After `flush`, its files are complete.
            current.node.stop();
            current.node.flush();
            let config = NodeConfig { incarnation: next_incarnation(), ..self.config.clone() };
            let node = LocalNode::open(config, Arc::clone(&self.source));
            current.node = Arc::new(node.map_err(|error| NodeError::Damaged(error.to_string()))?);
        }
        current.session = Some(session);
        Ok(Arc::clone(&current.node))
    }
}

impl IndexNode for NodeProcess {
    fn host(&self, hosting: HostingPlan) -> Result<Incarnation, NodeError> {
        self.for_session(hosting.session)?.host(hosting)
    }

    fn applied(&self, range: RangeId) -> Result<AppliedState, NodeError> {
        self.node().applied(range)
    }

    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<AppliedState, NodeError> {
        self.node().apply(call, batch)
    }

    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError> {
        self.node().search(call, batch)
    }

    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError> {
        self.node().entries(call, request)
    }

    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<IngestAnswer, NodeError> {
        self.node().ingest(call, batch)
    }

    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError> {
        self.node().drop_partition(call, limit)
    }

    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError> {
        self.node().save(call, moments)
    }

    fn load(&self, call: CallContext) -> Result<NodeLoadReport, NodeError> {
        self.node().load(call)
    }

    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<SampleAnswer, NodeError> {
        self.node().sample(call, request)
    }

    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError> {
        self.node().repeats(call, range, after)
    }

    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError> {
        self.node().acknowledge_repeats(call, range, through)
    }
}
