//! The number of shingles of a content that begin in each sub-dictionary, and the features derived from these
//! numbers.

use serde::{Deserialize, Serialize};

use crate::error::MappingError;
use crate::limits::DIMENSIONS_MAX;

/// The number of distinct shingles of a content, by the sub-dictionary of their first word.
///
/// The first sub-dictionary is the whole dictionary, so the first length is the total. Each of the others is
/// a half of the dictionary; the halves overlap.
///
/// Cuts and bounds use *features*, one per length. The first feature is the total t. For a half with length
/// l, the feature is the difference 2 l - t between this half and the complementary half. Two contents that
/// differ in d shingles differ in each feature by at most d, because a shingle counts 1 or -1 in it. But a
/// difference is spread twice as widely as a length, so fewer bounding spaces cross a cut of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct LengthVector {
    lengths: [u32; DIMENSIONS_MAX],
    dimensions: usize,
}

impl LengthVector {
    /// Creates a vector from its lengths in shingles. The first length is the total.
    ///
    /// # Errors
    /// If there is no length, there are more than [`DIMENSIONS_MAX`], or a length is greater than the total.
    pub fn new(lengths: &[u32]) -> Result<Self, MappingError> {
        let mut vector = Self::zero(lengths.len())?;
        if let Some(most) = lengths.iter().copied().find(|length| *length > lengths[0]) {
            return Err(MappingError::Lengths { total: lengths[0], length: most });
        }
        vector.lengths[..lengths.len()].copy_from_slice(lengths);
        Ok(vector)
    }

    /// Restores a vector from stored lengths without checking them. Lengths beyond [`DIMENSIONS_MAX`] are
    /// ignored.
    #[inline]
    #[must_use]
    pub fn stored(lengths: &[u32]) -> Self {
        let dimensions = lengths.len().min(DIMENSIONS_MAX);
        let mut vector = Self { lengths: [0; DIMENSIONS_MAX], dimensions };
        vector.lengths[..dimensions].copy_from_slice(&lengths[..dimensions]);
        vector
    }

    /// The vector of a content without shingles.
    pub(super) fn zero(dimensions: usize) -> Result<Self, MappingError> {
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(MappingError::Dimensions(dimensions));
        }
        Ok(Self { lengths: [0; DIMENSIONS_MAX], dimensions })
    }

    /// The vector of a content of which only the total is known. It assumes that each half contains half of
    /// the content.
    pub(super) fn with_total(mut self, total: u32) -> Self {
        self.lengths[..self.dimensions].fill(total / 2);
        self.lengths[0] = total;
        self
    }

    /// Counts one shingle: in the total, and in the halves whose bits are set in `halves`. The lowest bit is
    /// the first half. Bits beyond the number of dimensions must be 0.
    pub(super) fn count(&mut self, halves: u8) {
        // The lowest bit stands for the whole dictionary and is always set.
        let bits = u32::from(halves) << 1 | 1;
        for (i, length) in self.lengths.iter_mut().enumerate() {
            *length += bits >> i & 1;
        }
    }

    /// The lengths, one per sub-dictionary, the total first.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.lengths[..self.dimensions]
    }

    /// The number of distinct shingles.
    #[inline]
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lengths[0].into()
    }

    /// The feature with this number, which must be less than the number of dimensions. Feature 0 is the
    /// total.
    #[inline]
    #[must_use]
    pub fn feature(&self, number: usize) -> i64 {
        let total = i64::from(self.lengths[0]);
        match number {
            0 => total,
            _ => 2 * i64::from(self.lengths[number]) - total,
        }
    }

    /// All features, the total first. Values beyond the number of dimensions are meaningless.
    pub(super) fn features(&self) -> [i64; DIMENSIONS_MAX] {
        std::array::from_fn(|number| self.feature(number))
    }
}

impl From<LengthVector> for Vec<u32> {
    fn from(vector: LengthVector) -> Self {
        vector.as_slice().to_vec()
    }
}

impl TryFrom<Vec<u32>> for LengthVector {
    type Error = MappingError;

    fn try_from(lengths: Vec<u32>) -> Result<Self, MappingError> {
        Self::new(&lengths)
    }
}
