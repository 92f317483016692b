//! The seed of the hash tables: another one in every process, so that nobody can prepare collisions; in the
//! simulation always the same, so that its runs can be repeated.

#[cfg(feature = "simulation")]
pub(crate) use foldhash::fast::FixedState as Seeded;
#[cfg(not(feature = "simulation"))]
pub(crate) use foldhash::fast::RandomState as Seeded;
