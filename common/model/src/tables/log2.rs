//! The binary logarithm of a fraction, computed in integers, so that every machine gets the same bits.

use super::WEIGHT_BITS;

/// Number of fractional bits during the computation.
const POINT: u32 = 62;

/// Computes log2(n / d) in units of 2^-[`WEIGHT_BITS`], rounded down. The last unit may be wrong. Returns 0
/// if n is not above d, or if d is 0.
///
/// The whole part is the largest number of times that d can be doubled without exceeding n. Each squaring of
/// the rest then gives one more bit.
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
    // The rest is at least 1 and below 2.
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
        fn the_result_is_within_two_units_of_the_logarithm(n in 1..=1_u64 << 33, d in 1..=1_u64 << 33) {
            let expected = (n as f64 / d as f64).log2().max(0.0) * f64::from(1 << WEIGHT_BITS);
            prop_assert!((f64::from(log2(n, d)) - expected).abs() < 2.0, "{} {}", log2(n, d), expected);
        }
    }

    #[test]
    fn powers_of_two_are_exact_and_other_fractions_equal_their_golden_values() {
        let whole = |n: u32| n << WEIGHT_BITS;
        assert_eq!(
            [log2(8, 1), log2(96, 3), log2(5, 5), log2(2, 5), log2(1 << 40, 1)],
            [whole(3), whole(5), 0, 0, whole(40)]
        );
        assert_eq!([log2(3, 2), log2(20_001, 7), log2(7, 0)], [38_336, 752_381, 0]);
    }
}
