//! The signature of a content: everything that is stored to decide whether another content is a near-duplicate.
//!
//! A signature is one owned byte string in a fixed layout. It is stored and sent unchanged, and read in place.
//! All integers are little-endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | format, [`FORMAT`] |
//! | 1 | 2 | version of the tokeniser, [`TOKENISER_VERSION`] |
//! | 3 | 1 | k, [`SHINGLE_TOKENS`] |
//! | 4 | 16 | content: XXH3-128 of the token hashes, 8 bytes each; as a number, most significant byte first |
//! | 20 | 4 | number of tokens, n |
//! | 24 | 4 | number of distinct shingles, s; `s <= n`, and 0 only when n is |
//! | 28 | 64 | sketch, one byte per bin |
//! | 92 | 5 s | shingle hashes of 40 bits, strictly ascending |
//! | 92 + 5 s | 8 | XXH3-64 of all bytes before |
//!
//! The top 12 bits of a shingle hash are the bucket of the shingle's first word. Length vectors count buckets
//! under a learned table, so they can be computed from the set and are not stored.
//!
//! Invariant: the bytes of every [`Signature`] are accepted by [`Signature::from_bytes`].

mod build;
mod read;
mod set;
mod wire;

use std::fmt;

pub use build::Builder;

use crate::sketch::BINS;
use crate::{ContentHash, stable_hash64};

/// The version of the layout; the first byte of every signature.
pub const FORMAT: u8 = 0xd1;

/// The version of the tokeniser (see [`text`](`doppel-text`)): contents are only ever compared within one.
/// Version 2 reads markup inside `iframe` and `noframes`.
pub const TOKENISER_VERSION: u16 = 2;

/// k, the number of tokens in a shingle.
pub const SHINGLE_TOKENS: usize = 5;

/// Number of buckets of first words: the top 12 bits of a 40-bit shingle hash.
pub const BUCKETS: usize = 1 << (SHINGLE_BITS - BUCKET_SHIFT);

/// Bits of a shingle hash.
pub const SHINGLE_BITS: u32 = 40;

/// Bits of a shingle hash below its bucket.
pub const BUCKET_SHIFT: u32 = 28;

/// The bucket of the first word of a shingle, below [`BUCKETS`].
#[inline]
#[must_use]
pub fn bucket(hash: u64) -> usize {
    (hash >> BUCKET_SHIFT) as usize % BUCKETS
}

const CONTENT: usize = 4;
const TOKENS: usize = 20;
const SHINGLES: usize = 24;
const SKETCH: usize = 28;
const SET: usize = 92;
const CHECKSUM_BYTES: usize = 8;

/// A validated signature. Equal signatures have equal contents.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Signature(Box<[u8]>);

/// The bytes are not a valid signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The length does not match the stated number of shingles.
    #[error("a signature of {shingles} shingles has {expected} bytes, this has {actual}")]
    Length {
        /// The stated number of shingles; 0 if the input is too short to state one.
        shingles: u32,
        /// The length, in bytes, of a signature with that many shingles.
        expected: u64,
        /// The actual length in bytes.
        actual: usize,
    },
    /// The bytes are not a signature, or are a signature in another layout.
    #[error("the format is {0:#04x}, this version reads {FORMAT:#04x}")]
    Format(u8),
    /// The signature was made by another tokeniser version and is not comparable.
    #[error("the tokeniser is version {0}, this is version {TOKENISER_VERSION}")]
    Tokeniser(u16),
    /// The signature has shingles of another length and is not comparable.
    #[error("shingles have {0} tokens, this version takes {SHINGLE_TOKENS}")]
    ShingleTokens(u8),
    /// The bytes were damaged.
    #[error("the checksum does not match")]
    Checksum,
    /// The counts contradict each other.
    #[error("{tokens} tokens cannot give {shingles} shingles")]
    Counts {
        /// Stated number of tokens.
        tokens: u32,
        /// Stated number of shingles.
        shingles: u32,
    },
    /// The set is not strictly ascending.
    #[error("shingle {0} is not above the one before it")]
    Order(usize),
}

impl Signature {
    /// Checks the format, versions, length, checksum, counts and the order of the set, in this sequence.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SignatureError> {
        check(bytes)?;
        Ok(Self(bytes.into()))
    }

    /// The stored form, which [`from_bytes`](Self::from_bytes) reads.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash of the token sequence.
    #[inline]
    #[must_use]
    pub fn content(&self) -> ContentHash {
        ContentHash(array(&self.0, CONTENT))
    }

    /// Number of tokens, without the dummy tokens at the end.
    #[inline]
    #[must_use]
    pub fn tokens(&self) -> u32 {
        u32::from_le_bytes(array(&self.0, TOKENS))
    }

    /// Number of distinct shingles.
    #[inline]
    #[must_use]
    pub fn shingles(&self) -> u32 {
        u32::from_le_bytes(array(&self.0, SHINGLES))
    }

    /// The MinHash sketch: the low byte of each of 64 minima. All zero when there are no tokens.
    #[inline]
    #[must_use]
    pub fn sketch(&self) -> &[u8; BINS] {
        self.0[SKETCH..SET].first_chunk().unwrap_or(&[0; BINS])
    }

    /// The distinct 40-bit shingle hashes, in ascending order.
    #[inline]
    pub fn set(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        set::entries(&self.0[SET..], self.shingles() as usize)
    }

    /// Number of shingle hashes that both signatures have.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> u32 {
        set::shared(&self.0[SET..], self.shingles() as usize, &other.0[SET..], other.shingles() as usize)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({:?}, {} tokens, {} shingles)", self.content(), self.tokens(), self.shingles())
    }
}

impl TryFrom<&[u8]> for Signature {
    type Error = SignatureError;

    fn try_from(bytes: &[u8]) -> Result<Self, SignatureError> {
        Self::from_bytes(bytes)
    }
}

/// The `N` bytes at `offset`. The caller ensures that they exist.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

/// The length, in bytes, of a signature with this many shingles.
fn length(shingles: u32) -> u64 {
    (SET + CHECKSUM_BYTES) as u64 + set::ENTRY_BYTES as u64 * u64::from(shingles)
}

fn check(bytes: &[u8]) -> Result<(), SignatureError> {
    let length = |shingles: u32| {
        let expected = length(shingles);
        if bytes.len() as u64 == expected {
            Ok(())
        } else {
            Err(SignatureError::Length { shingles, expected, actual: bytes.len() })
        }
    };
    if bytes.len() < SET + CHECKSUM_BYTES {
        return length(0);
    }
    if bytes[0] != FORMAT {
        return Err(SignatureError::Format(bytes[0]));
    }
    let tokeniser = u16::from_le_bytes(array(bytes, 1));
    if tokeniser != TOKENISER_VERSION {
        return Err(SignatureError::Tokeniser(tokeniser));
    }
    if usize::from(bytes[3]) != SHINGLE_TOKENS {
        return Err(SignatureError::ShingleTokens(bytes[3]));
    }
    let shingles = u32::from_le_bytes(array(bytes, SHINGLES));
    length(shingles)?;
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if stable_hash64(body) != u64::from_le_bytes(array(checksum, 0)) {
        return Err(SignatureError::Checksum);
    }
    let tokens = u32::from_le_bytes(array(bytes, TOKENS));
    if shingles > tokens || (shingles == 0) != (tokens == 0) {
        return Err(SignatureError::Counts { tokens, shingles });
    }
    match set::first_out_of_order(&bytes[SET..], shingles as usize) {
        Some(at) => Err(SignatureError::Order(at)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
