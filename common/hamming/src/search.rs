//! Interpolation search in sorted keys, with a worst case of a few binary searches.
//!
//! Each round guesses the position of the wanted key from the keys at both ends, as if keys were evenly
//! spread. From the guess, the search gallops until it has enclosed the position. Its first step is the
//! square root of the range (Perl and Reingold, *Understanding the complexity of interpolation search*,
//! 1977). Evenly spread keys need about log log n rounds. But fingerprints cluster, and an adversary can make
//! every guess wrong. So the number of rounds is limited, and a binary search finishes the remaining range.
//!
//! Invariant: a search reads at most [`probes_max`] keys.

use std::ops::RangeInclusive;

/// Maximum number of interpolation rounds. If they are not enough, the keys are not evenly spread.
const ROUNDS: u32 = 3;
/// Maximum number of keys for which the search does not interpolate, because interpolation would gain
/// nothing.
const SMALL: usize = 32;

/// Maximum number of keys that a search among `keys` keys reads. Each round reads the keys at both ends, at
/// the guess, and at the steps of the gallop. The binary search reads further keys.
#[must_use]
pub fn probes_max(keys: usize) -> u32 {
    let log = usize::BITS - keys.leading_zeros();
    ROUNDS * (3 + log) + log + 1
}

/// The first of `len` positions of ascending keys whose key is at least `wanted`, or `len` if there is no
/// such key.
#[inline]
pub fn lower_bound_by(len: usize, wanted: u64, mut key: impl FnMut(usize) -> u64) -> usize {
    // Invariant: all keys before `low` are less than `wanted`, and all keys from `high` on are not.
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

/// The first position in ascending `keys` whose key is at least `wanted`, or the number of keys if there is
/// no such key.
#[must_use]
pub fn lower_bound(keys: &[u64], wanted: u64) -> usize {
    lower_bound_by(keys.len(), wanted, |at| keys[at])
}

/// The range of all possible keys that have the `leading` leading bits of `key`.
#[must_use]
pub fn prefix_range(key: u64, leading: u32) -> RangeInclusive<u64> {
    let others = u64::MAX.checked_shr(leading).unwrap_or(0);
    key & !others..=key | others
}

/// The part of ascending `keys` that has the `leading` leading bits of `key`.
#[must_use]
pub fn with_prefix(keys: &[u64], key: u64, leading: u32) -> &[u64] {
    let (lowest, highest) = prefix_range(key, leading).into_inner();
    let rest = &keys[lower_bound(keys, lowest)..];
    // Callers expect few keys with the prefix, so gallop from the start to find the end.
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

    /// Generates random keys, many equal keys, and keys near powers of two, where every guess is wrong.
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
        fn a_search_finds_what_a_scan_finds(
            keys in keys(),
            key: u64,
            near in 0..600usize,
            leading in 0..=64u32,
        ) {
            for key in [key, key % 50, keys.get(near).copied().unwrap_or(0)] {
                prop_assert_eq!(lower_bound(&keys, key), keys.iter().filter(|&&other| other < key).count());
                let range = prefix_range(key, leading);
                let is_same = |key: &u64| range.contains(key);
                let same: Vec<u64> = keys.iter().copied().filter(is_same).collect();
                prop_assert_eq!(with_prefix(&keys, key, leading), &same[..]);
            }
        }
    }

    #[test]
    fn the_number_of_probes_is_bounded_for_all_keys() {
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
                assert!(probes <= probes_max(keys.len()), "{probes} probes exceed the bound");
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
        assert!(mean < 14.0, "{mean} probes on average among a million even keys; binary search needs 20");
    }
}
