//! The consistent-hash ring that proposes nodes for keys. It only *proposes*: what counts is the table that somebody writes
//! down, which is never recomputed by those who read it.
//!
//! Node names and keys enter the ring as 64-bit numbers, through a hasher that this module defines, so that a proposal depends
//! on no standard library's `Hash`. Every node has the same number of points: a weight of zero would make the ring's search
//! for replicas loop.

use std::hash::{BuildHasher, Hash, Hasher};

use consistent_hash_ring::RingBuilder;
use doppel_model::stable_hash64;

/// Points of each node on the ring; measured largest over mean share: 1.06 for 3 nodes, 1.05 for 8.
pub const POINTS: usize = 256;

/// The most nodes: building the ring takes time quadratic in its points, about 1 s here.
pub const NODES: usize = 256;

/// A ring of nodes with different names.
pub struct Ring(consistent_hash_ring::Ring<Point, RingHash>);

impl Ring {
    /// The ring of these nodes. It depends on the set of names alone, not on their order.
    #[must_use]
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let points = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| Point { hash: stable_hash64(name.as_bytes()), at });
        Self(RingBuilder::new(RingHash).vnodes(POINTS).nodes_iter(points).build())
    }

    /// The places of the nodes among the names, in the order in which they are proposed for a key, which is a stable hash.
    pub fn order(&self, key: u64) -> impl Iterator<Item = usize> {
        self.0.replicas(Key(key)).map(|point| point.at)
    }
}

/// A node on the ring: known by the stable hash of its name's bytes.
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

/// The ring's hash: the stable hash of what was written, chained over the writes.
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

    /// The ring itself rehashes its points as numbers; their bytes are taken low first everywhere.
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
