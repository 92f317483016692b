//! The connection of a process to the log of its cluster. Through it the process learns the description of
//! the cluster and which node owns which range at present.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use doppel_contract::answer::Attention;
use doppel_model::ShardId;
use doppel_protocol::RangeMap;
use doppel_protocol::beats::{Beat, ClusterMembership};
use doppel_shared_log::{LogEngine, LogTraffic, NewsChannel, NewsSubscription};
use doppel_wire::spread::{FixedOwners, OwnerLookup};
use doppel_wire::traffic::TransferredBytes;
use doppel_wire::{NodeName, Runtime};
use tokio::runtime::Handle;

use crate::cluster::Cluster;
use crate::description::file::ClusterFile;
use crate::description::file::ClusterFileContents;
use crate::log;
use crate::log::streams;
use crate::meta::unavailable::MetaUnavailable;
use crate::meta::{Described, Meta, MetaError};
use crate::startup_wait::StartupWait;

/// The pause between two attempts to reach the log.
const PAUSE: Duration = Duration::from_millis(500);

/// Connection to the log of the cluster, and the reports that nodes publish there.
pub struct ClusterConnection {
    /// The client of the log.
    pub engine: LogEngine,
    /// Latest beats of the nodes of tier 1.
    pub membership: Arc<ClusterMembership>,
    /// The stream that stores the description of the cluster.
    pub meta: Meta,
    /// The description that META had at the start.
    pub(crate) described: Described,
    channel: NewsChannel,
    _listening: NewsSubscription,
}

/// A cluster and the connection to its log; `None` if the cluster has no log.
pub type JoinedCluster = (Cluster, Option<Box<ClusterConnection>>);

/// Reads the description of a cluster: from META if the cluster has a log, otherwise from the file.
///
/// If META does not answer, the call tries again until META answers. Returns `None` if `shutdown` completes
/// first. `awaited` records what the process is waiting for.
///
/// # Errors
/// If the log or the description cannot be used.
pub async fn join(
    file: &ClusterFile,
    name: &NodeName,
    awaited: &StartupWait,
    mut shutdown: impl Future<Output = ()> + Unpin,
) -> anyhow::Result<Option<JoinedCluster>> {
    let servers = match &file.contents {
        ClusterFileContents::All(description) => {
            return Ok(Some((Cluster::new(file, description.clone())?, None)));
        }
        ClusterFileContents::LogLocation(way) => way.servers.clone(),
    };
    let mut engine = None;
    let shared = Arc::new(file.clone());
    loop {
        let (servers, name, shared) = (servers.clone(), name.to_string(), Arc::clone(&shared));
        let (connected, handle) = (engine.clone(), Handle::current());
        let reach = move || reach(connected, handle, &servers, &name, &shared);
        match tokio::task::spawn_blocking(reach).await.context("reading the description panicked")?? {
            JoinAttempt::All(engine, meta, described) => {
                let cluster = Cluster::new(file, described.description.clone())?;
                if let Some(Attention { what, remedy }) = cluster.idle_reach() {
                    tracing::warn!("{what}: {remedy}");
                }
                let connection = ClusterConnection::begin(engine, meta, *described, &file.id);
                return Ok(Some((cluster, Some(Box::new(connection)))));
            }
            JoinAttempt::NotYet(connected, reason) => {
                engine = connected;
                awaited.note("the log", &reason);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = &mut shutdown => return Ok(None),
        }
    }
}

/// Result of one attempt to read the description from META.
enum JoinAttempt {
    All(LogEngine, Meta, Box<Described>),
    /// A later attempt may succeed. Has the connection, if there is one, and the reason.
    NotYet(Option<LogEngine>, String),
}

fn reach(
    connected: Option<LogEngine>,
    handle: Handle,
    servers: &[String],
    name: &str,
    file: &ClusterFile,
) -> anyhow::Result<JoinAttempt> {
    let not_yet = |engine, why: MetaUnavailable| Ok(JoinAttempt::NotYet(engine, why.to_string()));
    let engine = match connected.map_or_else(|| LogEngine::connect(handle, servers, name), Ok) {
        Ok(engine) => engine,
        Err(error) if streams::passes(&error) => return not_yet(None, MetaUnavailable::opening(file, error)),
        Err(error) => return Err(error.into()),
    };
    let meta = match Meta::open(&engine, Arc::clone(&file.id)) {
        Ok(meta) => meta,
        Err(error) if streams::passes(&error) => {
            return not_yet(Some(engine), MetaUnavailable::opening(file, error));
        }
        Err(error) => return Err(error.into()),
    };
    match meta.read() {
        Ok(described) => Ok(JoinAttempt::All(engine, meta, Box::new(described))),
        Err(error) if MetaError::passes(&error) => {
            not_yet(Some(engine), MetaUnavailable::reading(file, error))
        }
        Err(error) => Err(error.into()),
    }
}

impl ClusterConnection {
    fn begin(engine: LogEngine, meta: Meta, described: Described, id: &str) -> Self {
        let membership = Arc::new(ClusterMembership::new());
        let channel = engine.news_channel(&log::beats(id));
        let listening = hear(&channel, &membership);
        Self { engine, membership, meta, described, channel, _listening: listening }
    }

    /// Returns the function with which a node of tier 1 publishes its beats.
    pub fn tell(&self) -> impl Fn(&Beat) + Send + Sync + 'static {
        let (channel, membership) = (self.channel.clone(), Arc::clone(&self.membership));
        move |beat| {
            // A process does not receive its own beats from the news channel.
            membership.take(beat.clone(), Instant::now());
            match serde_json::to_vec(beat) {
                Ok(news) => channel.tell(Bytes::from(news)),
                Err(error) => tracing::error!(%error, "cannot encode a beat of this node"),
            }
        }
    }
}

