//! Tier 2 in one process: a router, its nodes, and the thread that makes passes. The one place that names both.

use std::fs::{self, File};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use doppel_model::NodeId;
use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{
    ContentSource, IndexError, IndexOrders, IndexState, LoadReport, MappingApi, Orders, Pair,
    PartitionLookup, RebalanceError, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest,
    RefusedOrders, StoredSignatures, Tier2Api,
};
use doppel_threads::{GiveWay, give_way};

use crate::config::Config;
use crate::error::Error;
use crate::node::{LocalNode, NodeConfig};
use crate::numbers::incarnation;
use crate::router::{self, Message, Router};
use crate::setup::{lock, node_config, node_dir, pool};
use crate::state_files::StateFiles;

/// The index, on one node or several.
pub struct Tier2 {
    router: Arc<Router>,
    nodes: Vec<Arc<LocalNode>>,
    messages: Sender<Message>,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// Held for as long as the index is open.
    _lock: File,
}

/// A router and the nodes of its process, without a thread.
pub(crate) struct Parts {
    pub(crate) router: Router,
    pub(crate) nodes: Vec<Arc<LocalNode>>,
    pub(crate) lock: File,
}

impl Parts {
    /// Opens the index of `config.dir`. The router calls each node through what `seen` makes of it.
    pub(crate) fn open(
        config: Config,
        source: Arc<dyn ContentSource>,
        stored: Option<&Arc<dyn StoredSignatures>>,
        seen: impl Fn(&Arc<LocalNode>) -> Arc<dyn IndexNode>,
    ) -> Result<Self, Error> {
        config.check()?;
        let pool = pool(config.threads)?;
        let lock = lock(&config.dir)?;
        let open = |id| {
            let node = node_config(&config, NodeId(id), pool.clone(), incarnation());
            let node = NodeConfig { stored: stored.cloned(), ..node };
            LocalNode::open(node, source.clone()).map(Arc::new)
        };
        let nodes = (0..config.nodes).map(open).collect::<Result<Vec<_>, Error>>()?;
        forget_nodes(&config);
        let state = Arc::new(StateFiles::new(&config.dir));
        let router = Router::open(config, nodes.iter().map(seen).collect(), source, state)?;
        Ok(Self { router, nodes, lock })
    }

    /// The same over nodes that are somewhere else.
    pub(crate) fn over(
        config: Config,
        source: Arc<dyn ContentSource>,
        nodes: Vec<Arc<dyn IndexNode>>,
        state: Arc<dyn IndexState>,
    ) -> Result<Self, Error> {
        let config = Config { nodes: u32::try_from(nodes.len()).unwrap_or(u32::MAX), ..config };
        config.check()?;
        let lock = lock(&config.dir)?;
        Ok(Self { router: Router::open(config, nodes, source, state)?, nodes: Vec::new(), lock })
    }
}

/// Removes the files of nodes that no longer exist.
fn forget_nodes(config: &Config) {
    let dirs = (config.nodes..).map(|node| config.dir.join(node_dir(NodeId(node))));
    let dirs: Vec<_> = dirs.take_while(|dir| dir.is_dir()).collect();
    if !dirs.is_empty() {
        tracing::info!(
            "{} nodes on disk, {} asked for: the contents of the others are made anew from tier 1; --index-nodes is not \
             remembered",
            config.nodes as usize + dirs.len(),
            config.nodes
        );
    }
    for dir in dirs {
        if let Err(error) = fs::remove_dir_all(&dir) {
            tracing::warn!(dir = %dir.display(), %error, "cannot remove the files of a node that no longer exists");
        }
    }
}

impl Tier2 {
    /// Opens the index of `config.dir`. Its thread brings it up to tier 1's contents first: missing ones are fetched, others
    /// are removed, damaged files are rebuilt. Orders wait until then, and a probe is refused.
    ///
    /// # Errors
    /// When a setting is out of range, the directory cannot be used, or another process uses it.
    pub fn open(config: Config, source: Arc<dyn ContentSource>) -> Result<Arc<Self>, Error> {
        Self::open_beside(config, source, None)
    }

    /// The same where the signatures of tier 1 can be read in this process: the nodes keep none themselves.
    ///
    /// # Errors
    /// The same.
    pub fn open_beside(
        config: Config,
        source: Arc<dyn ContentSource>,
        stored: Option<&Arc<dyn StoredSignatures>>,
    ) -> Result<Arc<Self>, Error> {
        Self::start(Parts::open(config, source, stored, |node| Arc::clone(node) as Arc<dyn IndexNode>)?)
    }

