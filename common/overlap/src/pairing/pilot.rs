//! Chooses the parameters of coarse counting from a pilot sample.
//!
//! Coarse counting (module `coarse`) adds up, in each hash bucket, the fingerprints that the pairs in the
//! bucket share. A bitmap marks the buckets whose sum reaches the minimum, and passes all pairs in these
//! buckets. Some of them are *light*: they share fewer fingerprints than the minimum.
//!
//! The pilot samples documents, or hosts, by a hash of their number, and counts the fingerprints that each
//! sampled pair shares. A sample of a fraction r of the documents is expected to contain a fraction r² of the
//! pairs, however much a pair shares. From these counts the pilot computes how many light pairs a bitmap
//! passes. The sum in a bucket is a compound Poisson variable, and Panjer's recursion gives its distribution.
//! The pilot chooses the parameters with the least expected time.

use std::ops::RangeInclusive;

use crate::budget::Budget;
use crate::error::OverlapError;
use crate::external_sort::sorter::Sorter;
use crate::pairing::counters::FUNCTIONS_MAX;
use crate::pairing::method::CoarseParameters;
use crate::pairing::pair_source::{PairSource, pair};

/// Minimum number of counters to try, as a base-2 logarithm. If memory is too small for 2^12 counters, only
/// the largest possible number is tried.
pub(crate) const LOG2_TRIED_MIN: u32 = 12;

/// The sample is chosen so that it is expected to contain at most this number of pairs, where a pair counts
/// once for each fingerprint that it shares.
const SAMPLE: u64 = 2_000_000;

/// Estimates how many pairs of documents or hosts share each number of fingerprints below the minimum, and
/// how many share at least the minimum. The estimates come from a sample of the documents or hosts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Estimate {
    /// Number of pairs, where a pair counts once for each fingerprint that it shares. This number is exact,
    /// not estimated.
    pub(crate) occurrences: u64,
    /// `light[s]` estimates the number of pairs that share `s` fingerprints, for each `s` below the minimum
    /// number of shared fingerprints. `light[0]` is zero, because the sample contains only pairs that share a
    /// fingerprint.
    pub(crate) light: Vec<f64>,
    /// Estimated number of pairs that share at least the minimum number of fingerprints.
    pub(crate) heavy: f64,
}

/// Counts all pairs, each once for every shared fingerprint. Estimates from a sample how many pairs share
/// each number of fingerprints below `min_shared`, and how many share at least `min_shared`. Sorting the
/// sample takes `room` bytes of memory. Also returns how many scans over the records of `source` were needed.
pub(crate) fn estimate(
    source: PairSource<'_>,
    min_shared: u8,
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
    // Sample one document in 2^s, with the smallest s that keeps the sample within `SAMPLE`.
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
    let pairs_per_sampled = (1_u64 << (2 * halvings)) as f64;
    let mut estimate = Estimate { occurrences, light: vec![0.0; min_shared.into()], heavy: 0.0 };
    sorted.scan()?.counted(|_, shared| {
        *estimate.light.get_mut(shared as usize).unwrap_or(&mut estimate.heavy) += pairs_per_sampled;
        Ok(())
    })?;
    Ok((estimate, 2))
}

fn is_drawn(document: u32, halvings: u32) -> bool {
    let hash = (u64::from(document) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9).leading_zeros() >= halvings
}

