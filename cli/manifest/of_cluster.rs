//! What the backups of a cluster are of.

use doppel_model::stable_hash64;

use super::Manifest;

impl Manifest {
    /// The manifest in the backups of a cluster. Every node has a collection number of its own, and an increment may be made by another node than the
    /// backup that it follows, so there the collection is the cluster's.
    pub(crate) fn of_cluster(&self, id: &str) -> Self {
        Self { collection: format!("{:016x}", stable_hash64(id.as_bytes())), ..self.clone() }
    }
}
