//! `doppel tier1`: the system of record of a cluster.

use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use doppel_protocol::range_owner::RangeOwner;
use doppel_protocol::{MappingApi, SignatureSource, Tier1Api, Tier2Api};
use doppel_tier1::OtherRanges;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::seat::RouterSeat;
use doppel_wire::{Identity, Listener, Panics, Runtime, orders, range_owner, signatures, tier1, tier2};

use crate::args::TuningArgs;
use crate::cluster::{Cluster, node_dir};
use crate::process::{self, NodeArgs, announce};
use crate::wire::in_cluster::{Index, RecordNode, Router};
use crate::wire::winners;

/// Calls at once, besides those that wait.
const CALLS: usize = 64;

/// Run a node of tier 1, the system of record, in a cluster.
///
/// It has ranges of the pages and their groups. The owner of the first range tells the nodes of tier 2 what to compare, for
/// all. The cluster is distributed, not replicated: this node has the only copy of its pages, so take backups. Prints one line
/// when it is ready.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel tier1 --cluster cluster.toml --name record --data /var/lib/doppel")]
pub(crate) struct Tier1 {
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    tuning: TuningArgs,
}

impl Tier1 {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        process::start()?.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = process::shutdown()?;
        let (NodeArgs { cluster, name, data, listen }, tuning) = (self.node, self.tuning);
        let cluster = Cluster::read(&cluster)?;
        let node = cluster.tier1_node(&name)?;
        let own = cluster.identity(&name);
        let wanted = cluster.wanted();
        if winners(&tuning)?.order.is_some_and(|order| wanted.winners != Some(order)) {
            bail!(
                "the rules of winners are fixed by `doppel init --winners`, and those of --winners are others"
            );
        }
        let listener = process::listen_as(listen, &node.address).await?;
        let address = listener.local_addr()?;
        let runtime =
            Runtime::new(tokio::runtime::Handle::current()).context("cannot start the HTTP client")?;
        let mut others = OtherRanges::new();
        for other in cluster.tier1_nodes().iter().filter(|other| other.name != name) {
            let owner: Arc<dyn RangeOwner> =
                Arc::new(RemoteRanges::new(cluster.peer(&runtime, &own, &other.name, &other.address)?));
            others.extend(other.ranges.iter().map(|range| (*range, Arc::clone(&owner))));
        }
        let router = cluster.router();
        let router = if router.name == name {
            let nodes = cluster.index_nodes().iter();
            let nodes = nodes.map(|node| cluster.peer(&runtime, &own, &node.name, &node.address));
            Router::Here(nodes.collect::<Result<_, _>>()?)
        } else {
            Router::There(cluster.peer(&runtime, &own, &router.name, &router.address)?)
        };
        let identity = own.clone();
        let opened = tokio::task::spawn_blocking(move || {
            node_dir::claim(&data, &identity, "tier-1")?;
            RecordNode::open(&data.join(node_dir::COLLECTION), wanted, &tuning, others, router)
        });
        let node = opened.await.context("the recovery panicked")??;
        tracing::warn!(
            "the cluster is distributed, not replicated: this node has the only copy of its pages"
        );
        announce("tier 1", &name, &cluster.id, address)?;
        let served = calls(own, &node).serve(listener, shutdown).await;
        // A node that does not answer does not keep this one from ending.
        runtime.end();
        tokio::task::spawn_blocking(move || node.stop()).await.context("the node did not end well")?;
        served.context("the listener did not end well")
    }
}

/// What the node answers.
fn calls(own: Identity, node: &RecordNode) -> Listener {
    let RecordNode { tier1, index, collection } = node;
    let calls = Listener::new(own, CALLS, Panics::Fail);
    let calls = tier1::serve(calls, &(Arc::clone(tier1) as Arc<dyn Tier1Api>), *collection);
    let calls = signatures::serve(calls, &(Arc::clone(tier1) as Arc<dyn SignatureSource>));
    let calls = range_owner::serve(calls, &(Arc::clone(tier1) as Arc<dyn RangeOwner>));
    let Index::Here(tier2) = index else { return calls };
    let seat = Arc::new(RouterSeat::new());
    seat.sit(tier2.clone(), tier2.session());
    let calls = orders::serve(calls, &seat);
    tier2::serve(calls, &(Arc::clone(&seat) as Arc<dyn Tier2Api>), &(seat as Arc<dyn MappingApi>))
}
