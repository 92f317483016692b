//! All pairs of contents with F true, exactly.
//!
//! Prefix filter (Chaudhuri, Ganti, Kaushik: "A Primitive Operator for Similarity Joins in Data
//! Cleaning", ICDE 2006): with the shingles in one order, the rarest first, two sets that share at
//! least m shingles meet in the first `len - m + 1` of each. Every pair that meets there is counted in
//! full, in integers.

use doppel_model::Tau;

use super::contents::{Content, ContentId, TOKENS_MIN};

/// F of two different contents.
pub(crate) fn near_duplicate(a: &Content, b: &Content, tau: Tau) -> bool {
    a.tokens.min(b.tokens) >= TOKENS_MIN && above(shared(&a.shingles, &b.shingles), a, b, tau)
}

/// Whether `shared / (a + b - shared) > tau`, with tau as the fraction it is.
fn above(shared: u64, a: &Content, b: &Content, tau: Tau) -> bool {
    let union = (a.shingles.len() + b.shingles.len()) as u64 - shared;
    shared * Tau::DENOMINATOR > tau.numerator() * union
}

/// Numbers that two ascending lists share.
fn shared(a: &[u32], b: &[u32]) -> u64 {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        i += usize::from(x <= y);
        j += usize::from(y <= x);
        count += u64::from(x == y);
    }
    count
}

/// Every pair of different contents with F true.
pub(crate) fn all_pairs(contents: &[Content], tau: Tau) -> Vec<(ContentId, ContentId)> {
    let ranks = ranks(contents);
    let comparable = |content: &Content| content.tokens >= TOKENS_MIN;
    let mut order: Vec<u32> =
        (0..contents.len() as u32).filter(|id| comparable(&contents[*id as usize])).collect();
    // Shorter sets first, so that of a list of those that meet the too short ones are at the front.
    order.sort_by_key(|id| (contents[*id as usize].shingles.len(), *id));
    let mut index: Vec<Vec<u32>> = vec![Vec::new(); ranks.len()];
    let mut met_by = vec![u32::MAX; contents.len()];
    let (mut pairs, mut rarest_first) = (Vec::new(), Vec::new());
    for b in order {
        let content = &contents[b as usize];
        let length = content.shingles.len() as u64;
        rarest_first.clear();
        rarest_first.extend(content.shingles.iter().map(|shingle| ranks[*shingle as usize]));
        rarest_first.sort_unstable();
        // The shared part is at least tau times the union, and the union holds the set.
        let least = (tau.numerator() * length).div_ceil(Tau::DENOMINATOR);
        let prefix = (length - least + 1).min(length) as usize;
        for rank in &rarest_first[..prefix] {
            let meets = &mut index[*rank as usize];
            let short = meets.partition_point(|a| (contents[*a as usize].shingles.len() as u64) < least);
            for a in &meets[short..] {
                if std::mem::replace(&mut met_by[*a as usize], b) != b {
                    let other = &contents[*a as usize];
                    if above(shared(&other.shingles, &content.shingles), other, content, tau) {
                        pairs.push((ContentId(*a), ContentId(b)));
                    }
                }
            }
            meets.push(b);
        }
    }
    pairs
}

/// The place of each shingle when the rarest come first.
fn ranks(contents: &[Content]) -> Vec<u32> {
    let mut frequency: Vec<(u32, u32)> = Vec::new();
    for shingle in contents.iter().flat_map(|content| &content.shingles) {
        let at = *shingle as usize;
        while frequency.len() <= at {
            frequency.push((0, frequency.len() as u32));
        }
        frequency[at].0 += 1;
    }
    frequency.sort_unstable();
    let mut ranks = vec![0; frequency.len()];
    for (rank, (_, shingle)) in (0..).zip(&frequency) {
        ranks[*shingle as usize] = rank;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute(contents: &[Content], tau: Tau) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        for (a, first) in (0..).zip(contents) {
            for (b, second) in (0..).zip(contents).take(a as usize) {
                if near_duplicate(first, second, tau) {
                    pairs.push((b, a));
                }
            }
        }
        pairs.sort_unstable();
        pairs
    }

    proptest! {
        /// Sets with much in common, and J exactly tau among them.
        #[test]
        fn the_join_is_that_of_all_pairs(
            sets in prop::collection::vec(prop::collection::btree_set(0u32..24, 0..20), 0..24),
            tokens in prop::collection::vec(18u32..23, 24),
            tau in prop::sample::select(vec!["0.5", "0.6", "0.8", "0.9"]),
        ) {
            let contents: Vec<Content> = sets.iter().zip(tokens)
                .map(|(set, tokens)| Content { tokens, shingles: set.iter().copied().collect() })
                .collect();
            let tau = tau.parse().unwrap();
            let mut found: Vec<(u32, u32)> = all_pairs(&contents, tau).iter()
                .map(|(a, b)| (a.0.min(b.0), a.0.max(b.0))).collect();
            found.sort_unstable();
            prop_assert_eq!(found, brute(&contents, tau));
        }
    }

    #[test]
    fn four_fifths_is_not_above_four_fifths() {
        let content = |shingles: std::ops::Range<u32>| Content { tokens: 30, shingles: shingles.collect() };
        let [four, five] = [content(0..20), content(0..25)];
        assert!(!near_duplicate(&four, &five, Tau::DEFAULT));
        assert!(near_duplicate(&content(0..21), &five, Tau::DEFAULT));
    }
}