    /// The same over nodes in other processes, whose number takes the place of `config.nodes`. The plan and what is requested of
    /// it are in `state`; of the directory only the lock is used.
    ///
    /// # Errors
    /// The same, and when it cannot be known now what `state` keeps.
    pub fn open_over(
        config: Config,
        source: Arc<dyn ContentSource>,
        nodes: Vec<Arc<dyn IndexNode>>,
        state: Arc<dyn IndexState>,
    ) -> Result<Arc<Self>, Error> {
        Self::start(Parts::over(config, source, nodes, state)?)
    }

    fn start(Parts { router, nodes, lock }: Parts) -> Result<Arc<Self>, Error> {
        let router = Arc::new(router);
        let (messages, received) = mpsc::channel();
        let worker = {
            let router = Arc::clone(&router);
            // Without this thread nothing is ever decided; a restart makes the index anew.
            doppel_threads::spawn_vital("tier2".to_owned(), move || {
                give_way(GiveWay::ToAnswers);
                router::work(&router, &received);
            })
        };
        let worker = Mutex::new(Some(worker.map_err(|e| Error::Threads(e.to_string()))?));
        Ok(Arc::new(Self { router, nodes, messages, worker, _lock: lock }))
    }

    /// A number that the index of no other process, and of no other life of this one, has.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.router.session()
    }

    /// Ends the index's thread and waits for it. A pass that has begun is broken off without an answer and
    /// orders that wait are dropped: tier 1 has them.
    pub fn stop(&self) {
        self.router.stop();
        self.nodes.iter().for_each(|node| node.stop());
        // The worker is gone already if this fails.
        let _ = self.messages.send(Message::Stop);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last owner may be tier 1's end of a delivery, on the index's own thread.
        if let Some(worker) = worker.filter(|w| w.thread().id() != thread::current().id()) {
            if worker.join().is_err() {
                tracing::error!("the thread of tier 2 ended in a panic");
            }
            if let Err(error) = self.router.save_now() {
                tracing::info!(%error, "no snapshot of the index is written; the next start makes it anew");
            }
            self.nodes.iter().for_each(|node| node.flush());
        }
    }

    /// Memory of all columns and tables, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.nodes.iter().map(|node| node.bytes()).sum()
    }

    /// Whether the thread has nothing to do until somebody asks.
    #[cfg(test)]
    pub(crate) fn is_resting(&self) -> bool {
        self.router.is_resting()
    }

    fn send(&self, message: Message) -> Result<(), IndexError> {
        self.messages.send(message).map_err(|_| IndexError::Stopping)
    }
}

impl Drop for Tier2 {
    fn drop(&mut self) {
        self.stop();
    }
}

impl IndexOrders for Tier2 {
    fn submit(&self, orders: Orders) -> Result<(), RefusedOrders> {
        let announces = orders.commands.is_empty();
        let Some(orders) = self.router.accept(orders)? else {
            if announces {
                // It fails when the index is stopping.
                let _ = self.messages.send(Message::Announced);
            }
            return Ok(());
        };
        match self.messages.send(Message::Orders(orders)) {
            // The channel gives back what it could not send.
            Err(mpsc::SendError(Message::Orders(orders))) => {
                Err(RefusedOrders { orders, error: IndexError::Stopping })
            }
            _ => Ok(()),
        }
    }
}

impl Tier2Api for Tier2 {
    fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError> {
        Ok(self.router.probe(signature)?)
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        Ok(self.router.locate(signature))
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        Ok(self.router.load()?)
    }

    fn waiting(&self) -> Result<usize, IndexError> {
        Ok(self.router.waiting())
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        self.send(Message::Flush)
    }
}

impl MappingApi for Tier2 {
    fn plan(&self) -> Result<Plan, IndexError> {
        Ok((*self.router.plan()).clone())
    }

    fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError> {
        Ok(self.router.sample(limit)?)
    }

    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError> {
        let planned = self.router.rebalance(request, dry_run)?;
        // It is stored: where the worker has gone by now, the next start does it.
        let _ = self.send(Message::Wake);
        Ok(planned)
    }

    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        let outcome = self.router.cancel()?;
        let _ = self.send(Message::Wake);
        Ok(outcome)
    }

    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError> {
        Ok(self.router.requested().map(|requested| requested.request))
    }

    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError> {
        Ok(self.router.outcome())
    }

    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError> {
        Ok(self.router.progress())
    }
}
