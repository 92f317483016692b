//! Where a signature belongs: length vectors, their bounding spaces, and the cut of that space into
//! partitions.
//!
//! A content has a [`LengthVector`]: the number of its distinct shingles whose first word falls in each of N
//! sub-dictionaries of a [`Lexicon`]: the whole dictionary, and N - 1 halves of it. Near-duplicates have
//! similar vectors, so a content needs comparing only in the partitions that meet its [`BoundingSpace`]. A
//! [`PartitionMap`] is a lexicon and the cuts: it says where a content is stored (one home) and where it is
//! compared (its probed partitions, the home among them).
//!
//! Invariants, for one map and its tau:
//! - every vector has exactly one home, and its probed partitions contain it;
//! - J(a, b) > tau implies that the home of `b` is among the probed partitions of `a`, and the other way round.
//!
//! The idea of length vectors is that of the incremental two-tier clustering of Ask.com's search
//! engine, whose boxes need a tolerance rho; the bound here is exact for the Jaccard coefficient and
//! needs none.
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

/// Why there is no such lexicon or map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// N is out of range.
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
    /// There is no such node.
    #[error("there is no node {node}; the plan has {nodes}, counted from 0")]
    Node {
        /// The number that was given.
        node: u32,
        /// How many there are.
        nodes: u32,
    },
    /// The last node that may have partitions keeps them.
    #[error("node {0} is the only one that may have partitions; another one must be there or join first")]
    LastNode(u32),
    /// A node that is drained gets no partitions.
    #[error("node {0} is drained; join it first")]
    Drained(u32),
    /// There is no such partition.
    #[error("there is no partition {0}; the load-balance report has their ids")]
    Partition(u32),
    /// A partition that is not one side of a cut whose other side is the next one.
    #[error("partition {0} has no sibling next to it")]
    Sibling(u32),
    /// An id that names two boxes, or that is not below the next one.
    #[error("the partition id {0} is given twice, or is none that the plan has given")]
    Id(u32),
    /// A feature or a boundary is out of range.
    #[error("a cut over feature {0} at {1} is not possible")]
    Cut(usize, i64),
    /// A plan is not later than the one it is to follow.
    #[error("a plan of version {0} cannot follow the present one")]
    PlanVersion(u64),
    /// A stored plan is of another version.
    #[error("the plan is of version {0}")]
    Version(u32),
    /// The table of a stored lexicon is wrong.
    #[error("a lexicon's table is two hexadecimal digits per bucket, a bit for each half, {0}")]
    Table(String),
    /// A length is more than the total.
    #[error("no part of {total} shingles has {length}")]
    Lengths {
        /// The first length.
        total: u32,
        /// A later one.
        length: u32,
    },
    /// The cuts of a stored map are no tree.
    #[error("the cuts of a map are a tree in preorder, {0}")]
    Cuts(String),
}

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;
