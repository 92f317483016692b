//! The policy `multi-simhash`: in at least one of several lexicons, the fingerprints differ in fewer than a
//! given number of 32 bits.
//!
//! The method is from *Shingling based multi fingerprints simhash*, an evaluation on texts of the Million
//! Book Project. It is a simhash whose features are sequences of terms: words without stop words, reduced to
//! their stems. The weight of a feature is the sum of the inverse document frequencies of its words. A
//! feature counts once, however often it occurs.
//!
//! Each of L lexicons keeps a part of the words of a text, and the text has one fingerprint for the words
//! that each lexicon keeps. A match in one lexicon is enough. The paper filters nothing at L = 1, so the
//! first lexicon has all words. Every other lexicon lacks a random third of them ([`tables`](crate::tables)).
//! The defaults were the best in the paper: two words per feature, five lexicons, a distance below 3.
//!
//! If a lexicon leaves no feature of a text, the text has no fingerprint in that lexicon. The lexicon is then
//! ignored in comparisons of the text. The payload begins with one bit per lexicon, which is set if there is
//! a fingerprint.
//!
//! **Candidates.** Cut a fingerprint into k + 3 pieces. If at most k bits differ, at least three pieces are
//! equal. So each choice of three pieces in each lexicon gives a key: fifty keys at k = 2 and five lexicons.

use super::simhash::piece_masks;
use super::supershingle::shingle;
use crate::sketch::mix;
use crate::tables::Tables;

/// Number of bits of a fingerprint.
pub(in crate::pairwise) const BITS: u32 = 32;

/// The largest value of the parameter `below`. With larger values the pieces are too short to select
/// candidates.
pub(in crate::pairwise) const BELOW_MAX: u32 = 7;

/// The largest number of words in a feature.
pub(in crate::pairwise) const WORDS_MAX: u32 = 5;

/// The largest number of lexicons. A payload has 16 bits that say which lexicons have a fingerprint.
pub(in crate::pairwise) const LEXICONS_MAX: u32 = u16::BITS;

/// Number of bytes that say which lexicons have a fingerprint.
const PRESENT_BYTES: usize = 2;

/// Multiplier that makes equal pieces of different choices give different keys: 2^64 / golden ratio, odd.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The length of a payload in bytes.
pub(in crate::pairwise) const fn payload_bytes(lexicons: u32) -> usize {
    PRESENT_BYTES + 4 * lexicons as usize
}

/// The parameters of a signature.
#[derive(Debug, Clone, Copy)]
pub(in crate::pairwise) struct SignParameters {
    /// Number of words in a feature.
    pub(in crate::pairwise) words: u32,
    /// Number of lexicons.
    pub(in crate::pairwise) lexicons: u32,
}

/// Buffers that are reused from one signature to the next.
#[derive(Debug, Clone, Default)]
pub(in crate::pairwise) struct Scratch {
    /// The terms that the current lexicon keeps.
    terms: Vec<u64>,
    /// The weights of these terms.
    weights: Vec<u32>,
    /// The features of the current lexicon, each with its weight.
    features: Vec<(u64, u64)>,
}

/// Appends the fingerprints of a sequence of terms to the payload.
pub(in crate::pairwise) fn sign(
    terms: &[u64],
    SignParameters { words, lexicons }: SignParameters,
    tables: &Tables,
    scratch: &mut Scratch,
    payload: &mut Vec<u8>,
) {
    let words = words.clamp(1, WORDS_MAX) as usize;
    let start = payload.len();
    payload.extend([0; PRESENT_BYTES]);
    let mut present = 0_u16;
    for lexicon in 0..lexicons.min(LEXICONS_MAX) {
        scratch.filter(terms, lexicon as usize, tables);
        scratch.make_features(words);
        present |= u16::from(!scratch.features.is_empty()) << lexicon;
        payload.extend(scratch.fingerprint().to_le_bytes());
    }
    payload[start..start + PRESENT_BYTES].copy_from_slice(&present.to_le_bytes());
}

impl Scratch {
    /// Keeps the terms that are in a lexicon, with their weights.
    fn filter(&mut self, terms: &[u64], lexicon: usize, tables: &Tables) {
        self.terms.clear();
        self.terms.extend(terms.iter().filter(|term| tables.has(lexicon, **term)));
        self.weights.clear();
        self.weights.extend(self.terms.iter().map(|term| tables.weight(*term)));
    }

