//! Cuts one dimension into intervals with about equal numbers of values.

/// Returns at most `parts - 1` ascending boundaries that divide `values` into intervals with about the same
/// number of values. Values up to a boundary are to its left. Equal values are never separated. Under this
/// condition the fullest interval is as small as possible. Within that limit, each interval is as close as
/// possible to its share of the remaining values.
pub(super) fn equal_depth(mut values: Vec<i64>, parts: u32) -> Vec<i64> {
    values.sort_unstable();
    let runs: Vec<(i64, usize)> = values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    let parts = parts as usize;
    let (mut low, mut high) = (values.len().div_ceil(parts.max(1)), values.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if intervals_needed(&runs, middle) <= parts { high = middle } else { low = middle + 1 }
    }
    let size_max = high;

    let mut boundaries = Vec::new();
    let (mut from, mut left) = (0, values.len());
    for open in (2..=parts).rev() {
        let share = left as f64 / open as f64;
        let mut stored = 0;
        let mut best: Option<(f64, usize, usize)> = None;
        for (at, (_, count)) in runs.iter().enumerate().skip(from) {
            stored += count;
            if stored > size_max || at + 1 == runs.len() {
                break;
            }
            let off = (stored as f64 - share).abs();
            if best.is_some_and(|(least, ..)| off >= least) && stored as f64 > share {
                break;
            }
            if intervals_needed(&runs[at + 1..], size_max) < open {
                best = Some((off, at, stored));
            }
        }
        let Some((_, at, stored)) = best else { break };
        boundaries.push(runs[at].0);
        (from, left) = (at + 1, left - stored);
    }
    boundaries
}

/// The number of intervals with at most `size_max` values that the runs need.
fn intervals_needed(runs: &[(i64, usize)], size_max: usize) -> usize {
    let mut parts = 0;
    let mut room = 0;
    for (_, count) in runs {
        match count {
            count if *count > size_max => return usize::MAX,
            count if *count > room => (parts, room) = (parts + 1, size_max - count),
            count => room -= count,
        }
    }
    parts
}

/// The middle boundary among the boundaries from `low` up to, but not including, `high`.
pub(super) fn middle(boundaries: &[i64], low: i64, high: i64) -> Option<i64> {
    let from = boundaries.partition_point(|at| *at < low);
    let to = boundaries.partition_point(|at| *at < high);
    boundaries.get(from..to).and_then(|inside| inside.get(inside.len() / 2)).copied()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The size of the fullest interval.
    fn fullest(values: &[i64], boundaries: &[i64]) -> usize {
        let mut counts = vec![0; boundaries.len() + 1];
        values.iter().for_each(|value| counts[boundaries.partition_point(|at| at < value)] += 1);
        counts.into_iter().max().unwrap_or(0)
    }

    /// The size of the fullest interval under the best choice of boundaries, found by trying all.
    fn least(values: &[i64], parts: usize, chosen: &mut Vec<i64>, from: i64) -> usize {
        let here = fullest(values, chosen);
        if chosen.len() + 1 == parts {
            return here;
        }
        (from..10).fold(here, |best, at| {
            chosen.push(at);
            let found = least(values, parts, chosen, at + 1);
            chosen.pop();
            best.min(found)
        })
    }

    proptest! {
        #[test]
        fn the_fullest_interval_is_as_small_as_it_can_be(values in vec(0i64..10, 0..40), parts in 1usize..5) {
            let boundaries = equal_depth(values.clone(), parts as u32);
            prop_assert!(boundaries.is_sorted_by(|a, b| a < b) && boundaries.len() < parts);
            prop_assert_eq!(fullest(&values, &boundaries), least(&values, parts, &mut Vec::new(), 0));
        }
    }

    #[test]
    fn intervals_of_different_values_are_even() {
        let boundaries = equal_depth((0..103).rev().collect(), 4);
        assert_eq!(boundaries, [25, 51, 76]);
        assert_eq!(middle(&boundaries, -9, 900), Some(51));
        assert_eq!(middle(&boundaries, -9, 51), Some(25));
        assert_eq!(middle(&boundaries, 52, 76), None);
    }
}
