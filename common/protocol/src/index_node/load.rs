//! What a node of tier 2 reports about itself: its load, and samples of its contents.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PartitionId};
use doppel_partitioning::LengthVector;
use serde::{Deserialize, Serialize};

/// Maximum number of length vectors in one answer.
pub const VECTORS_MAX: usize = 200_000;

/// A request for a sample of a node's contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampleRequest {
    /// Every `step`-th length vector of a partition, after skipping `skip` contents.
    Lengths {
        /// Id of the partition.
        partition: PartitionId,
        /// Number of contents to skip at the beginning.
        skip: u64,
        /// Distance from one selected content to the next.
        step: u64,
    },
    /// The smallest content hashes, up to this number.
    Least(usize),
    /// The signatures of these contents, at most [`ENTRIES_MAX`](super::ENTRIES_MAX).
    Signatures(Vec<ContentHash>),
}

/// A sample of a node's contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SampleAnswer {
    /// Length vectors, and the number of contents that they represent.
    Lengths(Vec<LengthVector>, u64),
    /// Content hashes in ascending order.
    Least(Vec<ContentHash>),
    /// The signatures of the requested contents that still exist.
    Signatures(Vec<Arc<Signature>>),
}

/// Load of a partition on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedLoad {
    /// Id of the partition.
    pub id: PartitionId,
    /// Number of contents in the partition.
    pub contents: u64,
    /// Number of pages in the partition.
    pub pages: u64,
    /// Number of searches that reached the partition under the present plan.
    pub received: u64,
    /// Number of exact comparisons in the partition.
    pub comparisons: u64,
    /// Memory of the partition in bytes.
    pub bytes: u64,
}

/// Load of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoadReport {
    /// Load of every serving partition.
    pub partitions: Vec<HostedLoad>,
    /// Memory of all partitions in bytes, including incoming and leaving partitions.
    pub bytes: u64,
    /// Size of the signature file in bytes.
    pub file_bytes: u64,
}
