//! Bands of the sketch: locality-sensitive hashing (Leskovec, Rajaraman, Ullman, *Mining of Massive
//! Datasets*, section 3.4).
//!
//! The 64 bytes of a sketch are cut into bands of r bytes; two contents are candidates when they agree
//! in all bytes of a band. A pair at Jaccard J meets with probability 1 - (1 - J^r)^bands, at least.

use crate::sketch::{BINS, Sketch};
use crate::{Tau, stable_hash64};

/// The least probability that a pair at exactly tau has a band in common.
pub const COLLISION_PROBABILITY: f64 = 0.9995;

/// How a sketch is cut into bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bands {
    /// Sketch bytes of a band, r.
    pub rows: usize,
    /// Number of bands, 64 / r rounded down; bytes left over are not used.
    pub count: usize,
}

impl Bands {
    /// The most rows, so the fewest chance candidates, that still give [`COLLISION_PROBABILITY`] at `tau`: 16 bands of
    /// 4 rows at 0.8, 12 of 5 at 0.9.
    #[must_use]
    pub fn for_tau(tau: Tau) -> Self {
        let of = |rows| Self { rows, count: BINS / rows };
        (1..=BINS)
            .rev()
            .map(of)
            .find(|bands| bands.collision_probability(tau.as_f64()) >= COLLISION_PROBABILITY)
            .unwrap_or(of(1))
    }

    /// The probability that a pair at Jaccard `jaccard` has a band in common. The bytes of two minima
    /// that differ agree by chance one time in 256, which is not counted.
    #[must_use]
    pub fn collision_probability(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powf(self.rows as f64)).powf(self.count as f64)
    }

    /// One key per band, in order. Up to 4 rows are the bytes themselves, more are hashed.
    #[must_use]
    pub fn keys(self, sketch: &Sketch) -> BandKeys<'_> {
        BandKeys { bands: sketch[..self.rows * self.count].chunks_exact(self.rows) }
    }
}

/// The keys of one sketch's bands.
#[derive(Clone, Debug)]
pub struct BandKeys<'s> {
    bands: std::slice::ChunksExact<'s, u8>,
}

impl Iterator for BandKeys<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.bands.next().map(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.bands.size_hint()
    }
}

impl ExactSizeIterator for BandKeys<'_> {}

fn key(band: &[u8]) -> u32 {
    let mut bytes = [0; 4];
    match bytes.get_mut(..band.len()) {
        Some(low) => low.copy_from_slice(band),
        None => bytes.copy_from_slice(&stable_hash64(band).to_le_bytes()[..4]),
    }
    u32::from_le_bytes(bytes)
}
