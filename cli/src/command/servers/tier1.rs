//! `doppel tier1`: runs a node of the system of record of a cluster.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use doppel_control::cluster::Cluster;
use doppel_control::connection::{self, JoinedCluster};
use doppel_control::description::Description;
use doppel_control::description::file::ClusterFile;
use doppel_control::description::steps::ProcessRole;
use doppel_control::log::all_streams;
use doppel_control::log::monitored::{LogTarget, find_objections};
use doppel_control::log::monitors::Objections;
use doppel_control::node_directory::{self, Restored};
use doppel_control::startup_wait::StartupWait;
use doppel_control::watch::Watch;
use doppel_node::args::TuningArgs;
use doppel_node::directory::manifest::ManifestRequest;
use doppel_node::engine::record_node::{Peers, RecordNode};
use doppel_node::engine::replicated_node::ReplicatedNode;
use doppel_node::engine::winners;
use doppel_node::process::{self, NodeArgs, announce};
use doppel_protocol::range_owner::RangeOwner;
use doppel_protocol::{MappingApi, SignatureSource, Tier1Api, Tier2Api};
use doppel_shared_log::LogEngine;
use doppel_wire::traffic::WireTraffic;
use doppel_wire::{
    CallListener, Identity, PanicPolicy, Runtime, orders, range_owner, signatures, take_over, tier1, tier2,
};

/// Largest number of calls at once, besides calls that wait.
const CALLS: usize = 64;

/// Run a node of tier 1, the system of record, in a cluster.
///
/// The node stores ranges of the pages and their groups. The owner of the first range tells the nodes of tier
/// 2 what to compare, for all ranges. In a cluster with a log, the node has replicas of ranges, owns some of
/// them, and takes over ranges of a node that has fallen silent. Without a log, it has the only copy of its
/// pages, so take backups. It prints one line when it answers the other nodes; `doppel cluster status` says
/// when it follows and owns its ranges.
///
/// --partitions, --dimensions and --snapshot-every of the index take effect at the node that owns the first
/// range, so give them to all nodes that have a replica of it. The other options take effect at each node for
/// the ranges that it owns, so give all nodes the same values.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Example:
  doppel tier1 --cluster cluster.toml --name record --data /var/lib/doppel",
    mut_arg("winners", |arg| {
        let help = "A file of winner rules (docs/reference/winner-rules.md). The rules must be those that `doppel init --winners` \
            has fixed. Only coordinators use its markets, so the file need not be given here";
        arg.help(help).long_help(help)
    })
)]
pub(crate) struct Tier1 {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    tuning: TuningArgs,
}

