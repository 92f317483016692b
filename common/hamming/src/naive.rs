//! The ways that the tables are measured against: the first two are the paper's "simple-minded but impractical" ones
//! (section 3), the third compares everything and is obviously right.
//!
//! Invariant: all three give the same distinct fingerprints, ascending.

use hashbrown::HashSet;

use crate::error::HammingError;
use crate::limits::{NEIGHBOURS_MAX, WIDTH_MAX};
use crate::patterns::{binomial, up_to};

/// How many fingerprints are within a distance of one: 43,745 for 64 bits and distance 3, of which 41,664 are at exactly
/// 3, which is the paper's number.
#[must_use]
pub fn neighbours(width: u32, distance: u32) -> u64 {
    (0..=distance).fold(0, |sum, weight| sum.saturating_add(binomial(width, weight)))
}

/// Compares a query with every fingerprint.
#[derive(Clone, Debug)]
pub struct Scan {
    fingerprints: Vec<u64>,
}

impl Scan {
    /// Keeps fingerprints.
    pub fn new(fingerprints: impl IntoIterator<Item = u64>) -> Self {
        Self { fingerprints: distinct(fingerprints) }
    }

    /// All fingerprints that differ in at most `distance` bits.
    #[must_use]
    pub fn within(&self, fingerprint: u64, distance: u32) -> Vec<u64> {
        let is_near = |other: &u64| (other ^ fingerprint).count_ones() <= distance;
        self.fingerprints.iter().copied().filter(is_near).collect()
    }
}

/// Looks up every fingerprint that is near the query.
#[derive(Clone, Debug)]
pub struct Probes {
    width: u32,
    fingerprints: HashSet<u64, foldhash::fast::RandomState>,
}

impl Probes {
    /// Keeps fingerprints of `width` bits.
    pub fn new(width: u32, fingerprints: impl IntoIterator<Item = u64>) -> Result<Self, HammingError> {
        if !(1..=WIDTH_MAX).contains(&width) {
            return Err(HammingError::Width(width));
        }
        Ok(Self { width, fingerprints: fingerprints.into_iter().collect() })
    }

    /// All fingerprints that differ in at most `distance` bits.
    #[must_use]
    pub fn within(&self, fingerprint: u64, distance: u32) -> Vec<u64> {
        let probes = self.probes(fingerprint, distance);
        distinct(probes.filter(|probe| self.fingerprints.contains(probe)))
    }

    /// What it looks up for that, one after another.
    pub fn probes(&self, fingerprint: u64, distance: u32) -> impl Iterator<Item = u64> + use<> {
        up_to(self.width, distance).map(move |difference| fingerprint ^ difference)
    }
}

/// A sorted table of every fingerprint that is near a stored one: one look-up answers a query.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// A neighbour, and the fingerprint of which it is one.
    sorted: Vec<(u64, u64)>,
}

impl Neighbours {
    /// Computes all neighbours within `distance`, if they are not too many.
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

    /// All fingerprints that are within the distance of the table.
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
