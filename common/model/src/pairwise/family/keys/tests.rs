//! Tests of keys against the definition: contents that differ in few enough hashes meet under a key.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::Random;

/// A content whose differences are bits of a number. The bits below `rare` are rare differences.
fn differences(bits: u128, rare: u32, differing_max: u32) -> MemberDifferences {
    let mut first: Vec<Difference> = (0..128).filter(|bit| bits >> bit & 1 == 1).collect();
    let (all, of_rare) = (first.len() as u32, (bits & ((1 << rare) - 1)).count_ones());
    first.truncate((differing_max + DEPTH_MAX) as usize);
    MemberDifferences { first, rare: of_rare, ranked: all - of_rare, differing_max }
}

/// Splits lists at random. After each step, checks that every two contents which differ in at most
/// `differing_max` hashes meet.
fn check(contents: &[u128], rare: u32, differing_max: u32, seed: u64) {
    let mut random = Random::new(seed);
    let mut split: HashSet<u64> = HashSet::new();
    let contents: Vec<(u128, MemberDifferences)> =
        contents.iter().map(|bits| (*bits, differences(*bits, rare, differing_max))).collect();
    let shapes: BTreeSet<MemberShape> = contents.iter().map(|(_, of)| of.shape()).collect();
    for _ in 0..4 {
        let is_split = |key: u64| split.contains(&key);
        let entry_keys = contents.iter().map(|(_, of)| {
            let mut keys = Vec::new();
            let suffices = KeyMaker::new(0, seed, is_split, |key| keys.push(key)).add_entry_keys(of);
            suffices.then_some(keys)
        });
        let entry_keys: Vec<Option<Vec<u64>>> = entry_keys.collect();
        for (x, of_x) in &contents {
            let mut search: HashSet<u64> = HashSet::new();
            KeyMaker::new(0, seed, is_split, |key| _ = search.insert(key)).add_search_keys(of_x, &shapes);
            for ((z, _), keys) in contents.iter().zip(&entry_keys) {
                let Some(keys) = keys else { continue };
                if (x ^ z).count_ones() <= differing_max {
                    let meet = keys.iter().any(|key| search.contains(key));
                    assert!(meet, "{x:b} does not find {z:b} of {differing_max}");
                }
            }
        }
        let keys = entry_keys.into_iter().flatten().flatten();
        split.extend(keys.filter(|_| random.index(3) == 0));
    }
}

#[test]
fn all_small_sets_meet() {
    let contents: Vec<u128> = (0..1 << 7).collect();
    for (rare, differing_max) in (0..=7).flat_map(|rare| (0..=5).map(move |max| (rare, max))) {
        check(&contents, rare, differing_max, u64::from(rare * 8 + differing_max));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn large_sets_meet(
        seed: u64,
        rare in prop::sample::select(vec![0_u32, 20, 60, 100]),
        differing_max in 0_u32..60,
    ) {
        let mut random = Random::new(seed);
        let mut contents = Vec::new();
        for _ in 0..4 {
            let mut bits: u128 = 0;
            (0..random.index(100)).for_each(|_| bits |= 1 << random.index(128));
            contents.push(bits);
            for _ in 0..10 {
                // As far away as possible: added, taken away, or both.
                let mut other = bits;
                let (added, taken) = (random.index(3), random.index(3));
                for _ in 0..4 * differing_max {
                    let bit = 1 << random.index(128);
                    let may_flip = if bits & bit == 0 { added > 0 } else { taken > 0 };
                    let flipped = other ^ bit;
                    if may_flip && (flipped ^ bits).count_ones() <= differing_max {
                        other = flipped;
                    }
                }
                contents.push(other);
            }
        }
        check(&contents, rare, differing_max, seed);
    }
}
