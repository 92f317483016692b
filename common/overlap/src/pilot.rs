//! The pilot sample: how many pairs there are by how much they share, and from that the parameters of coarse counting.
//!
//! Documents are drawn by a hash of their number, and their pairs are counted exactly. Of r of all documents r^2 of all pairs are
//! drawn, whatever they share. From the numbers follows how many light pairs pass a bitmap: the sum in a bucket is a compound
//! Poisson variable, whose distribution Panjer's recursion gives. The choice is the one that is expected to take least time.

use std::ops::RangeInclusive;

use crate::counters::FUNCTIONS_MAX;
use crate::sorter::Sorter;
use crate::source::{Source, pair};
use crate::way::Parameters;
use crate::{Budget, OverlapError};

/// The fewest counters worth trying, as their logarithm.
pub(crate) const LOG2_LEAST: u32 = 12;

/// The most pairs of documents of the sample, counted once for each chunk that they share.
const SAMPLE: u64 = 2_000_000;

/// What the sample says of all pairs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// Occurrences of pairs; these are counted and not estimated.
    pub(crate) occurrences: u64,
    /// The number of pairs that share so many, fewer than enough; of 0 there are none.
    pub(crate) light: Vec<f64>,
    /// The number of those that share enough.
    pub(crate) heavy: f64,
}

/// Counts and draws. Gives the number of scans, too.
pub(crate) fn estimate(
    source: Source<'_>,
    least: u8,
    room: u64,
    budget: &Budget,
) -> Result<(Estimate, u32), OverlapError> {
    let mut occurrences = 0_u64;
    let mut groups = source.groups()?;
    while let Some(documents) = groups.next()? {
        let count = documents.len() as u64;
        occurrences += count * count.saturating_sub(1) / 2;
    }
    drop(groups);
    // One document of 2^s: the fewest that do not give too many pairs.
    let halvings = (0..16).find(|halvings| occurrences >> (2 * halvings) <= SAMPLE).unwrap_or(16);
    let mut sample = Sorter::new(budget, room, false)?;
    let mut groups = source.groups()?;
    let mut drawn = Vec::new();
    while let Some(documents) = groups.next()? {
        drawn.clear();
        drawn.extend(documents.iter().filter(|document| is_drawn(**document, halvings)));
        for (at, a) in drawn.iter().enumerate() {
            for b in &drawn[at + 1..] {
                sample.push(pair(*a, *b))?;
            }
        }
    }
    drop(groups);
    let sorted = sample.finish()?;
    let each = (1_u64 << (2 * halvings)) as f64;
    let mut estimate = Estimate { occurrences, light: vec![0.0; least.into()], heavy: 0.0 };
    sorted.scan()?.counted(|_, shared| {
        *estimate.light.get_mut(shared as usize).unwrap_or(&mut estimate.heavy) += each;
        Ok(())
    })?;
    Ok((estimate, 2))
}

fn is_drawn(document: u32, halvings: u32) -> bool {
    let hash = (u64::from(document) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9).leading_zeros() >= halvings
}

/// The probability that the light pairs of a bucket sum up to less than each number up to that of enough, if there are so many buckets.
fn below(light: &[f64], buckets: f64) -> Vec<f64> {
    let rates: Vec<f64> = light.iter().map(|pairs| pairs / buckets).collect();
    let mut exactly = vec![0.0; light.len()];
    for sum in 0..light.len() {
        exactly[sum] = match sum {
            0 => (-rates.iter().sum::<f64>()).exp(),
            _ => {
                let terms = (1..=sum).map(|shared| shared as f64 * rates[shared] * exactly[sum - shared]);
                terms.sum::<f64>() / sum as f64
            }
        };
    }
    let mut sum = 0.0;
    let mut below = vec![0.0];
    below.extend(exactly.into_iter().map(|exactly| {
        sum += exactly;
        sum
    }));
    below
}

