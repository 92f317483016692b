//! Repeatable pseudo-random numbers for simulation, evaluation, tests and benchmarks. They depend on the seed alone, so
//! they are not fit for secrets.

use crate::sketch::mix;
use crate::stable_hash64;

const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence of one item among many, such as a page.
    #[must_use]
    pub fn of(seed: u64, thing: [u64; 3]) -> Self {
        let bytes: Vec<u8> =
            [[seed].as_slice(), &thing].concat().into_iter().flat_map(u64::to_le_bytes).collect();
        Self(stable_hash64(&bytes))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(INCREMENT);
        mix(self.0)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// An index into a list of `len` items; `len` is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts items in random order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for at in (1..things.len()).rev() {
            things.swap(at, self.index(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // From the reference implementation in C, for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| random.number()), expected);
    }

    #[test]
    fn numbers_keep_to_their_bounds_and_reach_them() {
        let mut random = Random::of(7, [1, 2, 3]);
        let mut seen = [0; 6];
        (0..600).for_each(|_| seen[random.index(6)] += 1);
        assert!(seen.iter().all(|times| *times > 50), "{seen:?}");
        assert!((0..600).all(|_| (0.0..1.0).contains(&random.unit())));
        let mut things: Vec<u32> = (0..100).collect();
        random.shuffle(&mut things);
        assert!(!things.is_sorted());
        things.sort_unstable();
        assert!(things.into_iter().eq(0..100));
        assert_ne!(Random::of(7, [1, 2, 3]).number(), Random::of(7, [1, 3, 2]).number());
    }
}
