//! What a front door may ask about its cluster.

use doppel_model::RangeId;

use super::answer::ClusterStatus;

/// The cluster as a front door sees it.
pub trait ClusterApi: Send + Sync {
    /// The nodes, the ranges, and what is not as it should be. Waits a few seconds for those that do not answer.
    fn status(&self) -> ClusterStatus;

    /// Has a node take a range over. On return the node has begun to; [`status`](Self::status) shows when it owns the range.
    ///
    /// # Errors
    /// When it has no replica of the range, or does not answer.
    fn take_over(&self, range: RangeId, node: &str) -> Result<(), TakeOverError>;
}

/// Why a node does not take a range over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TakeOverError {
    /// There is no other replica.
    #[error("ranges are not replicated here")]
    NotReplicated,
    /// There is no such range.
    #[error("there is no range {0}")]
    NoRange(RangeId),
    /// The node has none.
    #[error("{node} has no replica of range {range}; those that have one are {replicas}")]
    NoReplica {
        /// The range.
        range: RangeId,
        /// The node.
        node: String,
        /// The nodes that have one.
        replicas: String,
    },
    /// It does not answer, or cannot now.
    #[error("{0}")]
    Unavailable(String),
}
