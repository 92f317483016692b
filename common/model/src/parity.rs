//! Parity bitmaps: an upper bound for the number of hashes that two sets share, computed from a few words per
//! set.
//!
//! Sandes, Teodoro, Melo, *Bitmap Filter: Speeding up Exact Set Similarity Joins with Bitwise Operations*
//! (arXiv 1711.07295), section 4. Every hash of a set flips one bit of its bitmap. In the xor of two bitmaps,
//! the hashes that both sets share cancel out. So the number of differing bits is at most the number of
//! hashes in only one set:
//! |A ∩ B| <= (|A| + |B| - differing) / 2.
//!
//! Invariant: the bound holds for every pair, so a pair that it rejects is never a near-duplicate.
//!
//! The number of words in a bitmap is a power of two, and the low bits of a hash select the bit. Therefore
//! the xor of the parts of a longer bitmap equals the shorter bitmap of that set. This lets bitmaps of
//! different lengths be compared.

use crate::signature::Signature;

/// Number of words in the shortest bitmap, which has 512 bits.
pub const WORDS_MIN: usize = 8;

/// Number of words in the longest bitmap, which has 16,384 bits. Larger sets fill it, and then it rejects
/// little.
pub const WORDS_MAX: usize = 256;

/// The smallest number of bits per hash. With one bit per hash, the bound would treat two sets of 450 hashes
/// with a Jaccard coefficient of 0.78 as if it were 0.8.
const BITS_PER_HASH: usize = 2;

/// The number of words of the bitmap for a set of `hashes` hashes. Between the limits there are
/// [`BITS_PER_HASH`] to twice as many bits for each hash.
fn words(hashes: u32) -> usize {
    (hashes as usize * BITS_PER_HASH).div_ceil(64).next_power_of_two().clamp(WORDS_MIN, WORDS_MAX)
}

/// Appends the bitmap of a signature's set to `bitmaps`. Larger sets have longer bitmaps.
pub fn append(signature: &Signature, bitmaps: &mut Vec<u64>) {
    let start = bitmaps.len();
    // A kind without a set gets a bitmap of zeros. Its policies do not reject by bitmap.
    bitmaps.resize(start + words(signature.set().len() as u32), 0);
    fill(signature, &mut bitmaps[start..]);
}

/// Flips one bit for each hash of a signature's set. The number of `words` must be a power of two.
fn fill(signature: &Signature, words: &mut [u64]) {
    debug_assert!(words.len().is_power_of_two());
    let last = words.len() - 1;
    for hash in signature.set() {
        words[(hash >> 6) as usize & last] ^= 1 << (hash & 63);
    }
}

/// Counts the bits in which two bitmaps differ. The longer bitmap is folded to the length of the shorter one.
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

/// The largest number of hashes that sets of `a` and `b` hashes can share if their bitmaps differ in
/// `differing` bits.
#[inline]
#[must_use]
pub fn shared_max(a: u32, b: u32, differing: u32) -> u32 {
    // Half of the sum of two u32 values fits into a u32.
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
    fn bitmaps_grow_with_the_set_between_their_limits() {
        let lengths = [0, 1, 256, 257, 512, 513, 8_192, 1_000_000].map(words);
        assert_eq!(lengths, [8, 8, 8, 16, 16, 32, 256, 256]);
    }

    #[test]
    fn shared_hashes_cancel_out_and_the_bound_stays_above_their_number() {
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
        // Sets without a shared hash have equal bits only by chance.
        assert!(bound(&a, &other) < 200, "{}", bound(&a, &other));
    }

    proptest! {
        #[test]
        fn the_bound_is_never_below_the_number_of_shared_hashes(
            a in prop::collection::vec(0..400u64, 0..900), b in prop::collection::vec(0..400u64, 0..900),
            a_length in 0..6u32, b_length in 0..6u32,
        ) {
            let mut builder = Builder::new();
            let (a, b) = (builder.build(&a), builder.build(&b));
            let (x, y) = (bitmap(&a, 8 << a_length), bitmap(&b, 8 << b_length));
            let differing = differing(&x, &y);
            prop_assert!(shared_max(a.size(), b.size(), differing) >= a.shared_with(&b));
            // Folding a longer bitmap gives the shorter one.
            prop_assert_eq!(super::differing(&bitmap(&a, 8), &bitmap(&a, 8 << a_length)), 0);
        }
    }
}
