//! What a front door may ask about its cluster.

use super::answer::ClusterStatus;

/// The cluster as a front door sees it.
pub trait ClusterApi: Send + Sync {
    /// The nodes, the ranges, and what is not as it should be. Waits a few seconds for those that do not answer.
    fn status(&self) -> ClusterStatus;
}
