//! `simhash`: at most so many of 64 bits differ.
//!
//! Manku, Jain, Das Sarma, *Detecting Near-Duplicates for Web Crawling*, WWW 2007, sections 2 and 3, after Charikar: the hash of every
//! feature votes with the weight of the feature for or against each bit. Features and weights are left to the reader there. Here a
//! feature is a token, and each two tokens that follow each other; its weight is how often it comes, but not by more than
//! [`OFTEN`], so that a word of a table does not outvote a text.
//!
//! **Candidates.** With at most k differing bits, of k + 3 pieces three at least are equal: a key for each choice of three pieces. That is
//! the design with 20 tables of the paper (section 3.1.1) at k = 3.

use crate::signature::Signature;
use crate::sketch::mix;

/// f, the bits of a fingerprint.
pub(super) const BITS: u32 = 64;

/// The most bits that may differ: more leave keys too short to mean anything.
pub(super) const DIFFERING_MAX: u32 = 6;

/// How often a feature counts at most.
const OFTEN: i64 = 8;

/// Pieces that are equal.
const EQUAL: u32 = 3;

/// Parts features of two tokens from those of one.
const SECOND: u64 = 0x9e37_79b9_7f4a_7c15;

/// Appends the fingerprint of a sequence of tokens. `features` is scratch.
pub(super) fn sign(tokens: &[u64], features: &mut Vec<u64>, payload: &mut Vec<u8>) {
    features.clear();
    features.extend(tokens.iter().map(|token| mix(*token)));
    features.extend(tokens.windows(2).map(|two| mix(two[0].wrapping_mul(SECOND).wrapping_add(two[1]))));
    features.sort_unstable();
    let mut votes = [0_i64; BITS as usize];
    for same in features.chunk_by(|a, b| a == b) {
        let weight = (same.len() as i64).min(OFTEN);
        for (bit, votes) in votes.iter_mut().enumerate() {
            *votes += if same[0] >> bit & 1 == 1 { weight } else { -weight };
        }
    }
    let fingerprint =
        votes.iter().enumerate().fold(0, |all, (bit, votes)| all | u64::from(*votes > 0) << bit);
    payload.extend(fingerprint.to_le_bytes());
}

/// The fingerprint.
pub(super) fn fingerprint(payload: &[u8]) -> u64 {
    payload.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// How many bits agree.
pub(super) fn agreeing(a: &[u8], b: &[u8]) -> u32 {
    (fingerprint(a) ^ fingerprint(b)).count_zeros()
}

/// One key for each choice of three of the pieces.
pub(super) fn keys(payload: &[u8], differing: u32, mut each: impl FnMut(u64)) {
    let fingerprint = fingerprint(payload);
    let mut number = 0;
    choices(BITS, differing.min(DIFFERING_MAX), |mask| {
        each(mix(fingerprint & mask) << 8 | number);
        number += 1;
    });
}

/// The bits of each choice of three of the pieces of a fingerprint of so many bits. Where at most so many differ, some choice is equal.
pub(super) fn choices(bits: u32, differing: u32, mut each: impl FnMut(u64)) {
    let pieces = differing + EQUAL;
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

/// Whether a payload has the length of one.
pub(super) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == 8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// One bit and one feature at a time.
    fn slow(tokens: &[u64]) -> u64 {
        let mut weights: BTreeMap<u64, i64> = BTreeMap::new();
        for (at, token) in tokens.iter().enumerate() {
            *weights.entry(mix(*token)).or_default() += 1;
            if let Some(next) = tokens.get(at + 1) {
                *weights.entry(mix(token.wrapping_mul(SECOND).wrapping_add(*next))).or_default() += 1;
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
        fn fingerprints_are_those_of_the_paper_bit_for_bit(tokens in prop::collection::vec(0..60_u64, 0..200)) {
            let mut payload = Vec::new();
            sign(&tokens, &mut Vec::new(), &mut payload);
            prop_assert_eq!(fingerprint(&payload), slow(&tokens));
        }

        #[test]
        fn whatever_differs_in_few_enough_bits_has_a_key_in_common(
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
    fn there_are_twenty_keys_at_three_bits() {
        assert_eq!([0, 1, 2, 3].map(|differing| keys_of(7, differing).len()), [1, 4, 10, 20]);
    }
}
