//! `doppel coordinator`: runs a front door of a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use doppel_control::cluster::{Cluster, ClusterNews};
use doppel_control::connection::{self, ClusterConnection, JoinedCluster};
use doppel_control::description::file::ClusterFile;
use doppel_control::description::steps::ProcessRole;
use doppel_control::startup_wait::StartupWait;
use doppel_control::watch::Watch;
use doppel_coordinator::app::{App, MonitoredDirectory, Services, system_clock};
use doppel_dataset::extracted::extractors;
use doppel_engine::shard_owners::ShardOwners;
use doppel_model::pairwise::Signer;
use doppel_model::tables::{Tables, TablesHash};
use doppel_node::directory::policy_tables;
use doppel_node::front_door::FrontDoorArgs;
use doppel_node::process;
use doppel_node::process::logging::LogArgs;
use doppel_node::winners::WinnerSettings;
use doppel_protocol::{ClusterApi, MappingApi, Tier1Api, Tier2Api};
use doppel_wire::spread::SpreadTier1;
use doppel_wire::tier1::{CollectionInfo, RemoteTier1};
use doppel_wire::tier2::{RemoteTier2, RoutedTier2};
use doppel_wire::{NodeName, Runtime};
use prometheus_client::registry::Registry;

/// Pause between two attempts to reach tier 1 during the start.
const PAUSE: Duration = Duration::from_millis(500);

/// Run a coordinator, a front door of a cluster.
///
/// It answers the public HTTP interface, as `doppel serve` does. It stores nothing, so any number of
/// coordinators may run. It prints one line with its address when it accepts requests. With a log, that is as
/// soon as one node of tier 1 answers; without a log, when all nodes do. Until then, `/healthz` says that the
/// process lives. `/readyz` and all other paths answer with status 503 and what the coordinator waits for.
/// Whether every range has an owner is a separate question, which `doppel cluster status` answers.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  doppel coordinator --cluster cluster.toml --name front-1 --listen 10.0.0.31:7700 --tokens tokens")]
pub(crate) struct Coordinator {
    /// File of the cluster, as written by `doppel init`. The secret is beside it.
    #[arg(long, value_name = "FILE", env = "DOPPEL_CLUSTER")]
    cluster: PathBuf,
    /// Name of this coordinator, by which the logs of the other nodes mention it.
    #[arg(long, value_name = "NAME", env = "DOPPEL_NAME", default_value = "coordinator")]
    name: NodeName,
    #[command(flatten)]
    front_door: FrontDoorArgs,
    /// File that names markets (docs/reference/winner-rules.md); give all coordinators the same one. Its
    /// rules are not used, because `doppel init --winners` fixes the rules.
    #[arg(long, value_name = "FILE")]
    winners: Option<PathBuf>,
    /// Tables of the cluster's policy, if it needs any: the file that was given to `doppel init
    /// --policy-tables`.
    #[arg(long, value_name = "FILE")]
    policy_tables: Option<PathBuf>,
    /// Detect the language of a page if its record gives none. Give this option to all coordinators or to
    /// none.
    #[arg(long)]
    detect_language: bool,
    /// Directory in which exports are sorted that do not fit in memory [default: the system's directory of
    /// temporary files].
    #[arg(long, value_name = "DIR")]
    temp: Option<PathBuf>,
    #[command(flatten)]
    log: LogArgs,
}

