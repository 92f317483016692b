//! Exact join: all pairs of sets with a Jaccard coefficient of tau or more.
//!
//! Prefix filter (Chaudhuri, Ganti, Kaushik: "A Primitive Operator for Similarity Joins in Data Cleaning",
//! ICDE 2006): put the elements in one order, the rarest first. Two sets that share at least m elements then
//! have a common element in the first `len - m + 1` elements of each. The shared elements of every such pair
//! are counted in full, in integers.

use std::cmp::Ordering;

use crate::{Content, Tau};

/// Similar pairs as indices `(a, b)` with `a < b`, in arbitrary order.
#[derive(Debug, Default)]
pub struct Similar {
    /// Pairs with a Jaccard coefficient above tau.
    pub above: Vec<(usize, usize)>,
    /// Pairs with a Jaccard coefficient of exactly tau.
    pub at: Vec<(usize, usize)>,
}

/// Whether the Jaccard coefficient of two different contents is above tau. Always false if a content is too
/// short to be compared.
#[must_use]
pub fn near_duplicate(a: &Content, b: &Content, tau: Tau) -> bool {
    let (first, second) = (a.comparable(), b.comparable());
    let sides = (first.len(), second.len());
    sides.0.min(sides.1) > 0 && tau.against(shared(first, second), sides.0, sides.1) == Ordering::Greater
}

/// Finds every pair of similar contents, as indices in `contents`. Contents that are too short to be compared
/// are in no pair.
#[must_use]
pub fn similar_contents(contents: &[Content], tau: Tau) -> Similar {
    similar(&contents.iter().map(Content::comparable).collect::<Vec<_>>(), tau)
}

/// Finds all pairs of similar sets. The elements of a set must be ascending and distinct. An empty set is
/// similar to no other.
#[must_use]
pub fn similar(sets: &[&[u32]], tau: Tau) -> Similar {
    let ranks = ranks(sets);
    let mut order: Vec<usize> = (0..sets.len()).filter(|at| !sets[*at].is_empty()).collect();
    // Shorter sets come first, so sets that are too short are at the front of each list.
    order.sort_by_key(|at| (sets[*at].len(), *at));
    let mut index: Vec<Vec<usize>> = vec![Vec::new(); ranks.len()];
    let mut last_compared_with = vec![usize::MAX; sets.len()];
    let (mut found, mut rarest_first) = (Similar::default(), Vec::new());
    for b in order {
        let set = sets[b];
        rarest_first.clear();
        rarest_first.extend(set.iter().map(|element| ranks[*element as usize]));
        rarest_first.sort_unstable();
        let least = tau.least_shared(set.len());
        for rank in &rarest_first[..=set.len() - least] {
            let holders = &mut index[*rank as usize];
            let short = holders.partition_point(|a| sets[*a].len() < least);
            for a in &holders[short..] {
                if std::mem::replace(&mut last_compared_with[*a], b) != b {
                    let pair = ((*a).min(b), (*a).max(b));
                    match tau.against(shared(sets[*a], set), sets[*a].len(), set.len()) {
                        Ordering::Greater => found.above.push(pair),
                        Ordering::Equal => found.at.push(pair),
                        Ordering::Less => {}
                    }
                }
            }
            holders.push(b);
        }
    }
    found
}

/// Counts the elements that two ascending sets share.
#[must_use]
pub fn shared(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        i += usize::from(x <= y);
        j += usize::from(y <= x);
        count += usize::from(x == y);
    }
    count
}

/// Computes the rank of each element, the rarest first.
fn ranks(sets: &[&[u32]]) -> Vec<u32> {
    let last = sets.iter().filter_map(|set| set.last()).max();
    let mut frequency: Vec<(u32, u32)> =
        last.map_or(0..0, |last| 0..last + 1).map(|element| (0, element)).collect();
    for element in sets.iter().copied().flatten() {
        frequency[*element as usize].0 += 1;
    }
    frequency.sort_unstable();
    let mut ranks = vec![0; frequency.len()];
    for (rank, (_, element)) in (0..).zip(&frequency) {
        ranks[*element as usize] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Sets have much in common, and some pairs have a coefficient of exactly tau.
        #[test]
        fn the_join_finds_what_brute_force_finds(
            sets in prop::collection::vec(prop::collection::btree_set(0_u32..24, 0..20), 0..40),
            tenths in 1_usize..10,
        ) {
            let sets: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().collect()).collect();
            let sets: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
            let mut found = similar(&sets, format!("0.{tenths}").parse().unwrap());
            found.above.sort_unstable();
            found.at.sort_unstable();
            let mut expected = Similar::default();
            for a in 0..sets.len() {
                for b in (a + 1..sets.len()).filter(|b| !sets[a].is_empty() && !sets[*b].is_empty()) {
                    let shared = sets[a].iter().filter(|element| sets[b].contains(element)).count();
                    let union = sets[a].len() + sets[b].len() - shared;
                    match (shared * 10).cmp(&(union * tenths)) {
                        Ordering::Greater => expected.above.push((a, b)),
                        Ordering::Equal => expected.at.push((a, b)),
                        Ordering::Less => {}
                    }
                }
            }
            prop_assert_eq!((found.above, found.at), (expected.above, expected.at));
        }

        /// Contents with fewer than 20 tokens are compared with nothing.
        #[test]
        fn near_duplicate_agrees_with_the_join(
            sets in prop::collection::vec(prop::collection::btree_set(0_u32..24, 1..20), 0..24),
            tokens in prop::collection::vec(18_usize..23, 24),
        ) {
            let contents: Vec<Content> = sets.into_iter().zip(tokens)
                .map(|(set, tokens)| Content { tokens, shingles: set.into_iter().collect() })
                .collect();
            let tau = "0.8".parse().unwrap();
            let mut found = similar_contents(&contents, tau).above;
            found.sort_unstable();
            let pairs = (0..contents.len()).flat_map(|a| (a + 1..contents.len()).map(move |b| (a, b)));
            let like = |pair: &(usize, usize)| near_duplicate(&contents[pair.0], &contents[pair.1], tau);
            prop_assert!(contents.iter().all(|content| (content.tokens < 20) == content.comparable().is_empty()));
            prop_assert_eq!(found, pairs.filter(like).collect::<Vec<_>>());
        }
    }

    #[test]
    fn four_fifths_is_not_above_four_fifths() {
        let content = |shingles: std::ops::Range<u32>| Content { tokens: 30, shingles: shingles.collect() };
        let (four, five, tau) = (content(0..20), content(0..25), "0.8".parse().unwrap());
        assert!(!near_duplicate(&four, &five, tau) && near_duplicate(&content(0..21), &five, tau));
        assert_eq!(similar_contents(&[four, five], tau).at, [(0, 1)]);
    }
}
