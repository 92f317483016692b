//! `projection`: at least so many of 384 bits of a random projection agree.
//!
//! Algorithm C of Henzinger, SIGIR 2006, section 2, after Charikar: every token has a random vector of b = 384 entries of 1 and -1; the
//! vectors of all tokens of a page are added, a token as often as it comes; a sum above 0 becomes 1, every other one 0.
//! Near-duplicates agree in at least 372 bits (the text says above and at least; the figures are those of at least).
//!
//! **Candidates.** The paper cuts the bits into twelve pieces of 32 and compares pages that agree in one. Of a pair that differs in
//! 12 bits each piece may have one, so twelve pieces are complete from 373 agreeing bits on only. Here there is one piece more
//! than bits may differ, so some piece is equal: thirteen of 29 or 30 bits at 372.

use crate::sketch::mix;

/// b, the bits of a projection.
pub(super) const BITS: u32 = 384;

/// The least number of agreeing bits that can be asked for: below, pieces of 16 bits would make candidates of all pages.
pub(super) const AGREEING_MIN: u32 = BITS - 23;

const WORDS: usize = BITS as usize / 64;

/// Bytes of a payload.
pub(super) const BYTES: usize = 8 * WORDS;

/// Seeds of the words of a token's vector.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The vector of a token: a set bit is 1, another one -1.
#[inline]
fn vector(token: u64) -> [u64; WORDS] {
    std::array::from_fn(|word| mix(token ^ SEED.wrapping_mul(word as u64 + 1)))
}

/// Appends the projection of a sequence of tokens.
pub(super) fn sign(tokens: &[u64], payload: &mut Vec<u8>) {
    // How many tokens have each bit.
    let mut ones = [0_u32; BITS as usize];
    for token in tokens {
        for (ones, word) in ones.chunks_exact_mut(64).zip(vector(*token)) {
            for (bit, ones) in ones.iter_mut().enumerate() {
                *ones += (word >> bit & 1) as u32;
            }
        }
    }
    // The sum of the entries is ones - (n - ones).
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

/// The C-similarity: how many bits agree, of the first bytes of two payloads.
pub(super) fn agreeing(a: &[u8], b: &[u8]) -> u32 {
    words(a).zip(words(b)).map(|(a, b)| (a ^ b).count_zeros()).sum()
}

/// The keys of a projection: its pieces. Two that agree in at least this many bits have one in common.
pub(super) fn keys(projection: &[u8], agreeing: u32, mut each: impl FnMut(u64)) {
    let words: Vec<u64> = words(projection).collect();
    if words.len() < WORDS {
        return;
    }
    let pieces = BITS.saturating_sub(agreeing) + 1;
    for piece in 0..pieces {
        let (from, to) = (BITS * piece / pieces, BITS * (piece + 1) / pieces);
        // At most 32 bits, of one word or two, but for few pieces: of these a part is enough.
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

    /// As the paper says it, one bit at a time.
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
        fn projections_are_those_of_the_paper_bit_for_bit(tokens in prop::collection::vec(0..50_u64, 0..300)) {
            let mut payload = Vec::new();
            sign(&tokens, &mut payload);
            prop_assert_eq!(payload, slow(&tokens));
        }

        #[test]
        fn whatever_agrees_in_enough_bits_has_a_piece_in_common(
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
        let meet = |at_least| keys_of(&a, at_least).iter().any(|key| keys_of(&b, at_least).contains(key));
        assert!(!meet(373) && meet(372));
    }
}
