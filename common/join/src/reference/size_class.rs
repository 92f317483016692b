//! Classes of sizes, so that a search skips all contents of a list that are too small or too large.

use doppel_model::Tau;

/// Number of classes for each doubling of the size, as a binary logarithm. The sizes of a class differ by at most
/// a thirty-second.
const CLASS_BITS: u32 = 5;

/// A class of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SizeClass(u32);

impl SizeClass {
    /// The class of a size.
    pub(super) fn of(size: u32) -> Self {
        let shift = (u32::BITS - size.leading_zeros()).saturating_sub(CLASS_BITS + 1);
        // The leading bits of the size are at least 2^CLASS_BITS in every class with a shift.
        Self((shift << CLASS_BITS) + (size >> shift))
    }

    /// The least and the greatest size of the class.
    fn bounds(self) -> (u32, u32) {
        let shift = (self.0 >> CLASS_BITS).saturating_sub(1);
        let leading = self.0 - (shift << CLASS_BITS);
        (leading << shift, (leading << shift) + ((1 << shift) - 1))
    }

    /// Whether a set of `size` hashes may have a near-duplicate of this class that shares at most `shared_max` hashes
    /// with it.
    pub(super) fn may_have_partner(self, tau: Tau, size: u32, shared_max: u32) -> bool {
        let (least, greatest) = self.bounds();
        // The coefficient is greatest for a partner that consists of shared hashes alone, or else for the smallest one.
        let other = shared_max.clamp(least, greatest);
        tau.exceeded_by(shared_max.min(other).into(), size.into(), other.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn classes_are_in_the_order_of_sizes_and_have_their_bounds() {
        let mut last = SizeClass::of(0);
        for size in 0..100_000 {
            let class = SizeClass::of(size);
            let (least, greatest) = class.bounds();
            assert!(class >= last && (least..=greatest).contains(&size), "{size} is in {class:?}");
            assert!(
                f64::from(greatest) <= 1.04 * f64::from(least),
                "{class:?} has sizes from {least} to {greatest}"
            );
            last = class;
        }
        let (least, greatest) = SizeClass::of(u32::MAX).bounds();
        assert!(least < greatest && greatest == u32::MAX);
    }

    proptest! {
        #[test]
        fn a_class_is_skipped_only_if_none_of_its_sizes_can_be_a_partner(
            size in 1..500_u32, other in 1..500_u32, shared_max in 0..500_u32, tau in prop::sample::select(vec!["0.3", "0.8", "0.95"]),
        ) {
            let tau: Tau = tau.parse().unwrap();
            let (least, greatest) = SizeClass::of(other).bounds();
            let can_be = |other: u32| tau.exceeded_by(shared_max.min(other).into(), size.into(), other.into());
            prop_assert_eq!(SizeClass::of(other).may_have_partner(tau, size, shared_max), (least..=greatest).any(can_be));
        }
    }
}
