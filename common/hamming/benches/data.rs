//! Generates fingerprints as a crawl produces them: most have no neighbours, others are in clusters of
//! near-duplicates, and clusters of one template are near each other.

/// An xorshift generator with a final multiplication. Its numbers are random enough to stand for
/// fingerprints.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Flips up to `most` random bits of a fingerprint.
    pub(crate) fn near(&mut self, fingerprint: u64, flips_max: u64) -> u64 {
        (0..self.below(flips_max + 1)).fold(fingerprint, |f, _| f ^ 1 << self.below(64))
    }
}

/// Generates fingerprints. Two fifths have no neighbours. The others are in clusters of 2 to 2,000, where
/// larger clusters are rarer. A cluster has a center, and its fingerprints are up to 8 flips away. Every
/// fourth center is up to 20 flips from the previous center, like pages of one template.
pub(crate) fn clustered(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut fingerprints = Vec::with_capacity(count + 2_000);
    let mut center = random.next();
    while fingerprints.len() < count * 3 / 5 {
        center = if random.below(4) == 0 { random.near(center, 20) } else { random.next() };
        let size = (2.0 / ((random.below(1_000_000) + 1) as f64 / 1e6)).min(2_000.0) as usize;
        fingerprints.extend((0..size).map(|_| random.near(center, 8)));
    }
    fingerprints.resize_with(count, || random.next());
    fingerprints
}

/// Generates queries. Half of the queries are near a stored fingerprint, and half are random.
pub(crate) fn queries(stored: &[u64], count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let near = |at: usize| {
        let one = stored[random.below(stored.len() as u64) as usize];
        if at.is_multiple_of(2) { random.near(one, 3) } else { random.next() }
    };
    (0..count).map(near).collect()
}
