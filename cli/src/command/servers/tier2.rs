//! `doppel tier2`: runs a node of the index.

use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use doppel_control::connection::{self, JoinedCluster};
use doppel_control::description::file::ClusterFile;
use doppel_control::description::steps::ProcessRole;
use doppel_control::node_directory::{self, Restored};
use doppel_control::startup_wait::StartupWait;
use doppel_control::watch::Watch;
use doppel_inputs::processor;
use doppel_node::process::{self, NodeArgs, announce};
use doppel_protocol::SignatureSource;
use doppel_protocol::index_node::IndexNode;
use doppel_tier2::{NodeProcess, NodeSettings};
use doppel_wire::signatures::RemoteSignatures;
use doppel_wire::spread::SpreadSignatures;
use doppel_wire::{CallListener, PanicPolicy, Runtime, index_node};

/// Largest number of calls at once. Each call may carry the largest allowed number of signatures.
const CALLS: usize = 8;

/// Run a node of tier 2, the index, in a cluster.
///
/// The node stores partitions of the index and searches them. Everything in its directory can be rebuilt from
/// tier 1, so the directory may be lost. It prints one line when it is ready.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel tier2 --cluster cluster.toml --name index-1 --data /var/lib/doppel")]
pub(crate) struct Tier2 {
    #[command(flatten)]
    node: NodeArgs,
    /// Number of threads that compare, 1 to 1024 [default: one for each core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Tier2 {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let logging = self.node.log.begin("tier2", Some(&self.node.data))?;
        logging.of(|| process::run(self.serve()))
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = process::shutdown()?;
        tokio::pin!(shutdown);
        let NodeArgs { cluster, name, data, listen, .. } = self.node;
        let file = ClusterFile::read(&cluster)?;
        let joined: Option<JoinedCluster> =
            connection::join(&file, &name, &StartupWait::default(), &mut shutdown).await?;
        let Some((cluster, hearing)) = joined else { return Ok(()) };
        let (id, node) = cluster.tier2_node(&name)?;
        let own = cluster.identity(&name);
        let listener = process::listen::bind_node(listen, &node.address).await?;
        let address = listener.local_addr()?;
        let runtime =
            Runtime::new(tokio::runtime::Handle::current()).context("cannot start the HTTP client")?;
        let mut records: Vec<Arc<dyn SignatureSource>> = Vec::new();
        for record in cluster.tier1_nodes() {
            let peer = cluster.peer(&runtime, &own, &record.name, &record.address)?;
            records.push(Arc::new(RemoteSignatures::new(peer)));
        }
        connection::count(&runtime, hearing.as_deref());
        let owners = connection::owners(&cluster, hearing.as_deref(), None);
        let source: Arc<dyn SignatureSource> = Arc::new(SpreadSignatures::new(records, owners));
        let settings = NodeSettings {
            dir: data.join("index"),
            id,
            policy: cluster.policy,
            threads: self.threads.map_or_else(processor::cores, usize::from),
        };
        let identity = own.clone();
        let opened = tokio::task::spawn_blocking(move || {
            node_directory::claim(&data, &identity, "tier-2", Restored::Refused)?;
            anyhow::Ok(NodeProcess::open(settings, source)?)
        });
        let node = Arc::new(opened.await.context("the start panicked")??);
        let calls = index_node::serve(
            CallListener::new(own, CALLS, PanicPolicy::End).counting(runtime.traffic()),
            &(Arc::clone(&node) as Arc<dyn IndexNode>),
        );
        let watch =
            hearing.as_deref().map(|hearing| Watch::start(hearing, (ProcessRole::Tier2, &name), |_| {}));
        let watch = watch.transpose()?;
        announce("tier 2", &name, &cluster.id, address)?;
        let served = calls.serve(listener, shutdown).await;
        runtime.end();
        let stop = move || {
            drop(watch);
            node.stop();
        };
        tokio::task::spawn_blocking(stop).await.context("the node stopped with an error")?;
        served.context("the listener stopped with an error")
    }
}