impl Coordinator {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let logging = self.log.begin("coordinator", None)?;
        logging.of(|| process::run(self.serve()))
    }

    async fn serve(self) -> anyhow::Result<()> {
        let shutdown = process::shutdown()?;
        tokio::pin!(shutdown);
        let front_door = self.front_door.open().await?;
        front_door.reread_on_hangup()?;
        let file = ClusterFile::read(&self.cluster)?;
        let tables = self.policy_tables.as_deref().map(policy_tables::read).transpose()?;
        let markets =
            self.winners.as_deref().map(WinnerSettings::read).transpose()?.unwrap_or_default().markets;
        let temp_dir = self.temp.unwrap_or_else(std::env::temp_dir);
        std::fs::create_dir_all(&temp_dir)
            .with_context(|| format!("cannot create {}", temp_dir.display()))?;
        let awaited = StartupWait::default();
        let mut reached = Ok(None);
        let reach = async { reached = reach(&file, &self.name, tables, &awaited, &mut shutdown).await };
        let text = {
            let awaited = awaited.clone();
            move || awaited.text()
        };
        doppel_coordinator::serve_until_reached(&front_door.listeners, text, reach)
            .await
            .context("the server stopped with an error")?;
        let Some(ReachedCluster { cluster, signer, hearing, runtime, nodes, routers, collection }) = reached?
        else {
            return Ok(());
        };
        let own = cluster.identity(&self.name);
        let owners = connection::owners(&cluster, hearing.as_deref(), None);
        let names = cluster.owners().into_iter().map(|node| cluster.tier1_nodes()[node].name.to_string());
        let shard_owners = ShardOwners::fixed(names.collect());
        let nodes = nodes.into_iter().map(|node| Arc::new(node) as Arc<dyn Tier1Api>);
        let tier1 = SpreadTier1::new(nodes.collect(), Arc::clone(&owners));
        let tier2 = Arc::new(RoutedTier2::new(routers, move || connection::router(&*owners)));
        let watch = hearing
            .as_deref()
            .map(|hearing| Watch::start(hearing, (ProcessRole::Coordinator, &self.name), |_| {}));
        let watch = watch.transpose()?;
        let news = hearing.as_deref().zip(watch.as_ref()).map(|(hearing, watch)| ClusterNews {
            membership: Arc::clone(&hearing.membership),
            processes: watch.processes(),
            engine: hearing.engine.clone(),
            servers: file.servers().unwrap_or_default().to_vec(),
        });
        let nodes = Arc::new(cluster.nodes(&runtime, &own, Arc::clone(&tier2), news)?);
        let app = App::new(Services {
            tier1: Arc::new(tier1) as Arc<dyn Tier1Api>,
            tier2: Arc::clone(&tier2) as Arc<dyn Tier2Api>,
            mapping: Some(tier2 as Arc<dyn MappingApi>),
            cluster: Some(nodes as Arc<dyn ClusterApi>),
            policy: collection.policy,
            winners: collection.winners,
            markets,
            shard_owners,
            ingest: Arc::new(extractors(signer, self.detect_language)?),
            tokens: front_door.listeners.access.tokens.clone(),
            registry: Registry::default(),
            clock: system_clock(),
            directories: vec![MonitoredDirectory { name: "temp", path: temp_dir.clone(), is_own: false }],
            temp_dir,
            limits: front_door.limits.clone(),
        });
        front_door.announce(&format!("doppel coordinator {}", self.name))?;
        let served = doppel_coordinator::serve(front_door.listeners, app, shutdown).await;
        tokio::task::spawn_blocking(move || drop(watch)).await.context("the watch stopped with an error")?;
        served.context("the server stopped with an error")
    }
}

/// A cluster whose nodes of tier 1 have answered.
struct ReachedCluster {
    cluster: Cluster,
    signer: Signer,
    hearing: Option<Box<ClusterConnection>>,
    runtime: Runtime,
    nodes: Vec<RemoteTier1>,
    routers: Vec<RemoteTier2>,
    collection: CollectionInfo,
}

