//! Checks that a map gives every content one home, and that the probed partitions contain all
//! near-duplicates.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::partition_map::{balance, cut};
use doppel_model::pairwise::Policy;
use doppel_model::signature::{BUCKETS, Builder, Signature};
use doppel_model::{Tau, stable_hash64};

fn tau(text: &str) -> Tau {
    text.parse().unwrap()
}

fn signature_of(words: &[u16]) -> Signature {
    let tokens: Vec<u64> = words.iter().map(|w| stable_hash64(&w.to_le_bytes())).collect();
    Builder::new().build(&tokens)
}

fn words() -> impl Strategy<Value = Vec<u16>> {
    prop_oneof![
        vec(0u16..300, 0..120),
        vec(0u16..4, 0..40),
        (0u16..9, 1usize..60).prop_map(|(w, n)| vec![w; n])
    ]
}

/// Families of texts: a base text and variants with a few words replaced, dropped or added.
fn families() -> impl Strategy<Value = Vec<Signature>> {
    let edits = vec((any::<prop::sample::Index>(), 0u8..3, 0u16..300), 0..6);
    vec((words(), vec(edits, 1..6)), 1..20).prop_map(|families| {
        let mut all = Vec::new();
        for (base, members) in families {
            for edits in members {
                let mut text = base.clone();
                for (at, kind, word) in edits {
                    match kind {
                        _ if text.is_empty() => text.push(word),
                        0 => *at.get_mut(&mut text) = word,
                        1 => drop(text.remove(at.index(text.len()))),
                        _ => text.insert(at.index(text.len()), word),
                    }
                }
                all.push(signature_of(&text));
            }
        }
        all
    })
}

fn taus() -> impl Strategy<Value = Tau> {
    prop::sample::select(vec!["0.5", "0.75", "0.8", "0.9", "0.9999"]).prop_map(tau)
}

/// Generates length vectors: a total, and a length for each half.
fn vectors(total: u32, dimensions: usize) -> impl Strategy<Value = Vec<u32>> {
    (0..total, vec(0.0..=1.0, dimensions - 1)).prop_map(|(total, shares)| {
        let half = |share: &f64| (share * f64::from(total)).round() as u32;
        std::iter::once(total).chain(shares.iter().map(half)).collect()
    })
}

fn features(lengths: &[u32]) -> Vec<i64> {
    let lengths = LengthVector::new(lengths).unwrap();
    (0..lengths.as_slice().len()).map(|m| lengths.feature(m)).collect()
}

