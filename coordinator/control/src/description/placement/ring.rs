//! A consistent-hash ring that proposes nodes for keys.
//!
//! The ring only *proposes*. The caller records an assignment in a table, and that table is authoritative:
//! readers never recompute it from the ring.
//!
//! Proposals must not depend on the standard library's implementation of `Hash`, which may change. The module
//! therefore converts node names and keys to 64-bit numbers and hashes them with a hasher of its own. Every
//! node has the same number of points, because a weight of zero would make the ring's search for replicas
//! loop.

use std::hash::{BuildHasher, Hash, Hasher};

use consistent_hash_ring::RingBuilder;
use doppel_model::stable_hash64;

/// Number of points of each node on the ring. With this number, the largest share of a node divided by the
/// mean share was measured as 1.06 for 3 nodes and 1.05 for 8.
const POINTS: usize = 256;

/// A consistent-hash ring of nodes with distinct names.
pub(super) struct Ring(consistent_hash_ring::Ring<Point, RingHash>);

impl Ring {
    /// Builds the ring of the nodes with these names. The proposals depend on the set of names alone, not on
    /// their order. Building takes time quadratic in the number of points, about 1 s for 256 nodes.
    pub(super) fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let points = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| Point { hash: stable_hash64(name.as_bytes()), at });
        Self(RingBuilder::new(RingHash).vnodes(POINTS).nodes_iter(points).build())
    }

    /// Proposes the nodes for `key`, best first, as indexes into the names given to [`Ring::new`]. The key
    /// must be a stable hash.
    pub(super) fn order(&self, key: u64) -> impl Iterator<Item = usize> {
        self.0.replicas(Key(key)).map(|point| point.at)
    }
}

/// A node on the ring, identified by the stable hash of its name's bytes.
#[derive(Clone, PartialEq, Eq)]
struct Point {
    hash: u64,
    at: usize,
}

impl Hash for Point {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Hash function of the ring: chains the stable hash over all writes.
#[derive(Clone)]
struct RingHash;

struct RingHasher(u64);

impl BuildHasher for RingHash {
    type Hasher = RingHasher;

    fn build_hasher(&self) -> RingHasher {
        RingHasher(0)
    }
}

impl Hasher for RingHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.write_u64(stable_hash64(bytes));
    }

    /// Hashes a number. The ring crate also calls this method to rehash its points. The bytes are taken in
    /// little-endian order on every platform.
    fn write_u64(&mut self, number: u64) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.0.to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        self.0 = stable_hash64(&bytes);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the name of the first proposed node for each of `keys` keys.
    fn first<'n>(names: &[&'n str], keys: u64) -> Vec<&'n str> {
        let ring = Ring::new(names.iter().copied());
        let key = |n: u64| stable_hash64(&n.to_le_bytes());
        (0..keys).map(|n| names[ring.order(key(n)).next().unwrap()]).collect()
    }

    #[test]
    fn the_order_of_the_names_does_not_matter() {
        assert_eq!(first(&["a", "b", "c", "d"], 64), first(&["d", "b", "a", "c"], 64));
    }

    #[test]
    fn a_new_node_takes_its_share_and_moves_no_other_key() {
        let (before, after) = (first(&["a", "b", "c"], 1_024), first(&["a", "b", "c", "d"], 1_024));
        let moved: Vec<_> = before.iter().zip(&after).filter(|(b, a)| b != a).collect();
        assert!(moved.iter().all(|(_, after)| **after == "d"));
        assert!(
            (184..328).contains(&moved.len()),
            "a quarter belongs to the new node, moved {}",
            moved.len()
        );
    }

    #[test]
    fn a_proposal_has_every_node_once() {
        let names = ["a", "b", "c", "d", "e"];
        let ring = Ring::new(names);
        let mut order: Vec<usize> = ring.order(7).collect();
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3, 4]);
    }
}
