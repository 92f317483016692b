//! The policy `supershingle`: at least a given number of six supershingles are equal.
//!
//! Algorithm B of Henzinger, *Finding Near-Duplicate Web Pages: A Large-Scale Evaluation of Algorithms*,
//! SIGIR 2006, section 2, after Broder:
//!
//! 1. Every sequence of k tokens is hashed to a 64-bit shingle; the paper has k = 8. There is no padding, so
//!    n tokens give n - k + 1 shingles.
//! 2. Each of m = 84 hash functions gives its minimum over the shingles.
//! 3. Each group of l = 14 consecutive minima is hashed to a supershingle, so there are m' = 6 supershingles.
//!
//! Near-duplicates share at least two supershingles. A content of fewer than k tokens has no supershingles,
//! so it is a near-duplicate only of equal contents.

use super::fingerprints;
use crate::signature::Signature;
use crate::sketch::mix;
use crate::stable_hash64;

/// k, the number of tokens in a shingle by default, as in the paper.
pub(in crate::pairwise) const SHINGLE_TOKENS: u32 = 8;

/// The largest k that an operator can choose. It is below [`TOKENS_MIN`](crate::pairwise::TOKENS_MIN), so
/// every content that is compared by similarity has a shingle.
pub(in crate::pairwise) const SHINGLE_TOKENS_MAX: u32 = 16;

/// m, the number of hash functions, each of which gives one minimum.
pub(in crate::pairwise) const MINIMA: usize = 84;

/// m', the number of supershingles of a content.
pub(in crate::pairwise) const SUPERSHINGLES: usize = 6;

/// l, the number of minima in a supershingle.
pub(in crate::pairwise) const MINIMA_EACH: usize = MINIMA / SUPERSHINGLES;

/// Number of bytes of a payload with supershingles. The payload of a content with fewer than k tokens is
/// empty.
pub(in crate::pairwise) const BYTES: usize = 8 * SUPERSHINGLES;

/// Multiplier of the polynomial over the tokens of a shingle: 2^64 / golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The seed of the hash function with this number.
const fn seed(function: usize) -> u64 {
    mix(MULTIPLIER.wrapping_mul(function as u64 + 1))
}

/// Hashes the tokens of a shingle to 64 bits.
#[inline]
pub(in crate::pairwise) fn shingle(tokens: &[u64]) -> u64 {
    mix(tokens.iter().fold(0, |sum: u64, token| sum.wrapping_mul(MULTIPLIER).wrapping_add(*token)))
}

/// Appends the supershingles of a sequence of tokens, with k tokens per shingle. Appends nothing for fewer
/// than k tokens. `shingles` is a scratch buffer.
pub(in crate::pairwise) fn sign(tokens: &[u64], k: u32, shingles: &mut Vec<u64>, payload: &mut Vec<u8>) {
    shingles.clear();
    shingles.extend(tokens.windows(k.clamp(1, SHINGLE_TOKENS_MAX) as usize).map(shingle));
    if shingles.is_empty() {
        return;
    }
    let mut minima = [u64::MAX; MINIMA_EACH];
    for first in (0..MINIMA).step_by(MINIMA_EACH) {
        minima.fill(u64::MAX);
        for (at, minimum) in minima.iter_mut().enumerate() {
            let seed = seed(first + at);
            *minimum = shingles.iter().fold(u64::MAX, |least, shingle| least.min(mix(shingle ^ seed)));
        }
        let mut bytes = [0; 8 * MINIMA_EACH];
        for (bytes, minimum) in bytes.chunks_exact_mut(8).zip(minima) {
            bytes.copy_from_slice(&minimum.to_le_bytes());
        }
        payload.extend(stable_hash64(&bytes).to_le_bytes());
    }
}

/// The supershingles at the beginning of a payload. In a payload of `combined`, the supershingles of a short
/// text are all [`MISSING`](fingerprints::MISSING).
fn supershingles(payload: &[u8]) -> &[u8] {
    payload.get(..BYTES).unwrap_or_default()
}

/// The B-similarity: the number of equal supershingles at the beginning of two payloads.
pub(in crate::pairwise) fn equal(a: &[u8], b: &[u8]) -> u32 {
    fingerprints::equal(supershingles(a), supershingles(b))
}

/// Calls `each` for every key. Each supershingle gives one key, so every pair that F accepts shares a key.
pub(in crate::pairwise) fn keys(payload: &[u8], each: impl FnMut(u64)) {
    fingerprints::keys(supershingles(payload), each);
}

/// Whether the payload of a signature is empty, or has the length of six supershingles.
pub(in crate::pairwise) fn is_payload(signature: &Signature) -> bool {
    [0, BYTES].contains(&signature.payload().len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A direct implementation of the paper, one hash function and one shingle at a time.
    fn slow(tokens: &[u64], k: usize) -> Vec<u64> {
        let mut supershingles = Vec::new();
        if tokens.len() < k {
            return supershingles;
        }
        for group in 0..6 {
            let mut minima: Vec<u64> = Vec::new();
            for function in 14 * group..14 * (group + 1) {
                let mut values = Vec::new();
                for start in 0..=tokens.len() - k {
                    let mut polynomial: u128 = 0;
                    for (power, token) in tokens[start..start + k].iter().rev().enumerate() {
                        let factor = (0..power).fold(1_u64, |product, _| product.wrapping_mul(MULTIPLIER));
                        polynomial += u128::from(token.wrapping_mul(factor));
                    }
                    values.push(mix(mix(polynomial as u64) ^ mix(MULTIPLIER.wrapping_mul(function + 1))));
                }
                minima.push(values.into_iter().min().unwrap());
            }
            let bytes: Vec<u8> = minima.iter().flat_map(|minimum| minimum.to_le_bytes()).collect();
            supershingles.push(stable_hash64(&bytes));
        }
        supershingles
    }

    proptest! {
        #[test]
        fn supershingles_equal_those_of_the_paper_bit_for_bit(
            tokens in prop::collection::vec(any::<u64>(), 0..40), k in prop::sample::select(vec![1, 5, 8, SHINGLE_TOKENS_MAX]),
        ) {
            let mut payload = Vec::new();
            sign(&tokens, k, &mut Vec::new(), &mut payload);
            let expected: Vec<u8> = slow(&tokens, k as usize).iter().flat_map(|one| one.to_le_bytes()).collect();
            prop_assert_eq!(payload, expected);
        }
    }

    #[test]
    fn equal_supershingles_at_the_same_index_are_counted_and_share_a_key() {
        let payload = |values: [u64; 6]| values.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>();
        let (a, b) = (payload([1, 2, 3, 4, 5, 6]), payload([9, 2, 9, 9, 5, 1]));
        assert_eq!((equal(&a, &b), equal(&a, &a), equal(&a, &[])), (2, 6, 0));
        let keys = |payload: &[u8]| {
            let mut all = Vec::new();
            keys(payload, |key| all.push(key));
            all
        };
        let shared = keys(&a).into_iter().filter(|key| keys(&b).contains(key)).count();
        assert_eq!((shared, keys(&[]).len()), (2, 0));
    }
}
