//! The seed of the hash tables: another one in every process, so that nobody can prepare collisions; in the
//! simulation always the same, so that its runs can be repeated.

#[cfg(feature = "simulation")]
pub(crate) use foldhash::fast::FixedState as Seeded;
#[cfg(not(feature = "simulation"))]
pub(crate) use foldhash::fast::RandomState as Seeded;

use std::hash::BuildHasher as _;

/// The seed of the hashes of band keys. A snapshot has them, and so it has the seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BandSeed(pub(crate) u64);

impl BandSeed {
    /// Another one.
    pub(crate) fn new() -> Self {
        Self(Seeded::default().hash_one(()))
    }
}
