//! A node of tier 1 in a cluster with a log: its replicas, the ranges that it owns at present, and the router
//! of the index while it owns the first range.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use doppel_control::cluster::Cluster;
use doppel_control::connection::{ClusterConnection, router};
use doppel_control::description::steps::ROUTERS;
use doppel_control::log::LogSettings;
use doppel_model::{Epoch, RangeId, ShardId, stable_hash64};
use doppel_protocol::beats::ClusterMembership;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::range_owner::{RangeDirectory, RangeOwner};
use doppel_protocol::{ContentSource, IndexError, IndexOrders, RangeMap};
use doppel_shared_log::SharedLog;
use doppel_tier1::{Keeper, ReplicatedRange, ReplicationConfig, Rules, Tier1};
use doppel_tier2::Tier2;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::orders::{CurrentRouter, RemoteOrders, RouterLocation};
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::router_slot::RouterSlot;
use doppel_wire::spread::OwnerLookup;
use doppel_wire::tier1::CollectionInfo;
use doppel_wire::{NodeName, Peer};

use super::record_node::Peers;
use super::{DEFAULTS, Purpose, config, index};
use crate::args::TuningArgs;
use crate::directory::manifest::{Manifest, ManifestRequest};

/// Pause before another attempt to open the router.
const PAUSE: Duration = Duration::from_millis(500);

/// A started node of tier 1 whose ranges are replicated.
pub struct ReplicatedNode {
    /// Tier 1 of this node.
    pub tier1: Arc<Tier1>,
    /// Place of the router of the index; occupied while this node owns the first range.
    pub slot: Arc<RouterSlot>,
    /// Properties of the collection, for other nodes that ask for them.
    pub collection: CollectionInfo,
    /// Keeps the replicas of the ranges of this node.
    pub keeper: Arc<Keeper>,
    orders: Arc<RemoteOrders>,
    router: Arc<LocalRouter>,
    /// The connection to the log of the cluster.
    pub connection: Box<ClusterConnection>,
}

impl ReplicatedNode {
    /// Opens or creates the replicas of a node, and starts the node. The node owns no range until it takes
    /// one over.
    ///
    /// # Errors
    /// If the directory contradicts the description, or a thread cannot be started.
    pub fn open(
        dir: &Path,
        (cluster, name): (&Cluster, &NodeName),
        args: &TuningArgs,
        (connection, owners): (Box<ClusterConnection>, Arc<dyn OwnerLookup>),
        peers: Peers,
    ) -> anyhow::Result<Self> {
        let purpose = Purpose { durable: true, answers: true, rules: Rules::EXACT };
        let manifest = Manifest::open_or_create(dir, ManifestRequest::of_cluster(cluster), DEFAULTS)?;
        let config = doppel_tier1::Config {
            // Equal at all nodes, because a consumer of the change feed continues at the next owner.
            collection: stable_hash64(cluster.id.as_bytes()),
            ..config(dir, (&manifest, &manifest.of_cluster(&cluster.id)), args, purpose)?
        };
        let own = cluster.tier1_names().iter().position(|node| node == name);
        let own = own.context("the node is not in the cluster")?;
        let ranges = peers.tier1.iter().map(|peer| Arc::new(RemoteRanges::new(peer.clone())) as _).collect();
        let membership = Arc::clone(&connection.membership);
        let directory =
            PeerRanges { owners: Arc::clone(&owners), membership, map: cluster.map(), own, ranges };
        let tier1 = Tier1::open_none(&config, Arc::new(directory))
            .with_context(|| format!("cannot open {}", dir.display()))?;
        let slot = Arc::new(RouterSlot::new());
        let place = RouterLocator { slot: Arc::clone(&slot), owners, own, peers: peers.tier1 };
        let orders = RemoteOrders::start_at(Arc::new(place)).context("cannot start the thread of orders")?;
        tier1.start(Arc::clone(&orders) as Arc<dyn IndexOrders>).context("cannot start tier 1")?;
        let router = Arc::new(LocalRouter {
            dir: dir.to_owned(),
            config: index(dir, &manifest, args),
            nodes: peers.tier2,
            tier1: Arc::clone(&tier1),
            slot: Arc::clone(&slot),
            term: Mutex::default(),
        });
        let replication = replication(cluster, name, &connection, &router);
        let keeper = Keeper::start(&tier1, &config, replication).context("cannot start the replicas")?;
        let keeper = Arc::new(keeper);
        let Manifest { policy, winners, shards, tables, .. } = manifest;
        let collection = CollectionInfo { policy, winners, shards, tables };
        Ok(Self { tier1, slot, collection, keeper, orders, router, connection })
    }

    /// Stops the node; the next owners decide the pending pages.
    pub fn stop(self) {
        self.keeper.stop();
        self.router.stop();
        self.orders.stop();
    }
}

fn replication(
    cluster: &Cluster,
    name: &NodeName,
    connection: &ClusterConnection,
    router: &Arc<LocalRouter>,
) -> ReplicationConfig {
    let copies = cluster.log().map_or(1, |log| usize::from(log.replicas));
    let range = |range: RangeId| {
        let (engine, stream) = (connection.engine.clone(), cluster.stream(range));
        ReplicatedRange {
            range,
            replicas: cluster.replicas_of(range).iter().map(ToString::to_string).collect(),
            log: Box::new(move || Ok(Arc::new(engine.open(&stream, copies)?) as Arc<dyn SharedLog>)),
        }
    };
    let router = Arc::clone(router);
    ReplicationConfig {
        cluster: cluster.id.to_string(),
        node: name.to_string(),
        ranges: cluster.ranges_of(name).into_iter().map(range).collect(),
        membership: Arc::clone(&connection.membership),
        settlement: cluster.log().map(|log| log.settlement).unwrap_or_default(),
        log_window: cluster.log().map(LogSettings::window).unwrap_or_default(),
        tell: Box::new(connection.tell()),
        owned: Box::new(move |range, owns| match (range, owns) {
            (ROUTERS, true) => router.begin_term(),
            (ROUTERS, false) => router.end_term(),
            _ => {}
        }),
    }
}

