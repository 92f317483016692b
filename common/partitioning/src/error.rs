//! Why a mapping is refused.

use doppel_model::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};

use crate::limits::{DIMENSIONS_MAX, NODES_MAX, PARTITIONS_MAX};
use crate::partition_index::PartitionIndex;

/// Why a lexicon, a map or a plan is invalid, or a change to it is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum MappingError {
    /// The number of dimensions N is out of range.
    #[error("a length vector has 1 to {DIMENSIONS_MAX} dimensions, not {0}")]
    Dimensions(usize),
    /// The number of partitions is out of range.
    #[error("a map has 1 to {PARTITIONS_MAX} partitions, not {0}")]
    Partitions(usize),
    /// Rho is out of range.
    #[error("rho is a number from 1 to 10, not {0}")]
    Rho(String),
    /// The number of nodes is out of range.
    #[error("a plan has 1 to {NODES_MAX} nodes, not {0}")]
    Nodes(u32),
    /// The plan has no such node.
    #[error("there is no node {node}; the plan has {nodes}, counted from 0")]
    Node {
        /// The requested node.
        node: NodeId,
        /// The number of nodes in the plan.
        nodes: u32,
    },
    /// The node is the last one that may have partitions, so it cannot be drained.
    #[error("node {0} is the only one that may have partitions; another one must be there or join first")]
    LastNode(NodeId),
    /// The node is drained, so no partitions can be placed on it.
    #[error("node {0} is drained; join it first")]
    Drained(NodeId),
    /// The plan has no such partition.
    #[error("there is no partition {0}; the load-balance report has their ids")]
    Partition(PartitionId),
    /// The map has no partition at this place.
    #[error("there is no partition at place {0} of the map")]
    Place(PartitionIndex),
    /// The partition and the next one are not the two sides of one cut, so they cannot be joined.
    #[error("partition {0} and the next one are not the two sides of one cut")]
    Sibling(PartitionIndex),
    /// A partition id that occurs twice, that belongs to another box, or that the plan has not assigned yet.
    #[error("the partition id {0} is used twice, belongs to another box, or was never assigned")]
    Id(PartitionId),
    /// A feature or a boundary is out of range.
    #[error("a cut over feature {0} at {1} is not possible")]
    Cut(usize, i64),
    /// The version of a plan is not greater than that of its predecessor.
    #[error("a plan of version {0} cannot replace the current one, which is not older")]
    PlanVersion(u64),
    /// The stored plan has an unsupported format version.
    #[error("the plan is of version {0}")]
    Version(u32),
    /// The table of a stored lexicon is malformed.
    #[error("a lexicon's table needs two hexadecimal digits per bucket, with one bit for each half: {0}")]
    Table(String),
    /// A length is greater than the total.
    #[error("a length of {length} is more than the total of {total} shingles")]
    Lengths {
        /// The first length, which is the total.
        total: u32,
        /// The length that is greater.
        length: u32,
    },
    /// The cuts of a stored map do not form a tree.
    #[error("the cuts of a map must be a tree in preorder: {0}")]
    Cuts(String),
}
