//! Simple search methods that serve as a reference in tests and benchmarks. [`Probes`] and [`Neighbours`] are
//! the paper's "simple-minded but impractical" methods (section 3). [`FullScan`] compares everything and is
//! obviously right.
//!
//! Invariant: all three methods return the same distinct fingerprints, in ascending order.

use hashbrown::HashSet;

use crate::error::HammingError;
use crate::limits::{NEIGHBOURS_MAX, WIDTH_MAX};
use crate::patterns::{binomial, up_to};

/// Number of possible fingerprints within `distance` of a fingerprint, itself included. For 64 bits and
/// distance 3 there are 43,745, of which 41,664 are at distance 3 exactly; the paper states the latter
/// number.
#[must_use]
pub fn neighbours(width: u32, distance: u32) -> u64 {
    (0..=distance).fold(0, |sum, weight| sum.saturating_add(binomial(width, weight)))
}

/// Compares a query with every stored fingerprint.
#[derive(Clone, Debug)]
pub struct FullScan {
    fingerprints: Vec<u64>,
}

impl FullScan {
    /// Stores the distinct fingerprints.
    pub fn new(fingerprints: impl IntoIterator<Item = u64>) -> Self {
        Self { fingerprints: distinct(fingerprints) }
    }

    /// All stored fingerprints that differ from `fingerprint` in at most `distance` bits, in ascending order.
    #[must_use]
    pub fn within(&self, fingerprint: u64, distance: u32) -> Vec<u64> {
        let is_near = |other: &u64| (other ^ fingerprint).count_ones() <= distance;
        self.fingerprints.iter().copied().filter(is_near).collect()
    }
}

/// Stores fingerprints in a hash table, and looks up every possible fingerprint near the query.
#[derive(Clone, Debug)]
pub struct Probes {
    width: u32,
    fingerprints: HashSet<u64, foldhash::fast::RandomState>,
}

impl Probes {
    /// Stores fingerprints of `width` bits.
    pub fn new(width: u32, fingerprints: impl IntoIterator<Item = u64>) -> Result<Self, HammingError> {
        if !(1..=WIDTH_MAX).contains(&width) {
            return Err(HammingError::Width(width));
        }
        Ok(Self { width, fingerprints: fingerprints.into_iter().collect() })
    }

    /// All stored fingerprints that differ from `fingerprint` in at most `distance` bits, in ascending order.
    #[must_use]
    pub fn within(&self, fingerprint: u64, distance: u32) -> Vec<u64> {
        let probes = self.probes(fingerprint, distance);
        distinct(probes.filter(|probe| self.fingerprints.contains(probe)))
    }

    /// All possible fingerprints within `distance` of `fingerprint`, which [`within`](Self::within) looks up
    /// in this order.
    pub fn probes(&self, fingerprint: u64, distance: u32) -> impl Iterator<Item = u64> + use<> {
        up_to(self.width, distance).map(move |difference| fingerprint ^ difference)
    }
}

/// A sorted table of all neighbours of all stored fingerprints. The neighbours of a fingerprint are all
/// possible fingerprints within the distance, the fingerprint included. A single look-up answers a query.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// Pairs of a neighbour and the stored fingerprint that it is near.
    sorted: Vec<(u64, u64)>,
}

impl Neighbours {
    /// Computes all neighbours within `distance`. Returns an error if there are too many.
    pub fn new(
        width: u32,
        distance: u32,
        fingerprints: impl IntoIterator<Item = u64>,
    ) -> Result<Self, HammingError> {
        if !(1..=WIDTH_MAX).contains(&width) {
            return Err(HammingError::Width(width));
        }
        let fingerprints = distinct(fingerprints);
        let all = neighbours(width, distance).saturating_mul(fingerprints.len() as u64);
        if all > NEIGHBOURS_MAX {
            return Err(HammingError::Neighbours(all));
        }
        let of = |&f: &u64| up_to(width, distance).map(move |difference| (f ^ difference, f));
        let mut sorted: Vec<(u64, u64)> = fingerprints.iter().flat_map(of).collect();
        sorted.sort_unstable();
        Ok(Self { sorted })
    }

    /// All stored fingerprints within the distance for which the table was computed, in ascending order.
    #[must_use]
    pub fn within(&self, fingerprint: u64) -> Vec<u64> {
        let from = self.sorted.partition_point(|(neighbour, _)| *neighbour < fingerprint);
        let found = self.sorted[from..].iter().take_while(|(neighbour, _)| *neighbour == fingerprint);
        found.map(|(_, of)| *of).collect()
    }
}

fn distinct(fingerprints: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut fingerprints: Vec<u64> = fingerprints.into_iter().collect();
    fingerprints.sort_unstable();
    fingerprints.dedup();
    fingerprints
}
