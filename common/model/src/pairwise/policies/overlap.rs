//! The policy `overlap`: two pages share at least T fingerprints of chunks of lines.
//!
//! Shivakumar and Garcia-Molina, *Finding near-replicas of documents on the Web*, WebDB 1998, section 2. The
//! lines of a page are cut into chunks of four or two lines, which do not overlap. The last chunk may be
//! shorter. Each chunk has a 32-bit fingerprint. Two pages are near-replicas if they share at least T
//! distinct fingerprints: 15 of four lines, or 25 of two lines.
//!
//! Equal texts are near-duplicates whatever their lines are, so the payload is the hash of the text. The set
//! has the fingerprints. A text of fewer than [`TOKENS_MIN`](crate::pairwise::TOKENS_MIN) tokens has no
//! fingerprints, so it is a near-duplicate only of its copies.
//!
//! The similarity is the number of fingerprints in both pages, divided by the number in at least one. Equal
//! texts have similarity 1. F does not depend on the similarity: a page is a near-duplicate of a much longer
//! page that contains it.
//!
//! **Bounds.** A signature keeps only the [`CHUNKS_MAX`] smallest fingerprints of a page, and F counts only
//! these. Similar sets have mostly the same smallest fingerprints, so long pages stay comparable. Further
//! fingerprints that two pages share are not counted.
//!
//! **Candidates.** Sort the n fingerprints of a page by value. If two pages share T fingerprints, then T - 1
//! shared ones are above the smallest shared one, in both pages. So the smallest shared one is among the
//! first n - T + 1 of both. These fingerprints are the keys, so every pair that F accepts shares a key. Fewer
//! fingerprints would not do: pages of T fingerprints each may be parts of one long page, and each must share
//! a key with it. The price is that pages are compared even if they share a single chunk, such as a menu.

use crate::pairwise::similarity::{Comparison, Similarity};
use crate::signature::Signature;
use crate::sketch::mix;
use crate::stable_hash128;

/// The largest number of lines in a chunk.
pub(in crate::pairwise) const LINES_MAX: u32 = 64;

/// The largest T that an operator can choose.
pub(in crate::pairwise) const SHARED_MAX: u32 = 255;

/// The largest number of fingerprints in a signature, which covers at least 16,384 lines at four lines per
/// chunk.
pub(in crate::pairwise) const CHUNKS_MAX: usize = 4_096;

/// Number of bytes of a payload, which is the hash of the text.
const BYTES: usize = 16;

/// Multiplier of the polynomial over the lines of a chunk: 2^64 / golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of the text has this number. Keys of fingerprints have smaller numbers.
const TEXT_KEY_NUMBER: u64 = 16;

/// T of the paper for chunks of `lines` lines. The paper gives T for two lines and for four.
pub(in crate::pairwise) const fn shared_by_default(lines: u32) -> u32 {
    if lines <= 2 { 25 } else { 15 }
}

/// Calls `each` with the 32-bit fingerprint of every chunk, in the order of the text. A fingerprint may occur
/// twice.
///
/// `lines` are the hashes of the lines. A chunk has `lines_each` lines; the last chunk may be shorter.
pub fn chunks(lines: &[u64], lines_each: u32, each: impl FnMut(u32)) {
    lines.chunks(lines_each.max(1) as usize).map(fingerprint).for_each(each);
}

fn fingerprint(lines: &[u64]) -> u32 {
    let sum = lines.iter().fold(0, |sum: u64, line| sum.wrapping_mul(MULTIPLIER).wrapping_add(*line));
    (mix(sum) >> 32) as u32
}

/// Replaces `set` by the distinct fingerprints of a page, ascending, and keeps the [`CHUNKS_MAX`] smallest.
pub(in crate::pairwise) fn sign(lines: &[u64], lines_each: u32, set: &mut Vec<u64>) {
    set.clear();
    chunks(lines, lines_each, |fingerprint| set.push(fingerprint.into()));
    set.sort_unstable();
    set.dedup();
    set.truncate(CHUNKS_MAX);
}