/// The bound without slack: whether the vectors can belong to near-duplicates.
fn possible(a: &[u32], b: &[u32], tau: Tau) -> bool {
    let (total_a, total_b) = (u64::from(a[0]), u64::from(b[0]));
    let apart = features(a).iter().zip(features(b)).map(|(x, y)| x.abs_diff(y)).max().unwrap_or(0);
    // At most this many shingles are shared.
    let shared = (total_a + total_b).saturating_sub(apart) / 2;
    tau.exceeded_by(shared, total_a, total_b)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_near_duplicate_is_outside_the_probed_partitions(
        contents in families(),
        sample in 1usize..100,
        partitions in 1usize..40,
        dimensions in 1usize..=DIMENSIONS_MAX,
        tau in taus(),
    ) {
        let sample = &contents[..sample.min(contents.len())];
        let map = PartitionMap::learn(sample, partitions, tau, dimensions, 1).unwrap();
        prop_assert!((1..=partitions).contains(&map.partitions()));
        let lengths: Vec<LengthVector> = contents.iter().map(|s| map.lexicon().lengths(s)).collect();
        let mut probed_partitions = Vec::new();
        for (a, vector) in contents.iter().zip(&lengths) {
            prop_assert_eq!(vector.total(), u64::from(a.size()));
            map.probed_partitions(vector, &mut probed_partitions);
            prop_assert!(probed_partitions.is_sorted());
            prop_assert!(probed_partitions.contains(&map.home(vector)));
            let space = BoundingSpace::new(*vector, tau);
            for (b, other) in contents.iter().zip(&lengths) {
                let shared = a.shared_with(b).into();
                if tau.exceeded_by(shared, a.size().into(), b.size().into()) {
                    prop_assert!(probed_partitions.contains(&map.home(other)), "{:?} {:?}", vector, other);
                    prop_assert!(space.admits(other.as_slice()) && space.admits_total(b.size()));
                }
            }
        }
    }

    #[test]
    fn homes_agree_with_the_boxes(lengths in vec(vectors(90, 3), 2..60), more in vec(vectors(100, 3), 20)) {
        let vectors = lengths;
        let lengths: Vec<LengthVector> = vectors.iter().map(|v| LengthVector::new(v).unwrap()).collect();
        let space = |lengths: &LengthVector| BoundingSpace::new(*lengths, Tau::DEFAULT);
        let spaces: Vec<BoundingSpace> = lengths.iter().map(space).collect();
        let (nodes, _) = cut::grow(&lengths, &spaces, 3, 16, 1);
        let lexicon = Lexicon::unlearned(3).unwrap();
        let map = PartitionMap::from_nodes(lexicon, nodes, Some(Tau::DEFAULT), 1).unwrap();
        for lengths in vectors.iter().chain(&more).map(|v| LengthVector::new(v).unwrap()) {
            let holds = |b: &Bounds| (0..3).all(|m| (b.lo[m]..=b.hi[m]).contains(&lengths.feature(m)));
            let homes: Vec<usize> = (0..map.partitions()).filter(|p| holds(&map.bounds()[*p])).collect();
            prop_assert_eq!(homes, vec![map.home(&lengths).index()]);
        }
    }

    /// Compares `meets` with its definition, over every vector of a small box.
    #[test]
    fn a_space_meets_exactly_the_boxes_with_possible_near_duplicates(
        a in (1usize..=3).prop_flat_map(|dimensions| vectors(40, dimensions)),
        ranges in vec((-40i64..40, 0i64..30), 3),
        tau in taus(),
    ) {
        let lengths = LengthVector::new(&a).unwrap();
        let mut bounds = Bounds::all(a.len());
        for (m, (lo, size)) in ranges.iter().enumerate().take(a.len()) {
            (bounds.lo[m], bounds.hi[m]) = (*lo, lo + size);
        }
        let meets = BoundingSpace::new(lengths, tau).meets(&bounds);

        let mut vectors: Vec<Vec<u32>> = (0..90).map(|total| vec![total]).collect();
        for _ in 1..a.len() {
            let longer =
                |v: &Vec<u32>| (0..=v[0]).map(|half| [v.as_slice(), &[half]].concat()).collect::<Vec<_>>();
            vectors = vectors.iter().flat_map(longer).collect();
        }
        let inside = |b: &[u32]| {
            features(b).iter().enumerate().all(|(m, value)| (bounds.lo[m]..=bounds.hi[m]).contains(value))
        };
        let possible = vectors.iter().any(|b| inside(b) && possible(&a, b, tau));
        prop_assert!(meets || !possible);
    }

    /// What is admitted agrees with the bound, except for the slack of two shingles.
    #[test]
    fn admits_agrees_with_the_bound(
        (a, b) in (1usize..=8).prop_flat_map(|n| (vectors(200, n), vectors(200, n))),
        tau in taus(),
    ) {
        let space = BoundingSpace::new(LengthVector::new(&a).unwrap(), tau);
        let admitted = space.admits(&b);
        prop_assert!(admitted || !possible(&a, &b, tau));
        // The bound without slack, in real numbers, so only approximate at the boundary itself.
        let c = (1.0 - tau.as_f64()) / (1.0 + tau.as_f64());
        let apart = features(&a).iter().zip(features(&b)).map(|(x, y)| x.abs_diff(y)).max().unwrap();
        let beyond = apart as f64 - c * f64::from(a[0] + b[0]);
        prop_assert!(!admitted || beyond < 2.0 * (1.0 + c) + 1e-6, "{beyond}");
        prop_assert!(admitted || beyond > -1e-6, "{beyond}");
    }

    /// Two contents that differ in d shingles differ in each feature by at most d.
    #[test]
    fn features_differ_by_at_most_the_differing_shingles(
        a in words(),
        b in words(),
        dimensions in 1usize..=8,
    ) {
        let (a, b) = (signature_of(&a), signature_of(&b));
        let apart = a.size() + b.size() - 2 * a.shared_with(&b);
        let lexicon = Lexicon::unlearned(dimensions).unwrap();
        let (a, b) = (lexicon.lengths(&a), lexicon.lengths(&b));
        prop_assert!((0..dimensions).all(|m| (a.feature(m) - b.feature(m)).abs() <= apart.into()));
    }

    #[test]
    fn stored_maps_round_trip(contents in families(), partitions in 1usize..20, dimensions in 1usize..=4) {
        let map = PartitionMap::learn(&contents, partitions, Tau::DEFAULT, dimensions, 7).unwrap();
        let json = serde_json::to_string(&map).unwrap();
        prop_assert_eq!(serde_json::from_str::<PartitionMap>(&json).unwrap(), map);
    }

    #[test]
    fn damaged_stored_maps_are_errors(
        cuts in vec(prop::option::weighted(0.5, (0usize..6, any::<i64>())), 0..12),
    ) {
        let map = PartitionMap::one(3, Tau::DEFAULT).unwrap();
        let mut json = serde_json::to_value(&map).unwrap();
        json["cuts"] = cuts.iter().map(|c| match c {
            Some((feature, at)) => serde_json::json!({"feature": feature, "at": at}),
            None => serde_json::Value::Null,
        }).collect();
        if let Ok(map) = serde_json::from_value::<PartitionMap>(json) {
            let vector = map.lexicon().lengths(&signature_of(&[1, 2, 3]));
            prop_assert!(map.home(&vector).index() < map.partitions());
        }
    }
}

