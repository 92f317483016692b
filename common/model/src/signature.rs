//! The signature of a content: all that Doppel stores to decide whether another content is a near-duplicate.
//!
//! A signature is one owned byte string in a fixed layout. Doppel stores and sends these bytes unchanged, and
//! reads fields in place. All integers are little-endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 1 | format, [`FORMAT`] |
//! | 1 | 2 | version of the tokeniser, [`TOKENISER_VERSION`] |
//! | 3 | 1 | the [`SignatureKind`] |
//! | 4 | 16 | content: XXH3-128 of the token hashes, 8 bytes each; as a number, most significant byte first |
//! | 20 | 4 | number of tokens, n |
//! | 24 | 4 | size of the content as its kind counts it, s; 0 only if n is 0 |
//! | 28 | | the data of the kind, see below |
//! | end - 8 | 8 | XXH3-64 of all bytes before |
//!
//! Some policies compare more than the text of a content. Their content hash is the XXH3-128 of the 16 bytes
//! above, followed by:
//!
//! - for policies that read the site, the hash of the site, most significant byte first;
//! - for `copies`, one more byte behind the site, which is 1 for plain text and 0 otherwise;
//! - for `overlap`, the fingerprints, four bytes each. Without fingerprints the 16 bytes above are the
//!   content hash.
//!
//! The data of the kind [`Shingles`](SignatureKind::Shingles), whose size is the number of distinct shingles,
//! `s <= n`:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 28 | 64 | sketch, one byte per bin |
//! | 92 | 5 s | shingle hashes of 40 bits, strictly ascending |
//!
//! The data of every other kind. If the kind has a sketch, its payload begins with the sketch.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 28 | 4 | bytes of the payload, p |
//! | 32 | 4 | number of hashes in the set, e |
//! | 36 | p | payload |
//! | 36 + p | 5 e | hashes of 40 bits, strictly ascending |
//!
//! The top 12 bits of a shingle hash are the bucket of the shingle's first word. Length vectors count buckets
//! under a learned table, so they are computed from the set and not stored.
//!
//! Invariant: [`Signature::from_bytes`] accepts the bytes of every [`Signature`].

mod build;
mod kind;
mod read;
mod set;
mod wire;

use std::fmt;

pub use build::Builder;
pub(crate) use build::shingles;
pub use kind::SignatureKind;

use crate::sketch::BINS;
use crate::{ContentHash, stable_hash64};

/// The version of the layout, which is the first byte of every signature.
pub const FORMAT: u8 = 0xd1;

/// The version of the tokeniser in the crate `doppel-text`. Only contents of the same version are compared.
///
/// - Version 2 reads markup inside `iframe` and `noframes`.
/// - Version 3 has new rules for main content, for source tokens, and for hosts with a final dot.
/// - Version 4 reads XHTML as XML, cuts words from the *form* of a text (one spelling for all equal
///   texts), and has new rules for
///   redirects and for unclosed elements.
/// - Version 5 has new rules for recognising UTF-16 and hidden text.
pub const TOKENISER_VERSION: u16 = 5;

/// k, the number of tokens in a shingle by default.
pub const SHINGLE_TOKENS: usize = 5;

/// The allowed numbers of tokens in a shingle of [`SignatureKind::Shingles`].
pub const SHINGLE_TOKENS_RANGE: std::ops::RangeInclusive<u32> = 3..=13;

/// Number of buckets of first words. The bucket is the top 12 bits of a 40-bit shingle hash.
pub const BUCKETS: usize = 1 << (SHINGLE_BITS - BUCKET_SHIFT);

/// Number of bits of a shingle hash.
pub const SHINGLE_BITS: u32 = 40;

/// Number of bits of a shingle hash below its bucket.
pub const BUCKET_SHIFT: u32 = 28;

/// Extracts the bucket of a shingle's first word from the shingle hash. The bucket is below [`BUCKETS`].
#[inline]
#[must_use]
pub fn bucket(hash: u64) -> usize {
    (hash >> BUCKET_SHIFT) as usize % BUCKETS
}

