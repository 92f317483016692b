//! The result of comparing two contents: their similarity as an exact fraction, and F.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// The similarity of two contents as an exact fraction: the units that both share, divided by all units.
///
/// The policy chooses the units. For `jaccard` these are the shingles in both contents, and in at least one.
/// Other policies count supershingles, bits, or fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Similarity {
    /// Number of units that both contents share.
    pub shared: u32,
    /// Number of all units. 0 only if neither content has any.
    pub of: u32,
}

impl Similarity {
    /// The similarity of two equal contents of this size.
    #[must_use]
    pub const fn of_copies(size: u32) -> Self {
        Self { shared: size, of: size }
    }

    /// The fraction as a number from 0 to 1. It is 1 if neither content has any units.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        if self.of == 0 { 1.0 } else { f64::from(self.shared) / f64::from(self.of) }
    }

    /// The distance, which is 1 minus the similarity, in units of 1 / `parts`. Returns it rounded down, and
    /// rounded up.
    #[inline]
    #[must_use]
    pub fn distance(self, parts: u64) -> (u64, u64) {
        let of = u64::from(self.of).max(1);
        let apart = parts * u64::from(self.of.saturating_sub(self.shared));
        (apart / of, apart.div_ceil(of))
    }

    /// Compares two similarities exactly, as fractions.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        let fraction =
            |one: Self| if one.of == 0 { (1, 1) } else { (u64::from(one.shared), u64::from(one.of)) };
        let ((a, a_of), (b, b_of)) = (fraction(self), fraction(other));
        (a * b_of).cmp(&(b * a_of))
    }
}

/// The result of comparing two contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The similarity of the contents, as the policy measures it.
    pub similarity: Similarity,
    /// Whether both have the same content hash.
    pub same_content: bool,
    /// F: whether the contents are near-duplicates.
    pub similar: bool,
}

impl Comparison {
    /// The result for two different contents that share `shared` of `of` units.
    pub(in crate::pairwise) fn new(shared: u32, of: u32, similar: bool) -> Self {
        Self { similarity: Similarity { shared, of }, same_content: false, similar }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similarities_are_compared_and_rounded_exactly() {
        let of = |shared, of| Similarity { shared, of };
        assert_eq!([of(3, 6), of(0, 9), of(4, 4), of(0, 0)].map(Similarity::as_f64), [0.5, 0.0, 1.0, 1.0]);
        assert_eq!(of(1, 3).compare(of(333_333, 1_000_000)), Ordering::Greater);
        assert_eq!(of(0, 0).compare(Similarity::of_copies(7)), Ordering::Equal);
        assert_eq!((of(1, 3).distance(255), of(1, 2).distance(10)), ((170, 170), (5, 5)));
        assert_eq!((of(2, 7).distance(10), of(0, 0).distance(9)), ((7, 8), (0, 0)));
    }
}