    /// Makes the distinct features of the kept terms.
    fn make_features(&mut self, words: usize) {
        self.features.clear();
        let weights = self.weights.windows(words).map(|weights| weights.iter().copied().map(u64::from).sum());
        self.features.extend(self.terms.windows(words).map(shingle).zip(weights));
        self.features.sort_unstable();
        self.features.dedup_by_key(|(feature, _)| *feature);
    }

    fn fingerprint(&self) -> u32 {
        let mut votes = [0_i64; BITS as usize];
        for (feature, weight) in &self.features {
            // The sum of a few weights is far below the limit of an i64.
            let weight = *weight as i64;
            for (bit, votes) in votes.iter_mut().enumerate() {
                *votes += if feature >> bit & 1 == 1 { weight } else { -weight };
            }
        }
        votes.iter().enumerate().fold(0, |all, (bit, votes)| all | u32::from(*votes > 0) << bit)
    }
}

/// The fingerprints of a payload as (number of the lexicon, fingerprint), in the order of the lexicons.
fn fingerprints(payload: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let present = payload.first_chunk().map_or(0, |bytes| u16::from_le_bytes(*bytes));
    let all = payload.get(PRESENT_BYTES..).unwrap_or_default().chunks_exact(4);
    let all = all.filter_map(|bytes| bytes.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes));
    (0..LEXICONS_MAX).zip(all).filter(move |(lexicon, _)| present >> lexicon & 1 == 1)
}

/// The number of agreeing bits in the lexicon with the most agreeing bits. 0 if no lexicon has a fingerprint
/// of both contents.
pub(in crate::pairwise) fn agreeing(a: &[u8], b: &[u8]) -> u32 {
    let mut best = 0;
    let mut others = fingerprints(b).peekable();
    for (lexicon, fingerprint) in fingerprints(a) {
        while others.next_if(|(other, _)| *other < lexicon).is_some() {}
        if let Some((_, other)) = others.next_if(|(other, _)| *other == lexicon) {
            best = best.max((fingerprint ^ other).count_zeros());
        }
    }
    best
}

