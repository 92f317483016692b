//! Assigns signatures to partitions: length vectors, their bounding spaces, and the cut of the vector space
//! into partitions.
//!
//! A content has a [`LengthVector`]: the number of its distinct shingles whose first word falls into each of
//! the N sub-dictionaries of a [`Lexicon`]. These are the whole dictionary and N - 1 halves of it.
//! Near-duplicates have similar vectors, so a content has to be compared only in the partitions that meet its
//! [`BoundingSpace`]. A [`PartitionMap`] consists of a lexicon and the cuts. It gives the partition that stores
//! a content (its home) and the partitions in which the content is compared (its probed partitions, which
//! include the home).
//!
//! Invariants, for one map and its tau:
//! - Every vector has exactly one home, and the home is one of its probed partitions.
//! - If J(a, b) > tau, then the home of `b` is among the probed partitions of `a`, and vice versa.
//!
//! Length vectors come from the incremental two-tier clustering of Ask.com's search engine. The boxes of that
//! design need a tolerance rho. The bound used here is exact for the Jaccard coefficient and needs no
//! tolerance.
#![forbid(unsafe_code)]

mod balance;
mod bounding_space;
mod cut;
mod intervals;
mod length_vector;
mod lexicon;
mod load;
mod paper;
mod partition_map;
mod plan;
mod rebalancer;
mod sample;
mod topics;
mod what_if;

pub use bounding_space::{BoundingSpace, Bounds};
pub use length_vector::{DIMENSIONS_MAX, LengthVector};
pub use lexicon::Lexicon;
pub use load::{MappingLoad, fan_out_saved};
pub use paper::{Deviation, PaperLengths, PaperMap, Rho};
pub use partition_map::{PARTITIONS_MAX, PartitionMap};
pub use plan::{NODES_MAX, PartitionAssignment, Plan};
pub use rebalancer::{NextPlan, PlanChange, PlannedMove, Rebalancer};
pub use sample::{Drift, Sample};
pub use what_if::{WhatIf, what_if};

/// Why a lexicon, a map or a plan is invalid, or a change to it is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
        node: u32,
        /// The number of nodes in the plan.
        nodes: u32,
    },
    /// The node is the last one that may have partitions, so it cannot be drained.
    #[error("node {0} is the only one that may have partitions; another one must be there or join first")]
    LastNode(u32),
    /// The node is drained, so no partitions can be placed on it.
    #[error("node {0} is drained; join it first")]
    Drained(u32),
    /// The plan has no such partition.
    #[error("there is no partition {0}; the load-balance report has their ids")]
    Partition(u32),
    /// The partition and the next one are not the two sides of one cut, so they cannot be joined.
    #[error("partition {0} and the next one are not the two sides of one cut")]
    Sibling(u32),
    /// A partition id that occurs twice, that belongs to another box, or that the plan has not assigned yet.
    #[error("the partition id {0} is used twice, belongs to another box, or was never assigned")]
    Id(u32),
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

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;
