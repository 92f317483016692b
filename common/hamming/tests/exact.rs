//! Checks that every search of the crate returns what a comparison with every fingerprint returns.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use doppel_hamming::naive::{FullScan, Neighbours, Probes, neighbours};
use doppel_hamming::{
    CompressedFingerprints, Design, FingerprintIndex, HammingError, IndexOptions, Match, NearPair,
    QueryBatch, Storage,
};
use proptest::prelude::*;
use proptest::sample::Index as Choice;

/// The designs to test: width, distance, and splits.
const DESIGNS: [(u32, u32, &[u32]); 12] = [
    (64, 3, &[6]),
    (64, 3, &[4, 4]),
    (64, 3, &[5]),
    (64, 3, &[4]),
    (64, 3, &[]),
    (64, 1, &[3]),
    (64, 0, &[1]),
    (32, 3, &[4]),
    (32, 2, &[3, 3]),
    (32, 5, &[7]),
    (20, 3, &[5]),
    (8, 2, &[3]),
];

fn design() -> impl Strategy<Value = Design> {
    prop::sample::select(&DESIGNS)
        .prop_map(|(width, distance, splits)| Design::new(width, distance, splits).unwrap())
}

fn low(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Generates 64-bit fingerprints: random ones, clusters, common leading or trailing bits, and values at the
/// ends of the range.
fn fingerprints(max: usize) -> impl Strategy<Value = Vec<u64>> {
    let random = prop::collection::vec(any::<u64>(), 0..max);
    let flips = || prop::collection::vec(0..64u32, 0..6);
    let near = move |centers: Vec<u64>| {
        prop::collection::vec((prop::sample::select(centers), flips()), 0..max).prop_map(|near| {
            near.into_iter().map(|(center, flips)| flips.iter().fold(center, |f, bit| f ^ 1 << bit)).collect()
        })
    };
    let clustered = prop::collection::vec(any::<u64>(), 1..5).prop_flat_map(near);
    let ends =
        Just(vec![0, u64::MAX, u64::MAX << 32, u64::MAX >> 32, 0x5555_5555_5555_5555]).prop_flat_map(near);
    let prefix = (any::<u64>(), prop::collection::vec(0..400u64, 0..max))
        .prop_map(|(high, low)| low.into_iter().map(|low| high << 16 | low).collect());
    let suffix = (any::<u64>(), prop::collection::vec(0..400u64, 0..max))
        .prop_map(|(low, high)| high.into_iter().map(|high| low >> 16 | high << 48).collect());
    prop_oneof![random, clustered, ends, prefix, suffix]
}

/// Generates queries near the stored fingerprints, and other queries.
fn queries(stored: &[u64], more: &[u64], width: u32) -> Vec<u64> {
    let near = stored.iter().step_by(7).enumerate().map(|(i, f)| f ^ (0b1011 << (i % 60)) & low(width));
    let all = stored.iter().step_by(5).copied().chain(near).chain(more.iter().map(|f| f & low(width)));
    all.map(|f| f & low(width)).collect()
}

#[derive(Clone, Debug)]
enum Action {
    Insert(u64, u64),
    /// Inserts a fingerprint that was inserted before, or a fingerprint near it.
    Again(Choice, u64, u32),
    Remove(Choice, u64),
    RemoveAll(Choice),
    Flush,
    Compact,
    Query(Choice, u32, u32),
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = |fingerprints: Vec<u64>| {
        let one = prop::sample::select(fingerprints);
        prop_oneof![
            6 => (one, 0..3u64).prop_map(|(f, id)| Action::Insert(f, id)),
            3 => (any::<Choice>(), 0..3u64, 0..64u32).prop_map(|(c, id, bit)| Action::Again(c, id, bit)),
            3 => (any::<Choice>(), 0..3u64).prop_map(|(c, id)| Action::Remove(c, id)),
            2 => any::<Choice>().prop_map(Action::RemoveAll),
            1 => Just(Action::Flush),
            1 => (0..8u8).prop_map(|n| if n == 0 { Action::Compact } else { Action::Flush }),
            4 => (any::<Choice>(), 0..64u32, 0..6u32).prop_map(|(c, bit, d)| Action::Query(c, bit, d)),
        ]
    };
    fingerprints(200)
        .prop_filter("at least one", |f| !f.is_empty())
        .prop_flat_map(move |f| prop::collection::vec(action(f), 1..250))
}

fn options() -> impl Strategy<Value = IndexOptions> {
    let storage = prop_oneof![Just(Storage::Plain), Just(Storage::Compressed)];
    (storage, 1..20usize, 1..5usize).prop_map(|(storage, recent, growth)| IndexOptions {
        storage,
        recent,
        growth,
    })
}

fn expected(model: &BTreeMap<u64, BTreeSet<u64>>, query: u64, distance: u32) -> Vec<Match> {
    let mut matches: Vec<Match> = model
        .iter()
        .map(|(&fingerprint, ids)| ((fingerprint ^ query).count_ones(), fingerprint, ids))
        .filter(|found| found.0 <= distance)
        .flat_map(|(distance, fingerprint, ids)| {
            ids.iter().map(move |&id| Match { distance, fingerprint, id })
        })
        .collect();
    matches.sort_unstable();
    matches
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn an_index_returns_what_a_scan_returns(design in design(), options in options(), actions in actions()) {
        let width = design.width();
        let most = design.distance();
        let mut index = FingerprintIndex::new(design, options).unwrap();
        let mut model: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let mut inserted = vec![0];
        for action in actions {
            match action {
                Action::Insert(f, id) => {
                    let f = f & low(width);
                    inserted.push(f);
                    prop_assert_eq!(index.insert(f, id).unwrap(), model.entry(f).or_default().insert(id));
                }
                Action::Again(choice, id, bit) => {
                    let f = choice.get(&inserted) ^ if bit < width.min(40) { 1 << bit } else { 0 };
                    inserted.push(f);
                    prop_assert_eq!(index.insert(f, id).unwrap(), model.entry(f).or_default().insert(id));
                }
                Action::Remove(choice, id) => {
                    let f = *choice.get(&inserted);
                    let is_removed = model.get_mut(&f).is_some_and(|ids| ids.remove(&id));
                    prop_assert_eq!(index.remove(f, id), is_removed);
                }
                Action::RemoveAll(choice) => {
                    let f = *choice.get(&inserted);
                    for id in model.remove(&f).unwrap_or_default() {
                        prop_assert!(index.remove(f, id));
                    }
                }
                Action::Flush => index.flush(),
                Action::Compact => {
                    index.compact();
                    prop_assert_eq!(index.size().dead, 0);
                    prop_assert!(index.size().runs <= 1);
                }
                Action::Query(choice, bit, distance) => {
                    let query = choice.get(&inserted) ^ if bit < width { 1 << bit } else { 0 };
                    let all = expected(&model, query, distance.min(most));
                    prop_assert_eq!(index.within(query, distance, usize::MAX).unwrap(), all.clone());
                    let few = index.within(query, distance, 2).unwrap();
                    prop_assert_eq!(&few[..], &all[..all.len().min(2)]);
                }
            }
            let with_ids = model.values().filter(|ids| !ids.is_empty()).count();
            let size = index.size();
            prop_assert_eq!(size.fingerprints, with_ids);
            prop_assert!(size.dead <= options.recent.max((size.fingerprints + size.dead) / 4));
        }
    }

    #[test]
    fn all_search_methods_agree(
        design in design(),
        stored in fingerprints(400),
        more in fingerprints(20),
        compressed: bool,
    ) {
        let (width, distance) = (design.width(), design.distance());
        let stored: Vec<u64> = stored.iter().map(|f| f & low(width)).collect();
        let scan = FullScan::new(stored.iter().copied());
        let probes = Probes::new(width, stored.iter().copied()).unwrap();
        let few = || stored.iter().copied().take(20);
        let table = Neighbours::new(width, distance.min(2), few()).unwrap();
        let storage = if compressed { Storage::Compressed } else { Storage::Plain };
        let options = IndexOptions { storage, ..IndexOptions::default() };
        let index = FingerprintIndex::build(design, options, stored.iter().copied().zip(0..)).unwrap();
        for (number, query) in queries(&stored, &more, width).into_iter().enumerate() {
            let near = scan.within(query, distance);
            let matches = index.within(query, distance, usize::MAX).unwrap();
            let mut found: Vec<u64> = matches.iter().map(|found| found.fingerprint).collect();
            found.sort_unstable();
            found.dedup();
            prop_assert_eq!(&found, &near);
            // Probing all neighbours takes long, so test only some queries.
            if number % 16 == 0 && neighbours(width, distance) < 50_000 {
                prop_assert_eq!(probes.within(query, distance), near);
            }
            prop_assert_eq!(table.within(query), FullScan::new(few()).within(query, distance.min(2)));
        }
    }

    #[test]
    fn a_batch_finds_every_pair_once(
        design in design(),
        stored in fingerprints(3_000),
        more in fingerprints(60),
    ) {
        let (width, distance) = (design.width(), design.distance());
        let mut stored: Vec<u64> = stored.iter().map(|f| f & low(width)).collect();
        let mut queries = queries(&stored[..stored.len().min(200)], &more, width);
        queries.truncate(150);
        let pairs = |stored: &[u64]| {
            let of = |(number, query): (usize, &u64)| {
                let near = move |(_, f): &(u64, &u64)| (*f ^ query).count_ones() <= distance;
                let near = (0u64..).zip(stored).filter(near);
                near.map(move |(stored, _)| NearPair { query: number as u32, stored }).collect::<Vec<_>>()
            };
            queries.iter().enumerate().flat_map(of).collect::<Vec<_>>()
        };
        let batch = QueryBatch::with_design(design, &queries).unwrap();
        let chosen = QueryBatch::new(width, distance, &queries).unwrap();
        let all = pairs(&stored);
        prop_assert_eq!(batch.scan(&stored, usize::MAX).unwrap(), all.clone());
        prop_assert_eq!(chosen.scan(&stored, all.len()).unwrap(), all.clone());
        if let Some(limit) = all.len().checked_sub(1) {
            prop_assert_eq!(batch.scan(&stored, limit), Err(HammingError::Pairs { limit }));
        }
        stored.sort_unstable();
        let compressed = CompressedFingerprints::new(width, &stored).unwrap();
        prop_assert_eq!(batch.scan_compressed(&compressed, usize::MAX).unwrap(), pairs(&stored));
    }

    #[test]
    fn compressed_fingerprints_are_restored(width in 1..=64u32, stored in fingerprints(3_000)) {
        let mut stored: Vec<u64> = stored.iter().map(|f| f & low(width)).collect();
        stored.sort_unstable();
        let compressed = CompressedFingerprints::new(width, &stored).unwrap();
        let mut restored = Vec::new();
        for block in 0..compressed.blocks() {
            prop_assert_eq!(compressed.block_start(block), restored.len());
            compressed.decode_block(block, &mut restored);
        }
        prop_assert_eq!(compressed.len(), stored.len());
        prop_assert_eq!(restored, stored);
    }
}

#[test]
fn a_batch_finds_pairs_in_several_chunks() {
    // The stored fingerprints fill more than two chunks of a parallel scan, with pairs in each chunk.
    let mut seed = 5u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed ^ seed >> 29
    };
    let stored: Vec<u64> = (0..600_000).map(|_| random()).collect();
    let queries: Vec<u64> = stored.iter().step_by(9_973).map(|f| f ^ 0x8000_0100_0000_0001).collect();
    let batch = QueryBatch::new(64, 3, &queries).unwrap();
    let pairs = batch.scan(&stored, 1_000).unwrap();
    let expected: Vec<NearPair> =
        (0..queries.len() as u32).map(|query| NearPair { query, stored: u64::from(query) * 9_973 }).collect();
    assert_eq!(pairs, expected);
}