/// Calls `each` for every key. In each lexicon there is one key for each choice of three pieces.
pub(in crate::pairwise) fn keys(payload: &[u8], below: u32, mut each: impl FnMut(u64)) {
    let differing = below.clamp(1, BELOW_MAX) - 1;
    let choices_each = (differing + 3) * (differing + 2) * (differing + 1) / 6;
    for (lexicon, fingerprint) in fingerprints(payload) {
        // Keys are numbered by lexicon, so a missing fingerprint does not shift the numbers of other
        // lexicons.
        let mut number = u64::from(lexicon * choices_each);
        piece_masks(BITS, differing, |mask| {
            let chosen = mix(SEED.wrapping_mul(number + 1)) ^ (u64::from(fingerprint) & mask);
            each((mix(chosen) << 8) | (number % 256));
            number += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::tables::TermSample;
    use crate::{ContentHash, stable_hash64};

    /// A direct implementation of the paper, one lexicon, one bit and one feature at a time.
    fn slow(terms: &[u64], words: usize, lexicons: usize, tables: &Tables) -> Vec<u8> {
        let (mut present, mut fingerprints) = (0_u16, Vec::new());
        for lexicon in 0..lexicons {
            let kept_terms: Vec<u64> =
                terms.iter().copied().filter(|term| tables.has(lexicon, *term)).collect();
            let mut features: BTreeMap<Vec<u64>, i64> = BTreeMap::new();
            for at in 0..kept_terms.len() {
                if let Some(feature) = kept_terms.get(at..at + words) {
                    let weight = feature.iter().map(|term| i64::from(tables.weight(*term))).sum();
                    features.insert(feature.to_vec(), weight);
                }
            }
            let hash = |feature: &[u64]| {
                let mut polynomial = 0_u64;
                for (power, term) in feature.iter().rev().enumerate() {
                    polynomial = polynomial
                        .wrapping_add((0..power).fold(*term, |product, _| product.wrapping_mul(SEED)));
                }
                mix(polynomial)
            };
            let mut fingerprint = 0_u32;
            for bit in 0..32 {
                let sum: i64 = features
                    .iter()
                    .map(|(feature, weight)| if hash(feature) >> bit & 1 == 1 { *weight } else { -weight })
                    .sum();
                fingerprint |= u32::from(sum > 0) << bit;
            }
            present |= u16::from(!features.is_empty()) << lexicon;
            fingerprints.extend(fingerprint.to_le_bytes());
        }
        [&present.to_le_bytes()[..], &fingerprints].concat()
    }

    fn payload(present: u16, fingerprints: &[u32]) -> Vec<u8> {
        let fingerprints: Vec<u8> = fingerprints.iter().flat_map(|one| one.to_le_bytes()).collect();
        [&present.to_le_bytes()[..], &fingerprints].concat()
    }

    fn keys_of(payload: &[u8], below: u32) -> Vec<u64> {
        let mut all = Vec::new();
        keys(payload, below, |key| all.push(key));
        all
    }

    fn word(number: u64) -> u64 {
        stable_hash64(&number.to_le_bytes())
    }

    proptest! {
        #[test]
        fn fingerprints_equal_those_of_the_paper_bit_for_bit(
            texts in prop::collection::vec(prop::collection::vec((0..30_u64).prop_map(word), 0..50), 1..8),
            words in 1..=WORDS_MAX, lexicons in 1..=LEXICONS_MAX,
        ) {
            let mut sample = TermSample::new();
            for (number, text) in texts.iter().enumerate().skip(1) {
                sample.add(ContentHash((number as u128).to_be_bytes()), &mut text.clone());
            }
            let (tables, mut scratch) = (Tables::learn("multi-simhash", &sample), Scratch::default());
            for text in &texts {
                let mut payload = Vec::new();
                sign(text, SignParameters { words, lexicons }, &tables, &mut scratch, &mut payload);
                prop_assert_eq!(payload.len(), payload_bytes(lexicons));
                prop_assert_eq!(payload, slow(text, words as usize, lexicons as usize, &tables));
            }
        }

        #[test]
        fn payloads_that_are_near_in_a_lexicon_share_a_key(
            a in prop::collection::vec(any::<u32>(), 5), other in prop::collection::vec(any::<u32>(), 5), at in 0..5_usize,
            bits in prop::collection::vec(0..32_u32, 0..=6), present in any::<(u16, u16)>(),
        ) {
            let mut b = other;
            b[at] = bits.iter().fold(a[at], |b, bit| b ^ 1 << bit);
            let (a, b) = (payload(present.0 | 1 << at, &a), payload(present.1 | 1 << at, &b));
            let distance = BITS - agreeing(&a, &b);
            prop_assert!(distance as usize <= bits.len());
            for below in distance + 1..=BELOW_MAX {
                prop_assert!(keys_of(&a, below).iter().any(|key| keys_of(&b, below).contains(key)), "{}", below);
            }
        }
    }

    #[test]
    fn there_are_ten_keys_for_each_lexicon_at_a_distance_below_three() {
        let keys = keys_of(&payload(0b1_0111, &[5; 5]), 3);
        assert_eq!(keys.len(), 40);
        // Equal fingerprints of two lexicons share no key, and each key has another number.
        let distinct = |keys: &[u64]| keys.iter().collect::<std::collections::BTreeSet<_>>().len();
        let numbers: Vec<u64> = keys.iter().map(|key| key & 255).collect();
        assert_eq!(
            (distinct(&keys.iter().map(|key| key >> 8).collect::<Vec<_>>()), distinct(&numbers)),
            (40, 40)
        );
        // With more than 256 keys, several keys have the same number.
        assert_eq!(keys_of(&payload(u16::MAX, &[5; 16]), 7).len(), 16 * 84);
    }

    #[test]
    fn a_lexicon_without_a_fingerprint_of_both_contents_is_ignored() {
        let (a, b) = (payload(0b01, &[7, 0]), payload(0b10, &[7, 0]));
        assert_eq!((agreeing(&a, &b), agreeing(&a, &a), agreeing(&b, &b)), (0, 32, 32));
        assert!(keys_of(&payload(0, &[0; 5]), 3).is_empty());
        // A text of one word has no feature of two words.
        let (tables, mut payload) = (Tables::learn("multi-simhash", &TermSample::new()), Vec::new());
        let parameters = SignParameters { words: 2, lexicons: 5 };
        sign(&[word(1)], parameters, &tables, &mut Scratch::default(), &mut payload);
        assert_eq!(payload, [0; 22]);
    }
}
