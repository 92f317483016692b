//! The manifests of a cluster's nodes: what a node opens its directory with, and what its backups belong to.

use doppel_control::cluster::Cluster;
use doppel_model::stable_hash64;

use super::{Manifest, ManifestRequest};

impl ManifestRequest {
    /// The collection that every node of tier 1 of a cluster opens its directory with.
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
    /// The manifest in the backups of a cluster. Every node has a collection number of its own, and an increment may be made by another node than the
    /// backup that it follows, so there the collection is the cluster's.
    pub(crate) fn of_cluster(&self, id: &str) -> Self {
        Self { collection: format!("{:016x}", stable_hash64(id.as_bytes())), ..self.clone() }
    }
}