/// Connections to the ranges of the other nodes.
struct PeerRanges {
    owners: Arc<dyn OwnerLookup>,
    membership: Arc<ClusterMembership>,
    map: RangeMap,
    own: usize,
    ranges: Vec<Arc<dyn RangeOwner>>,
}

impl PeerRanges {
    /// Ranges of another node, by its position in the description. `None` for this node itself.
    fn other(&self, node: usize) -> Option<Arc<dyn RangeOwner>> {
        self.ranges.get(node).filter(|_| node != self.own).cloned()
    }
}

impl RangeDirectory for PeerRanges {
    fn owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        let shard: ShardId = self.map.run(range).start;
        self.other(self.owners.of_shard(shard)?)
    }

    fn present_owner(&self, range: RangeId) -> Option<Arc<dyn RangeOwner>> {
        self.other(self.owners.present(self.map.run(range).start)?)
    }

    fn replicas(&self, range: RangeId) -> Vec<Arc<dyn RangeOwner>> {
        let nodes = self.owners.replicas(self.map.run(range).start);
        nodes.into_iter().filter_map(|node| self.other(node)).collect()
    }

    fn epoch(&self, range: RangeId) -> Option<Epoch> {
        self.membership.epoch(range)
    }

    fn has_others(&self) -> bool {
        self.ranges.len() > 1
    }

    fn may_change(&self) -> bool {
        self.owners.may_change()
    }
}

/// Finds the router of the index: in this process, or at the node that claims the first range.
struct RouterLocator {
    slot: Arc<RouterSlot>,
    owners: Arc<dyn OwnerLookup>,
    own: usize,
    peers: Vec<Peer>,
}

impl CurrentRouter for RouterLocator {
    fn current(&self) -> Result<RouterLocation, IndexError> {
        if let Ok((router, session)) = self.slot.router() {
            return Ok(RouterLocation::Here(router, session));
        }
        let node = router(&*self.owners).filter(|node| *node != self.own);
        let peer = node.and_then(|node| self.peers.get(node));
        let unknown = || IndexError::Unavailable("no router of the index is known".to_owned());
        Ok(RouterLocation::There(peer.ok_or_else(unknown)?.clone()))
    }
}

/// The router of the index, while this node owns the first range.
///
/// The router is opened and stopped on a thread of its own, so that the range is not held up. Its state is
/// stored in rows of the range, so that the next router continues from it. Its directory at this node has
/// only a lock.
struct LocalRouter {
    dir: PathBuf,
    config: doppel_tier2::Config,
    nodes: Vec<Peer>,
    tier1: Arc<Tier1>,
    slot: Arc<RouterSlot>,
    term: Mutex<Option<RouterTerm>>,
}

/// One term of the router at this node, from winning to losing the first range.
struct RouterTerm {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl LocalRouter {
    /// Starts a term: this node has become the owner of the first range.
    fn begin_term(self: &Arc<Self>) {
        let ends = Arc::<AtomicBool>::default();
        let run = {
            let (this, ends) = (Arc::clone(self), Arc::clone(&ends));
            move || this.run_term(&ends)
        };
        match doppel_threads::spawn_vital("router-seat".to_owned(), run) {
            Ok(thread) => *self.term() = Some(RouterTerm { ends, thread }),
            Err(error) => {
                tracing::error!(%error, "cannot start the thread of the index router; pages stay pending");
            }
        }
    }

    /// Ends the term without waiting for the router: this node no longer owns the first range.
    fn end_term(&self) {
        drop(self.leave());
    }

    /// Ends the term and waits until the router has stopped, because the process ends.
    fn stop(&self) {
        if self.leave().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the router panicked");
        }
    }

    fn leave(&self) -> Option<JoinHandle<()>> {
        let RouterTerm { ends, thread } = self.term().take()?;
        ends.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        Some(thread)
    }

    fn term(&self) -> MutexGuard<'_, Option<RouterTerm>> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> anyhow::Result<Arc<Tier2>> {
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|peer| Arc::new(RemoteNode::new(peer.clone())) as Arc<dyn IndexNode>);
        let source = Arc::clone(&self.tier1) as Arc<dyn ContentSource>;
        let state = Arc::new(self.tier1.index_state()?);
        Ok(Tier2::open_over(self.config.clone(), source, nodes.collect(), state)?)
    }

    /// Runs the router until the term ends. If the router does not open, tries again: the router of the last
    /// term may still hold the lock, or the range may not answer yet.
    fn run_term(&self, ends: &AtomicBool) {
        let mut said = String::new();
        while !ends.load(Ordering::Relaxed) {
            match self.open() {
                Ok(router) => {
                    self.slot.install(Arc::clone(&router) as _, router.session());
                    tracing::info!("this node now runs the router of the index");
                    while !ends.load(Ordering::Relaxed) {
                        std::thread::park();
                    }
                    self.slot.clear();
                    router.stop();
                }
                Err(error) => {
                    if error.to_string() != said {
                        said = error.to_string();
                        tracing::error!(%error, dir = %self.dir.display(), "cannot open the router of the index, trying again; pages stay pending");
                    }
                    std::thread::park_timeout(PAUSE);
                }
            }
        }
    }
}
