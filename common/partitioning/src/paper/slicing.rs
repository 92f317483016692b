//! Cuts a dimension like the paper (section 4.3, after Theobald, Siddharth, Paepcke: "SpotSigs", SIGIR 2008).
//!
//! Lengths are merged into *fine* intervals. The least lengths p_i of these intervals are as close as the
//! condition p_i / p_(i+1) < tau allows. Fine intervals are merged into *coarse* intervals with about the
//! same number of contents each. A fine interval is never split.

use doppel_model::Tau;

use crate::intervals;

/// Computes the least lengths of all fine intervals. Each is the smallest element of `lengths` that is
/// greater than the previous one divided by tau. `lengths` are ascending. A length of 0 counts as 1.
fn fine_intervals(lengths: impl IntoIterator<Item = u32>, tau: Tau) -> Vec<u32> {
    let mut first: Vec<u32> = Vec::new();
    for length in lengths.into_iter().map(|length| length.max(1)) {
        let begins = |last: &u32| u64::from(*last) * Tau::DENOMINATOR < u64::from(length) * tau.numerator();
        if first.last().is_none_or(begins) {
            first.push(length);
        }
    }
    first
}

/// Computes the least lengths of at most `parts` coarse intervals, without the first interval. Fine intervals
/// are merged by the same function as the lengths of a one-dimensional learned map
/// ([`intervals::equal_depth`]). So a comparison of the two mappings does not measure a difference in
/// merging.
pub(super) fn coarse_intervals(mut lengths: Vec<u32>, parts: u32, tau: Tau) -> Vec<u32> {
    lengths.sort_unstable();
    let fine = fine_intervals(lengths.iter().copied(), tau);
    let numbers =
        lengths.iter().map(|length| i64::from(interval_index(fine.get(1..).unwrap_or_default(), *length)));
    let last = intervals::equal_depth(numbers.collect(), parts);
    last.into_iter().filter_map(|last| fine.get(last as usize + 1)).copied().collect()
}

/// The index of the interval that contains a length. `cuts` has the least lengths of all intervals but the
/// first.
pub(super) fn interval_index(cuts: &[u32], length: u32) -> u32 {
    cuts.partition_point(|cut| *cut <= length) as u32
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Creates contents with the given numbers in each of the paper's fine intervals. Returns the cuts, and
    /// the number of contents in each coarse interval.
    fn merged(counts: [usize; 6]) -> (Vec<u32>, Vec<usize>) {
        // All lengths from 1 to 10 occur if the counts allow it.
        let sizes: [&[u32]; 6] = [&[1], &[2], &[3], &[4, 5], &[6, 7], &[8, 9, 10]];
        let lengths: Vec<u32> = sizes
            .iter()
            .zip(counts)
            .flat_map(|(sizes, count)| sizes.iter().copied().cycle().take(count))
            .collect();
        let cuts = coarse_intervals(lengths.clone(), 4, Tau::DEFAULT);
        let mut stored = vec![0; cuts.len() + 1];
        lengths.iter().for_each(|length| stored[interval_index(&cuts, *length) as usize] += 1);
        (cuts, stored)
    }

    #[test]
    fn fine_intervals_are_those_of_the_paper() {
        assert_eq!(fine_intervals(1..=10, Tau::DEFAULT), [1, 2, 3, 4, 6, 8]);
        // Fine intervals begin only at lengths that occur.
        assert_eq!(fine_intervals([0, 0, 4, 5, 6, 40, 50, 51], Tau::DEFAULT), [1, 4, 6, 40, 51]);
        assert!(fine_intervals([], Tau::DEFAULT).is_empty());
    }

    #[test]
    fn coarse_intervals_are_those_of_the_paper() {
        // [1, 3), [3, 4), [4, 6), [6, 10].
        assert_eq!(merged([2, 3, 4, 5, 2, 1]), (vec![3, 4, 6], vec![5, 4, 5, 3]));
        assert_eq!(merged([2, 3, 4, 10, 2, 1]), (vec![3, 4, 6], vec![5, 4, 10, 3]));
    }

    #[test]
    fn one_length_is_not_cut() {
        assert!(
            coarse_intervals(vec![5; 10], 4, Tau::DEFAULT).is_empty()
                && coarse_intervals(Vec::new(), 4, Tau::DEFAULT).is_empty()
        );
        assert!(coarse_intervals(vec![0, 1], 4, Tau::DEFAULT).is_empty());
    }

    proptest! {
        /// Checks the condition itself, and that no further interval fits between two intervals.
        #[test]
        fn fine_intervals_are_as_many_as_the_condition_allows(mut lengths in vec(1u32..300, 1..200)) {
            lengths.sort_unstable();
            let first = fine_intervals(lengths.iter().copied(), Tau::DEFAULT);
            let apart = |a: u32, b: u32| u64::from(a) * 5 < u64::from(b) * 4;
            prop_assert_eq!(first[0], lengths[0]);
            prop_assert!(first.windows(2).all(|pair| apart(pair[0], pair[1])));
            for length in &lengths {
                let begin = first[first.partition_point(|first| first <= length) - 1];
                prop_assert!(begin == *length || !apart(begin, *length), "{} in {:?}", length, first);
            }
        }
    }
}
