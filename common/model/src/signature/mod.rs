//! The signature of a content: everything that is stored to decide whether another content is a near-duplicate.
//!
//! A signature is one owned byte string in a fixed layout. It is stored and sent unchanged, and read in place.
//! All integers are little-endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | format, [`FORMAT`] |
//! | 1 | 2 | version of the tokeniser, [`TOKENISER_VERSION`] |
//! | 3 | 1 | the [`Kind`] |
//! | 4 | 16 | content: XXH3-128 of the token hashes, 8 bytes each; as a number, most significant byte first |
//! | 20 | 4 | number of tokens, n |
//! | 24 | 4 | size, s: how large the content is as the kind counts it; 0 only when n is |
//! | 28 | | what the kind has |
//! | end - 8 | 8 | XXH3-64 of all bytes before |
//!
//! Where a content is more than a text, it is XXH3-128 of the 16 bytes of the text, as above, and of the rest: for policies that read the
//! site its hash, most significant byte first, and for `copies` a byte behind it that is 1 for plain text; for `overlap` the
//! fingerprints, four bytes each, if there are any.
//!
//! Of the kind [`Shingles`](Kind::Shingles), whose size is the number of distinct shingles, `s <= n`:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 28 | 64 | sketch, one byte per bin |
//! | 92 | 5 s | shingle hashes of 40 bits, strictly ascending |
//!
//! Of every other kind, which has its sketch, if there is one, at the beginning of the payload:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 28 | 4 | bytes of the payload, p |
//! | 32 | 4 | number of hashes in the set, e |
//! | 36 | p | payload |
//! | 36 + p | 5 e | hashes of 40 bits, strictly ascending |
//!
//! The top 12 bits of a shingle hash are the bucket of the shingle's first word. Length vectors count buckets
//! under a learned table, so they can be computed from the set and are not stored.
//!
//! Invariant: the bytes of every [`Signature`] are accepted by [`Signature::from_bytes`].

mod build;
mod kind;
mod read;
mod set;
mod wire;

use std::fmt;

pub use build::Builder;
pub(crate) use build::shingles;
pub use kind::Kind;

use crate::sketch::BINS;
use crate::{ContentHash, stable_hash64};

/// The version of the layout; the first byte of every signature.
pub const FORMAT: u8 = 0xd1;

/// The version of the tokeniser (see [`text`](`doppel-text`)): contents are only ever compared within one.
/// Version 2 reads markup inside `iframe` and `noframes`; version 3 has other rules for main content, for the tokens of a
/// source and for hosts with a final dot. Version 4 reads XHTML as XML, has other rules for redirects and for what an open element swallows,
/// and cuts words from the form of equal text.
pub const TOKENISER_VERSION: u16 = 5;

/// k, the number of tokens in a shingle, where no other is asked for.
pub const SHINGLE_TOKENS: usize = 5;

/// The least and the greatest number of tokens in a shingle of [`Kind::Shingles`].
pub const SHINGLE_TOKENS_RANGE: std::ops::RangeInclusive<u32> = 3..=13;

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

const KIND: usize = 3;
const CONTENT: usize = 4;
const TOKENS: usize = 20;
const SIZE: usize = 24;
/// Where what the kind has begins.
const OWN: usize = 28;
const SKETCH: usize = OWN;
const SHINGLE_SET: usize = SKETCH + BINS;
const PAYLOAD_BYTES: usize = OWN;
const SET_LENGTH: usize = 32;
const PAYLOAD: usize = 36;
const CHECKSUM_BYTES: usize = 8;

/// A validated signature. Equal signatures have equal contents.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Signature(Box<[u8]>);

