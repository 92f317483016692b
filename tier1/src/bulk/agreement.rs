//! How similar the pages of a group are. Groups are transitive, so two pages of a group need not be
//! near-duplicates.

use doppel_join::ReadSignature;
use doppel_model::Random;

use super::BulkError;
use super::resolution::ResolvedCollection;

/// Seed for drawing pairs, so that the same pages give the same numbers.
const SEED: u64 = 7;

/// Number of pairs of pages with content that are in one group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairAgreement {
    /// Number of all pairs.
    pub pairs: u64,
    /// Number of compared pairs: all of them, or a sample of the requested size drawn from all pairs.
    pub compared: u64,
    /// Number of compared pairs that are not near-duplicates. Only other pages link them.
    pub unlike: u64,
}

/// Compares all pairs, or a sample of `pairs_max` pairs.
pub(super) fn compare_pairs(
    resolved: &ResolvedCollection,
    read: &ReadSignature<'_, BulkError>,
    pairs_max: usize,
) -> Result<PairAgreement, BulkError> {
    // Number of the pair after the last pair of each group, if all pairs are numbered.
    let mut ends = Vec::with_capacity(resolved.groups.len());
    let mut pairs = 0;
    for group in &resolved.groups {
        let pages = group.pages.len() as u64;
        pairs += pages * pages.saturating_sub(1) / 2;
        ends.push(pairs);
    }
    let mut random = Random::new(SEED);
    let is_all = pairs <= pairs_max as u64;
    let compared = if is_all { pairs } else { pairs_max as u64 };
    let mut chosen = Vec::with_capacity(compared as usize);
    for number in 0..compared {
        let number = if is_all { number } else { random.below(pairs) };
        let group = ends.partition_point(|end| *end <= number);
        let first = group.checked_sub(1).map_or(0, |before| ends[before]);
        let pages = &resolved.groups[group].pages;
        let (low, high) = pair(number - first);
        let of = |at: u64| resolved.versions.pages[pages[at as usize] as usize].content();
        chosen.extend(of(low).zip(of(high)));
    }
    let comparisons = resolved.contents.compare_all(read, &chosen)?;
    let unlike = comparisons.iter().filter(|comparison| !comparison.similar).count() as u64;
    Ok(PairAgreement { pairs, compared, unlike })
}

/// Returns the pair with this number in the sequence (0, 1), (0, 2), (1, 2), (0, 3), ...
fn pair(number: u64) -> (u64, u64) {
    // The error of the root is below one.
    let mut high = ((1.0 + (1.0 + 8.0 * number as f64).sqrt()) / 2.0) as u64;
    while high * (high - 1) / 2 > number {
        high -= 1;
    }
    while (high + 1) * high / 2 <= number {
        high += 1;
    }
    (number - high * (high - 1) / 2, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_its_own_number() {
        let mut number = 0;
        for high in 1..200 {
            for low in 0..high {
                assert_eq!(pair(number), (low, high));
                number += 1;
            }
        }
        let many = 4_000_000_000;
        assert_eq!(pair(many * (many - 1) / 2), (0, many));
        assert_eq!(pair(many * (many - 1) / 2 - 1), (many - 2, many - 1));
    }
}
