//! Made-up fingerprints like those of a crawl: most pages alone, others in clusters of near-duplicates and of
//! one template.

use doppel_model::Random;

/// Flips up to `most` random bits.
fn near(random: &mut Random, fingerprint: u64, most: usize) -> u64 {
    (0..random.index(most + 1)).fold(fingerprint, |fingerprint, _| fingerprint ^ 1 << random.index(64))
}

/// Makes clustered fingerprints.
///
/// Two fifths are alone. The others are in clusters of 2 to 2,000 fingerprints, up to 8 bit flips away from a
/// centre; larger clusters are rarer. Every fourth centre is up to 20 flips away from the centre before it,
/// as pages of one template are.
pub(super) fn clustered(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut fingerprints = Vec::with_capacity(count + 2_000);
    let mut centre = random.number();
    while fingerprints.len() < count * 3 / 5 {
        centre = if random.index(4) == 0 { near(&mut random, centre, 20) } else { random.number() };
        let size = (2.0 / ((random.index(1_000_000) + 1) as f64 / 1e6)).min(2_000.0) as usize;
        fingerprints.extend((0..size).map(|_| near(&mut random, centre, 8)));
    }
    fingerprints.resize_with(count, || random.number());
    fingerprints
}

/// Makes `count` independent fingerprints, sorted.
pub(super) fn uniform(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut fingerprints: Vec<u64> = (0..count).map(|_| random.number()).collect();
    fingerprints.sort_unstable();
    fingerprints
}

/// Makes queries. One half is near a stored fingerprint, the other half is random.
pub(super) fn queries(stored: &[u64], count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut query = |at: usize| {
        let one = stored[random.index(stored.len())];
        if at.is_multiple_of(2) { near(&mut random, one, 3) } else { random.number() }
    };
    (0..count).map(&mut query).collect()
}