impl Tier1 {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let logging = self.node.log.begin("tier1", Some(&self.node.data))?;
        logging.of(|| process::run(self.serve()))
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = process::shutdown()?;
        tokio::pin!(shutdown);
        let (NodeArgs { cluster, name, data, listen, .. }, tuning) = (self.node, self.tuning);
        let file = ClusterFile::read(&cluster)?;
        let joined: Option<JoinedCluster> =
            connection::join(&file, &name, &StartupWait::default(), &mut shutdown).await?;
        let Some((cluster, hearing)) = joined else { return Ok(()) };
        let node = cluster.tier1_node(&name)?;
        let own = cluster.identity(&name);
        let wanted = ManifestRequest::of_cluster(&cluster);
        if winners(&tuning)?.order.is_some_and(|order| wanted.winners != Some(order)) {
            bail!(
                "the rules of winners are fixed by `doppel init --winners`, and those of --winners are others"
            );
        }
        let listener = process::listen::bind_node(listen, &node.address).await?;
        let address = listener.local_addr()?;
        let runtime =
            Runtime::new(tokio::runtime::Handle::current()).context("cannot start the HTTP client")?;
        let mut tier1 = Vec::new();
        for node in cluster.tier1_nodes() {
            tier1.push(cluster.peer(&runtime, &own, &node.name, &node.address)?);
        }
        let mut tier2 = Vec::new();
        for node in cluster.index_nodes() {
            tier2.push(cluster.peer(&runtime, &own, &node.name, &node.address)?);
        }
        let peers = Peers { tier1, tier2 };
        let restored = if cluster.log().is_some() { Restored::Refused } else { Restored::Taken };
        node_directory::claim(&data, &own, "tier-1", restored)?;
        let dir = data.join(node_directory::COLLECTION);
        let (mut watch, id) = (None, Arc::clone(&cluster.id));
        let node = match hearing {
            Some(hearing) => {
                connection::count(&runtime, Some(&hearing));
                let owners = connection::owners(&cluster, Some(&hearing), Some(&name));
                let own = name.clone();
                let servers = file.servers().unwrap_or_default().to_vec();
                let open = move || {
                    ensure_settles(&cluster, &hearing.engine, &servers)?;
                    ReplicatedNode::open(&dir, (&cluster, &own), &tuning, (hearing, owners), peers)
                };
                let node = tokio::task::spawn_blocking(open).await.context("the start panicked")??;
                let (keeper, own) = (Arc::clone(&node.keeper), name.clone());
                let changed = move |description: &Description| keeper.keep_to(&description.ranges_of(&own));
                watch = Some(Watch::start(&node.connection, (ProcessRole::Tier1, &name), changed)?);
                TierOneNode::Replicated(Box::new(node))
            }
            None => {
                tracing::warn!(
                    "the cluster is distributed, not replicated: this node has the only copy of its pages"
                );
                let own = name.clone();
                let open = move || RecordNode::open(&dir, (&cluster, &own), &tuning, peers);
                TierOneNode::Fixed(tokio::task::spawn_blocking(open).await.context("the recovery panicked")??)
            }
        };
        announce("tier 1", &name, &id, address)?;
        let served = calls(own, &node, runtime.traffic()).serve(listener, shutdown).await;
        // A node that does not answer must not keep this node from ending.
        runtime.end();
        let stop = move || {
            drop(watch);
            node.stop();
        };
        tokio::task::spawn_blocking(stop).await.context("the node stopped with an error")?;
        served.context("the listener stopped with an error")
    }
}

/// Ensures that all log servers that answer are set as the mode of settlement requires. One server may be
/// away.
fn ensure_settles(cluster: &Cluster, engine: &LogEngine, servers: &[String]) -> anyhow::Result<()> {
    let Some(log) = cluster.log() else { return Ok(()) };
    let streams = all_streams(&cluster.id, cluster.description.ranges);
    let place = LogTarget { engine, servers, streams: &streams };
    let Objections { wrong, silent } = find_objections(log, &place, Instant::now());
    for silent in silent {
        tracing::warn!("{silent}; how it is set is not known");
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; or change the mode: `doppel cluster log --settlement standby`, which needs two replicas of each range",
        wrong.join("; ")
    )
}

/// A node of tier 1, with or without a log.
enum TierOneNode {
    Fixed(RecordNode),
    Replicated(Box<ReplicatedNode>),
}

impl TierOneNode {
    fn stop(self) {
        match self {
            Self::Fixed(node) => node.stop(),
            Self::Replicated(node) => node.stop(),
        }
    }
}

/// Builds the listener for the calls that the node answers.
fn calls(own: Identity, node: &TierOneNode, traffic: &WireTraffic) -> CallListener {
    let (tier1, slot, collection) = match node {
        TierOneNode::Fixed(node) => (&node.tier1, &node.slot, node.collection),
        TierOneNode::Replicated(node) => (&node.tier1, &node.slot, node.collection),
    };
    let calls = CallListener::new(own, CALLS, PanicPolicy::Fail).counting(traffic);
    let calls = tier1::serve(calls, &(Arc::clone(tier1) as Arc<dyn Tier1Api>), collection);
    let calls = signatures::serve(calls, &(Arc::clone(tier1) as Arc<dyn SignatureSource>));
    let calls = range_owner::serve(calls, &(Arc::clone(tier1) as Arc<dyn RangeOwner>));
    let calls = orders::serve(calls, slot);
    let calls = match node {
        TierOneNode::Replicated(node) => {
            let keeper = Arc::clone(&node.keeper);
            take_over::serve(calls, move |range| keeper.take_over(range))
        }
        TierOneNode::Fixed(_) => calls,
    };
    tier2::serve(calls, &(Arc::clone(slot) as Arc<dyn Tier2Api>), &(Arc::clone(slot) as Arc<dyn MappingApi>))
}