/// Pages of three artificial topics: each has its own words, among words that all topics share.
fn topical_pages() -> Vec<Signature> {
    let mut random = 1u64;
    let mut next = |below: u64| {
        random = stable_hash64(&random.to_le_bytes());
        random % below
    };
    let mut page = |topic: u64| {
        let length = 30 + next(300) as usize;
        let mut word =
            || if next(3) == 0 { next(200) as u16 } else { 1000 + (topic * 100 + next(60)) as u16 };
        (0..length).map(|_| word()).collect::<Vec<u16>>()
    };
    (0..900).map(|i| signature_of(&page(i % 3))).collect()
}

#[test]
fn learned_halves_separate_topics() {
    let pages = topical_pages();
    // The variance, over the pages, of a feature divided by the total.
    let spread = |lexicon: &Lexicon, m: usize| {
        let share = |p: &Signature| lexicon.lengths(p).feature(m) as f64 / f64::from(p.size());
        let mean = pages.iter().map(share).sum::<f64>() / pages.len() as f64;
        pages.iter().map(|p| (share(p) - mean).powi(2)).sum::<f64>() / pages.len() as f64
    };
    for dimensions in 2..=8 {
        let learned = Lexicon::learn(&pages, dimensions, 1).unwrap();
        let unlearned = Lexicon::unlearned(dimensions).unwrap();
        // Three topics differ in two directions.
        for (half, least) in (1..dimensions).zip([0.1, 0.05]) {
            assert!(spread(&learned, half) > 10.0 * spread(&unlearned, half), "{dimensions} {half}");
            assert!(spread(&learned, half) > least, "{dimensions} {half}");
        }
    }
}

#[test]
fn cuts_are_even_and_deterministic() {
    let pages = topical_pages();
    for (dimensions, partitions) in [(1, 8), (2, 16), (3, 13), (3, 16), (4, 16)] {
        let map = PartitionMap::learn(&pages, partitions, Tau::DEFAULT, dimensions, 1).unwrap();
        assert_eq!(map.partitions(), partitions);
        assert!(
            map.sample().load.imbalance() < 1.3,
            "{dimensions} {partitions} {}",
            map.sample().load.imbalance()
        );
        assert!(map.sample().load.fan_out_saved() > 0.3, "{}", map.sample().load.fan_out_saved());
        assert_eq!(PartitionMap::learn(&pages, partitions, Tau::DEFAULT, dimensions, 1).unwrap(), map);
    }
}

/// The search of the tree finds all boxes that the bounding space meets, and no other boxes.
#[test]
fn the_probed_partitions_have_the_boxes_that_the_bounding_space_meets() {
    let pages = topical_pages();
    for (dimensions, partitions, tau) in [(1, 8, "0.8"), (2, 13, "0.5"), (3, 40, "0.8"), (4, 16, "0.9")] {
        let map = PartitionMap::learn(&pages, partitions, self::tau(tau), dimensions, 1).unwrap();
        let all: Vec<LengthVector> = pages.iter().map(|page| map.lexicon().lengths(page)).collect();
        let (mut stored, mut received) = (vec![0; map.partitions()], vec![0; map.partitions()]);
        let mut probed = vec![PartitionIndex(u32::MAX)];
        for lengths in &all {
            let space = BoundingSpace::new(*lengths, map.tau());
            let is_met = |partition: &PartitionIndex| space.meets(&map.bounds()[partition.index()]);
            let expected: Vec<PartitionIndex> =
                PartitionIndex::first(map.partitions()).filter(is_met).collect();
            map.probed_partitions(lengths, &mut probed);
            assert_eq!(probed, expected, "{lengths:?}");
            stored[map.home(lengths).index()] += 1;
            expected.iter().for_each(|partition| received[partition.index()] += 1);
        }
        let load = MappingLoad { stored, received };
        assert!(load.received.iter().sum::<u64>() < (map.partitions() * pages.len()) as u64);
        assert_eq!(map.measure(&all), load);
        assert_eq!(map.sample().load, load);
    }
}

