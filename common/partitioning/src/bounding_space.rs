//! The region of length-vector space that can contain near-duplicates of a content. The bound is exact.
//!
//! Let c = (1 - tau) / (1 + tau). J(A, B) > tau means that A and B differ in fewer than c (|A| + |B|)
//! shingles. Therefore
//!
//! - tau |A| < |B| < |A| / tau, and
//! - every feature of their [`LengthVector`]s differs by less than c (|A| + |B|), because a shingle counts 1
//!   or -1 in each feature.
//!
//! A box is a range for each feature, including the total. Let t be the largest total that both the box and
//! the first bound allow. Then the box can contain a near-duplicate of A only if the distance from each
//! feature of A to the box's range is less than c (|A| + t).
//!
//! All lengths are counted on the stored sets. Comparisons are made in integers, multiplied by the
//! denominator of 1 + tau.

use serde::{Deserialize, Serialize};

use doppel_model::Tau;

use crate::error::MappingError;
use crate::length_vector::LengthVector;
use crate::limits::DIMENSIONS_MAX;

/// The number of shingles by which every bound is widened. Two different shingles with the same hash are one
/// element of a stored set; two such collisions between two contents are already very unlikely.
const SLACK: i64 = 2;

/// A box of length-vector space: a range for each feature, with both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Vec<Range>", into = "Vec<Range>")]
pub struct Bounds {
    pub(super) lo: [i64; DIMENSIONS_MAX],
    pub(super) hi: [i64; DIMENSIONS_MAX],
    dimensions: usize,
}

impl Bounds {
    /// The value that stands for "no limit". It is far from overflow.
    pub(super) const UNLIMITED: i64 = i64::MAX / 8;

    /// The box that covers the whole space.
    pub(super) fn all(dimensions: usize) -> Self {
        let (lo, hi) = ([-Self::UNLIMITED; DIMENSIONS_MAX], [Self::UNLIMITED; DIMENSIONS_MAX]);
        Self { lo, hi, dimensions }
    }

    /// The smallest and the largest value of each feature of a [`LengthVector`], the total first. `None`
    /// means no limit.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<i64>, Option<i64>)> + '_ {
        let limit = |value: i64| (value.abs() < Self::UNLIMITED).then_some(value);
        (0..self.dimensions).map(move |m| (limit(self.lo[m]), limit(self.hi[m])))
    }

    /// Whether contents of these lengths belong to the box.
    #[inline]
    #[must_use]
    pub fn contains(&self, lengths: &LengthVector) -> bool {
        (0..self.dimensions).all(|m| (self.lo[m]..=self.hi[m]).contains(&lengths.feature(m)))
    }

    /// The two parts of the box: where the feature is at most `at`, and where it is greater.
    pub(super) fn split(&self, feature: usize, at: i64) -> (Self, Self) {
        let (mut left, mut right) = (*self, *self);
        left.hi[feature] = left.hi[feature].min(at);
        right.lo[feature] = right.lo[feature].max(at.saturating_add(1));
        (left, right)
    }
}

/// The smallest and the largest value of a feature, both included. `None` means no limit.
type Range = (Option<i64>, Option<i64>);

impl From<Bounds> for Vec<Range> {
    fn from(bounds: Bounds) -> Self {
        bounds.ranges().collect()
    }
}

impl TryFrom<Vec<Range>> for Bounds {
    type Error = MappingError;

    fn try_from(ranges: Vec<Range>) -> Result<Self, MappingError> {
        if !(1..=DIMENSIONS_MAX).contains(&ranges.len()) {
            return Err(MappingError::Dimensions(ranges.len()));
        }
        let mut bounds = Self::all(ranges.len());
        for (m, (lo, hi)) in ranges.into_iter().enumerate() {
            bounds.lo[m] = lo.unwrap_or(-Self::UNLIMITED).max(-Self::UNLIMITED);
            bounds.hi[m] = hi.unwrap_or(Self::UNLIMITED).min(Self::UNLIMITED);
        }
        Ok(bounds)
    }
}

/// The region that contains the vectors of all near-duplicates of one content.
#[derive(Clone, Copy, Debug)]
pub struct BoundingSpace {
    /// The features of the content. The first feature is the total.
    features: [i64; DIMENSIONS_MAX],
    /// The least and the greatest total that a near-duplicate can have.
    totals: (i64, i64),
    /// 1 + tau and 1 - tau, both multiplied by the denominator of tau.
    plus: i64,
    minus: i64,
}

impl BoundingSpace {
    /// Creates the bounding space of a content with the given vector. Without a threshold, the bounding space
    /// is the whole space, because lengths then exclude nothing.
    #[must_use]
    pub fn new(lengths: LengthVector, tau: impl Into<Option<Tau>>) -> Self {
        let Some(tau) = tau.into() else { return Self::everything(lengths) };
        let (t, d) = (tau.numerator() as i64, Tau::DENOMINATOR as i64);
        let features = lengths.features();
        // The integers strictly between tau |A| and |A| / tau.
        let totals = (t * features[0] / d + 1 - SLACK, (d * features[0] + t - 1) / t - 1 + SLACK);
        Self { features, totals, plus: d + t, minus: d - t }
    }

    fn everything(lengths: LengthVector) -> Self {
        // With `plus` and `minus` zero, every comparison of distances holds.
        Self { features: lengths.features(), totals: (i64::MIN, Bounds::UNLIMITED), plus: 0, minus: 0 }
    }

    /// Whether a content of `total` shingles can be a near-duplicate.
    #[inline]
    #[must_use]
    pub fn admits_total(&self, total: u32) -> bool {
        (self.totals.0..=self.totals.1).contains(&i64::from(total))
    }

    /// Whether a content with these lengths (the total first) can be a near-duplicate. Both vectors must come
    /// from the same lexicon.
    #[inline]
    #[must_use]
    pub fn admits(&self, lengths: &[u32]) -> bool {
        let Some((&total, halves)) = lengths.split_first() else { return false };
        if !self.admits_total(total) {
            return false;
        }
        let total = i64::from(total);
        let apart = |(value, half): (&i64, &u32)| (2 * i64::from(*half) - total - value).abs();
        let most = self.features[1..].iter().zip(halves).map(apart).fold(0, i64::max);
        self.plus * (most - SLACK) <= self.minus * (self.features[0] + total)
    }

    /// Whether `bounds` can contain the vector of a near-duplicate.
    #[inline]
    #[must_use]
    pub fn meets(&self, bounds: &Bounds) -> bool {
        let least = bounds.lo[0].max(self.totals.0);
        let most = bounds.hi[0].min(self.totals.1);
        if least > most {
            return false;
        }
        let budget = self.minus * (self.features[0] + most) + self.plus * SLACK;
        let ranges = bounds.lo.iter().zip(&bounds.hi).zip(&self.features).take(bounds.dimensions).skip(1);
        ranges.into_iter().all(|((lo, hi), value)| {
            // The difference between two halves is never greater than the total.
            let apart = (lo - value).max(value - hi);
            *lo <= most && -most <= *hi && lo <= hi && (apart <= 0 || self.plus * apart <= budget)
        })
    }
}

#[cfg(test)]
mod tests;
