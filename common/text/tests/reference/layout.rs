//! The layout of signatures, by the tables in the documentation of `doppel_model::signature`, and the hash
//! functions of the policies.
//!
//! Only XXH3 comes from a library. Every constant is repeated here, so that a change in the product fails a
//! test.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// 2^64 / golden ratio, rounded to an odd number. Polynomials are evaluated at this number, and seeds are
/// multiples of it.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Kind bytes of the policies in a signature.
pub(crate) const SHINGLES: u8 = 5;
pub(crate) const SUPERSHINGLES: u8 = 0x80;
pub(crate) const PROJECTION: u8 = 0x81;
pub(crate) const COMBINED: u8 = 0x82;
pub(crate) const BY_SITE: u8 = 0x83;
pub(crate) const SIMHASH: u8 = 0x84;
pub(crate) const IMATCH: u8 = 0x85;
pub(crate) const MULTI_SIMHASH: u8 = 0x86;
pub(crate) const OVERLAP: u8 = 0x87;
pub(crate) const CONTENT: u8 = 0x88;
pub(crate) const COPIES: u8 = 0x89;

/// Returns the hash of a word.
pub(crate) fn hash(word: &str) -> u64 {
    xxh3_64(word.as_bytes())
}

/// Returns the hash of numbers, as eight little-endian bytes each.
pub(crate) fn hash_of_all(numbers: &[u64]) -> u64 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    xxh3_64(&bytes)
}

/// Mixes a number with the finaliser of SplitMix64.
pub(crate) fn mix(number: u64) -> u64 {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % (1 << 64)) as u64;
    let first = times(number ^ (number >> 30), 0xbf58_476d_1ce4_e5b9);
    let second = times(first ^ (first >> 27), 0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}

/// Returns the product of a number and [`GOLDEN`], modulo 2^64.
pub(crate) fn golden(number: u64) -> u64 {
    (u128::from(number) * u128::from(GOLDEN) % (1 << 64)) as u64
}

/// Evaluates the polynomial with the given coefficients at [`GOLDEN`], modulo 2^64. The first coefficient has
/// the highest power.
pub(crate) fn polynomial(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0_u128, |sum, number| (sum * u128::from(GOLDEN) + u128::from(*number)) % (1 << 64))
        as u64
}

/// Returns the content hash of a text: the hash of the hashes of its words, most significant byte first.
pub(crate) fn content(words: &[String]) -> [u8; 16] {
    let bytes: Vec<u8> = words.iter().flat_map(|word| hash(word).to_le_bytes()).collect();
    xxh3_128(&bytes).to_be_bytes()
}

/// Returns the content hash of a text and further bytes.
pub(crate) fn content_with(text: [u8; 16], more: &[u8]) -> [u8; 16] {
    xxh3_128(&[&text[..], more].concat()).to_be_bytes()
}

/// Fields of a signature.
pub(crate) struct SignatureParts {
    pub(crate) kind: u8,
    pub(crate) content: [u8; 16],
    pub(crate) tokens: usize,
    pub(crate) size: usize,
    /// Payload of the policy. For the kind `SHINGLES`, the sketch.
    pub(crate) payload: Vec<u8>,
    /// Entries of 40 bits, ascending.
    pub(crate) set: Vec<u64>,
}

impl SignatureParts {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0xd1];
        bytes.extend(5_u16.to_le_bytes());
        bytes.push(self.kind);
        bytes.extend(self.content);
        bytes.extend((self.tokens as u32).to_le_bytes());
        bytes.extend((self.size as u32).to_le_bytes());
        if self.kind != SHINGLES {
            bytes.extend((self.payload.len() as u32).to_le_bytes());
            bytes.extend((self.set.len() as u32).to_le_bytes());
        }
        bytes.extend(&self.payload);
        for entry in &self.set {
            bytes.extend(&entry.to_le_bytes()[..5]);
        }
        let checksum = xxh3_64(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}