/// Half of the pages are near one another, and the others are far apart. The parts of the first half receive
/// more.
#[test]
fn the_work_of_parts_is_balanced() {
    let word = |n: u64, i: u64| (stable_hash64(&(n << 32 | i).to_le_bytes()) % 300) as u16;
    let text = |n: u64| (0..180 + n % 40).map(|i| word(n, i)).collect::<Vec<u16>>();
    let cluster = (0..450).map(|n| signature_of(&text(n)));
    let pages: Vec<Signature> = topical_pages().into_iter().step_by(2).chain(cluster).collect();
    let lexicon = Lexicon::learn(&pages, 3, 1).unwrap();
    let lengths: Vec<LengthVector> = pages.iter().map(|page| lexicon.lengths(page)).collect();
    let spaces: Vec<BoundingSpace> = lengths.iter().map(|l| BoundingSpace::new(*l, Tau::DEFAULT)).collect();
    let load = |(nodes, _)| {
        PartitionMap::from_nodes(lexicon.clone(), nodes, Some(Tau::DEFAULT), 1).unwrap().measure(&lengths)
    };
    let even = load(cut::grow(&lengths, &spaces, 3, 16, 1));
    let balanced = load(balance::learn(&lengths, &spaces, 3, PlanSize { nodes: 16, each: 1 }));
    assert!(balanced.imbalance() <= 1.1, "{balanced:?}");
    assert!(balanced.speed_up() > 1.02 * even.speed_up(), "{} {}", balanced.speed_up(), even.speed_up());
}

#[test]
fn equal_vectors_are_never_separated() {
    let mut pages = topical_pages();
    pages.truncate(60);
    pages.extend(std::iter::repeat_n(signature_of(&[5; 50]), 300));
    let map = PartitionMap::learn(&pages, 12, Tau::DEFAULT, 3, 1).unwrap();
    assert!((2..=12).contains(&map.partitions()), "{}", map.partitions());
    let same = PartitionMap::learn(&pages[60..], 12, Tau::DEFAULT, 3, 1).unwrap();
    assert_eq!(same.partitions(), 1);
    let none = PartitionMap::learn::<Signature>(&[], 12, Tau::DEFAULT, 3, 1).unwrap();
    assert_eq!(none.partitions(), 1);
}

/// For any sample, the map is defined, every content has its home among its probed partitions, and the map
/// can be stored and read back.
fn check_sound(sample: &[Signature], later: &[Signature], dimensions: usize) -> Plan {
    let plan = Plan::learn(sample, PlanSize { nodes: 16, each: 4 }, Tau::DEFAULT, dimensions, 1).unwrap();
    let map = plan.map();
    assert_eq!(map.sample().contents, sample.len() as u64);
    let mut probed_partitions = Vec::new();
    for signature in sample.iter().chain(later) {
        let lengths = map.lexicon().lengths(signature);
        map.probed_partitions(&lengths, &mut probed_partitions);
        assert!(probed_partitions.contains(&map.home(&lengths)));
    }
    let json = serde_json::to_string(map).unwrap();
    assert_eq!(serde_json::from_str::<PartitionMap>(&json).unwrap(), *map);
    plan
}

