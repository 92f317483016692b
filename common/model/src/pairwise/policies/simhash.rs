//! The policy `simhash`: the fingerprints differ in at most a given number of 64 bits.
//!
//! Manku, Jain, Das Sarma, *Detecting Near-Duplicates for Web Crawling*, WWW 2007, sections 2 and 3, after
//! Charikar. The hash of every feature votes for or against each bit, with the weight of the feature. The
//! paper does not prescribe features and weights. Here the features are the tokens and the pairs of
//! consecutive tokens. The weight of a feature is the number of its occurrences, but at most [`WEIGHT_MAX`],
//! so that a word of a large table cannot outvote the text.
//!
//! **Candidates.** Cut a fingerprint into k + 3 pieces. If at most k bits differ, at least three pieces are
//! equal. So each choice of three pieces gives a key. At k = 3 this is the design with 20 tables of the paper
//! (section 3.1.1).

use crate::signature::Signature;
use crate::sketch::mix;

/// f, the number of bits of a fingerprint.
pub(in crate::pairwise) const BITS: u32 = 64;

/// The largest number of differing bits that an operator can choose. With more, keys are too short to select
/// candidates.
pub(in crate::pairwise) const DIFFERING_MAX: u32 = 6;

/// The largest weight of a feature.
const WEIGHT_MAX: i64 = 8;

/// Number of pieces in a key.
const PIECES_PER_KEY: u32 = 3;

/// Multiplier in the hash of a pair of tokens: 2^64 / golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Appends the fingerprint of a sequence of tokens to the payload. `features` is a scratch buffer.
pub(in crate::pairwise) fn sign(tokens: &[u64], features: &mut Vec<u64>, payload: &mut Vec<u8>) {
    features.clear();
    features.extend(tokens.iter().map(|token| mix(*token)));
    features.extend(tokens.windows(2).map(|two| mix(two[0].wrapping_mul(MULTIPLIER).wrapping_add(two[1]))));
    features.sort_unstable();
    let mut votes = [0_i64; BITS as usize];
    for occurrences in features.chunk_by(|a, b| a == b) {
        let weight = (occurrences.len() as i64).min(WEIGHT_MAX);
        for (bit, votes) in votes.iter_mut().enumerate() {
            *votes += if occurrences[0] >> bit & 1 == 1 { weight } else { -weight };
        }
    }
    let fingerprint =
        votes.iter().enumerate().fold(0, |all, (bit, votes)| all | u64::from(*votes > 0) << bit);
    payload.extend(fingerprint.to_le_bytes());
}

/// Reads the fingerprint of a payload.
pub(in crate::pairwise) fn fingerprint(payload: &[u8]) -> u64 {
    payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The number of bits in which two payloads agree.
pub(in crate::pairwise) fn agreeing(a: &[u8], b: &[u8]) -> u32 {
    (fingerprint(a) ^ fingerprint(b)).count_zeros()
}

/// Calls `each` for every key: one for each choice of three pieces.
pub(in crate::pairwise) fn keys(payload: &[u8], differing: u32, mut each: impl FnMut(u64)) {
    let fingerprint = fingerprint(payload);
    let mut number = 0;
    piece_masks(BITS, differing.min(DIFFERING_MAX), |mask| {
        each(mix(fingerprint & mask) << 8 | number);
        number += 1;
    });
}

/// Calls `each` with the mask of every choice of three pieces of a fingerprint of `bits` bits.
///
/// If two fingerprints differ in at most `differing` bits, they are equal under at least one of the masks.
pub(in crate::pairwise) fn piece_masks(bits: u32, differing: u32, mut each: impl FnMut(u64)) {
    let pieces = differing + PIECES_PER_KEY;
    let mask = |piece: u32| {
        let (from, to) = (bits * piece / pieces, bits * (piece + 1) / pieces);
        ((1_u128 << to) - (1_u128 << from)) as u64
    };
    for a in 0..pieces {
        for b in a + 1..pieces {
            for c in b + 1..pieces {
                each(mask(a) | mask(b) | mask(c));
            }
        }
    }
}

/// Whether the payload of a signature has the length of a fingerprint.
pub(in crate::pairwise) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == 8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A direct implementation of the paper, one bit and one feature at a time.
    fn slow(tokens: &[u64]) -> u64 {
        let mut weights: BTreeMap<u64, i64> = BTreeMap::new();
        for (at, token) in tokens.iter().enumerate() {
            *weights.entry(mix(*token)).or_default() += 1;
            if let Some(next) = tokens.get(at + 1) {
                *weights.entry(mix(token.wrapping_mul(MULTIPLIER).wrapping_add(*next))).or_default() += 1;
            }
        }
        let mut fingerprint = 0;
        for bit in 0..64 {
            let vote = |(feature, weight): (&u64, &i64)| {
                (*weight).min(8) * if feature >> bit & 1 == 1 { 1 } else { -1 }
            };
            if weights.iter().map(vote).sum::<i64>() > 0 {
                fingerprint |= 1 << bit;
            }
        }
        fingerprint
    }

    fn keys_of(fingerprint: u64, differing: u32) -> Vec<u64> {
        let mut all = Vec::new();
        keys(&fingerprint.to_le_bytes(), differing, |key| all.push(key));
        all
    }

    proptest! {
        #[test]
        fn fingerprints_equal_those_of_the_paper_bit_for_bit(tokens in prop::collection::vec(0..60_u64, 0..200)) {
            let mut payload = Vec::new();
            sign(&tokens, &mut Vec::new(), &mut payload);
            prop_assert_eq!(fingerprint(&payload), slow(&tokens));
        }

        #[test]
        fn fingerprints_that_differ_in_few_bits_share_a_key(
            a in any::<u64>(), bits in prop::collection::vec(0..64_u32, 0..=6),
        ) {
            let b = bits.iter().fold(a, |b, bit| b ^ 1 << bit);
            let differing = (a ^ b).count_ones();
            for most in differing..=DIFFERING_MAX {
                prop_assert!(keys_of(a, most).iter().any(|key| keys_of(b, most).contains(key)));
            }
        }
    }

    #[test]
    fn there_are_twenty_keys_if_three_bits_may_differ() {
        assert_eq!([0, 1, 2, 3].map(|differing| keys_of(7, differing).len()), [1, 4, 10, 20]);
    }
}
