//! Maps words to sub-dictionaries by their buckets.
//!
//! The first sub-dictionary is the whole dictionary. The others are overlapping halves of the dictionary: the
//! table has one bit per bucket for each half.
//!
//! A stored shingle hash contains the bucket of its first word. So a table over buckets can be applied to
//! stored sets, and a new table can be learned without the texts. One table serves all languages; otherwise
//! the bound of [`BoundingSpace`](super::BoundingSpace) would not hold.

mod topics;

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use doppel_model::signature::{BUCKETS, Signature, bucket};
use doppel_model::stable_hash64;

use crate::error::MappingError;
use crate::length_vector::LengthVector;
use crate::limits::DIMENSIONS_MAX;

/// The table that assigns each bucket of first words to halves of the dictionary.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "StoredLexicon", into = "StoredLexicon")]
pub struct Lexicon {
    version: u64,
    empty: LengthVector,
    /// The halves of each bucket; the first half is the lowest bit.
    table: Box<[u8]>,
}

impl Lexicon {
    /// The unlearned table, version 0: the halves of a bucket are bits of its hash.
    ///
    /// # Errors
    /// When `dimensions` is not 1 to [`DIMENSIONS_MAX`].
    pub fn unlearned(dimensions: usize) -> Result<Self, MappingError> {
        let empty = LengthVector::zero(dimensions)?;
        let table = (0..BUCKETS).map(|bucket| by_hash(bucket, dimensions)).collect();
        Ok(Self { version: 0, empty, table })
    }

    /// Learns a table of topics: the halves of the dictionary in which the pages of `sample` differ most, the
    /// most discriminating half first. The result depends only on the sample and its order.
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

    /// 0 for the unlearned table, otherwise the version of the map for which it was learned.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// N, the number of sub-dictionaries.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.empty.as_slice().len()
    }

    /// Computes the length vector of a content. Its total is the number of distinct shingles. If the
    /// signature does not consist of shingles, the total is the size of the signature, and every half has
    /// half of the total.
    #[must_use]
    pub fn lengths(&self, signature: &Signature) -> LengthVector {
        if !signature.kind().is_of_shingles() {
            return self.empty.with_total(signature.size());
        }
        let mut lengths = self.empty;
        for hash in signature.set() {
            lengths.count(self.table[bucket(hash)]);
        }
        lengths
    }
}

/// The halves of a bucket for which no sample was available: bits of the hash of the bucket.
pub(super) fn by_hash(bucket: usize, dimensions: usize) -> u8 {
    stable_hash64(&(bucket as u64).to_le_bytes()) as u8 & halves(dimensions)
}

/// A mask with one bit for each half of the dictionary.
fn halves(dimensions: usize) -> u8 {
    const { assert!(DIMENSIONS_MAX <= 8, "the halves of a bucket are the bits of a byte") }
    (1 << (dimensions - 1)) - 1
}

/// The stored form of a lexicon. `halves` has two hexadecimal digits per bucket and one bit for each half.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredLexicon {
    version: u64,
    dimensions: usize,
    halves: String,
}

impl From<Lexicon> for StoredLexicon {
    fn from(lexicon: Lexicon) -> Self {
        let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
        let halves = lexicon.table.iter().flat_map(|bits| [digit(bits >> 4), digit(*bits)]).collect();
        Self { version: lexicon.version, dimensions: lexicon.dimensions(), halves }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl TryFrom<StoredLexicon> for Lexicon {
    type Error = MappingError;

    fn try_from(stored: StoredLexicon) -> Result<Self, MappingError> {
        let StoredLexicon { version, dimensions, halves: text } = stored;
        let empty = LengthVector::zero(dimensions)?;
        if text.len() != 2 * BUCKETS {
            return Err(MappingError::Table(format!("the table has {} bytes", text.len())));
        }
        let value = |digit: &u8| DIGITS.iter().position(|known| known == digit).map(|value| value as u8);
        let bits = |(bucket, pair): (usize, &[u8])| match (value(&pair[0]), value(&pair[1])) {
            (Some(high), Some(low)) if (high << 4 | low) & !halves(dimensions) == 0 => Ok(high << 4 | low),
            _ => Err(MappingError::Table(format!("bucket {bucket} has other digits"))),
        };
        let table = text.as_bytes().chunks_exact(2).enumerate().map(bits).collect::<Result<_, _>>()?;
        Ok(Self { version, empty, table })
    }
}