/// The bytes are not a valid signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The length does not match the stated counts.
    #[error("a signature of this size has {expected} bytes, this has {actual}")]
    Length {
        /// The length, in bytes, of a signature with these counts; the least there is if the input is too short to state one.
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
    /// The signature is of no kind that this version knows.
    #[error("{0} is no kind of signature that this version knows")]
    Kind(u8),
    /// The bytes were damaged.
    #[error("the checksum does not match")]
    Checksum,
    /// The counts contradict each other.
    #[error("{tokens} tokens cannot give a signature of size {size}")]
    Counts {
        /// Stated number of tokens.
        tokens: u32,
        /// Stated size.
        size: u32,
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

    /// How large the content is, as its kind counts it: of [`Kind::Shingles`], its distinct shingles.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        u32::from_le_bytes(array(&self.0, SIZE))
    }

    /// What it is made of.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> Kind {
        // It was checked when the signature was made.
        Kind::of(self.0[KIND]).unwrap_or(Kind::Shingles)
    }

    /// The MinHash sketch: the low byte of each of 64 minima. All zero when there are no tokens, and of a kind that has none.
    #[inline]
    #[must_use]
    pub fn sketch(&self) -> &[u8; BINS] {
        let sketch = match self.kind() {
            Kind::Shingles => self.0[SKETCH..].first_chunk(),
            kind if kind.is_of_shingles() => self.payload().first_chunk(),
            _ => None,
        };
        sketch.unwrap_or(&[0; BINS])
    }

    /// The bytes that the kind has beside its set; none of [`Kind::Shingles`].
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        match self.kind() {
            Kind::Shingles => &[],
            _ => &self.0[PAYLOAD..PAYLOAD + u32::from_le_bytes(array(&self.0, PAYLOAD_BYTES)) as usize],
        }
    }

    /// Where the set begins, and how many hashes it has.
    #[inline]
    fn set_at(&self) -> (usize, usize) {
        match self.kind() {
            Kind::Shingles => (SHINGLE_SET, self.size() as usize),
            _ => (
                PAYLOAD + u32::from_le_bytes(array(&self.0, PAYLOAD_BYTES)) as usize,
                u32::from_le_bytes(array(&self.0, SET_LENGTH)) as usize,
            ),
        }
    }

    /// The distinct 40-bit hashes of the set, in ascending order; of [`Kind::Shingles`], those of the shingles.
    #[inline]
    pub fn set(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let (at, length) = self.set_at();
        set::entries(&self.0[at..], length)
    }

    /// Number of hashes that both sets have.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> u32 {
        let ((a, a_length), (b, b_length)) = (self.set_at(), other.set_at());
        set::shared(&self.0[a..], a_length, &other.0[b..], b_length)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (content, tokens, size) = (self.content(), self.tokens(), self.size());
        write!(f, "Signature({content:?}, {:?}, {tokens} tokens, size {size})", self.kind())
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

/// How long the signature is whose first [`PAYLOAD`] bytes these are, or all bytes if it is shorter; and where its set begins,
/// and how many hashes that has.
fn extent(kind: Kind, head: &[u8]) -> (u64, usize, u32) {
    let count = |at: usize| {
        let bytes = head.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let (at, hashes) = match kind {
        Kind::Shingles => (SHINGLE_SET as u64, count(SIZE)),
        _ => (PAYLOAD as u64 + u64::from(count(PAYLOAD_BYTES)), count(SET_LENGTH)),
    };
    (at + set::ENTRY_BYTES as u64 * u64::from(hashes) + CHECKSUM_BYTES as u64, at as usize, hashes)
}

fn check(bytes: &[u8]) -> Result<(), SignatureError> {
    let wrong_length = |expected: u64| SignatureError::Length { expected, actual: bytes.len() };
    let Some(head) = bytes.get(..OWN) else { return Err(wrong_length((PAYLOAD + CHECKSUM_BYTES) as u64)) };
    if head[0] != FORMAT {
        return Err(SignatureError::Format(head[0]));
    }
    let tokeniser = u16::from_le_bytes(array(head, 1));
    if tokeniser != TOKENISER_VERSION {
        return Err(SignatureError::Tokeniser(tokeniser));
    }
    let kind = Kind::of(head[KIND]).ok_or(SignatureError::Kind(head[KIND]))?;
    let (length, set, hashes) = extent(kind, bytes);
    if bytes.len() as u64 != length {
        return Err(wrong_length(length));
    }
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if stable_hash64(body) != u64::from_le_bytes(array(checksum, 0)) {
        return Err(SignatureError::Checksum);
    }
    let (tokens, size) = (u32::from_le_bytes(array(bytes, TOKENS)), u32::from_le_bytes(array(bytes, SIZE)));
    if kind == Kind::Shingles && size > tokens || (size == 0) != (tokens == 0) {
        return Err(SignatureError::Counts { tokens, size });
    }
    match set::first_out_of_order(&bytes[set..], hashes as usize) {
        Some(at) => Err(SignatureError::Order(at)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
