//! The table of words to sub-dictionaries, by way of buckets.
//!
//! A stored shingle hash carries the bucket of its first word, so a table over buckets applies to
//! stored sets, and a new one can be learned without the text. One table serves all languages, or the
//! bound of [`BoundingSpace`](super::BoundingSpace) would not hold.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::{DIMENSIONS_MAX, LengthVector, MappingError, topics};
use crate::model::stable_hash64;
use crate::signature::{BUCKET_SHIFT, BUCKETS, Signature};

/// Which sub-dictionary each bucket of first words belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Lexicon {
    version: u64,
    empty: LengthVector,
    table: Box<[u8]>,
}

impl Lexicon {
    /// The unlearned table, version 0: a bucket's sub-dictionary is its hash.
    ///
    /// # Errors
    /// When `dimensions` is not 1 to [`DIMENSIONS_MAX`].
    pub fn unlearned(dimensions: usize) -> Result<Self, MappingError> {
        let empty = LengthVector::zero(dimensions)?;
        let table = (0..BUCKETS).map(|bucket| by_hash(bucket, dimensions)).collect();
        Ok(Self { version: 0, empty, table })
    }

    /// A table of topics: sub-dictionaries of about the same share of all shingles by which the pages of
    /// `sample` differ most. A function of the sample and its order alone.
    ///
    /// # Errors
    /// When `dimensions` is not 1 to [`DIMENSIONS_MAX`].
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        dimensions: usize,
        version: u64,
    ) -> Result<Self, MappingError> {
        let Self { empty, mut table, .. } = Self::unlearned(dimensions)?;
        if dimensions > 1 {
            topics::assign(sample, dimensions, &mut table);
        }
        Ok(Self { version, empty, table })
    }

    /// 0 for the unlearned table, else the epoch of the map it was learned for.
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

/// The bucket of the first word of a shingle.
pub(super) fn bucket(hash: u64) -> usize {
    (hash >> BUCKET_SHIFT) as usize % BUCKETS
}

/// The sub-dictionary of a bucket nothing is known of.
pub(super) fn by_hash(bucket: usize, dimensions: usize) -> u8 {
    (stable_hash64(&(bucket as u64).to_le_bytes()) % dimensions as u64) as u8
}

/// A lexicon as it is stored: one digit per bucket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    dimensions: usize,
    table: String,
}

impl From<Lexicon> for Document {
    fn from(lexicon: Lexicon) -> Self {
        let table = lexicon.table.iter().map(|sub| char::from(b'0' + sub)).collect();
        Self { version: lexicon.version, dimensions: lexicon.dimensions(), table }
    }
}

impl TryFrom<Document> for Lexicon {
    type Error = MappingError;

    fn try_from(document: Document) -> Result<Self, MappingError> {
        let empty = LengthVector::zero(document.dimensions)?;
        if document.table.len() != BUCKETS {
            return Err(MappingError::Table(format!("this has {} bytes", document.table.len())));
        }
        let table: Box<[u8]> = document.table.bytes().map(|digit| digit.wrapping_sub(b'0')).collect();
        const { assert!(DIMENSIONS_MAX <= 10, "a sub-dictionary is one digit") }
        match table.iter().position(|sub| usize::from(*sub) >= document.dimensions) {
            Some(at) => Err(MappingError::Table(format!("bucket {at} has another"))),
            None => Ok(Self { version: document.version, empty, table }),
        }
    }
}
