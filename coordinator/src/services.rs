//! What a front door is put together from.

use std::path::PathBuf;
use std::sync::Arc;

use doppel_model::Timestamp;
use doppel_model::pairwise::Policy;
use doppel_protocol::{ClusterApi, MappingApi, Markets, Tier1Api, Tier2Api, WinnerOrder};
use prometheus_client::registry::Registry;

use crate::access::Tokens;
use crate::limits::Limits;
use doppel_engine::ingest::Ingest;
use doppel_engine::shard_map::ShardMap;

/// The present moment; passed in, so that tests have their own.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The computer's clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// A directory that the process writes to.
#[derive(Debug, Clone)]
pub struct Directory {
    /// Its name among the metrics.
    pub name: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// Whether nobody else has files there, so that theirs are worth counting.
    pub is_own: bool,
}

/// What the front door is put together from.
pub struct Services {
    /// The system of record.
    pub tier1: Arc<dyn Tier1Api>,
    /// The index.
    pub tier2: Arc<dyn Tier2Api>,
    /// The index's mapping, if there is one that can be changed.
    pub mapping: Option<Arc<dyn MappingApi>>,
    /// The cluster; none for a single process.
    pub cluster: Option<Arc<dyn ClusterApi>>,
    /// F, as in the collection's manifest.
    pub policy: Policy,
    /// By which rules winners are elected, as in the collection's manifest.
    pub winners: WinnerOrder,
    /// The markets that have a name.
    pub markets: Markets,
    /// Who owns which shard.
    pub shard_map: ShardMap,
    /// The extractors.
    pub ingest: Arc<Ingest>,
    /// The tokens that the server takes, whose expiry the metrics tell; none where it takes everybody.
    pub tokens: Option<Tokens>,
    /// The process's metrics; those of the front door are added.
    pub registry: Registry,
    /// The time.
    pub clock: Clock,
    /// Where exports spill; must exist.
    pub temp_dir: PathBuf,
    /// The directories that the process writes to, for the metrics.
    pub directories: Vec<Directory>,
    /// The limits.
    pub limits: Limits,
}
