//! `doppel tier1`: the system of record of a cluster.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use doppel_protocol::index_node::IndexNode;
use doppel_protocol::{MappingApi, SignatureSource, Tier1Api, Tier2Api};
use doppel_wire::index_node::RemoteNode;
use doppel_wire::tier1::Collection;
use doppel_wire::{Listener, Panics, Runtime, signatures, tier1, tier2};

use crate::args::TuningArgs;
use crate::cluster::{Cluster, node_dir};
use crate::manifest::Wanted;
use crate::process::{self, NodeArgs, announce};
use crate::wire::{Engine, winners};

/// Calls at once, besides those that wait.
const CALLS: usize = 64;

/// Run the node of tier 1, the system of record, in a cluster.
///
/// It has the pages and their groups, and tells the nodes of tier 2 what to compare. The cluster is distributed, not
/// replicated: this node has the only copy of the pages, so take backups. Prints one line when it is ready.
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
        let listener = process::listen_as(listen, &node.address).await?;
        let address = listener.local_addr()?;
        let runtime =
            Runtime::new(tokio::runtime::Handle::current()).context("cannot start the HTTP client")?;
        let mut nodes: Vec<Arc<dyn IndexNode>> = Vec::new();
        for node in cluster.index_nodes() {
            nodes.push(Arc::new(RemoteNode::new(cluster.peer(&runtime, &own, node)?)));
        }
        let wanted = Wanted { winners: winners(&tuning)?.order, ..cluster.wanted() };
        let identity = own.clone();
        let opened = tokio::task::spawn_blocking(move || {
            node_dir::claim(&data, &identity, "tier-1")?;
            Engine::open_in_cluster(&data.join(node_dir::COLLECTION), wanted, &tuning, nodes)
        });
        let engine = opened.await.context("the recovery panicked")??;
        let collection = Collection { policy: engine.policy, winners: engine.winners, shards: engine.shards };
        let calls = Listener::new(own, CALLS, Panics::Fail);
        let calls = tier1::serve(calls, &(Arc::clone(&engine.tier1) as Arc<dyn Tier1Api>), collection);
        let calls = signatures::serve(calls, &(Arc::clone(&engine.tier1) as Arc<dyn SignatureSource>));
        let calls = tier2::serve(
            calls,
            &(Arc::clone(&engine.tier2) as Arc<dyn Tier2Api>),
            &(Arc::clone(&engine.tier2) as Arc<dyn MappingApi>),
        );
        tracing::warn!(
            "the cluster is distributed, not replicated: this node has the only copy of the pages"
        );
        announce("tier 1", &name, &cluster.id, address)?;
        let served = calls.serve(listener, shutdown).await;
        // A node that does not answer does not keep this one from ending.
        runtime.end();
        tokio::task::spawn_blocking(move || engine.stop()).await.context("the engine did not end well")?;
        served.context("the listener did not end well")
    }
}
