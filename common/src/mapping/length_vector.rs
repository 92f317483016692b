//! How many shingles of a content begin in each sub-dictionary.

use super::MappingError;

/// The most sub-dictionaries a lexicon may have.
pub const DIMENSIONS_MAX: usize = 8;

/// The most features.
pub(super) const FEATURES_MAX: usize = DIMENSIONS_MAX.next_power_of_two();

/// What cuts are made over, for N sub-dictionaries.
///
/// Feature m of a vector a is the sum of its lengths with signs, sum_i (-1)^|i & m| a_i, where |i & m| counts common
/// bits (a Walsh function of i). Feature 0 is the total. Whatever the signs, two contents that differ in d shingles
/// differ in a feature by at most d, as in a single length; but a feature with signs is spread twice as far, so that a
/// cut over it is crossed by fewer bounding spaces.
pub(super) fn features(dimensions: usize) -> usize {
    dimensions.next_power_of_two()
}

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

    /// One of its [`features`].
    pub(super) fn feature(&self, feature: usize) -> i64 {
        let signed = |(i, length): (usize, &u32)| {
            let length = i64::from(*length);
            if (i & feature).count_ones().is_multiple_of(2) { length } else { -length }
        };
        self.as_slice().iter().enumerate().map(signed).sum()
    }
}
