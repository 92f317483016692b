//! Bands of the sketch: locality-sensitive hashing (Leskovec, Rajaraman, Ullman, *Mining of Massive
//! Datasets*, section 3.4).
//!
//! The 64 bytes of a sketch are cut into bands of r bytes. Two contents are candidates if all bytes of at
//! least one band are equal. For a pair with Jaccard coefficient J the probability of this is at least 1 - (1
//! - J^r)^bands.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::sketch::{BINS, Sketch};
use crate::{Tau, stable_hash64};

/// The minimum probability with which a pair at exactly tau must share a band.
pub const COLLISION_PROBABILITY: f64 = 0.9995;

/// The rows of the bands for each threshold, or 0 before they are first asked for. To compute them takes some
/// microseconds, which is too long for each signature.
static ROWS: [AtomicU8; Tau::DENOMINATOR as usize + 1] =
    [const { AtomicU8::new(0) }; Tau::DENOMINATOR as usize + 1];

/// How a sketch is cut into bands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bands {
    /// Number of sketch bytes per band, r.
    pub rows: usize,
    /// Number of bands: 64 / r, rounded down. The remaining bytes are unused.
    pub count: usize,
}

impl Bands {
    /// The bands with the largest r that still gives [`COLLISION_PROBABILITY`] at `tau`.
    ///
    /// More rows mean fewer accidental candidates. There are 16 bands of 4 rows at 0.8, and 12 bands of 5
    /// rows at 0.9. Below about 0.46 a band is a single byte. Two contents that share nothing then agree in
    /// at least one of 64 bands with probability 22 %, so many pairs are candidates.
    #[must_use]
    pub fn for_tau(tau: Tau) -> Self {
        let of = |rows| Self { rows, count: BINS / rows };
        let known = &ROWS[tau.numerator() as usize];
        if let rows @ 1.. = known.load(Ordering::Relaxed) {
            return of(rows.into());
        }
        let bands = (1..=BINS)
            .rev()
            .map(of)
            .find(|bands| bands.collision_probability(tau.as_f64()) >= COLLISION_PROBABILITY)
            .unwrap_or(of(1));
        known.store(bands.rows as u8, Ordering::Relaxed);
        bands
    }

    /// The probability that a pair with Jaccard coefficient `jaccard` shares a band.
    ///
    /// The result is a lower bound, because it ignores that the bytes of two different minima are equal by
    /// chance once in 256 times.
    #[must_use]
    pub fn collision_probability(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powf(self.rows as f64)).powf(self.count as f64)
    }

    /// Whether two sketches share a band.
    #[must_use]
    pub fn meet(self, a: &Sketch, b: &Sketch) -> bool {
        self.keys(a).zip(self.keys(b)).any(|(a, b)| a == b)
    }

    /// One key per band, in order. With up to 4 rows the key consists of the bytes of the band. With more
    /// rows the key is a hash of them.
    #[must_use]
    pub fn keys(self, sketch: &Sketch) -> BandKeys<'_> {
        BandKeys { bands: sketch[..self.rows * self.count].chunks_exact(self.rows) }
    }
}

/// Iterates over the keys of a sketch's bands.
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
