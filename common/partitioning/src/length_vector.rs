//! How many shingles of a content begin in each sub-dictionary.

use serde::{Deserialize, Serialize};

use super::MappingError;

/// The most sub-dictionaries a lexicon may have.
pub const DIMENSIONS_MAX: usize = 8;

/// Distinct shingles of a content by the sub-dictionary of their first word.
///
/// The first sub-dictionary is the whole dictionary, so the first length is the total. Each of the others is
/// a half of the dictionary, and the halves overlap.
///
/// Cuts and bounds are over *features*, one for each length: the total t, and for a half of length l the
/// difference 2 l - t of it and the other half. Two contents that differ in d shingles differ in no feature
/// by more than d, for a shingle counts 1 or -1 in each; but a difference is spread twice as far as a length,
/// so a cut over it is crossed by fewer bounding spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct LengthVector {
    lengths: [u32; DIMENSIONS_MAX],
    dimensions: usize,
}

impl LengthVector {
    /// A vector of the given lengths, in shingles, the total first.
    ///
    /// # Errors
    /// When there are none or more than [`DIMENSIONS_MAX`], or one is more than the total.
    pub fn new(lengths: &[u32]) -> Result<Self, MappingError> {
        let mut vector = Self::zero(lengths.len())?;
        if let Some(most) = lengths.iter().copied().find(|length| *length > lengths[0]) {
            return Err(MappingError::Lengths { total: lengths[0], length: most });
        }
        vector.lengths[..lengths.len()].copy_from_slice(lengths);
        Ok(vector)
    }

    /// A vector again whose lengths were one: those beyond [`DIMENSIONS_MAX`] are left out, and nothing is checked.
    #[must_use]
    pub fn stored(lengths: &[u32]) -> Self {
        let dimensions = lengths.len().min(DIMENSIONS_MAX);
        let mut vector = Self { lengths: [0; DIMENSIONS_MAX], dimensions };
        vector.lengths[..dimensions].copy_from_slice(&lengths[..dimensions]);
        vector
    }

    /// The vector of no shingles.
    pub(super) fn zero(dimensions: usize) -> Result<Self, MappingError> {
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(MappingError::Dimensions(dimensions));
        }
        Ok(Self { lengths: [0; DIMENSIONS_MAX], dimensions })
    }

    /// Counts one shingle: in all, and in the halves whose bits are set in `halves`, the lowest bit for the
    /// first half. There must be no bits beyond the dimensions.
    pub(super) fn count(&mut self, halves: u8) {
        // The lowest bit, always set, is the whole dictionary's.
        let bits = u32::from(halves) << 1 | 1;
        for (i, length) in self.lengths.iter_mut().enumerate() {
            *length += bits >> i & 1;
        }
    }

    /// The lengths, one per sub-dictionary, the total first.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.lengths[..self.dimensions]
    }

    /// All shingles.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.lengths[0].into()
    }

    /// A feature by its number, below the number of dimensions; 0 is the total.
    #[must_use]
    pub fn feature(&self, number: usize) -> i64 {
        let total = i64::from(self.lengths[0]);
        match number {
            0 => total,
            _ => 2 * i64::from(self.lengths[number]) - total,
        }
    }

    /// All features, the total first; those beyond the dimensions are without meaning.
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
