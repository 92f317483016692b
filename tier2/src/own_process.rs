//! A node in a process of its own: it outlives the router.
//!
//! A router that begins knows nothing of what an earlier one has told the node: it may come from a backup, with orders and
//! plans that are numbered as those of before. So for every other router the node begins anew, from its files, as if its
//! process had ended.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use doppel_model::pairwise::Policy;
use doppel_model::{Incarnation, NodeId, RangeId};
use doppel_protocol::index_node::{
    Applied, CallContext, EntriesPage, EntriesRequest, Hosting, IndexNode, IngestBatch, Ingested, NodeError,
    NodeLoad, OrderBatch, SampleRequest, Sampled, SearchBatch, SearchOutcome,
};
use doppel_protocol::{LogPosition, Repeat, SignatureSource};

use crate::error::Error;
use crate::node::{LocalNode, NodeConfig};
use crate::numbers::incarnation;
use crate::setup::{lock, pool};

/// Settings of a node in a process of its own.
#[derive(Debug, Clone)]
pub struct NodeSettings {
    /// Where its files are; made if it is not there.
    pub dir: PathBuf,
    /// Its number in the plan.
    pub id: NodeId,
    /// How contents are compared.
    pub policy: Policy,
    /// Threads that compare.
    pub threads: usize,
}

/// A node in a process of its own. It has nothing until a router tells it what to host.
pub struct Node {
    config: NodeConfig,
    source: Arc<dyn SignatureSource>,
    present: RwLock<Present>,
    /// Held for as long as the node is open.
    _lock: File,
}

/// The node as one router knows it.
struct Present {
    /// None before there was one.
    session: Option<u64>,
    node: Arc<LocalNode>,
}

impl Node {
    /// Opens the files of a node. What it lacks it asks of `source`.
    ///
    /// # Errors
    /// When the directory cannot be used, or another process uses it.
    pub fn open(settings: NodeSettings, source: Arc<dyn SignatureSource>) -> Result<Self, Error> {
        let NodeSettings { dir, id, policy, threads } = settings;
        let lock = lock(&dir)?;
        let pool = pool(threads)?;
        let config = NodeConfig { id, dir, policy, incarnation: incarnation(), pool, stored: None };
        let node = Arc::new(LocalNode::open(config.clone(), Arc::clone(&source))?);
        Ok(Self { config, source, present: RwLock::new(Present { session: None, node }), _lock: lock })
    }

    /// Breaks off what is being done, and writes what is in memory alone to the files.
    pub fn stop(&self) {
        let node = self.node();
        node.stop();
        node.flush();
    }

    fn node(&self) -> Arc<LocalNode> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner).node)
    }

    /// The node for a router; it begins anew where that is another one than before.
    fn for_session(&self, session: u64) -> Result<Arc<LocalNode>, NodeError> {
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        if present.session.is_some_and(|known| known != session) {
            tracing::info!("tier 1 was started anew, and so is this node");
            // After this no call changes the old one, and its files are as it knows them.
            present.node.stop();
            present.node.flush();
            let config = NodeConfig { incarnation: incarnation(), ..self.config.clone() };
            let node = LocalNode::open(config, Arc::clone(&self.source));
            present.node = Arc::new(node.map_err(|error| NodeError::Damaged(error.to_string()))?);
        }
        present.session = Some(session);
        Ok(Arc::clone(&present.node))
    }
}

impl IndexNode for Node {
    fn host(&self, hosting: Hosting) -> Result<Incarnation, NodeError> {
        self.for_session(hosting.session)?.host(hosting)
    }

    fn applied(&self, range: RangeId) -> Result<Applied, NodeError> {
        self.node().applied(range)
    }

    fn apply(&self, call: CallContext, batch: OrderBatch) -> Result<Applied, NodeError> {
        self.node().apply(call, batch)
    }

    fn search(&self, call: CallContext, batch: SearchBatch) -> Result<Vec<SearchOutcome>, NodeError> {
        self.node().search(call, batch)
    }

    fn entries(&self, call: CallContext, request: EntriesRequest) -> Result<EntriesPage, NodeError> {
        self.node().entries(call, request)
    }

    fn ingest(&self, call: CallContext, batch: IngestBatch) -> Result<Ingested, NodeError> {
        self.node().ingest(call, batch)
    }

    fn drop_partition(&self, call: CallContext, limit: usize) -> Result<bool, NodeError> {
        self.node().drop_partition(call, limit)
    }

    fn save(&self, call: CallContext, moments: Vec<(RangeId, LogPosition)>) -> Result<(), NodeError> {
        self.node().save(call, moments)
    }

    fn load(&self, call: CallContext) -> Result<NodeLoad, NodeError> {
        self.node().load(call)
    }

    fn sample(&self, call: CallContext, request: SampleRequest) -> Result<Sampled, NodeError> {
        self.node().sample(call, request)
    }

    fn repeats(&self, call: CallContext, range: RangeId, after: u64) -> Result<Vec<Repeat>, NodeError> {
        self.node().repeats(call, range, after)
    }

    fn acknowledge_repeats(&self, call: CallContext, range: RangeId, through: u64) -> Result<(), NodeError> {
        self.node().acknowledge_repeats(call, range, through)
    }
}
