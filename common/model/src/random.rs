//! Repeatable pseudo-random numbers for simulation, evaluation, tests and benchmarks.
//!
//! The numbers depend on the seed alone, so they must not be used for secrets.

use crate::sketch::mix;
use crate::stable_hash64;

const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of pseudo-random numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates the generator whose sequence of numbers belongs to `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a generator for one item among many, such as a page. Each `seed` and `item` have a sequence of
    /// their own.
    #[must_use]
    pub fn of(seed: u64, item: [u64; 3]) -> Self {
        let bytes: Vec<u8> =
            [[seed].as_slice(), &item].concat().into_iter().flat_map(u64::to_le_bytes).collect();
        Self(stable_hash64(&bytes))
    }

    /// Draws the next 64-bit number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        mix(self.0)
    }

    /// Draws a number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// Draws an index into a list of `len` items. `len` must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Draws a number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts items into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_equal_those_of_the_reference_implementation() {
        // Output of the reference implementation of SplitMix64 in C, for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| random.number()), expected);
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_cover_them() {
        let mut random = Random::of(7, [1, 2, 3]);
        let mut counts = [0; 6];
        (0..600).for_each(|_| counts[random.index(6)] += 1);
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
        assert!((0..600).all(|_| (0.0..1.0).contains(&random.unit())));
        let mut items: Vec<u32> = (0..100).collect();
        random.shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..100));
        assert_ne!(Random::of(7, [1, 2, 3]).number(), Random::of(7, [1, 3, 2]).number());
    }
}