/// Records the beats of all nodes in the membership, until the subscription is dropped.
pub fn hear(beats: &NewsChannel, membership: &Arc<ClusterMembership>) -> NewsSubscription {
    let membership = Arc::clone(membership);
    beats.listen(move |news| match serde_json::from_slice::<Beat>(news) {
        Ok(beat) => membership.take(beat, Instant::now()),
        Err(error) => tracing::debug!(%error, "cannot decode a beat of another node"),
    })
}

/// Adds the bytes sent to and received from the log to the traffic of the process.
pub fn count(runtime: &Runtime, connection: Option<&ClusterConnection>) {
    if let Some(ClusterConnection { engine, .. }) = connection {
        let engine = engine.clone();
        runtime.traffic().add_source("log", move || {
            let LogTraffic { received, sent } = engine.traffic();
            TransferredBytes { sent, received }
        });
    }
}

/// The owners of all shards: by the description if the cluster has no log, otherwise by the claims of the
/// nodes. `own` is the name of this process if it is a node of tier 1.
pub fn owners(
    cluster: &Cluster,
    connection: Option<&ClusterConnection>,
    own: Option<&NodeName>,
) -> Arc<dyn OwnerLookup> {
    let Some(ClusterConnection { membership, .. }) = connection else {
        return Arc::new(FixedOwners(cluster.owners()));
    };
    let names = cluster.tier1_names().iter().map(ToString::to_string).collect();
    let own = own.map(ToString::to_string);
    Arc::new(ClaimedOwners { membership: Arc::clone(membership), map: cluster.map(), names, own })
}

/// Position of the node that runs the router of the index: the owner of the first shard.
pub fn router(owners: &dyn OwnerLookup) -> Option<usize> {
    owners.of_shard(ShardId(0))
}

/// Owners of shards by the claims that nodes make in their beats.
struct ClaimedOwners {
    membership: Arc<ClusterMembership>,
    map: RangeMap,
    names: Vec<String>,
    own: Option<String>,
}

impl ClaimedOwners {
    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }
}

impl OwnerLookup for ClaimedOwners {
    fn shards(&self) -> u16 {
        self.map.shards()
    }

    fn of_shard(&self, shard: ShardId) -> Option<usize> {
        let (_, owner) = self.membership.owner(self.map.of_shard(shard))?;
        self.place(&owner)
    }

    fn present(&self, shard: ShardId) -> Option<usize> {
        let (range, own) = (self.map.of_shard(shard), self.own.as_deref());
        self.place(&self.membership.present_owner(range, own)?)
    }

    fn may_change(&self) -> bool {
        true
    }

    fn replicas(&self, shard: ShardId) -> Vec<usize> {
        let (range, own) = (self.map.of_shard(shard), self.own.as_deref());
        let names = self.membership.answering(range, own);
        names.iter().filter_map(|name| self.place(name)).collect()
    }
}
