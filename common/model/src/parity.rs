//! Parity bitmaps: how many hashes two sets have in common at most, from a few words of each.
//!
//! Sandes, Teodoro, Melo, *Bitmap Filter: Speeding up Exact Set Similarity Joins with Bitwise Operations*
//! (arXiv 1711.07295), section 4. Every hash flips one bit. What two sets have in common flips the same bits twice, so
//! the bits in which their bitmaps differ are at most as many as the elements that only one of them has, and
//! |A ∩ B| <= (|A| + |B| - differing) / 2. The bound holds for every pair, so a rejection by it is never wrong.
//!
//! A bitmap has a power of two of words, and a hash flips the bit of its low bits. So a longer bitmap becomes that of a
//! shorter length by xor of its parts, and bitmaps of different lengths can be compared.

use crate::signature::Signature;

/// The words of the shortest bitmap: 512 bits.
pub const WORDS_MIN: usize = 8;

/// The words of the longest one: 16,384 bits. Larger sets fill it, and then it rejects little.
pub const WORDS_MAX: usize = 256;

/// The least number of bits for a hash. With one bit, two sets of 450 hashes that share 0.78 of their union look as if they shared
/// 0.8 of it.
const BITS: usize = 2;

/// The words of a bitmap for a set of this many hashes: [`BITS`] to twice as many bits for each hash.
fn words(hashes: u32) -> usize {
    (hashes as usize * BITS).div_ceil(64).next_power_of_two().clamp(WORDS_MIN, WORDS_MAX)
}

/// Appends the bitmap of a signature's shingles, as long as they need.
pub fn append(signature: &Signature, bitmaps: &mut Vec<u64>) {
    let start = bitmaps.len();
    // Kinds without a set are not rejected by it.
    bitmaps.resize(start + words(signature.set().len() as u32), 0);
    fill(signature, &mut bitmaps[start..]);
}

/// Flips the bits of a signature's shingles in zeros, whose number is a power of two.
fn fill(signature: &Signature, words: &mut [u64]) {
    debug_assert!(words.len().is_power_of_two());
    let last = words.len() - 1;
    for hash in signature.set() {
        words[(hash >> 6) as usize & last] ^= 1 << (hash & 63);
    }
}

/// The bits in which two bitmaps differ, both folded to the length of the shorter one.
#[inline]
#[must_use]
pub fn differing(a: &[u64], b: &[u64]) -> u32 {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.len() == long.len() {
        return short.iter().zip(long).map(|(a, b)| (a ^ b).count_ones()).sum();
    }
    let folded = |at: usize| long.iter().skip(at).step_by(short.len()).fold(0, |folded, word| folded ^ word);
    short.iter().enumerate().map(|(at, word)| (word ^ folded(at)).count_ones()).sum()
}

/// The most hashes that sets of `a` and `b` hashes can have in common when their bitmaps differ in so many bits.
#[inline]
#[must_use]
pub fn shared_max(a: u32, b: u32, differing: u32) -> u32 {
    // Half of the sum of two u32 fits.
    let bound = (u64::from(a) + u64::from(b)).saturating_sub(u64::from(differing)) / 2;
    (bound as u32).min(a).min(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signature::Builder;

    fn bitmap(signature: &Signature, words: usize) -> Vec<u64> {
        let mut bitmap = vec![0; words];
        fill(signature, &mut bitmap);
        bitmap
    }

    #[test]
    fn lengths_grow_with_the_set_between_their_limits() {
        let lengths = [0, 1, 256, 257, 512, 513, 8_192, 1_000_000].map(words);
        assert_eq!(lengths, [8, 8, 8, 16, 16, 32, 256, 256]);
    }

    #[test]
    fn what_is_common_cancels_out_and_what_is_not_remains() {
        let mut builder = Builder::new();
        let tokens: Vec<u64> = (1..=300_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let (a, b) = (builder.build(&tokens), builder.build(&tokens[..290]));
        let other = builder.build(&tokens.iter().map(|token| token ^ 0xabcd).collect::<Vec<_>>());
        let bound = |x: &Signature, y: &Signature| {
            let differing = differing(&bitmap(x, words(x.size())), &bitmap(y, words(y.size())));
            shared_max(x.size(), y.size(), differing)
        };
        assert_eq!(bound(&a, &a), 300);
        assert!((286..=290).contains(&bound(&a, &b)), "{}", bound(&a, &b));
        // Without a hash in common the bits meet by chance alone.
        assert!(bound(&a, &other) < 200, "{}", bound(&a, &other));
    }

    proptest! {
        #[test]
        fn the_bound_never_rejects_what_is_there(
            a in prop::collection::vec(0..400u64, 0..900), b in prop::collection::vec(0..400u64, 0..900),
            a_length in 0..6u32, b_length in 0..6u32,
        ) {
            let mut builder = Builder::new();
            let (a, b) = (builder.build(&a), builder.build(&b));
            let (x, y) = (bitmap(&a, 8 << a_length), bitmap(&b, 8 << b_length));
            let differing = differing(&x, &y);
            prop_assert!(shared_max(a.size(), b.size(), differing) >= a.shared_with(&b));
            // A longer bitmap, folded, is the shorter one.
            prop_assert_eq!(super::differing(&bitmap(&a, 8), &bitmap(&a, 8 << a_length)), 0);
        }
    }
}