/// Hashes a text and its fingerprints to the id of the content. Equal texts with different lines are two
/// contents.
pub(in crate::pairwise) fn content_hash(text: [u8; BYTES], set: &[u64]) -> [u8; 16] {
    // Without fingerprints the id is the hash of the text, as under other policies.
    if set.is_empty() {
        return text;
    }
    let set = set.iter().flat_map(|fingerprint| (*fingerprint as u32).to_le_bytes());
    stable_hash128(&text.into_iter().chain(set).collect::<Vec<u8>>()).to_be_bytes()
}

/// Whether two contents have the same text.
pub(in crate::pairwise) fn is_one_text(a: &Signature, b: &Signature) -> bool {
    a.payload().len() == BYTES && a.payload() == b.payload()
}

/// Measures the similarity: the number of fingerprints in both contents, and the number in at least one.
pub(in crate::pairwise) fn measure(a: &Signature, b: &Signature) -> Similarity {
    if is_one_text(a, b) {
        return Similarity::of_copies(a.set().len().max(1) as u32);
    }
    let shared = a.shared_with(b);
    // Both sets have at most CHUNKS_MAX fingerprints, so the sum fits.
    let union = (a.set().len() + b.set().len()) as u32 - shared;
    Similarity { shared, of: union.max(1) }
}

/// Compares two contents that differ. F requires equal texts, or at least `least` shared fingerprints.
pub(in crate::pairwise) fn compare(least: u32, a: &Signature, b: &Signature) -> Comparison {
    let Similarity { shared, of } = measure(a, b);
    Comparison::new(shared, of, is_one_text(a, b) || shared >= least)
}

/// Calls `each` for every key: the hash of the text, and all fingerprints but the `least - 1` greatest.
pub(in crate::pairwise) fn keys(signature: &Signature, least: u32, mut each: impl FnMut(u64)) {
    if let Some(text) = signature.payload().first_chunk() {
        each(u64::from_le_bytes(*text) << 8 | TEXT_KEY_NUMBER);
    }
    let count = (signature.set().len() + 1).saturating_sub(least.max(1) as usize).min(CHUNKS_MAX);
    for fingerprint in signature.set().take(count) {
        each((fingerprint << 8) | (fingerprint % TEXT_KEY_NUMBER));
    }
}

