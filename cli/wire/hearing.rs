//! What a process of a replicated cluster hears: which node owns which range at present.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use doppel_model::ShardId;
use doppel_protocol::membership::{Beat, Membership};
use doppel_shared_log::{Bulletin, Engine, EngineError, Listening};
use doppel_tier1::RangeMap;
use doppel_wire::spread::{FixedOwners, Owners};
use doppel_wire::{NodeName, Runtime};
use tokio::runtime::Handle;

use crate::cluster::Cluster;

/// The pause between two attempts to reach the log.
const PAUSE: Duration = Duration::from_millis(500);

/// The connection to the log of the cluster, and what the nodes say there of themselves.
pub(crate) struct Hearing {
    pub(crate) engine: Engine,
    pub(crate) membership: Arc<Membership>,
    bulletin: Bulletin,
    _listening: Listening,
}

/// Whether there is something to hear.
pub(crate) enum Heard {
    /// The cluster has a log, and it answers.
    Log(Box<Hearing>),
    /// Nothing is replicated.
    NoLog,
    /// The process is to end before the log has answered.
    Ending,
}

impl Hearing {
    /// Reaches the log of a cluster, if it has one; tries until it answers.
    ///
    /// # Errors
    /// When what answers cannot be used.
    pub(crate) async fn begin(
        cluster: &Cluster,
        name: &NodeName,
        mut shutdown: impl Future<Output = ()> + Unpin,
    ) -> anyhow::Result<Heard> {
        let Some(log) = cluster.log() else { return Ok(Heard::NoLog) };
        let mut said = String::new();
        let engine = loop {
            let (servers, name, handle) = (log.servers.clone(), name.to_string(), Handle::current());
            let connect = move || Engine::connect(handle, &servers, &name);
            match tokio::task::spawn_blocking(connect).await.context("connecting to the log panicked")? {
                Ok(engine) => break engine,
                Err(error @ EngineError::Unreachable { .. }) => {
                    if error.to_string() != said {
                        said = error.to_string();
                        tracing::warn!(%error, "waiting for the log");
                    }
                }
                Err(error) => return Err(error.into()),
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = &mut shutdown => return Ok(Heard::Ending),
            }
        };
        let membership = Arc::new(Membership::new());
        let bulletin = engine.bulletin(&cluster.beats());
        let listening = {
            let membership = Arc::clone(&membership);
            bulletin.listen(move |news| match serde_json::from_slice::<Beat>(news) {
                Ok(beat) => membership.take(beat, Instant::now()),
                Err(error) => tracing::debug!(%error, "a beat that cannot be read"),
            })
        };
        Ok(Heard::Log(Box::new(Self { engine, membership, bulletin, _listening: listening })))
    }

    /// How a node of tier 1 tells the others its beats.
    pub(crate) fn tell(&self) -> impl Fn(&Beat) + Send + Sync + 'static {
        let (bulletin, membership) = (self.bulletin.clone(), Arc::clone(&self.membership));
        move |beat| {
            // What this process says it need not hear.
            membership.take(beat.clone(), Instant::now());
            match serde_json::to_vec(beat) {
                Ok(news) => bulletin.tell(Bytes::from(news)),
                Err(error) => tracing::error!(%error, "a beat cannot be written"),
            }
        }
    }
}

/// Has what goes to the log and comes from it counted with all else that the process sends and receives.
pub(crate) fn count(runtime: &Runtime, hearing: Option<&Hearing>) {
    if let Some(Hearing { engine, .. }) = hearing {
        let engine = engine.clone();
        runtime.traffic().also("log", move || {
            let (received, sent) = engine.traffic();
            (sent, received)
        });
    }
}

/// Which node of tier 1 owns each shard: as the file of the cluster says it, or as the nodes do.
/// `own` is the asker, if it is one of them.
pub(crate) fn owners(
    cluster: &Cluster,
    hearing: Option<&Hearing>,
    own: Option<&NodeName>,
) -> Arc<dyn Owners> {
    let Some(Hearing { membership, .. }) = hearing else { return Arc::new(FixedOwners(cluster.owners())) };
    let names = cluster.tier1_names().iter().map(ToString::to_string).collect();
    let own = own.map(ToString::to_string);
    Arc::new(Claimed { membership: Arc::clone(membership), map: cluster.map(), names, own })
}

/// The node that has the router of the index: the owner of the first shard.
pub(crate) fn router(owners: &dyn Owners) -> Option<usize> {
    owners.of_shard(ShardId(0))
}

/// Owners as they claim it themselves.
struct Claimed {
    membership: Arc<Membership>,
    map: RangeMap,
    names: Vec<String>,
    own: Option<String>,
}

impl Claimed {
    fn place(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| other == name)
    }
}

impl Owners for Claimed {
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

    fn replicas(&self, shard: ShardId) -> Vec<usize> {
        let (range, own) = (self.map.of_shard(shard), self.own.as_deref());
        let names = self.membership.answering(range, own);
        names.iter().filter_map(|name| self.place(name)).collect()
    }
}
