//! Interpolation search in sorted keys, which no keys make slower than a few binary searches.
//!
//! A round guesses the place from the keys at both ends, as if keys were spread evenly, and then gallops away from the
//! guess by the square root of the distance of the ends until the place is enclosed (Perl and Reingold, *Understanding
//! the complexity of interpolation search*, 1977). Even keys take about log log n rounds. Fingerprints cluster, and an
//! adversary can make every guess wrong, so the rounds are few and binary search ends what they leave.
//!
//! Invariant: a search reads at most [`probes_max`] keys.

/// After so many rounds keys are not even.
const ROUNDS: u32 = 3;
/// Below this many keys a guess gains nothing.
const SMALL: usize = 32;

/// The most keys that a search among so many reads: each round two ends, a guess and the gallop, then the binary search.
#[must_use]
pub fn probes_max(keys: usize) -> u32 {
    let log = usize::BITS - keys.leading_zeros();
    ROUNDS * (3 + log) + log + 1
}

/// The first place among `len` ascending keys that has one of at least `wanted`.
#[inline]
pub fn lower_bound_by(len: usize, wanted: u64, mut key: impl FnMut(usize) -> u64) -> usize {
    // All keys before `low` are less, none from `high` on is.
    let (mut low, mut high) = (0, len);
    for _ in 0..ROUNDS {
        if high - low <= SMALL {
            break;
        }
        let (first, last) = (key(low), key(high - 1));
        if wanted <= first {
            return low;
        }
        if wanted > last {
            return high;
        }
        let share = (wanted - first) as f64 / (last - first) as f64;
        let guess = (low + (share * (high - 1 - low) as f64) as usize).min(high - 1);
        let mut step = (high - low).isqrt();
        if key(guess) < wanted {
            low = guess + 1;
            while let Some(at) = low.checked_add(step).filter(|&at| at < high) {
                if key(at) >= wanted {
                    high = at;
                    break;
                }
                low = at + 1;
                step *= 2;
            }
        } else {
            high = guess;
            while let Some(at) = high.checked_sub(step).filter(|&at| at > low) {
                if key(at) < wanted {
                    low = at + 1;
                    break;
                }
                high = at;
                step *= 2;
            }
        }
    }
    while low < high {
        let middle = low.midpoint(high);
        if key(middle) < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The first place of ascending keys that has one of at least `wanted`.
#[must_use]
pub fn lower_bound(keys: &[u64], wanted: u64) -> usize {
    lower_bound_by(keys.len(), wanted, |at| keys[at])
}

/// The lowest and the highest key that have the same leading bits.
#[must_use]
pub fn prefix(key: u64, leading: u32) -> (u64, u64) {
    let others = u64::MAX.checked_shr(leading).unwrap_or(0);
    (key & !others, key | others)
}

/// Those of ascending keys that have the same leading bits.
#[must_use]
pub fn with_prefix(keys: &[u64], key: u64, leading: u32) -> &[u64] {
    let (lowest, highest) = prefix(key, leading);
    let rest = &keys[lower_bound(keys, lowest)..];
    // Few are expected, so the end is near.
    let mut reach = 16;
    while rest.get(reach).is_some_and(|&key| key <= highest) {
        reach *= 2;
    }
    &rest[..rest[..rest.len().min(reach)].partition_point(|&key| key <= highest)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Random keys, equal ones, and those that grow by powers, for which every guess is wrong.
    fn keys() -> impl Strategy<Value = Vec<u64>> {
        let even = prop::collection::vec(any::<u64>(), 0..600);
        let close = prop::collection::vec(0..50u64, 0..600);
        let powers =
            prop::collection::vec((0..64u32, 0..4u64).prop_map(|(b, more)| (1u64 << b) | more), 0..600);
        prop_oneof![even, close, powers].prop_map(|mut keys| {
            keys.sort_unstable();
            keys
        })
    }

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(keys in keys(), key: u64, near in 0..600usize, leading in 0..=64u32) {
            for key in [key, key % 50, keys.get(near).copied().unwrap_or(0)] {
                prop_assert_eq!(lower_bound(&keys, key), keys.iter().filter(|&&other| other < key).count());
                let (lowest, highest) = prefix(key, leading);
                let same: Vec<u64> = keys.iter().copied().filter(|k| (lowest..=highest).contains(k)).collect();
                prop_assert_eq!(with_prefix(&keys, key, leading), &same[..]);
            }
        }
    }

    #[test]
    fn the_number_of_probes_is_bounded() {
        let adversarial: [Vec<u64>; 4] = [
            (0..100_000).chain([u64::MAX]).collect(),
            [0].into_iter().chain((0..100_000).map(|i| u64::MAX - 100_000 + i)).collect(),
            (0..64).flat_map(|bit| (0..1_000).map(move |i| (1u64 << bit).saturating_add(i))).collect(),
            vec![7; 100_000],
        ];
        for mut keys in adversarial {
            keys.sort_unstable();
            for wanted in
                keys.iter().step_by(97).flat_map(|&key| [key.saturating_sub(1), key, key.saturating_add(1)])
            {
                let mut probes = 0;
                let at = lower_bound_by(keys.len(), wanted, |at| {
                    probes += 1;
                    keys[at]
                });
                assert_eq!(at, keys.partition_point(|&key| key < wanted));
                assert!(probes <= probes_max(keys.len()), "{probes} probes");
            }
        }
        let mut seed = 1u64;
        let mut even: Vec<u64> = (0..1_000_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                seed ^ seed >> 31
            })
            .collect();
        even.sort_unstable();
        let mut probes = 0;
        for &wanted in even.iter().step_by(1_001) {
            lower_bound_by(even.len(), wanted, |at| {
                probes += 1;
                even[at]
            });
        }
        let mean = f64::from(probes) / 1_000.0;
        assert!(mean < 14.0, "{mean} probes among a million even keys, where binary search needs 20");
    }
}
