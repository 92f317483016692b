//! `overlap`: at least so many of the 32-bit fingerprints of every four lines are shared.
//!
//! Shivakumar and Garcia-Molina, *Finding near-replicas of documents on the Web*, WebDB 1998, section 2: the lines of a page are cut
//! into chunks of four (or two), which do not overlap; each chunk has a 32-bit fingerprint; two pages are near-replicas when they
//! share at least T distinct ones: 15 of four lines, 25 of two. What is left at the end of a page is a chunk, too. Equal texts are
//! near-duplicates whatever their lines are, so a payload is the hash of the text; the set has the fingerprints.
//!
//! The measure counts the fingerprints of both pages, of those of either; equal texts have 1. F does not depend on it: a page and a
//! much longer one that has all of it are near-duplicates.
//!
//! A text of fewer than [`TOKENS_MIN`](super::TOKENS_MIN) tokens has no fingerprints: nothing but its copy is its near-duplicate.
//!
//! **Bounds.** A page has its [`CHUNKS_MAX`] least fingerprints, and F counts these. The least ones of a set and of a similar set are mostly
//! the same, so long pages stay comparable; only what two pages share beyond these is not seen.
//!
//! **Candidates.** Order the n fingerprints of a page by their value. Of two pages that share T, the least shared one has T - 1 shared ones
//! above it, in both. So it is among the first n - T + 1 of both: these are the keys, and every pair that is F has one in common. No fewer will
//! do, if a key is a fingerprint: pages of T fingerprints each may be parts of a page, and must all meet it. The price is that pages that
//! have a single chunk in common, such as a menu, are compared.

use super::{Comparison, Similarity};
use crate::signature::Signature;
use crate::sketch::mix;
use crate::stable_hash128;

/// The most lines of a chunk.
pub(super) const LINES_MAX: u32 = 64;

/// The most that can be asked for.
pub(super) const SHARED_MAX: u32 = 255;

/// The most fingerprints of a page: they are of 16,384 lines or more, at four lines each.
pub(super) const CHUNKS_MAX: usize = 4_096;

/// Bytes of a payload: the hash of the text.
const BYTES: usize = 16;

/// Multiplier of the polynomial over the lines of a chunk: 2^64 / golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keys of fingerprints have the numbers below this one, and that of the text has this one.
const NUMBERS: u64 = 16;

/// T by the paper, for chunks of so many lines. It names two lines and four.
pub(super) const fn shared_by_default(lines: u32) -> u32 {
    if lines <= 2 { 25 } else { 15 }
}

/// Appends the 32-bit fingerprint of every so many lines, in the order of the text: a page may have one twice. `lines` are their hashes.
pub fn chunks(lines: &[u64], lines_each: u32, each: impl FnMut(u32)) {
    lines.chunks(lines_each.max(1) as usize).map(fingerprint).for_each(each);
}

fn fingerprint(lines: &[u64]) -> u32 {
    let sum = lines.iter().fold(0, |sum: u64, line| sum.wrapping_mul(MULTIPLIER).wrapping_add(*line));
    (mix(sum) >> 32) as u32
}

/// Replaces `set` by the fingerprints of a page, each once, ascending.
pub(super) fn sign(lines: &[u64], lines_each: u32, set: &mut Vec<u64>) {
    set.clear();
    chunks(lines, lines_each, |fingerprint| set.push(fingerprint.into()));
    set.sort_unstable();
    set.dedup();
    set.truncate(CHUNKS_MAX);
}

/// The hash of a content: a text, and its fingerprints. Texts that are equal but for their lines are two contents.
pub(super) fn content(text: [u8; BYTES], set: &[u64]) -> [u8; 16] {
    // Without fingerprints it is that of the text under every other policy.
    if set.is_empty() {
        return text;
    }
    let set = set.iter().flat_map(|fingerprint| (*fingerprint as u32).to_le_bytes());
    stable_hash128(&text.into_iter().chain(set).collect::<Vec<u8>>()).to_be_bytes()
}

/// Whether two contents have the same text.
pub(super) fn is_one_text(a: &Signature, b: &Signature) -> bool {
    a.payload().len() == BYTES && a.payload() == b.payload()
}

/// What two contents have in common, of what either has.
pub(super) fn measure(a: &Signature, b: &Signature) -> Similarity {
    if is_one_text(a, b) {
        return Similarity::of_copies(a.set().len().max(1) as u32);
    }
    let shared = a.shared_with(b);
    // Both are bounded.
    let either = (a.set().len() + b.set().len()) as u32 - shared;
    Similarity { shared, of: either.max(1) }
}

pub(super) fn compare(least: u32, a: &Signature, b: &Signature) -> Comparison {
    let Similarity { shared, of } = measure(a, b);
    Comparison::of((shared, of), is_one_text(a, b) || shared >= least)
}

/// The keys: the hash of the text, and all fingerprints but the `least - 1` greatest.
pub(super) fn keys(signature: &Signature, least: u32, mut each: impl FnMut(u64)) {
    if let Some(text) = signature.payload().first_chunk() {
        each(u64::from_le_bytes(*text) << 8 | NUMBERS);
    }
    let first = (signature.set().len() + 1).saturating_sub(least.max(1) as usize).min(CHUNKS_MAX);
    for fingerprint in signature.set().take(first) {
        each((fingerprint << 8) | (fingerprint % NUMBERS));
    }
}

/// Whether a signature has the form of one.
pub(super) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BYTES && signature.set().len() <= CHUNKS_MAX
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::pairwise::{Features, Policy, Signer};
    use crate::stable_hash64;

    /// As the paper says it, one chunk at a time, with numbers that are long enough.
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
        fn fingerprints_are_those_of_the_paper_bit_for_bit(
            lines in prop::collection::vec(prop_oneof![any::<u64>(), 0..9_u64], 0..90), each in 1..9_u32,
        ) {
            let mut found = Vec::new();
            chunks(&lines, each, |fingerprint| found.push(fingerprint));
            prop_assert_eq!(&found, &slow(&lines, each as usize));
            let signature = sign(Policy::Overlap { lines: each, shared: 3 }, &lines);
            let expected = if lines.len() < 3 { Vec::new() } else { found };
            prop_assert_eq!(set(&signature), expected.into_iter().map(u64::from).collect());
        }

        /// Parts of one long text, so that pairs share few fingerprints and many.
        #[test]
        fn near_duplicates_are_those_that_share_enough_and_each_pair_has_a_key_in_common(
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
    fn a_page_in_a_longer_one_is_its_near_duplicate_from_the_threshold_on() {
        let policy: Policy = "overlap".parse().unwrap();
        let whole: Vec<u64> = (0..400).collect();
        let part = |chunks: usize| policy.compare(&sign(policy, &whole[..4 * chunks]), &sign(policy, &whole));
        assert!(part(15).similar && !part(14).similar);
        assert_eq!(part(25).similarity, Similarity { shared: 25, of: 100 });
    }

    #[test]
    fn one_text_in_other_lines_is_a_content_of_its_own_and_a_near_duplicate() {
        let policy: Policy = "overlap".parse().unwrap();
        let tokens = tokens(&[1, 2, 3, 4]);
        let sign =
            |tokens, lines| Signer::new(policy).sign(Features { tokens, lines, ..Features::default() });
        let (a, b) = (sign(&tokens, &[1, 2]), sign(&tokens, &[7]));
        let comparison = policy.compare(&a, &b);
        assert!(comparison.similar && !comparison.same_content && policy.linked(&a, &b));
        assert_eq!(comparison.similarity.as_f64(), 1.0);
        // A short text is one content, whatever its lines are.
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