const KIND: usize = 3;
const CONTENT: usize = 4;
const TOKENS: usize = 20;
const SIZE: usize = 24;
/// Offset of the data of the kind.
const KIND_DATA: usize = 28;
const SKETCH: usize = KIND_DATA;
const SHINGLE_SET: usize = SKETCH + BINS;
const PAYLOAD_BYTES: usize = KIND_DATA;
const SET_LENGTH: usize = 32;
const PAYLOAD: usize = 36;
const CHECKSUM_BYTES: usize = 8;

/// A validated signature of a content. Equal signatures have equal contents.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Signature(Box<[u8]>);

/// The bytes are not a valid signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The length does not match the counts in the signature.
    #[error("the signature is {actual} bytes long, but its counts ask for {expected} bytes")]
    Length {
        /// The length in bytes that the counts ask for. If the input is too short to contain the counts, the
        /// shortest possible length.
        expected: u64,
        /// The actual length in bytes.
        actual: usize,
    },
    /// The bytes are not a signature, or are a signature in another layout.
    #[error("the signature has format {0:#04x}, but this version of Doppel reads format {FORMAT:#04x}")]
    Format(u8),
    /// Another version of the tokeniser made the signature, so it cannot be compared.
    #[error(
        "tokeniser version {0} made the signature, but this version of Doppel has version {TOKENISER_VERSION}"
    )]
    Tokeniser(u16),
    /// The kind of the signature is unknown to this version.
    #[error("{0} is not a kind of signature that this version of Doppel knows")]
    Kind(u8),
    /// The checksum does not match, so the bytes are damaged.
    #[error("the checksum does not match")]
    Checksum,
    /// The counts contradict each other.
    #[error("{tokens} tokens cannot give a signature of size {size}")]
    Counts {
        /// The number of tokens in the signature.
        tokens: u32,
        /// The size in the signature.
        size: u32,
    },
    /// The set is not strictly ascending at this index.
    #[error("hash {0} of the set is not greater than the hash before it")]
    Order(usize),
}

impl Signature {
    /// Checks and copies the bytes of a signature.
    ///
    /// # Errors
    /// The first of these checks that fails: format, tokeniser version, kind, length, checksum, counts, order
    /// of the set.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SignatureError> {
        check(bytes)?;
        Ok(Self(bytes.into()))
    }

    /// The bytes of the signature, which [`from_bytes`](Self::from_bytes) reads.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash of the content. For most policies it is the hash of the token sequence.
    #[inline]
    #[must_use]
    pub fn content(&self) -> ContentHash {
        ContentHash(array(&self.0, CONTENT))
    }

    /// The number of tokens. The padding at the end of a text does not count.
    #[inline]
    #[must_use]
    pub fn tokens(&self) -> u32 {
        u32::from_le_bytes(array(&self.0, TOKENS))
    }

    /// The size of the content as its kind counts it. For kinds of shingles, this is the number of distinct
    /// shingles.
    #[inline]
    #[must_use]
    pub fn size(&self) -> u32 {
        u32::from_le_bytes(array(&self.0, SIZE))
    }

    /// The kind of the signature.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> SignatureKind {
        // `from_bytes` has checked the number, so the default is never used.
        SignatureKind::of(self.0[KIND]).unwrap_or(SignatureKind::Shingles)
    }

    /// The MinHash sketch: the low byte of each of 64 minima. All bytes are zero if the content has no
    /// tokens, or if the kind has no sketch.
    #[inline]
    #[must_use]
    pub fn sketch(&self) -> &[u8; BINS] {
        let sketch = match self.kind() {
            SignatureKind::Shingles => self.0[SKETCH..].first_chunk(),
            kind if kind.is_of_shingles() => self.payload().first_chunk(),
            _ => None,
        };
        sketch.unwrap_or(&[0; BINS])
    }

    /// The payload: the bytes of the kind besides its set. Always empty for [`SignatureKind::Shingles`].
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        match self.kind() {
            SignatureKind::Shingles => &[],
            _ => &self.0[PAYLOAD..PAYLOAD + u32::from_le_bytes(array(&self.0, PAYLOAD_BYTES)) as usize],
        }
    }

    #[inline]
    fn set_location(&self) -> SetLocation {
        match self.kind() {
            SignatureKind::Shingles => SetLocation { offset: SHINGLE_SET, hashes: self.size() as usize },
            _ => SetLocation {
                offset: PAYLOAD + u32::from_le_bytes(array(&self.0, PAYLOAD_BYTES)) as usize,
                hashes: u32::from_le_bytes(array(&self.0, SET_LENGTH)) as usize,
            },
        }
    }

    /// The distinct 40-bit hashes of the set, in ascending order. For kinds of shingles, these are the
    /// shingle hashes.
    #[inline]
    pub fn set(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let SetLocation { offset, hashes } = self.set_location();
        set::entries(&self.0[offset..], hashes)
    }

    /// The number of hashes that are in both sets.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> u32 {
        let (a, b) = (self.set_location(), other.set_location());
        set::shared(&self.0[a.offset..], a.hashes, &other.0[b.offset..], b.hashes)
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