/// The distribution of the number of fingerprints that the light pairs in one of `buckets` buckets share in
/// total. Element `n` is the probability that this sum is less than `n`, for `n` from 0 to the minimum number
/// of shared fingerprints. `light[s]` is the number of light pairs in all buckets that share `s`
/// fingerprints.
fn sum_distribution(light: &[f64], buckets: f64) -> Vec<f64> {
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

/// Expected numbers of light pairs that pass one more bitmap. The bitmap has `buckets` buckets, which count
/// the light pairs in `light` and `heavy` other pairs. The number of fingerprints that a pair shares is the
/// index into `light` and into the result.
fn expected_passing(light: &[f64], heavy: f64, buckets: f64) -> Vec<f64> {
    let (below, without_heavy) = (sum_distribution(light, buckets), (-heavy / buckets).exp());
    // A pair that shares `s` is in a light bucket if the other pairs of the bucket sum up to less than the
    // minimum minus `s`.
    let passes = |(shared, pairs): (usize, &f64)| pairs * (1.0 - without_heavy * below[light.len() - shared]);
    light.iter().enumerate().map(passes).collect()
}

/// Number of light pairs, where a pair counts once for each fingerprint that it shares.
fn occurrences(light: &[f64]) -> f64 {
    light.iter().enumerate().map(|(shared, pairs)| shared as f64 * pairs).sum()
}

/// Approximate time, in nanoseconds, of a random access to a table of `bytes` bytes.
fn access_nanos(bytes: f64) -> f64 {
    match bytes {
        bytes if bytes <= f64::from(1 << 18) => 1.0,
        bytes if bytes <= f64::from(1 << 22) => 3.0,
        _ => 8.0,
    }
}

/// Nanoseconds to generate one occurrence of a pair in a scan.
const PAIR_NANOS: f64 = 1.0;
/// Nanoseconds to collect one occurrence of a candidate. Counting the occurrence in a later scan takes as
/// long again. A candidate occurs once for each fingerprint that its pair shares.
const CANDIDATE_NANOS: f64 = 60.0;

/// Returns the parameters with which coarse counting is expected to take the least time. `counters` is the
/// range of base-2 logarithms of the number of counters to try.
pub(crate) fn choose(estimate: &Estimate, counters: RangeInclusive<u32>) -> CoarseParameters {
    let all = estimate.occurrences as f64;
    let heavy_occurrences = (all - occurrences(&estimate.light)).max(0.0);
    let mut best = (f64::INFINITY, CoarseParameters { counters_log2: *counters.end(), functions: 1 });
    for counters_log2 in counters {
        let buckets = (1_u64 << counters_log2) as f64;
        let mut light = estimate.light.clone();
        // Clearing the counters takes time, too.
        let (mut time, mut reaching) = (0.0, all);
        for functions in 1..=FUNCTIONS_MAX {
            time += all * PAIR_NANOS + reaching * access_nanos(buckets) + buckets / 8.0;
            light = expected_passing(&light, estimate.heavy, buckets);
            reaching = occurrences(&light) + heavy_occurrences;
            // Two more scans test the bitmaps.
            let asking =
                2.0 * (all * (PAIR_NANOS + access_nanos(buckets / 8.0)) + reaching * CANDIDATE_NANOS);
            if time + asking < best.0 {
                best = (time + asking, CoarseParameters { counters_log2, functions });
            }
            time += all * access_nanos(buckets / 8.0);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_of_bucket_sums_matches_a_simulation() {
        let light = [0.0, 4_000.0, 1_000.0, 500.0];
        let buckets = 2_048;
        let mut random = doppel_model::Random::new(7);
        let mut below_counted = [0_u32; 5];
        for _ in 0..50 {
            let mut sums = vec![0; buckets];
            for (shared, pairs) in light.iter().enumerate() {
                (0..*pairs as u32).for_each(|_| sums[random.index(buckets)] += shared);
            }
            for sum in sums {
                (sum + 1..5).for_each(|above| below_counted[above] += 1);
            }
        }
        let expected = sum_distribution(&light, buckets as f64);
        for (expected, counted) in expected.iter().zip(below_counted) {
            let simulated = f64::from(counted) / (50.0 * buckets as f64);
            assert!((expected - simulated).abs() < 0.01, "expected {expected}, simulated {simulated}");
        }
    }

    #[test]
    fn more_light_pairs_need_more_counters() {
        let choose = |pairs: f64, most| {
            let light = vec![0.0, pairs, pairs / 4.0, 0.0, 0.0];
            let estimate = Estimate { occurrences: occurrences(&light) as u64 + 500, light, heavy: 100.0 };
            choose(&estimate, 12..=most)
        };
        let (few, many) = (choose(1e4, 30), choose(1e8, 30));
        assert!(few.counters_log2 < many.counters_log2, "{few:?} {many:?}");
        // If memory limits the counters to too few for one hash function, the pilot chooses several
        // functions.
        let crowded = choose(1e8, 25);
        assert!(crowded.counters_log2 <= 25 && crowded.functions > 1, "{crowded:?}");
    }
}
