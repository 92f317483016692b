//! The part of length-vector space that can hold a near-duplicate, exactly.
//!
//! With a_i the shingles of A that begin in sub-dictionary i, and c = (1 - tau) / (1 + tau):
//! J(A, B) > tau means that A and B differ in fewer than c (|A| + |B|) shingles, so
//!
//! - sum_i |a_i - b_i| < c (|A| + |B|), and
//! - tau |A| < |B| < |A| / tau.
//!
//! A box is a range of each feature (`features` in `length_vector`), the total among them. A
//! feature of A and one of B differ by at most |a_i - b_i| summed up. So a box can hold such a vector b only if with the largest total t
//! that the box and the second bound allow, no feature of A is farther than c (|A| + t) from the box's range of it.
//!
//! All is counted on the stored sets and decided in integers, times the denominator of 1 + tau.

use super::LengthVector;
use super::length_vector::{FEATURES_MAX, features};
use crate::model::Tau;

/// Shingles by which every bound is widened: two different shingles of equal hash are one element of a
/// stored set, and two such accidents between two contents are already most unlikely.
const SLACK: i64 = 2;

/// A box of length-vector space: a range of each feature. Both ends belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub(super) lo: [i64; FEATURES_MAX],
    pub(super) hi: [i64; FEATURES_MAX],
    features: usize,
}

impl Bounds {
    /// No limit. Far from overflow.
    pub(super) const UNLIMITED: i64 = i64::MAX / 8;

    /// The whole space.
    pub(super) fn all(dimensions: usize) -> Self {
        let (lo, hi) = ([-Self::UNLIMITED; FEATURES_MAX], [Self::UNLIMITED; FEATURES_MAX]);
        Self { lo, hi, features: features(dimensions) }
    }

    /// Smallest and largest value of each feature, the total first; none is no limit. Feature m adds the lengths of
    /// the sub-dictionaries whose number has an even number of bits in common with m, and takes off the others.
    pub fn ranges(&self) -> impl Iterator<Item = (Option<i64>, Option<i64>)> + '_ {
        let limit = |value: i64| (value.abs() < Self::UNLIMITED).then_some(value);
        (0..self.features).map(move |m| (limit(self.lo[m]), limit(self.hi[m])))
    }

    /// The part where a feature is at most `at`, and the part where it is more.
    pub(super) fn split(&self, feature: usize, at: i64) -> (Self, Self) {
        let (mut left, mut right) = (*self, *self);
        left.hi[feature] = left.hi[feature].min(at);
        right.lo[feature] = right.lo[feature].max(at.saturating_add(1));
        (left, right)
    }
}

/// Where the vectors of all near-duplicates of one content are.
#[derive(Clone, Copy, Debug)]
pub struct BoundingSpace {
    lengths: LengthVector,
    features: [i64; FEATURES_MAX],
    total: i64,
    /// Least and greatest total of a partner.
    totals: (i64, i64),
    /// 1 + tau and 1 - tau, times the denominator.
    plus: i64,
    minus: i64,
}

impl BoundingSpace {
    /// Of a content with the given vector.
    #[must_use]
    pub fn new(lengths: LengthVector, tau: Tau) -> Self {
        let (t, d) = (tau.numerator() as i64, Tau::DENOMINATOR as i64);
        let total = lengths.total() as i64;
        // The integers strictly between tau |A| and |A| / tau.
        let totals = (t * total / d + 1 - SLACK, (d * total + t - 1) / t - 1 + SLACK);
        let mut values = [0; FEATURES_MAX];
        let count = features(lengths.as_slice().len());
        values.iter_mut().enumerate().take(count).for_each(|(m, value)| *value = lengths.feature(m));
        Self { lengths, features: values, total, totals, plus: d + t, minus: d - t }
    }

    /// Whether a content of `total` shingles may be a near-duplicate.
    #[must_use]
    pub fn admits_total(&self, total: u32) -> bool {
        (self.totals.0..=self.totals.1).contains(&i64::from(total))
    }

    /// Whether a content of these lengths may be a near-duplicate.
    #[must_use]
    pub fn admits(&self, lengths: &[u32]) -> bool {
        let mut total = 0;
        let mut apart = 0;
        for (a, b) in self.lengths.as_slice().iter().zip(lengths) {
            total += i64::from(*b);
            apart += (i64::from(*a) - i64::from(*b)).abs();
        }
        self.totals.0 <= total
            && total <= self.totals.1
            && self.plus * (apart - SLACK) <= self.minus * (self.total + total)
    }

    /// Whether a near-duplicate may have its vector in `bounds`.
    #[must_use]
    pub fn meets(&self, bounds: &Bounds) -> bool {
        let least = bounds.lo[0].max(self.totals.0);
        let most = bounds.hi[0].min(self.totals.1);
        if least > most {
            return false;
        }
        let budget = self.minus * (self.total + most) + self.plus * SLACK;
        let ranges = bounds.lo.iter().zip(&bounds.hi).zip(&self.features).take(bounds.features).skip(1);
        ranges.into_iter().all(|((lo, hi), value)| {
            // Signs make nothing larger than the total.
            let apart = (lo - value).max(value - hi);
            *lo <= most && -most <= *hi && lo <= hi && (apart <= 0 || self.plus * apart <= budget)
        })
    }
}