#[test]
fn a_search_can_end_early() {
    let design = Design::new(64, 3, &[4]).unwrap();
    for storage in [Storage::Plain, Storage::Compressed] {
        let options = IndexOptions { storage, recent: 100, ..IndexOptions::default() };
        let mut index = FingerprintIndex::new(design.clone(), options).unwrap();
        for id in 0..150 {
            index.insert(id % 2, id).unwrap();
        }
        index.flush();
        let mut seen = 0;
        let flow = index.search(0, 3, |_| {
            seen += 1;
            if seen == 80 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((flow, seen), (Ok(ControlFlow::Break(())), 80));
    }
}

#[test]
fn invalid_input_is_rejected() {
    let design = Design::new(32, 3, &[4]).unwrap();
    let wide = HammingError::Fingerprint { fingerprint: 1 << 32, width: 32 };
    let mut index = FingerprintIndex::new(design.clone(), IndexOptions::default()).unwrap();
    assert_eq!(index.insert(1 << 32, 1), Err(wide.clone()));
    assert_eq!(index.within(1 << 32, 3, 10), Err(wide.clone()));
    assert!(!index.remove(1 << 32, 1));
    assert_eq!(QueryBatch::new(32, 3, &[1 << 32]).unwrap_err(), wide);
    assert_eq!(CompressedFingerprints::new(32, &[1 << 32]).unwrap_err(), wide);
    assert_eq!(CompressedFingerprints::new(32, &[2, 1]).unwrap_err(), HammingError::Order(1));
    let none = IndexOptions { recent: 0, ..IndexOptions::default() };
    assert_eq!(FingerprintIndex::new(design.clone(), none).unwrap_err(), HammingError::Recent(0));
    let never = IndexOptions { growth: 0, ..IndexOptions::default() };
    assert_eq!(FingerprintIndex::new(design, never).unwrap_err(), HammingError::Growth(0));
    let neighbours = HammingError::Neighbours(43_745 * 5_000);
    assert_eq!(Neighbours::new(64, 3, 0..5_000).unwrap_err(), neighbours);
}

#[test]
fn random_fingerprints_compress_to_the_expected_ratio() {
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed ^ seed >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd)
    };
    let mut uniform: Vec<u64> = (0..400_000).map(|_| random()).collect();
    uniform.sort_unstable();
    uniform.dedup();
    let ratio = CompressedFingerprints::new(64, &uniform).unwrap().ratio();
    let computed = doppel_hamming::expected_ratio(64, uniform.len() as u64).unwrap().memory;
    assert!((ratio / computed - 1.0).abs() < 0.005, "measured {ratio}, computed {computed}");
    // Add fingerprints that differ from others in few low bits.
    let near = |(at, f): (usize, &u64)| [*f, f ^ 1 << (at % 30), f ^ 0b101 << (at % 20)];
    let mut clustered: Vec<u64> = uniform.iter().step_by(3).enumerate().flat_map(near).collect();
    clustered.sort_unstable();
    let less = CompressedFingerprints::new(64, &clustered).unwrap().ratio();
    assert!(less < ratio * 0.8, "ratio {less} with clusters, {ratio} without");
}

