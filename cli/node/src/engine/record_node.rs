//! A node of tier 1 in a cluster without a log: its ranges, the connections to the ranges of other nodes, and
//! the router of the index or the connection to it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use doppel_control::cluster::Cluster;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::range_owner::RangeOwner;
use doppel_protocol::{ContentSource, IndexOrders};
use doppel_tier1::{OtherRanges, Rules, Tier1};
use doppel_tier2::{StateFiles, Tier2};
use doppel_wire::index_node::RemoteNode;
use doppel_wire::orders::RemoteOrders;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::router_slot::RouterSlot;
use doppel_wire::tier1::CollectionInfo;
use doppel_wire::{NodeName, Peer};

use super::{DEFAULTS, Purpose, ensure_not_lost, index, open_tier1};
use crate::args::TuningArgs;
use crate::directory::manifest::{Manifest, ManifestRequest};

/// A started node of tier 1 whose ranges have no other replica.
pub struct RecordNode {
    /// Tier 1 of this node.
    pub tier1: Arc<Tier1>,
    /// Place of the router of the index; occupied if this node owns the first range.
    pub slot: Arc<RouterSlot>,
    /// Properties of the collection, for other nodes that ask for them.
    pub collection: CollectionInfo,
    index: Index,
}

/// The way to the router of the index.
enum Index {
    /// The router runs in this process.
    Here(Arc<Tier2>),
    /// The router runs at the owner of the first range.
    There(Arc<RemoteOrders>),
}

/// Connections to all nodes of the cluster.
pub struct Peers {
    /// Connections to the nodes of tier 1, including this one, in the order of the description.
    pub tier1: Vec<Peer>,
    /// Connections to the nodes of tier 2, in the order of the plan.
    pub tier2: Vec<Peer>,
}

impl RecordNode {
    /// Opens or creates the collection of a node, recovers it, and starts it. Other nodes of either tier need
    /// not run.
    ///
    /// # Errors
    /// If the directory contradicts the description, or a tier does not open.
    pub fn open(
        dir: &Path,
        (cluster, name): (&Cluster, &NodeName),
        args: &TuningArgs,
        peers: Peers,
    ) -> anyhow::Result<Self> {
        let purpose = Purpose { durable: true, answers: true, rules: Rules::EXACT };
        let manifest = Manifest::open_or_create(dir, ManifestRequest::of_cluster(cluster), DEFAULTS)?;
        let mut others = OtherRanges::new();
        let nodes = cluster.tier1_nodes().iter().zip(&peers.tier1);
        for (other, peer) in nodes.clone().filter(|(other, _)| other.name != *name) {
            let owner: Arc<dyn RangeOwner> = Arc::new(RemoteRanges::new(peer.clone()));
            others.extend(other.ranges.iter().map(|range| (*range, Arc::clone(&owner))));
        }
        // The backups of a single node belong to its directory, so they have its own manifest.
        let is_single = cluster.tier1_nodes().len() == 1;
        let of_backups = if is_single { manifest.clone() } else { manifest.of_cluster(&cluster.id) };
        let tier1 = open_tier1(dir, (&manifest, &of_backups), args, purpose, others)?;
        let slot = Arc::new(RouterSlot::new());
        let router = cluster.router();
        let index = if router.name == *name {
            ensure_not_lost(dir, &tier1)?;
            let nodes =
                peers.tier2.into_iter().map(|peer| Arc::new(RemoteNode::new(peer)) as Arc<dyn IndexNode>);
            let source = Arc::clone(&tier1) as Arc<dyn ContentSource>;
            let config = index(dir, &manifest, args);
            let state = Arc::new(StateFiles::new(&config.dir));
            let tier2 = Tier2::open_over(config, source, nodes.collect(), state);
            let tier2 = tier2.with_context(|| format!("cannot open the index in {}", dir.display()))?;
            slot.install(Arc::clone(&tier2) as _, tier2.session());
            Index::Here(tier2)
        } else {
            let peer =
                nodes.filter(|(node, _)| node.name == router.name).map(|(_, peer)| peer.clone()).next();
            let peer = peer.context("the node with the router is not in the cluster")?;
            Index::There(RemoteOrders::start(peer).context("cannot start the thread of orders")?)
        };
        tier1.start(index.orders()).context("cannot start tier 1")?;
        let Manifest { policy, winners, shards, tables, .. } = manifest;
        let collection = CollectionInfo { policy, winners, shards, tables };
        Ok(Self { tier1, slot, collection, index })
    }

    /// Stops the node; pending pages are decided after the next start.
    pub fn stop(self) {
        self.slot.clear();
        self.tier1.stop();
        match self.index {
            Index::Here(tier2) => tier2.stop(),
            Index::There(orders) => orders.stop(),
        }
    }
}

impl Index {
    fn orders(&self) -> Arc<dyn IndexOrders> {
        match self {
            Self::Here(tier2) => Arc::clone(tier2) as Arc<dyn IndexOrders>,
            Self::There(orders) => Arc::clone(orders) as Arc<dyn IndexOrders>,
        }
    }
}
