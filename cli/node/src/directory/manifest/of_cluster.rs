//! Manifests of the nodes of a cluster: the request with which a node opens its directory, and the manifest
//! in backups.

use doppel_control::cluster::Cluster;
use doppel_model::stable_hash64;

use super::{Manifest, ManifestRequest};

impl ManifestRequest {
    /// The properties with which every node of tier 1 of a cluster opens its directory.
    #[must_use]
    pub fn of_cluster(cluster: &Cluster) -> Self {
        Self {
            policy: Some(cluster.policy),
            by_tau: false,
            tables: cluster.description.tables,
            shards: Some(cluster.map().shards()),
            ranges: Some(cluster.map().count() as u16),
            winners: Some(cluster.winners),
        }
    }
}

impl Manifest {
    /// The manifest in the backups of a cluster, in which the id of the cluster determines the collection.
    ///
    /// Every node has its own collection id, but an increment may come from another node than the backup that
    /// it follows.
    pub(crate) fn of_cluster(&self, id: &str) -> Self {
        Self { collection: format!("{:016x}", stable_hash64(id.as_bytes())), ..self.clone() }
    }
}
