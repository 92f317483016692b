//! Random seed of the hash tables. Every process has another one, so nobody can prepare keys that collide.
//! The simulation always uses the same seed, so that its runs can be repeated.

#[cfg(feature = "simulation")]
pub(crate) use foldhash::fast::FixedState as Seeded;
#[cfg(not(feature = "simulation"))]
pub(crate) use foldhash::fast::RandomState as Seeded;

use std::hash::BuildHasher as _;

/// Seed of the hashes of band keys. A snapshot contains such hashes, and therefore also their seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BandSeed(pub(crate) u64);

impl BandSeed {
    /// Draws a seed.
    pub(crate) fn new() -> Self {
        Self(Seeded::default().hash_one(()))
    }
}
