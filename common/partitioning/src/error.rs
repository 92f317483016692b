//! The errors of invalid lexicons, maps and plans, and of impossible changes to them.

use doppel_model::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};

use crate::limits::{DIMENSIONS_MAX, NODES_MAX, PARTITIONS_MAX};
use crate::partition_index::PartitionIndex;

/// Why a lexicon, a map or a plan is invalid, or a change to it is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum MappingError {
    /// The number of dimensions N is out of range.
    #[error("a length vector must have 1 to {DIMENSIONS_MAX} dimensions, not {0}")]
    Dimensions(usize),
    /// The number of partitions is out of range.
    #[error("a map must have 1 to {PARTITIONS_MAX} partitions, not {0}")]
    Partitions(usize),
    /// The tolerance rho of the paper's mapping is out of range.
    #[error("rho is a number from 1 to 10, not {0}")]
    Rho(String),
    /// The number of nodes is out of range.
    #[error("a plan must have 1 to {NODES_MAX} nodes, not {0}")]
    Nodes(u32),
    /// The plan has no such node.
    #[error("there is no node {node}; the plan has {nodes} nodes, numbered from 0")]
    Node {
        /// The requested node.
        node: NodeId,
        /// The number of nodes in the plan.
        nodes: u32,
    },
    /// No other node may have partitions, so this node cannot be drained.
    #[error("node {0} is the only one that may have partitions; add or join another node first")]
    LastNode(NodeId),
    /// The node is drained, so no partitions can be placed on it.
    #[error("node {0} is drained and cannot take partitions; join it first")]
    Drained(NodeId),
    /// The plan has no such partition.
    #[error("there is no partition {0}; the load-balance report lists the ids of all partitions")]
    Partition(PartitionId),
    /// The map has no partition at this position.
    #[error("there is no partition at position {0} of the map")]
    Place(PartitionIndex),
    /// The partition and the next one are not the two sides of one cut, so they cannot be joined.
    #[error("cannot join partition {0} and the next one: they are not the two sides of one cut")]
    Sibling(PartitionIndex),
    /// A partition id occurs twice, belongs to another box, or has not been assigned by the plan yet.
    #[error("the partition id {0} is used twice, belongs to another box, or was never assigned")]
    Id(PartitionId),
    /// A feature or a boundary is out of range.
    #[error("cannot cut feature {0} at {1}: the feature or the boundary is out of range")]
    Cut(usize, i64),
    /// The version of a plan is not greater than the version of the plan that it replaces.
    #[error("a plan of version {0} cannot replace the current plan, whose version is not lower")]
    PlanVersion(u64),
    /// The stored plan has an unsupported format version.
    #[error("the plan is of version {0}, which this program cannot read")]
    Version(u32),
    /// The table of a stored lexicon is malformed.
    #[error("a lexicon's table needs two hexadecimal digits per bucket, with one bit for each half: {0}")]
    Table(String),
    /// A length is greater than the total length.
    #[error("a length of {length} shingles is greater than the total of {total} shingles")]
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
