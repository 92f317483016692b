//! The part of length-vector space that can hold a near-duplicate, exactly.
//!
//! With a_i the shingles of A that begin in sub-dictionary i, and c = (1 - tau) / (1 + tau):
//! J(A, B) > tau means that A and B differ in fewer than c (|A| + |B|) shingles, so
//!
//! - sum_i |a_i - b_i| < c (|A| + |B|), and
//! - tau |A| < |B| < |A| / tau.
//!
//! A box can hold such a vector b only if the least value of sum_i (|a_i - b_i| - c b_i) over the box is
//! below c |A|. Each term falls by 1 + c per shingle up to a_i and rises by 1 - c after it, so without
//! the bounds on |B| the minimum is at b_i = clamp(a_i, lo_i, hi_i). Where that sum is outside the bounds
//! on |B|, shingles go or come at those same slopes, wherever the box leaves room: the minimum stays exact.
//!
//! All is counted on the stored sets and decided in integers, times the denominator of 1 + tau.

use super::LengthVector;
use super::length_vector::DIMENSIONS_MAX;
use crate::model::Tau;

/// Shingles by which every bound is widened: two different shingles of equal hash are one element of a
/// stored set, and two such accidents between two contents are already most unlikely.
const SLACK: i64 = 2;

/// A box of length-vector space, and the range of totals in it. Both ends belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub(super) lo: [u32; DIMENSIONS_MAX + 1],
    pub(super) hi: [u32; DIMENSIONS_MAX + 1],
    dimensions: usize,
}

impl Bounds {
    /// The whole space.
    pub(super) fn all(dimensions: usize) -> Self {
        Self { lo: [0; DIMENSIONS_MAX + 1], hi: [u32::MAX; DIMENSIONS_MAX + 1], dimensions }
    }

    /// Smallest length per sub-dictionary.
    #[must_use]
    pub fn lo(&self) -> &[u32] {
        &self.lo[..self.dimensions]
    }

    /// Largest length per sub-dictionary; `u32::MAX` is no limit.
    #[must_use]
    pub fn hi(&self) -> &[u32] {
        &self.hi[..self.dimensions]
    }

    /// Smallest and largest total; `u32::MAX` is no limit.
    #[must_use]
    pub fn total(&self) -> (u32, u32) {
        (self.lo[self.dimensions], self.hi[self.dimensions])
    }

    /// The part where a feature is at most `at`, and the part where it is more.
    pub(super) fn split(&self, feature: usize, at: u32) -> (Self, Self) {
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
        Self { lengths, total, totals, plus: d + t, minus: d - t }
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
        let (lo, hi) = bounds.total();
        let (lo, hi) = (i64::from(lo).max(self.totals.0), i64::from(hi).min(self.totals.1));
        if lo > hi {
            return false;
        }
        let (mut least, mut most) = (0, 0);
        let (mut total, mut cost) = (0, 0);
        for ((a, l), h) in self.lengths.as_slice().iter().zip(bounds.lo()).zip(bounds.hi()) {
            if l > h {
                return false;
            }
            let nearest = i64::from((*a).clamp(*l, *h));
            total += nearest;
            cost += self.plus * (i64::from(*a) - nearest).abs() - self.minus * nearest;
            least += i64::from(*l);
            most += i64::from(*h);
        }
        if least > hi || most < lo {
            return false;
        }
        // A shingle less costs 1 + c, one more costs 1 - c, here times 1 + tau.
        cost += (self.plus + self.minus) * (total - hi).max(0);
        cost += (self.plus - self.minus) * (lo - total).max(0);
        cost <= self.minus * self.total + self.plus * SLACK
    }
}
