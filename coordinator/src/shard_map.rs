//! Shard → tier-1 node. The consistent-hash ring only *proposes*; what counts is the explicit table
//! with its version, which is published and never recomputed by those who read it.

use std::collections::BTreeSet;

use doppel_model::stable_hash64;
use doppel_protocol::answer::ShardAssignment;

use crate::ring::{NODES, Ring};

/// Which node owns each shard, under a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardMap {
    version: u64,
    nodes: Vec<String>,
}

/// Why there is no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShardMapError {
    /// Nobody to own a shard.
    #[error("there is no node to place shards on")]
    NoNodes,
    /// Too many for the ring.
    #[error("{0} nodes, the limit is {NODES}")]
    TooManyNodes(usize),
    /// Named twice.
    #[error("node {0:?} is named twice")]
    Twice(String),
    /// A collection has at least one.
    #[error("there are no shards to place")]
    NoShards,
}

impl ShardMap {
    /// Proposes an owner for each of `shards` shards. Depends on the set of names alone, not on their
    /// order.
    ///
    /// # Errors
    /// When there are no shards, no nodes, more than [`NODES`], or two of one name.
    pub fn propose(version: u64, shards: u16, nodes: &[String]) -> Result<Self, ShardMapError> {
        if shards == 0 {
            return Err(ShardMapError::NoShards);
        }
        if nodes.len() > NODES {
            return Err(ShardMapError::TooManyNodes(nodes.len()));
        }
        let mut sorted = BTreeSet::new();
        if let Some(twice) = nodes.iter().find(|name| !sorted.insert(name.as_str())) {
            return Err(ShardMapError::Twice(twice.clone()));
        }
        let ring = Ring::new(nodes.iter().map(String::as_str));
        let owner = |shard: u16| ring.order(key(shard)).next().map(|node| nodes[node].clone());
        let nodes = (0..shards).map(owner).collect::<Option<_>>().ok_or(ShardMapError::NoNodes)?;
        Ok(Self { version, nodes })
    }

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

/// A shard on the ring: the stable hash of `shard` and its number in two bytes, low first.
fn key(shard: u16) -> u64 {
    let [low, high] = shard.to_le_bytes();
    stable_hash64(&[b's', b'h', b'a', b'r', b'd', low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    fn owners(table: &ShardMap) -> String {
        table.rows().iter().map(|row| &row.node[row.node.len() - 1..]).collect()
    }

    /// The proposal for these names never changes: clusters would shuffle their shards.
    #[test]
    fn golden_table_of_three_nodes() {
        let table = ShardMap::propose(7, 32, &names(&["tier1-a", "tier1-b", "tier1-c"])).unwrap();
        assert_eq!(table.version(), 7);
        assert_eq!(owners(&table), "baaacccababaababccbbbccaaabbcccb");
    }

    #[test]
    fn order_of_names_does_not_matter() {
        let table = ShardMap::propose(1, 64, &names(&["a", "b", "c", "d"])).unwrap();
        assert_eq!(ShardMap::propose(1, 64, &names(&["d", "b", "a", "c"])).unwrap(), table);
    }

    #[test]
    fn a_new_node_takes_shards_and_moves_no_others() {
        let before = ShardMap::propose(1, 1024, &names(&["a", "b", "c"])).unwrap();
        let after = ShardMap::propose(2, 1024, &names(&["a", "b", "c", "d"])).unwrap();
        let moved = || before.rows().into_iter().zip(after.rows()).filter(|(b, a)| b.node != a.node);
        assert!(moved().all(|(_, a)| a.node == "d"));
        let share = moved().count() as f64 / 1024.0;
        assert!((0.18..0.32).contains(&share), "a quarter belongs to the new node, moved {share}");
    }

    #[test]
    fn refuses_what_cannot_be_placed() {
        assert_eq!(ShardMap::propose(1, 4, &[]), Err(ShardMapError::NoNodes));
        assert_eq!(ShardMap::propose(1, 0, &names(&["a"])), Err(ShardMapError::NoShards));
        assert_eq!(ShardMap::propose(1, 4, &names(&["a", "a"])), Err(ShardMapError::Twice("a".to_owned())));
        let many: Vec<_> = (0..=NODES).map(|n| n.to_string()).collect();
        assert_eq!(ShardMap::propose(1, 4, &many), Err(ShardMapError::TooManyNodes(NODES + 1)));
    }

    #[test]
    fn one_node_owns_everything() {
        let table = ShardMap::fixed(names(&["local"; 4]));
        assert_eq!(table, ShardMap::propose(1, 4, &names(&["local"])).unwrap());
    }
}
