//! The one stable hash of stored data: XXH3 with seed zero.
//!
//! Stored identifiers depend on it, so it must never change; the golden vectors below pin it. The hash is not
//! keyed, so an attacker can produce collisions: code that looks up a page by id must compare the URL as well.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// 64-bit XXH3 of `bytes`.
#[inline]
#[must_use]
pub fn stable_hash64(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// 128-bit XXH3 of `bytes`.
#[inline]
#[must_use]
pub fn stable_hash128(bytes: &[u8]) -> u128 {
    xxh3_128(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_vectors() {
        assert_eq!(stable_hash64(b""), 0x2d06_8005_38d3_94c2);
        assert_eq!(stable_hash128(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
        assert_eq!(stable_hash64(b"doppel"), xxhash_rust::xxh3::Xxh3::default().tap(b"doppel"));
    }

    trait Tap {
        fn tap(self, bytes: &[u8]) -> u64;
    }

    impl Tap for xxhash_rust::xxh3::Xxh3 {
        fn tap(mut self, bytes: &[u8]) -> u64 {
            self.update(bytes);
            self.digest()
        }
    }
}