/// Whether the payload of a signature has the length of a hash, and its set is within the limit.
pub(in crate::pairwise) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BYTES && signature.set().len() <= CHUNKS_MAX
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::pairwise::{Features, Policy, Signer};
    use crate::stable_hash64;

    /// A direct implementation of the paper, one chunk at a time, with numbers that cannot overflow.
    fn slow(lines: &[u64], lines_each: usize) -> Vec<u32> {
        let mut all = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let end = (at + lines_each).min(lines.len());
            let mut sum: u128 = 0;
            for line in &lines[at..end] {
                sum = (sum * u128::from(MULTIPLIER) + u128::from(*line)) % (1 << 64);
            }
            all.push((mix(sum as u64) >> 32) as u32);
            at = end;
        }
        all
    }

    fn set(signature: &Signature) -> BTreeSet<u64> {
        signature.set().collect()
    }

    fn tokens(lines: &[u64]) -> Vec<u64> {
        lines
            .iter()
            .flat_map(|line| (0..7).map(|at| stable_hash64(&line.wrapping_add(at).to_le_bytes())))
            .collect()
    }

    fn sign(policy: Policy, lines: &[u64]) -> Signature {
        let tokens = tokens(lines);
        Signer::new(policy).sign(Features { tokens: &tokens, lines, ..Features::default() })
    }

    proptest! {
        #[test]
        fn fingerprints_equal_those_of_the_paper_bit_for_bit(
            lines in prop::collection::vec(prop_oneof![any::<u64>(), 0..9_u64], 0..90), each in 1..9_u32,
        ) {
            let mut fingerprints = Vec::new();
            chunks(&lines, each, |fingerprint| fingerprints.push(fingerprint));
            prop_assert_eq!(&fingerprints, &slow(&lines, each as usize));
            let signature = sign(Policy::Overlap { lines: each, shared: 3 }, &lines);
            let expected = if lines.len() < 3 { Vec::new() } else { fingerprints };
            prop_assert_eq!(set(&signature), expected.into_iter().map(u64::from).collect());
        }

        /// The pages are parts of one long text, so that some pairs share few fingerprints and others many.
        #[test]
        fn pairs_that_share_enough_fingerprints_are_near_duplicates_and_share_a_key(
            ends in prop::collection::vec((0..60_u64, 0..60_u64), 2..8), each in 1..5_u32, shared in 1..20_u32,
        ) {
            let policy = Policy::Overlap { lines: each, shared };
            let pages: Vec<Vec<u64>> = ends.iter().map(|(a, b)| (*a.min(b)..*a.max(b)).collect()).collect();
            for (x, y) in pages.iter().flat_map(|x| pages.iter().map(move |y| (x, y))) {
                let (a, b) = (sign(policy, x), sign(policy, y));
                let of = |page: &[u64]| -> BTreeSet<u32> { slow(page, each as usize).into_iter().collect() };
                let is_long = x.len() >= 3 && y.len() >= 3;
                let common = of(x).intersection(&of(y)).count();
                let expected = x == y && !x.is_empty() || is_long && common >= shared as usize;
                prop_assert_eq!(policy.similar(&a, &b), expected);
                let keys = |signature: &Signature| {
                    let mut all = BTreeSet::new();
                    policy.keys(signature, |key| { all.insert(key); });
                    all
                };
                prop_assert!(!expected || !keys(&a).is_disjoint(&keys(&b)));
            }
        }
    }

    #[test]
    fn a_page_within_a_longer_page_is_a_near_duplicate_from_the_threshold_on() {
        let policy: Policy = "overlap".parse().unwrap();
        let whole: Vec<u64> = (0..400).collect();
        let part = |chunks: usize| policy.compare(&sign(policy, &whole[..4 * chunks]), &sign(policy, &whole));
        assert!(part(15).similar && !part(14).similar);
        assert_eq!(part(25).similarity, Similarity { shared: 25, of: 100 });
    }

    #[test]
    fn a_text_with_other_line_breaks_is_another_content_but_a_near_duplicate() {
        let policy: Policy = "overlap".parse().unwrap();
        let tokens = tokens(&[1, 2, 3, 4]);
        let sign =
            |tokens, lines| Signer::new(policy).sign(Features { tokens, lines, ..Features::default() });
        let (a, b) = (sign(&tokens, &[1, 2]), sign(&tokens, &[7]));
        let comparison = policy.compare(&a, &b);
        assert!(comparison.similar && !comparison.same_content && policy.linked(&a, &b));
        assert_eq!(comparison.similarity.as_f64(), 1.0);
        // A short text is the same content whatever its lines are.
        assert_eq!(sign(&tokens[..19], &[1, 2]), sign(&tokens[..19], &[7]));
        assert!(policy.similar(&sign(&tokens[..19], &[1, 2]), &sign(&tokens[..19], &[7])));
    }

    #[test]
    fn a_page_of_very_many_lines_has_a_bounded_signature() {
        let policy: Policy = "overlap:lines=1".parse().unwrap();
        let lines: Vec<u64> = (0..3 * CHUNKS_MAX as u64).collect();
        let (all, most) = (sign(policy, &lines), sign(policy, &lines[500..]));
        assert_eq!(all.set().len(), CHUNKS_MAX);
        let mut least: Vec<u32> = slow(&lines, 1);
        least.sort_unstable();
        least.dedup();
        assert!(all.set().eq(least[..CHUNKS_MAX].iter().map(|one| u64::from(*one))));
        let similarity = policy.compare(&all, &most).similarity.as_f64();
        assert!((0.9..1.0).contains(&similarity), "{similarity}");
        let mut keys = 0;
        policy.keys(&all, |_| keys += 1);
        assert_eq!(keys, CHUNKS_MAX - 25 + 2);
    }
}
