//! Enumerates bit patterns by their number of set bits. Used for choices of blocks and for the differences
//! within a distance.
//!
//! Invariant: each iterator yields every pattern of the requested width and weight exactly once.

/// Number of ways to choose `chosen` of `all` items. Returns `u64::MAX` if there are more ways.
#[must_use]
pub fn binomial(all: u32, chosen: u32) -> u64 {
    let Some(others) = all.checked_sub(chosen) else { return 0 };
    let mut ways = 1u128;
    for i in 1..=u128::from(chosen.min(others)) {
        // The product of `i` successive numbers is divisible by the product of the first `i` numbers.
        ways = ways * (u128::from(all) - i + 1) / i;
        if ways > u128::from(u64::MAX) {
            return u64::MAX;
        }
    }
    ways as u64
}

/// All patterns of `width` bits with exactly `weight` set bits, in ascending order.
pub fn of_weight(width: u32, weight: u32) -> impl Iterator<Item = u64> {
    let highest = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    let lowest = (weight <= width).then(|| highest & u64::MAX.checked_shr(64 - weight).unwrap_or(0));
    std::iter::successors(lowest, move |&pattern| {
        // Gosper's hack: the lowest group of ones carries its top bit upwards, and its other bits move to the
        // bottom.
        let low = pattern & pattern.wrapping_neg();
        let carried = pattern.checked_add(low)?;
        let fallen = (pattern ^ carried).checked_shr(low.trailing_zeros() + 2).unwrap_or(0);
        let next = carried | fallen;
        (pattern != 0 && next <= highest).then_some(next)
    })
}

/// All patterns of `width` bits with at most `distance` set bits. The empty pattern comes first.
pub fn up_to(width: u32, distance: u32) -> impl Iterator<Item = u64> {
    (0..=distance.min(width)).flat_map(move |weight| of_weight(width, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_occurs_once() {
        for width in 1..=12u32 {
            for weight in 0..=width + 1 {
                let all: Vec<u64> = (0..1u64 << width).filter(|p| p.count_ones() == weight).collect();
                assert_eq!(of_weight(width, weight).collect::<Vec<_>>(), all, "{width} {weight}");
                assert_eq!(all.len() as u64, binomial(width, weight));
            }
        }
        for weight in [0, 1, 2, 63, 64] {
            assert_eq!(of_weight(64, weight).count() as u64, binomial(64, weight));
            assert!(of_weight(64, weight).all(|p| p.count_ones() == weight));
        }
    }

    #[test]
    fn the_paper_states_the_same_number_of_probes() {
        assert_eq!(binomial(64, 3), 41_664);
        assert_eq!(up_to(64, 3).count(), 43_745);
        assert_eq!(binomial(64, 32), 1_832_624_140_942_590_534);
        assert_eq!(binomial(128, 64), u64::MAX);
    }
}
