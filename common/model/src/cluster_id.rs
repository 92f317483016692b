//! Identifiers of the parts of a cluster (ranges, nodes, partitions), and the numbers that order their work.
//!
//! In JSON each of them is a plain number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares a newtype of a number.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A run of shards with one database, one writer and one log, counted from 0.
    RangeId(u16)
}
number! {
    /// The number of a range's ownership. It grows with every new owner.
    Epoch(u64)
}
number! {
    /// A node of tier 2, by its number in the plan, counted from 0.
    NodeId(u32)
}
impl NodeId {
    /// Its place in a list of all nodes.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

number! {
    /// A partition. The id names a box for as long as the box is the same, and is never given to another one.
    PartitionId(u32)
}
number! {
    /// The version of a published plan. It grows by one with every change.
    PlanVersion(u64)
}
number! {
    /// The number of a start of a node, so that a restart is noticed.
    Incarnation(u64)
}
number! {
    /// The position of an entry in the order in which a node stored its entries. It names the entry, and within one
    /// incarnation of the node it is never used again.
    InsertSeq(u32)
}
