//! The table of words to sub-dictionaries, by way of buckets.
//!
//! The first sub-dictionary is the whole dictionary, the others are halves of it that overlap: the table has
//! one bit per bucket for each of them.
//!
//! A stored shingle hash carries the bucket of its first word, so a table over buckets applies to
//! stored sets, and a new one can be learned without the text. One table serves all languages, or the
//! bound of [`BoundingSpace`](super::BoundingSpace) would not hold.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::{DIMENSIONS_MAX, LengthVector, MappingError, topics};
use doppel_model::signature::{BUCKETS, Signature, bucket};
use doppel_model::stable_hash64;

/// Which halves of the dictionary each bucket of first words belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "LexiconDocument", into = "LexiconDocument")]
pub struct Lexicon {
    version: u64,
    empty: LengthVector,
    /// Halves of each bucket, the first in the lowest bit.
    table: Box<[u8]>,
}

impl Lexicon {
    /// The unlearned table, version 0: a bucket's halves are bits of its hash.
    ///
    /// # Errors
    /// When `dimensions` is not 1 to [`DIMENSIONS_MAX`].
    pub fn unlearned(dimensions: usize) -> Result<Self, MappingError> {
        let empty = LengthVector::zero(dimensions)?;
        let table = (0..BUCKETS).map(|bucket| by_hash(bucket, dimensions)).collect();
        Ok(Self { version: 0, empty, table })
    }

    /// A table of topics: halves of the dictionary by which the pages of `sample` differ most, those that
    /// tell most first. A function of the sample and its order alone.
    ///
    /// # Errors
    /// When `dimensions` is not 1 to [`DIMENSIONS_MAX`].
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        dimensions: usize,
        version: u64,
    ) -> Result<Self, MappingError> {
        let Self { empty, mut table, .. } = Self::unlearned(dimensions)?;
        topics::assign(sample, dimensions - 1, &mut table);
        Ok(Self { version, empty, table })
    }

    /// 0 for the unlearned table, else the version of the map it was learned for.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// N, the number of sub-dictionaries.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.empty.as_slice().len()
    }

    /// The length vector of a content. Its total is the number of the content's distinct shingles.
    #[must_use]
    pub fn lengths(&self, signature: &Signature) -> LengthVector {
        let mut lengths = self.empty;
        for hash in signature.set() {
            lengths.count(self.table[bucket(hash)]);
        }
        lengths
    }
}

/// The halves of a bucket nothing is known of.
pub(super) fn by_hash(bucket: usize, dimensions: usize) -> u8 {
    stable_hash64(&(bucket as u64).to_le_bytes()) as u8 & halves(dimensions)
}

/// The bits that halves of a bucket can have.
fn halves(dimensions: usize) -> u8 {
    const { assert!(DIMENSIONS_MAX <= 8, "the halves of a bucket are the bits of a byte") }
    (1 << (dimensions - 1)) - 1
}

/// A lexicon as it is stored: two hexadecimal digits per bucket, a bit for every half.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LexiconDocument {
    version: u64,
    dimensions: usize,
    halves: String,
}

impl From<Lexicon> for LexiconDocument {
    fn from(lexicon: Lexicon) -> Self {
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
        let halves = lexicon.table.iter().flat_map(|bits| [digit(bits >> 4), digit(*bits)]).collect();
        Self { version: lexicon.version, dimensions: lexicon.dimensions(), halves }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl TryFrom<LexiconDocument> for Lexicon {
    type Error = MappingError;

    fn try_from(document: LexiconDocument) -> Result<Self, MappingError> {
        let LexiconDocument { version, dimensions, halves: text } = document;
        let empty = LengthVector::zero(dimensions)?;
        if text.len() != 2 * BUCKETS {
            return Err(MappingError::Table(format!("this has {} bytes", text.len())));
        }
        let value = |digit: &u8| DIGITS.iter().position(|known| known == digit).map(|value| value as u8);
        let bits = |(bucket, pair): (usize, &[u8])| match (value(&pair[0]), value(&pair[1])) {
            (Some(high), Some(low)) if (high << 4 | low) & !halves(dimensions) == 0 => Ok(high << 4 | low),
            _ => Err(MappingError::Table(format!("bucket {bucket} has others"))),
        };
        let table = text.as_bytes().chunks_exact(2).enumerate().map(bits).collect::<Result<_, _>>()?;
        Ok(Self { version, empty, table })
    }
}
