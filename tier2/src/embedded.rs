//! Tier 2 with its router and its thread in this process.
//!
//! The nodes run in the same process or in others. This module is the only one that names both the router and
//! the nodes.

use std::fs::{self, File};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use doppel_contract::{LoadReport, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::NodeId;
use doppel_model::signature::Signature;
use doppel_partitioning::Plan;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{
    ContentSource, IndexError, IndexOrders, IndexState, MappingApi, Orders, PageRange, PartitionLookup,
    RebalanceError, RefusedOrders, StoredSignatures, Tier2Api, VerifiedPartner,
};
use doppel_threads::{LoweredPriority, lower_priority};

use crate::config::Config;
use crate::error::Error;
use crate::incarnations::next_incarnation;
use crate::node::{LocalNode, NodeConfig};
use crate::router::{self, Router, RouterMessage};
use crate::setup::{lock, node_config, node_dir, pool};
use crate::state_files::StateFiles;

/// An open index, on one node or several. Implements the traits of tier 2.
pub struct Tier2 {
    router: Arc<Router>,
    nodes: Vec<Arc<LocalNode>>,
    messages: Sender<RouterMessage>,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// Lock of the directory. Released when the index is dropped.
    _lock: File,
}

/// A router and the nodes of its process, without the thread that makes passes.
pub(crate) struct Parts {
    pub(crate) router: Router,
    pub(crate) nodes: Vec<Arc<LocalNode>>,
    pub(crate) lock: File,
}

impl Parts {
    /// Opens the index of `config.dir` with nodes in this process. The router calls each node through the
    /// object that `wrap` returns for it.
    pub(crate) fn open(
        config: Config,
        source: Arc<dyn ContentSource>,
        stored: Option<&Arc<dyn StoredSignatures>>,
        wrap: impl Fn(&Arc<LocalNode>) -> Arc<dyn IndexNode>,
    ) -> Result<Self, Error> {
        config.check()?;
        let pool = pool(config.threads)?;
        let lock = lock(&config.dir)?;
        let open = |id| {
            let node = node_config(&config, NodeId(id), pool.clone(), next_incarnation());
            let node = NodeConfig { stored: stored.cloned(), ..node };
            LocalNode::open(node, source.clone()).map(Arc::new)
        };
        let nodes = (0..config.nodes).map(open).collect::<Result<Vec<_>, Error>>()?;
        delete_former_nodes(&config);
        let state = Arc::new(StateFiles::new(&config.dir));
        let router = Router::open(config, nodes.iter().map(wrap).collect(), source, state)?;
        Ok(Self { router, nodes, lock })
    }

    /// Opens a router whose nodes run in other processes.
    pub(crate) fn open_over(
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

/// Deletes the directories of nodes whose numbers are not below `config.nodes`.
fn delete_former_nodes(config: &Config) {
    let dirs = (config.nodes..).map(|node| config.dir.join(node_dir(NodeId(node))));
    let dirs: Vec<_> = dirs.take_while(|dir| dir.is_dir()).collect();
    if !dirs.is_empty() {
        tracing::info!(
            "{} nodes are on disk, but --index-nodes is {}; deleting the others, and fetching their contents again",
            config.nodes as usize + dirs.len(),
            config.nodes
        );
    }
    for dir in dirs {
        if let Err(error) = fs::remove_dir_all(&dir) {
            tracing::warn!(
                dir = %dir.display(),
                %error,
                "cannot delete the files of a node that no longer exists; delete them by hand"
            );
        }
    }
}

impl Tier2 {
    /// Opens the index of `config.dir`. The thread of the index first brings it up to date with tier 1. It
    /// fetches missing contents, removes contents that no page has any more, and rebuilds damaged files.
    /// Until then, orders wait and probes are refused.
    ///
    /// # Errors
    /// Fails if a setting is out of range, the directory cannot be used, or another process uses it.
    pub fn open(config: Config, source: Arc<dyn ContentSource>) -> Result<Arc<Self>, Error> {
        Self::open_beside(config, source, None)
    }

    /// Like [`open`](Self::open), but the nodes read signatures where tier 1 stores them in this process, and
    /// store none themselves.
    ///
    /// # Errors
    /// Fails for the same reasons as [`open`](Self::open).
    pub fn open_beside(
        config: Config,
        source: Arc<dyn ContentSource>,
        stored: Option<&Arc<dyn StoredSignatures>>,
    ) -> Result<Arc<Self>, Error> {
        Self::start(Parts::open(config, source, stored, |node| Arc::clone(node) as Arc<dyn IndexNode>)?)
    }

    /// Opens an index whose nodes run in other processes. Their number replaces `config.nodes`. `state`
    /// stores the plan and the requests to change it. The directory is used for its lock only.
    ///
    /// # Errors
    /// Fails for the same reasons as [`open`](Self::open), and if `state` cannot tell now what it stores.
    pub fn open_over(
        config: Config,
        source: Arc<dyn ContentSource>,
        nodes: Vec<Arc<dyn IndexNode>>,
        state: Arc<dyn IndexState>,
    ) -> Result<Arc<Self>, Error> {
        Self::start(Parts::open_over(config, source, nodes, state)?)
    }

    /// Makes the index of a new collection in `config.dir` and writes its snapshot, without serving the index. A
    /// start of the collection uses the snapshot if its settings have the same policy, the same number of
    /// dimensions, and one node.
    ///
    /// `source` and `stored` must not change during the call. The moments of `source` must be positions in the
    /// logs of the collection.
    ///
    /// # Errors
    /// Fails if a setting is out of range, a content cannot be read, or the snapshot cannot be written. The
    /// directory may then have a part of the files.
    pub fn build(
        config: Config,
        source: Arc<dyn ContentSource>,
        stored: &Arc<dyn StoredSignatures>,
    ) -> Result<(), Error> {
        let (ranges, dir) = (source.ranges()?, config.dir.clone());
        let wrap = |node: &Arc<LocalNode>| Arc::clone(node) as Arc<dyn IndexNode>;
        let Parts { router, nodes, lock: _lock } = Parts::open(config, source, Some(stored), wrap)?;
        let not_written = |why: String| Error::SnapshotNotWritten(dir.clone(), why);
        for PageRange { range, epoch, ordered, .. } in &ranges {
            // The router includes a range in a snapshot only after the range has announced its first order.
            let announcement =
                Orders { range: *range, epoch: *epoch, first: ordered + 1, commands: Vec::new() };
            router.accept(announcement).map_err(|refused| not_written(refused.error.to_string()))?;
        }
        router.feed_lost_nodes()?;
        router.save_now().map_err(|error| not_written(error.to_string()))?;
        if let Some(why) = nodes.iter().find_map(|node| node.snapshot_failure()) {
            return Err(not_written(why));
        }
        let is_saved = |range: &PageRange| {
            let saved =
                |node: &Arc<LocalNode>| node.applied(range.range).is_ok_and(|one| one.saved.is_some());
            nodes.iter().all(saved)
        };
        if ranges.iter().all(is_saved) {
            return Ok(());
        }
        Err(not_written("some ranges are missing in it".to_owned()))
    }

    fn start(Parts { router, nodes, lock }: Parts) -> Result<Arc<Self>, Error> {
        let router = Arc::new(router);
        let (messages, received) = mpsc::channel();
        let worker = {
            let router = Arc::clone(&router);
            // Without this thread no page is ever decided. If the thread panics, the process ends, and the
            // restart rebuilds the index.
            doppel_threads::spawn_vital("tier2".to_owned(), move || {
                lower_priority(LoweredPriority::BelowAnswers);
                router::run_worker(&router, &received);
            })
        };
        let worker = Mutex::new(Some(worker.map_err(|e| Error::Threads(e.to_string()))?));
        Ok(Arc::new(Self { router, nodes, messages, worker, _lock: lock }))
    }

    /// Number of this router. No other process, and no other start of this one, has the same number.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.router.session()
    }

    /// Ends the thread of the index and waits for it. An unfinished pass ends without an answer, and waiting
    /// orders are dropped. Tier 1 still has both.
    pub fn stop(&self) {
        self.router.stop();
        self.nodes.iter().for_each(|node| node.stop());
        // Sending fails if the thread has ended already.
        let _ = self.messages.send(RouterMessage::Stop);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Tier 1 may hold the last reference, and drop it while it takes a delivery. Then this is the thread
        // of the index itself, which cannot wait for its own end.
        if let Some(worker) = worker.filter(|w| w.thread().id() != thread::current().id()) {
            if worker.join().is_err() {
                tracing::error!("the thread of tier 2 ended in a panic");
            }
            if let Err(error) = self.router.save_now() {
                tracing::info!(
                    %error,
                    "cannot write a snapshot of the index; the next start rebuilds the index"
                );
            }
            self.nodes.iter().for_each(|node| node.flush());
        }
    }

    /// Memory of all columns and tables of the nodes in this process, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.nodes.iter().map(|node| node.bytes()).sum()
    }

    /// Whether the thread has nothing to do until it receives a message.
    #[cfg(test)]
    pub(crate) fn is_resting(&self) -> bool {
        self.router.is_resting()
    }

    fn send(&self, message: RouterMessage) -> Result<(), IndexError> {
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
                // Sending fails if the index is stopping. Then there is nothing to do.
                let _ = self.messages.send(RouterMessage::Announcement);
            }
            return Ok(());
        };
        match self.messages.send(RouterMessage::Orders(orders)) {
            // The channel returns the message that it could not send.
            Err(mpsc::SendError(RouterMessage::Orders(orders))) => {
                Err(RefusedOrders { orders, error: IndexError::Stopping })
            }
            _ => Ok(()),
        }
    }
}

impl Tier2Api for Tier2 {
    fn probe(&self, signature: &Signature) -> Result<Vec<VerifiedPartner>, IndexError> {
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
        self.send(RouterMessage::Flush)
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
        // The request is stored. If the thread has ended, the next start carries the request out.
        let _ = self.send(RouterMessage::Wake);
        Ok(planned)
    }

    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        let outcome = self.router.cancel()?;
        let _ = self.send(RouterMessage::Wake);
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