/// How many light pairs of each kind are expected to pass one more bitmap.
fn passing(light: &[f64], heavy: f64, buckets: f64) -> Vec<f64> {
    let (below, without_heavy) = (below(light, buckets), (-heavy / buckets).exp());
    // A pair that shares `s` is in a light bucket if all others sum up to less than enough - s.
    let passes = |(shared, pairs): (usize, &f64)| pairs * (1.0 - without_heavy * below[light.len() - shared]);
    light.iter().enumerate().map(passes).collect()
}

fn occurrences(light: &[f64]) -> f64 {
    light.iter().enumerate().map(|(shared, pairs)| shared as f64 * pairs).sum()
}

/// Nanoseconds, roughly, that a random access takes in a table of so many bytes.
fn access(bytes: f64) -> f64 {
    match bytes {
        bytes if bytes <= f64::from(1 << 18) => 1.0,
        bytes if bytes <= f64::from(1 << 22) => 3.0,
        _ => 8.0,
    }
}

/// Nanoseconds to make a pair, and to take a candidate and count it.
const PAIR: f64 = 1.0;
const CANDIDATE: f64 = 60.0;

/// The parameters that are expected to take least time, out of so many counters (their logarithms).
pub(crate) fn choose(estimate: &Estimate, counters: RangeInclusive<u32>) -> Parameters {
    let all = estimate.occurrences as f64;
    let heavy_occurrences = (all - occurrences(&estimate.light)).max(0.0);
    let mut best = (f64::INFINITY, Parameters { counters_log2: *counters.end(), functions: 1 });
    for counters_log2 in counters {
        let buckets = (1_u64 << counters_log2) as f64;
        let mut light = estimate.light.clone();
        // Making the counters costs, too.
        let (mut time, mut reaching) = (0.0, all);
        for functions in 1..=FUNCTIONS_MAX {
            time += all * PAIR + reaching * access(buckets) + buckets / 8.0;
            light = passing(&light, estimate.heavy, buckets);
            reaching = occurrences(&light) + heavy_occurrences;
            // Two more scans ask the bitmaps.
            let asking = 2.0 * (all * (PAIR + access(buckets / 8.0)) + reaching * CANDIDATE);
            if time + asking < best.0 {
                best = (time + asking, Parameters { counters_log2, functions });
            }
            time += all * access(buckets / 8.0);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_a_bucket_are_those_of_a_simulation() {
        let light = [0.0, 4_000.0, 1_000.0, 500.0];
        let buckets = 2_048;
        let mut random = doppel_model::Random::new(7);
        let mut below_found = [0_u32; 5];
        for _ in 0..50 {
            let mut sums = vec![0; buckets];
            for (shared, pairs) in light.iter().enumerate() {
                (0..*pairs as u32).for_each(|_| sums[random.index(buckets)] += shared);
            }
            for sum in sums {
                (sum + 1..5).for_each(|above| below_found[above] += 1);
            }
        }
        let expected = below(&light, buckets as f64);
        for (expected, found) in expected.iter().zip(below_found) {
            let found = f64::from(found) / (50.0 * buckets as f64);
            assert!((expected - found).abs() < 0.01, "{expected} {found}");
        }
    }

    #[test]
    fn many_light_pairs_ask_for_many_counters_and_few_for_few() {
        let choose = |pairs: f64, most| {
            let light = vec![0.0, pairs, pairs / 4.0, 0.0, 0.0];
            let estimate = Estimate { occurrences: occurrences(&light) as u64 + 500, light, heavy: 100.0 };
            choose(&estimate, 12..=most)
        };
        let (few, many) = (choose(1e4, 30), choose(1e8, 30));
        assert!(few.counters_log2 < many.counters_log2, "{few:?} {many:?}");
        // Where counters are too few for one function, more are taken than one.
        let crowded = choose(1e8, 25);
        assert!(crowded.counters_log2 <= 25 && crowded.functions > 1, "{crowded:?}");
    }
}
