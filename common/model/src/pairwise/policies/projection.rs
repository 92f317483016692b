//! The policy `projection`: at least a given number of 384 bits of a random projection agree.
//!
//! Algorithm C of Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, section 2, after Charikar. Every
//! token has a random vector of b = 384 entries, each 1 or -1. The vectors of all tokens of a page are added,
//! once for each occurrence of a token. A sum above 0 becomes the bit 1, and every other sum becomes 0.
//! Near-duplicates agree in at least 372 bits. The paper says both "above" and "at least"; its figures fit
//! "at least".
//!
//! **Candidates.** The paper cuts the bits into twelve pieces of 32, and compares pages that agree in one
//! piece. If a pair differs in 12 bits, each piece may contain one of them. So twelve pieces find all pairs
//! only from 373 agreeing bits on. Doppel uses one more piece than bits may differ, so that at least one
//! piece is equal. At 372 bits it uses thirteen pieces of 29 or 30 bits.

use crate::sketch::mix;

/// b, the number of bits of a projection.
pub(in crate::pairwise) const BITS: u32 = 384;

/// The smallest number of agreeing bits that an operator can choose. Below it, pieces of fewer than 16 bits
/// would make candidates of all pages.
pub(in crate::pairwise) const AGREEING_MIN: u32 = BITS - 23;

/// Number of 64-bit words of a projection.
const WORDS: usize = BITS as usize / 64;

/// Number of bytes of a payload.
pub(in crate::pairwise) const BYTES: usize = 8 * WORDS;

/// Multiplier that gives each word of a token's vector another seed: 2^64 / golden ratio, odd.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The vector of a token. A set bit stands for 1, and a clear bit for -1.
#[inline]
fn vector(token: u64) -> [u64; WORDS] {
    std::array::from_fn(|word| mix(token ^ SEED.wrapping_mul(word as u64 + 1)))
}

/// Appends the projection of a sequence of tokens to the payload.
pub(in crate::pairwise) fn sign(tokens: &[u64], payload: &mut Vec<u8>) {
    // The number of tokens whose vector has each bit set.
    let mut ones = [0_u32; BITS as usize];
    for token in tokens {
        for (ones, word) in ones.chunks_exact_mut(64).zip(vector(*token)) {
            for (bit, ones) in ones.iter_mut().enumerate() {
                *ones += (word >> bit & 1) as u32;
            }
        }
    }
    // The sum of the entries of n tokens is ones - (n - ones).
    let is_positive = |ones: &u32| 2 * u64::from(*ones) > tokens.len() as u64;
    for ones in ones.chunks_exact(64) {
        let word =
            ones.iter().enumerate().fold(0, |word, (bit, ones)| word | u64::from(is_positive(ones)) << bit);
        payload.extend(word.to_le_bytes());
    }
}

fn words(projection: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let bytes = projection.get(..BYTES).unwrap_or_default();
    bytes.chunks_exact(8).filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes))
}

/// The C-similarity: the number of bits that agree in the projections at the beginning of `a` and `b`.
pub(in crate::pairwise) fn agreeing(a: &[u8], b: &[u8]) -> u32 {
    words(a).zip(words(b)).map(|(a, b)| (a ^ b).count_zeros()).sum()
}

/// Calls `each` for every key of a projection: its pieces. Two projections that agree in at least `agreeing`
/// bits share a key.
pub(in crate::pairwise) fn keys(projection: &[u8], agreeing: u32, mut each: impl FnMut(u64)) {
    let words: Vec<u64> = words(projection).collect();
    if words.len() < WORDS {
        return;
    }
    let pieces = BITS.saturating_sub(agreeing) + 1;
    for piece in 0..pieces {
        let (from, to) = (BITS * piece / pieces, BITS * (piece + 1) / pieces);
        // A key holds at most 56 bits. If there are few pieces, they are longer, and a part of each piece is
        // enough.
        let length = (to - from).min(56);
        let (word, shift) = (from as usize / 64, from % 64);
        let high = words.get(word + 1).filter(|_| shift > 0).map_or(0, |next| next << (64 - shift));
        let bits = (words[word] >> shift | high) & ((1 << length) - 1);
        each(bits << 8 | u64::from(piece));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A direct implementation of the paper, one bit at a time.
    fn slow(tokens: &[u64]) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        for bit in 0..384_u64 {
            let mut sum = 0_i64;
            for token in tokens {
                let word = mix(token ^ SEED.wrapping_mul(bit / 64 + 1));
                sum += if word >> (bit % 64) & 1 == 1 { 1 } else { -1 };
            }
            if sum > 0 {
                bytes[bit as usize / 8] |= 1 << (bit % 8);
            }
        }
        bytes
    }

    fn keys_of(projection: &[u8], at_least: u32) -> Vec<u64> {
        let mut all = Vec::new();
        keys(projection, at_least, |key| all.push(key));
        all
    }

    proptest! {
        #[test]
        fn projections_equal_those_of_the_paper_bit_for_bit(tokens in prop::collection::vec(0..50_u64, 0..300)) {
            let mut payload = Vec::new();
            sign(&tokens, &mut payload);
            prop_assert_eq!(payload, slow(&tokens));
        }

        #[test]
        fn projections_that_agree_in_enough_bits_share_a_key(
            bytes in prop::collection::vec(any::<u8>(), BYTES), differing in prop::collection::vec(0..384_usize, 0..24),
        ) {
            let mut other = bytes.clone();
            differing.iter().for_each(|bit| other[bit / 8] ^= 1 << (bit % 8));
            let agreeing = agreeing(&bytes, &other);
            for at_least in [AGREEING_MIN, 365, 372, 373, 383, 384] {
                let (a, b) = (keys_of(&bytes, at_least), keys_of(&other, at_least));
                prop_assert_eq!(a.len() as u32, BITS - at_least + 1);
                prop_assert!(agreeing < at_least || a.iter().any(|key| b.contains(key)), "{} {}", agreeing, at_least);
            }
        }
    }

    #[test]
    fn twelve_pieces_miss_a_pair_of_372_bits_and_thirteen_do_not() {
        let a = vec![0; BYTES];
        let mut b = a.clone();
        (0..12).for_each(|piece| b[4 * piece] = 1);
        assert_eq!(agreeing(&a, &b), 372);
        let has_shared_key =
            |at_least| keys_of(&a, at_least).iter().any(|key| keys_of(&b, at_least).contains(key));
        assert!(!has_shared_key(373) && has_shared_key(372));
    }
}
