//! Identifiers of what a cluster is made of: ranges, nodes, partitions, and the numbers that order their work.
//!
//! In JSON each is a plain number.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares a number that is a type of its own.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A run of shards with one database, one writer and one log. From 0.
    RangeId(u16)
}
number! {
    /// Number of a range's ownership; grows with every owner.
    Epoch(u64)
}
number! {
    /// A node of tier 2, by its number in the plan. From 0.
    NodeId(u32)
}
number! {
    /// A partition: names its box for as long as that is the same, and is never given to another one.
    PartitionId(u32)
}
number! {
    /// Number of a published plan; grows by one with every change.
    PlanVersion(u64)
}
number! {
    /// One life of a node: another number after every start.
    Incarnation(u64)
}
number! {
    /// Position of an entry in the order in which a node stored its entries. It names the entry for as long as that
    /// lives and is never used twice in one life of the node.
    InsertSeq(u32)
}
