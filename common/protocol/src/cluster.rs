//! What a front door may ask about its cluster.

use doppel_model::RangeId;
use serde::{Deserialize, Serialize};

use super::answer::ClusterStatus;

/// The cluster as a front door sees it.
pub trait ClusterApi: Send + Sync {
    /// The nodes, the ranges, and what is not as it should be. Waits a few seconds for those that do not answer.
    fn status(&self) -> ClusterStatus;

    /// Whether any node of tier 1 answers. Returns with the first answer, or after a few seconds.
    fn answers(&self) -> bool;

    /// What the processes have sent to each other, this one and all nodes that answer; asked for together with
    /// [`status`](Self::status).
    fn traffic(&self) -> Vec<NodeTraffic>;

    /// Has a node take a range over. On return the node has begun to; [`status`](Self::status) shows when it owns the range.
    ///
    /// # Errors
    /// When it has no replica of the range, or does not answer.
    fn take_over(&self, range: RangeId, node: &str) -> Result<(), TakeOverError>;
}

/// What a process has sent and received since it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTraffic {
    /// Its name.
    pub node: String,
    /// By call.
    pub calls: Vec<CallTraffic>,
}

/// The requests of one kind that a process has made and answered since it was started. Bodies alone are counted; the heads of a
/// request and its answer have some 400 bytes more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTraffic {
    /// The kind.
    pub call: String,
    /// Requests.
    pub requests: u64,
    /// Bytes of requests that it has made, and of answers that it has given.
    pub sent: u64,
    /// Bytes of answers that it was given, and of requests that it was asked.
    pub received: u64,
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
