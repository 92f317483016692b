//! Identifiers of the parts of a cluster (ranges, nodes, partitions), and the numbers that order their work.
//!
//! Each of these types is a plain number in JSON.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares a newtype around an integer.
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
    /// The id of a range: consecutive shards with one database, one writer and one log. Counted from 0.
    RangeId(u16)
}
number! {
    /// The ownership of a range as a number, which grows with every new owner.
    Epoch(u64)
}
number! {
    /// The number of a tier 2 node in the plan, counted from 0.
    NodeId(u32)
}
impl NodeId {
    /// The index of the node in a list of all nodes.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

number! {
    /// The id of a partition. A partition keeps its id as long as its box does not change, and no other
    /// partition ever gets that id.
    PartitionId(u32)
}
number! {
    /// The version of a published plan. Every change of the plan increments it by one.
    PlanVersion(u64)
}
number! {
    /// The number of a node's current life. A new number after a restart lets the router notice the restart.
    Incarnation(u64)
}
number! {
    /// The position of an entry in the order in which a node stored its entries.
    ///
    /// The position identifies the entry. A node never reuses a position within one incarnation.
    InsertSeq(u32)
}
