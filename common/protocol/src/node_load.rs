//! What a node of tier 2 tells of itself: its load, and samples of what it has.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PartitionId};
use doppel_partitioning::LengthVector;
use serde::{Deserialize, Serialize};

/// Length vectors of one answer, at most.
pub const VECTORS_MAX: usize = 200_000;

/// Asks for some of what a node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SampleRequest {
    /// Every `step`-th length vector of a partition, the first `skip` left out.
    Lengths {
        /// The partition.
        partition: PartitionId,
        /// Left out before the first.
        skip: u64,
        /// One of so many.
        step: u64,
    },
    /// The least content hashes, so many at most.
    Least(usize),
    /// The signatures of these contents, at most [`ENTRIES_MAX`](super::index_node::ENTRIES_MAX).
    Signatures(Vec<ContentHash>),
}

/// Some of what a node has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Sampled {
    /// Length vectors, and the number of contents they stand for.
    Lengths(Vec<LengthVector>, u64),
    /// Content hashes, ascending.
    Least(Vec<ContentHash>),
    /// Signatures, of those contents that are still there.
    Signatures(Vec<Arc<Signature>>),
}

/// The load of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostedLoad {
    /// Which one.
    pub id: PartitionId,
    /// Contents stored.
    pub contents: u64,
    /// Pages stored.
    pub pages: u64,
    /// Searches that reached it under the present plan.
    pub received: u64,
    /// Exact comparisons made in it.
    pub comparisons: u64,
    /// Memory, in bytes.
    pub bytes: u64,
}

/// The load of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Of every serving partition.
    pub partitions: Vec<HostedLoad>,
    /// Memory of everything, also of what comes and goes.
    pub bytes: u64,
    /// Bytes of the signature file.
    pub file_bytes: u64,
}
