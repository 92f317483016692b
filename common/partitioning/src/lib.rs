//! Assigns signatures to partitions: length vectors, their bounding spaces, and the cut of the vector space
//! into partitions.
//!
//! A content has a [`LengthVector`]: the number of its distinct shingles whose first word falls into each of
//! the N sub-dictionaries of a [`Lexicon`]. The sub-dictionaries are the whole dictionary and N - 1 halves of
//! the dictionary. Near-duplicates have similar vectors, so a content has to be compared only in the
//! partitions that meet its [`BoundingSpace`]. A [`PartitionMap`] consists of a lexicon and the cuts. It
//! gives the partition that stores a content (its *home*) and the partitions in which the content is compared
//! (its *probed partitions*, which include the home).
//!
//! Invariants, for one map and its tau:
//! - Every vector has exactly one home, and the home is one of its probed partitions.
//! - If J(a, b) > tau, then the home of `b` is among the probed partitions of `a`, and vice versa.
//!
//! Length vectors come from the incremental two-tier clustering of Ask.com's search engine. The boxes of that
//! design need a tolerance rho. The bound used here is exact for the Jaccard coefficient and needs no
//! tolerance.
#![forbid(unsafe_code)]

mod bounding_space;
mod error;
mod intervals;
mod length_vector;
mod lexicon;
mod limits;
mod load;
mod paper;
mod partition_index;
mod partition_map;
mod plan;
mod rebalancer;
mod sample;
mod what_if;

pub use bounding_space::{BoundingSpace, Bounds};
pub use error::MappingError;
pub use length_vector::LengthVector;
pub use lexicon::Lexicon;
pub use limits::{DIMENSIONS_MAX, NODES_MAX, PARTITIONS_MAX, PlanSize};
pub use load::{MappingLoad, fan_out_saved};
pub use paper::{PaperLengths, PaperMap, Rho};
pub use partition_index::PartitionIndex;
pub use partition_map::PartitionMap;
pub use plan::{PartitionAssignment, Plan};
pub use rebalancer::{NextPlan, PlanChange, PlannedMove, Rebalancer};
pub use sample::{Drift, MapSample};
pub use what_if::{WhatIf, what_if};

#[cfg(test)]
mod tests;
