//! What a node of tier 2 reports about itself: its load, and samples of its contents.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PartitionId};
use doppel_partitioning::LengthVector;
use serde::{Deserialize, Serialize};

/// The maximum number of length vectors in one answer.
pub const VECTORS_MAX: usize = 200_000;

/// Requests a sample of a node's contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampleRequest {
    /// Every `step`-th length vector of a partition, after the first `skip`.
    Lengths {
        /// The partition.
        partition: PartitionId,
        /// The number of contents to skip at the beginning.
        skip: u64,
        /// The distance from one selected content to the next.
        step: u64,
    },
    /// The smallest content hashes, up to this number.
    Least(usize),
    /// The signatures of these contents, which are at most [`ENTRIES_MAX`](super::index_node::ENTRIES_MAX).
    Signatures(Vec<ContentHash>),
}

/// A sample of a node's contents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Sampled {
    /// Length vectors, and the number of contents that they represent.
    Lengths(Vec<LengthVector>, u64),
    /// Content hashes, ascending.
    Least(Vec<ContentHash>),
    /// The signatures of those contents that still exist.
    Signatures(Vec<Arc<Signature>>),
}

/// The load of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedLoad {
    /// The partition.
    pub id: PartitionId,
    /// The number of contents.
    pub contents: u64,
    /// The number of pages.
    pub pages: u64,
    /// The number of searches that reached it under the present plan.
    pub received: u64,
    /// The number of exact comparisons made in it.
    pub comparisons: u64,
    /// Memory, in bytes.
    pub bytes: u64,
}

/// The load of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// The load of every serving partition.
    pub partitions: Vec<HostedLoad>,
    /// Memory of all partitions, including incoming and leaving ones, in bytes.
    pub bytes: u64,
    /// The size of the signature file, in bytes.
    pub file_bytes: u64,
}