/// Waits for the log of the cluster, if it has one, and for its nodes of tier 1. Refuses tables that differ
/// from the cluster's. Returns `None` if the process has to end.
async fn reach(
    file: &ClusterFile,
    name: &NodeName,
    tables: Option<Arc<Tables>>,
    awaited: &StartupWait,
    mut shutdown: impl Future<Output = ()> + Unpin,
) -> anyhow::Result<Option<ReachedCluster>> {
    let joined: Option<JoinedCluster> = connection::join(file, name, awaited, &mut shutdown).await?;
    let Some((cluster, hearing)) = joined else { return Ok(None) };
    let signer = policy_tables::signer_of_cluster((cluster.policy, cluster.description.tables), tables)?;
    let own = cluster.identity(name);
    let runtime = Runtime::new(tokio::runtime::Handle::current()).context("cannot start the HTTP client")?;
    connection::count(&runtime, hearing.as_deref());
    let (mut nodes, mut routers) = (Vec::new(), Vec::new());
    for node in cluster.tier1_nodes() {
        let peer = cluster.peer(&runtime, &own, &node.name, &node.address)?;
        nodes.push(RemoteTier1::new(peer.clone()));
        routers.push(RemoteTier2::new(peer));
    }
    let required = if hearing.is_some() { RequiredNodes::One } else { RequiredNodes::All };
    let collection = ask(&nodes, required, &runtime, awaited, &mut shutdown).await?;
    let Some(collection) = collection else { return Ok(None) };
    anyhow::ensure!(
        collection.policy == signer.policy(),
        "the collection of tier 1 has the policy {}, but the cluster file has {}; start all processes with copies of one cluster file",
        collection.policy,
        signer.policy()
    );
    let tables = signer.tables().map(|tables| tables.hash());
    let named =
        |tables: Option<TablesHash>| tables.map_or_else(|| "none".to_owned(), |hash| hash.to_string());
    anyhow::ensure!(
        collection.tables == tables,
        "the collection of tier 1 was made with the tables {}, and those of this process are {}: start all with copies of one \
         file, and this one with the tables that `doppel init` was given",
        named(collection.tables),
        named(tables)
    );
    Ok(Some(ReachedCluster { cluster, signer, hearing, runtime, nodes, routers, collection }))
}

/// Nodes of tier 1 that must answer before the coordinator starts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredNodes {
    /// All nodes: each has ranges that no other node has.
    All,
    /// One node: the others may be down, and their ranges are taken over.
    One,
}

/// Asks every node of tier 1 which collection it has. Waits until the nodes that `required` names have
/// answered, and ensures that all answers are equal. Returns `None` if the process has to end.
async fn ask(
    nodes: &[RemoteTier1],
    required: RequiredNodes,
    runtime: &Runtime,
    awaited: &StartupWait,
    mut shutdown: impl Future<Output = ()> + Unpin,
) -> anyhow::Result<Option<CollectionInfo>> {
    loop {
        let asking = nodes.to_vec();
        let ask = move || {
            let mut answers = Vec::new();
            let mut failed = None;
            for node in &asking {
                match node.collection() {
                    Ok(answer) => answers.push(answer),
                    Err(error) if required == RequiredNodes::All || error.is_final() => return Err(error),
                    Err(error) => failed = Some(error),
                }
            }
            failed.filter(|_| answers.is_empty()).map_or(Ok(answers), Err)
        };
        let mut answers = tokio::task::spawn_blocking(ask);
        let answers = tokio::select! {
            answers = &mut answers => answers,
            () = &mut shutdown => {
                // The calls are cancelled and must end while the runtime still exists.
                runtime.end();
                drop(answers.await);
                return Ok(None);
            }
        };
        match answers.context("the call to tier 1 panicked")? {
            Ok(answers) => {
                let first = answers.first().copied().context("there is no node of tier 1")?;
                anyhow::ensure!(
                    answers.iter().all(|answer| *answer == first),
                    "the nodes of tier 1 have different collections: {answers:?}; start all processes with copies of one cluster file"
                );
                return Ok(Some(first));
            }
            Err(error) if error.is_final() => return Err(error.into()),
            Err(error) => {
                awaited.note("tier 1", &error.to_string());
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = &mut shutdown => return Ok(None),
                }
            }
        }
    }
}
