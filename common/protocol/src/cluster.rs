//! What a coordinator can ask about its cluster: status, traffic, and the take-over of a range.

use doppel_contract::answer::ClusterStatus;
use doppel_model::RangeId;
use serde::{Deserialize, Serialize};

/// The cluster as a coordinator sees it.
pub trait ClusterApi: Send + Sync {
    /// Returns the state of nodes and ranges, and a list of problems. Waits a few seconds for nodes that do
    /// not answer.
    fn status(&self) -> ClusterStatus;

    /// Whether any node of tier 1 answers. Returns with the first answer, or after a few seconds.
    fn has_answering_node(&self) -> bool;

    /// Returns the traffic of this process and of every node that answers. The call that collects
    /// [`status`](Self::status) collects it as well.
    fn traffic(&self) -> Vec<NodeTraffic>;

    /// Tells a node to take over a range. When the call returns, the node has begun the take-over.
    /// [`status`](Self::status) shows when the node owns the range.
    ///
    /// # Errors
    /// If the node has no replica of the range, or does not answer.
    fn take_over(&self, range: RangeId, node: &str) -> Result<(), TakeOverError>;
}

/// Traffic of a process since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeTraffic {
    /// Name of the node.
    pub node: String,
    /// Traffic by kind of call.
    pub calls: Vec<CallTraffic>,
}

/// Requests of one kind that a process made and answered since its start. Only bodies are counted. The heads
/// of a request and its answer take about 400 more bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTraffic {
    /// Name of the kind of call.
    pub call: String,
    /// Number of requests made and answered.
    pub requests: u64,
    /// Bytes sent: bodies of own requests, and of answers to other processes.
    pub sent: u64,
    /// Bytes received: bodies of answers, and of requests from other processes.
    pub received: u64,
}

/// Why a node does not take over a range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TakeOverError {
    /// Ranges are not replicated, so no other node can own the range.
    #[error("this cluster does not replicate ranges, so no node can take one over")]
    NotReplicated,
    /// The cluster has no such range.
    #[error("there is no range {0}")]
    NoRange(RangeId),
    /// The node has no replica of the range.
    #[error("{node} has no replica of range {range}; the nodes with a replica are {replicas}")]
    NoReplica {
        /// Number of the range.
        range: RangeId,
        /// Name of the node.
        node: String,
        /// Names of the nodes that have a replica.
        replicas: String,
    },
    /// The node does not answer, or cannot take over the range now.
    #[error("{0}")]
    Unavailable(String),
}
