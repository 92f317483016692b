//! MinHash sketches, computed by Fast Similarity Sketching with t = 64 bins. A sketch has one byte per bin.
//!
//! Dahlgaard, Knudsen, Thorup, *Fast Similarity Sketching*, FOCS 2017, section 2. In round `i` every element
//! falls into one bin. This is a random bin in the first t rounds, and bin `i - t` in the next t rounds. A
//! bin keeps its smallest (round, hash), so later rounds cannot change a bin that has one. The rounds stop as
//! soon as all bins are filled. A set of n elements costs about max(n, t ln t) hashes instead of t n.
//!
//! The minima of two sets with Jaccard coefficient J agree in a bin with probability exactly J. The sketch
//! keeps only the low byte of each minimum. The low byte has almost no influence on which hash is the
//! minimum. Therefore the bytes of two sets agree with probability J + (1 - J) / 256.
//!
//! The sketch of a set never changes: stored signatures contain it.

/// t, the number of bins.
pub const BINS: usize = 64;

/// A sketch: one byte per bin. All bytes are zero for the empty set.
pub type Sketch = [u8; BINS];

/// Number of rounds: t rounds with random bins, then t rounds with fixed bins. The fixed bins ensure that
/// every bin is filled in the end.
const ROUNDS: u64 = 2 * BINS as u64;

/// Number of hash bits in a value. The bits above hold the round number.
const HASH_BITS: u32 = 57;

/// Computes the sketch of a set of distinct 40-bit shingle hashes, in any order.
#[must_use]
pub fn sketch(set: &[u64]) -> Sketch {
    let mut out = [0; BINS];
    if set.is_empty() {
        return out;
    }
    let mut minima = [u64::MAX; BINS];
    for round in 0..ROUNDS {
        throw(round, set, &mut minima);
        if minima.iter().all(|&m| m != u64::MAX) {
            break;
        }
    }
    for (byte, minimum) in out.iter_mut().zip(minima) {
        *byte = minimum.to_le_bytes()[0];
    }
    out
}

/// Runs one round, which puts every element into its bin.
///
/// A value has the round number above 57 bits of hash. So a value of this round never replaces one of an
/// earlier round.
fn throw(round: u64, set: &[u64], minima: &mut [u64; BINS]) {
    let seed = mix(round.wrapping_add(0x9e37_79b9_7f4a_7c15));
    for &element in set {
        let hash = mix(element ^ seed);
        let bin = if round < BINS as u64 { hash >> 58 } else { round - BINS as u64 } as usize;
        let value = round << HASH_BITS | hash & ((1 << HASH_BITS) - 1);
        let minimum = &mut minima[bin % BINS];
        *minimum = value.min(*minimum);
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, variant 13 of Stafford). It is a bijection.
#[inline]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests;