/// Batches that are larger than the cache reorder the stored fingerprints.
#[test]
fn a_large_batch_finds_every_pair_once() {
    let mut seed = 3u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed ^ seed >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd)
    };
    for (width, distance, splits) in [(64, 3, &[5][..]), (32, 2, &[3]), (64, 3, &[]), (11, 1, &[2])] {
        let mut near = |f: u64| f ^ 1 << (random() % 64) ^ 1 << (random() % 64);
        let mut stored: Vec<u64> = (0..40).map(|_| near(0x0123_4567_89ab_cdef) & low(width)).collect();
        let mut queries: Vec<u64> = (0..64).map(|at| near(stored[at % 30]) & low(width)).collect();
        let mut others = |count: usize| (0..count).map(|_| near(0) & low(width)).collect::<Vec<_>>();
        stored.extend(others(100));
        queries.extend(others(500));
        stored.extend((0..260).map(|_| random() & low(width)));
        queries.extend((0..70_000).map(|_| random() & low(width)));
        stored.sort_unstable();
        let expected: BTreeSet<NearPair> = (0u32..)
            .zip(&queries)
            .flat_map(|(query, of)| {
                let near = (0u64..).zip(&stored).filter(move |(_, f)| (*f ^ of).count_ones() <= distance);
                near.map(move |(stored, _)| NearPair { query, stored })
            })
            .collect();
        let batch = QueryBatch::with_design(Design::new(width, distance, splits).unwrap(), &queries).unwrap();
        let compressed = CompressedFingerprints::new(width, &stored).unwrap();
        for pairs in [batch.scan(&stored, usize::MAX), batch.scan_compressed(&compressed, usize::MAX)] {
            assert!(pairs.unwrap().iter().eq(&expected), "width {width}, splits {splits:?}");
        }
        let limit = expected.len() - 1;
        assert_eq!(batch.scan(&stored, limit), Err(HammingError::Pairs { limit }));
    }
}

/// Section 3 of the paper: with a plain table of all fingerprints, distance 3 in 64 bits takes 41,664 probes.
#[test]
fn the_number_of_naive_probes_matches_the_paper() {
    let query = 0x0123_4567_89ab_cdef_u64;
    let probes: Vec<u64> = Probes::new(64, [query]).unwrap().probes(query, 3).collect();
    let at = |distance: u32| probes.iter().filter(|probe| (*probe ^ query).count_ones() == distance).count();
    assert_eq!([0, 1, 2, 3].map(at), [1, 64, 2_016, 41_664]);
    assert_eq!((probes.len(), probes.iter().collect::<BTreeSet<_>>().len()), (43_745, 43_745));
}