/// Where the set of a signature begins, in bytes, and how many hashes it has.
struct SetLocation {
    offset: usize,
    hashes: usize,
}

/// The `N` bytes at `offset`. The caller ensures that they exist.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

/// The length of a signature in bytes, and the location of its set.
struct SignatureLayout {
    bytes: u64,
    set: SetLocation,
}

/// Computes the layout of a signature from its first [`PAYLOAD`] bytes. A missing count is read as 0.
fn layout(kind: SignatureKind, head: &[u8]) -> SignatureLayout {
    let count = |at: usize| {
        let bytes = head.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let (offset, hashes) = match kind {
        SignatureKind::Shingles => (SHINGLE_SET as u64, count(SIZE)),
        _ => (PAYLOAD as u64 + u64::from(count(PAYLOAD_BYTES)), count(SET_LENGTH)),
    };
    let bytes = offset + set::ENTRY_BYTES as u64 * u64::from(hashes) + CHECKSUM_BYTES as u64;
    SignatureLayout { bytes, set: SetLocation { offset: offset as usize, hashes: hashes as usize } }
}

fn check(bytes: &[u8]) -> Result<(), SignatureError> {
    let wrong_length = |expected: u64| SignatureError::Length { expected, actual: bytes.len() };
    let Some(head) = bytes.get(..KIND_DATA) else {
        return Err(wrong_length((PAYLOAD + CHECKSUM_BYTES) as u64));
    };
    if head[0] != FORMAT {
        return Err(SignatureError::Format(head[0]));
    }
    let tokeniser = u16::from_le_bytes(array(head, 1));
    if tokeniser != TOKENISER_VERSION {
        return Err(SignatureError::Tokeniser(tokeniser));
    }
    let kind = SignatureKind::of(head[KIND]).ok_or(SignatureError::Kind(head[KIND]))?;
    let layout = layout(kind, bytes);
    if bytes.len() as u64 != layout.bytes {
        return Err(wrong_length(layout.bytes));
    }
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
    if stable_hash64(body) != u64::from_le_bytes(array(checksum, 0)) {
        return Err(SignatureError::Checksum);
    }
    let (tokens, size) = (u32::from_le_bytes(array(bytes, TOKENS)), u32::from_le_bytes(array(bytes, SIZE)));
    if kind == SignatureKind::Shingles && size > tokens || (size == 0) != (tokens == 0) {
        return Err(SignatureError::Counts { tokens, size });
    }
    match set::first_out_of_order(&bytes[layout.set.offset..], layout.set.hashes) {
        Some(at) => Err(SignatureError::Order(at)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