#[test]
fn degenerate_samples_give_sound_maps() {
    let others = topical_pages();
    let one_word =
        |lengths: std::ops::Range<usize>| lengths.map(|n| signature_of(&vec![7; n])).collect::<Vec<_>>();
    let one_length: Vec<Signature> =
        (0..200).map(|n| signature_of(&(n..n + 40).collect::<Vec<u16>>())).collect();
    for dimensions in [1, 3, 8] {
        // A text of one repeated word has at most 5 different shingles. All but the last shingles are in one
        // bucket.
        let repeated = check_sound(&one_word(1..300), &others, dimensions);
        assert!(repeated.map().partitions() <= 5, "{}", repeated.map().partitions());
        let constant = check_sound(&one_length, &others, dimensions);
        assert_eq!(constant.map().sample().constant_features().next(), Some(0));
        let partitions = constant.map().partitions();
        assert_eq!(
            partitions > 16,
            dimensions > 1,
            "several dimensions separate pages of one length by their words, one does not: {partitions}"
        );
        let empty = check_sound(&[], &others, dimensions);
        assert_eq!((empty.map().partitions(), empty.map().sample().features.len()), (1, 0));
        let blank = check_sound(&[signature_of(&[])], &others, dimensions);
        assert_eq!(blank.map().partitions(), 1);
        let ten = check_sound(&others[..10], &others, dimensions);
        assert!((2..=10).contains(&ten.map().partitions()));
    }
}

#[test]
fn drift_detects_contents_unlike_the_sample() {
    let pages = topical_pages();
    let (first, others): (Vec<_>, Vec<_>) = pages.into_iter().enumerate().partition(|(i, _)| i % 3 == 0);
    let [first, others] =
        [first, others].map(|pages| pages.into_iter().map(|(_, page)| page).collect::<Vec<_>>());
    let map = PartitionMap::learn(&first[..150], 16, Tau::DEFAULT, 3, 1).unwrap();
    let drift = |later: &[Signature]| {
        let lengths: Vec<LengthVector> = later.iter().map(|s| map.lexicon().lengths(s)).collect();
        map.sample().drift(&map.measure(&lengths)).unwrap()
    };
    assert!(!drift(&first[150..]).is_unlike(), "{:?}", drift(&first[150..]));
    assert!(drift(&others).is_unlike(), "{:?}", drift(&others));
    let mut changed = map.clone();
    changed.split(PartitionIndex(0), 0, 5).unwrap();
    changed.join(PartitionIndex(0)).unwrap();
    assert_eq!(
        changed.sample().drift(&map.sample().load),
        None,
        "the boxes have changed since the map was learned"
    );
}

#[test]
fn parameters_out_of_range_are_rejected() {
    assert_eq!(LengthVector::new(&[]), Err(MappingError::Dimensions(0)));
    assert_eq!(Lexicon::unlearned(9), Err(MappingError::Dimensions(9)));
    let learn =
        |partitions| PartitionMap::learn::<Signature>(&[], partitions, Tau::DEFAULT, 3, 1).map(|_| ());
    assert_eq!(learn(0), Err(MappingError::Partitions(0)));
    assert_eq!(learn(PARTITIONS_MAX + 1), Err(MappingError::Partitions(PARTITIONS_MAX + 1)));
    let lengths = LengthVector::new(&[4, 4, 5]);
    assert_eq!(lengths, Err(MappingError::Lengths { total: 4, length: 5 }));
}

#[test]
fn damaged_stored_lexicons_are_errors() {
    let json = serde_json::to_value(Lexicon::unlearned(3).unwrap()).unwrap();
    let with = |halves: &str| {
        let mut json = json.clone();
        json["halves"] = halves.into();
        serde_json::from_value::<Lexicon>(json).map_err(|error| error.to_string())
    };
    assert!(with("0123").unwrap_err().contains("4 bytes"));
    assert!(with(&"03".repeat(BUCKETS)).is_ok());
    for wrong in ["04", "13", "0G", "0A"] {
        let text = ["03".repeat(7), wrong.repeat(BUCKETS - 7)].concat();
        assert!(with(&text).unwrap_err().contains("bucket 7"), "{wrong}");
    }
    assert!(with(&format!("0\u{e9}{}", "0".repeat(2 * BUCKETS - 3))).unwrap_err().contains("bucket 0"));
}

#[test]
fn similar_contents_are_within_the_bound() {
    // Connects to `pairwise`: if F is true by similarity, the bound admits the pair at the policy's tau.
    let policy = Policy::default();
    let (a, b) = (signature_of(&(0..60).collect::<Vec<_>>()), signature_of(&(0..63).collect::<Vec<_>>()));
    assert!(policy.similar(&a, &b));
    let lexicon = Lexicon::unlearned(3).unwrap();
    assert!(BoundingSpace::new(lexicon.lengths(&a), policy.metric()).admits(lexicon.lengths(&b).as_slice()));
}
