//! How many shingles of a content begin in each sub-dictionary.

use super::MappingError;

/// The most sub-dictionaries a lexicon may have.
pub const DIMENSIONS_MAX: usize = 8;

/// Distinct shingles of a content by the sub-dictionary of their first word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LengthVector {
    lengths: [u32; DIMENSIONS_MAX],
    dimensions: usize,
}

impl LengthVector {
    /// A vector of the given lengths, in shingles.
    ///
    /// # Errors
    /// When there are none or more than [`DIMENSIONS_MAX`].
    pub fn new(lengths: &[u32]) -> Result<Self, MappingError> {
        let mut vector = Self::zero(lengths.len())?;
        vector.lengths[..lengths.len()].copy_from_slice(lengths);
        Ok(vector)
    }

    /// The vector of no shingles.
    pub(super) fn zero(dimensions: usize) -> Result<Self, MappingError> {
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(MappingError::Dimensions(dimensions));
        }
        Ok(Self { lengths: [0; DIMENSIONS_MAX], dimensions })
    }

    /// Counts one shingle in a sub-dictionary.
    pub(super) fn count(&mut self, dimension: u8) {
        self.lengths[usize::from(dimension) % DIMENSIONS_MAX] += 1;
    }

    /// The lengths, one per sub-dictionary.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.lengths[..self.dimensions]
    }

    /// All shingles.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.as_slice().iter().copied().map(u64::from).sum()
    }

    /// What a cut may be made over: length `feature`, or for the feature after the last the total.
    pub(super) fn feature(&self, feature: usize) -> u64 {
        self.as_slice().get(feature).map_or_else(|| self.total(), |length| u64::from(*length))
    }
}
