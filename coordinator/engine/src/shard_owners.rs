//! The table of tier-1 nodes that own the shards, as the coordinator reports it.
//!
//! The process that sets up a collection fills the table. Readers must use the table and never recompute it.

use doppel_contract::answer::ShardAssignment;

/// A versioned table that names the owner node of each shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardOwners {
    version: u64,
    nodes: Vec<String>,
}

impl ShardOwners {
    /// Creates a table that never changes. `nodes` lists the owner of each shard, in shard order.
    #[must_use]
    pub fn fixed(nodes: Vec<String>) -> Self {
        Self { version: 1, nodes }
    }

    /// Returns the version of the table. A table with a higher version replaces this one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns every shard with its owner, in shard order.
    #[must_use]
    pub fn rows(&self) -> Vec<ShardAssignment> {
        (0..).zip(&self.nodes).map(|(shard, node)| ShardAssignment { shard, node: node.clone() }).collect()
    }
}
