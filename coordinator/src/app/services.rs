//! The services and settings from which a coordinator is assembled.

use std::path::PathBuf;
use std::sync::Arc;

use doppel_contract::Markets;
use doppel_model::Timestamp;
use doppel_model::pairwise::Policy;
use doppel_protocol::{ClusterApi, MappingApi, Tier1Api, Tier2Api, WinnerOrder};
use prometheus_client::registry::Registry;

use crate::access::ClientTokens;
use crate::limits::Limits;
use doppel_engine::ingest::Ingest;
use doppel_engine::shard_owners::ShardOwners;

/// Source of the current time. The caller passes it in, so that tests can set the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Returns the clock of the operating system.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(Timestamp::now)
}

/// A directory to which the process writes.
#[derive(Debug, Clone)]
pub struct MonitoredDirectory {
    /// Name of the directory in the metrics.
    pub name: &'static str,
    /// Path of the directory.
    pub path: PathBuf,
    /// Whether only this process has files in the directory. Only then do the metrics count the size of its
    /// files.
    pub is_own: bool,
}

/// Services and settings of a coordinator.
pub struct Services {
    /// Tier 1, the system of record.
    pub tier1: Arc<dyn Tier1Api>,
    /// Tier 2, the derived index.
    pub tier2: Arc<dyn Tier2Api>,
    /// Interface to the partition map of the index, if the map can be changed.
    pub mapping: Option<Arc<dyn MappingApi>>,
    /// The cluster of this process. `None` for a single process.
    pub cluster: Option<Arc<dyn ClusterApi>>,
    /// Policy of the collection, from its manifest. The policy defines the pairwise function F.
    pub policy: Policy,
    /// Rules by which winners are elected, from the collection's manifest.
    pub winners: WinnerOrder,
    /// Markets that clients can name.
    pub markets: Markets,
    /// Table of the nodes that own the shards.
    pub shard_owners: ShardOwners,
    /// Pool of extractors for submitted pages.
    pub ingest: Arc<Ingest>,
    /// Tokens that the server accepts, whose expiry the metrics report. `None` if the server needs no tokens.
    pub tokens: Option<ClientTokens>,
    /// Metrics of the process, to which the coordinator adds its own.
    pub registry: Registry,
    /// Source of the current time.
    pub clock: Clock,
    /// Existing directory in which exports and reports sort their temporary files.
    pub temp_dir: PathBuf,
    /// Directories to which the process writes, for the metrics.
    pub directories: Vec<MonitoredDirectory>,
    /// Limits of the coordinator's resources.
    pub limits: Limits,
}
