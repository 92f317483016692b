//! Which tier-1 node owns each shard, as the front door tells it. The table is written down by whoever puts a collection together,
//! and never recomputed by those who read it.

use doppel_protocol::answer::ShardAssignment;

/// Which node owns each shard, under a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardMap {
    version: u64,
    nodes: Vec<String>,
}

impl ShardMap {
    /// A table that does not change: the owner of each shard, in order.
    #[must_use]
    pub fn fixed(nodes: Vec<String>) -> Self {
        Self { version: 1, nodes }
    }

    /// The table's number; a newer one replaces it.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Every shard and its owner, in order.
    #[must_use]
    pub fn rows(&self) -> Vec<ShardAssignment> {
        (0..).zip(&self.nodes).map(|(shard, node)| ShardAssignment { shard, node: node.clone() }).collect()
    }
}
