//! The stable hash of all stored data: XXH3 with seed zero.
//!
//! Stored identifiers depend on this hash, so it must never change. The golden vectors in the tests pin it.
//! The hash has no key, so an attacker can produce collisions. Therefore code that looks up a page by id must
//! compare the URL as well.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_64_with_seed, xxh3_128};

/// The 64-bit XXH3 hash of `bytes`.
#[inline]
#[must_use]
pub fn stable_hash64(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// The 64-bit XXH3 hash of `bytes` with a seed. As long as the seed is secret, nobody can choose bytes that
/// collide.
#[inline]
#[must_use]
pub fn stable_hash64_seeded(bytes: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(bytes, seed)
}

/// Computes [`stable_hash64`] of bytes that arrive in pieces.
#[derive(Clone, Default)]
pub struct StableHasher64(Xxh3Default);

impl StableHasher64 {
    /// Appends the next bytes to the input.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes so far. More bytes may follow.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.digest()
    }
}

/// The 128-bit XXH3 hash of `bytes`.
#[inline]
#[must_use]
pub fn stable_hash128(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_the_golden_vectors() {
        assert_eq!(stable_hash64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(stable_hash128(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(stable_hash64_seeded(b"doppel", 0), stable_hash64(b"doppel"));
        assert_ne!(stable_hash64_seeded(b"doppel", 1), stable_hash64(b"doppel"));
    }

    #[test]
    fn pieces_have_the_hash_of_the_whole() {
        let bytes: Vec<u8> = (0..5_000_u32).map(|n| n as u8).collect();
        for at in [0, 1, 16, 1_000, 5_000] {
            let mut hasher = StableHasher64::default();
            hasher.update(&bytes[..at]);
            hasher.update(&bytes[at..]);
            assert_eq!(hasher.finish(), stable_hash64(&bytes));
        }
    }
}
