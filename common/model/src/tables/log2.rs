//! The binary logarithm of a fraction, in integers, so that all machines agree on every bit of it.

use super::WEIGHT_BITS;

/// Bits behind the point while it is computed.
const POINT: u32 = 62;

/// log2(n / d) in units of 2^-[`WEIGHT_BITS`], rounded down, up to the last unit; 0 where n is not above d, or d is 0.
///
/// The whole part is the number of doublings of d below n. Then each squaring of the rest gives one more bit.
#[must_use]
pub fn log2(n: u64, d: u64) -> u32 {
    if d == 0 || n <= d {
        return 0;
    }
    let (n, d) = (u128::from(n), u128::from(d));
    let mut whole = n.ilog2() - d.ilog2();
    if d << whole > n {
        whole -= 1;
    }
    // From 1 to below 2.
    let mut rest = (n << POINT) / (d << whole);
    let mut log = whole;
    for _ in 0..WEIGHT_BITS {
        rest = (rest * rest) >> POINT;
        let bit = (rest >> (POINT + 1)) as u32 & 1;
        rest >>= bit;
        log = log << 1 | bit;
    }
    log
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_logarithm_within_two_units(n in 1..=1_u64 << 33, d in 1..=1_u64 << 33) {
            let expected = (n as f64 / d as f64).log2().max(0.0) * f64::from(1 << WEIGHT_BITS);
            prop_assert!((f64::from(log2(n, d)) - expected).abs() < 2.0, "{} {}", log2(n, d), expected);
        }
    }

    #[test]
    fn powers_of_two_are_exact_and_the_rest_is_the_same_everywhere() {
        let whole = |n: u32| n << WEIGHT_BITS;
        assert_eq!(
            [log2(8, 1), log2(96, 3), log2(5, 5), log2(2, 5), log2(1 << 40, 1)],
            [whole(3), whole(5), 0, 0, whole(40)]
        );
        assert_eq!([log2(3, 2), log2(20_001, 7), log2(7, 0)], [38_336, 752_381, 0]);
    }
}
