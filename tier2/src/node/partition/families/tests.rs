//! Tests of family keys against the definition of near-duplicates.

use std::collections::HashSet;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Builder;
use doppel_model::{Random, stable_hash64};
use proptest::prelude::*;

use super::*;
use crate::node::partition::candidates::band_keys;

/// Pages of one template of `words` words, with up to `own_max` words of their own from a vocabulary.
fn pages(
    random: &mut Random,
    count: usize,
    words: usize,
    (own_max, vocabulary): (usize, usize),
) -> Vec<Arc<Signature>> {
    let page = |random: &mut Random| {
        let mut tokens: Vec<u64> = (0..words as u64).map(|word| stable_hash64(&word.to_le_bytes())).collect();
        for _ in 0..random.index(own_max + 1) {
            let at = random.index(words);
            tokens[at] = random.index(vocabulary) as u64;
        }
        Arc::new(Builder::new().build(&tokens))
    };
    (0..count).map(|_| page(random)).collect()
}

/// Refines a band in the family that is near its entries, or in a new one.
fn refine(families: &mut Families, band: TableKey, sample: &[Arc<Signature>]) {
    if !families.refine(band, sample) {
        families.refine_in_new(band, sample, sample);
    }
}

/// Refines all bands of some pages, and splits lists at random. After each step, checks every two linked pages
/// for each refined band that they share: they meet in the family of the band, unless one is listed by band.
fn check(policy: Policy, seed: u64, words: usize, own: (usize, usize)) {
    let mut random = Random::new(seed);
    let band_seed = BandSeed(seed);
    let pages = pages(&mut random, 60, words, own);
    let bands = |page: &Arc<Signature>| band_keys(policy, band_seed, page);
    let is_linked = |x: usize, z: usize| policy.linked(&pages[x], &pages[z]);
    let linked: Vec<Vec<usize>> =
        (0..pages.len()).map(|x| (0..pages.len()).filter(|z| is_linked(x, *z)).collect()).collect();
    let mut families = Families::default();
    for step in 0..8 {
        let one = &pages[random.index(pages.len())];
        if step % 4 == 0 {
            let from = random.index(pages.len() - 10);
            let sample = &pages[from..from + 10];
            bands(one).iter().for_each(|band| refine(&mut families, *band, sample));
        } else {
            let keys = families.listing(policy.metric(), band_seed, one, bands(one)).keys;
            keys.iter().filter(|_| random.index(3) > 0).for_each(|key| families.split(*key));
        }
        let mut entry_keys: Vec<HashSet<TableKey>> = Vec::new();
        for page in &pages {
            let Listing { keys, shapes } = families.listing(policy.metric(), band_seed, page, bands(page));
            families.add_shapes(&shapes);
            entry_keys.push(keys.into_iter().collect());
        }
        for (x, linked) in pages.iter().zip(&linked) {
            let search_keys = families.search_keys(policy.metric(), band_seed, x, &bands(x));
            for z in linked {
                let (z, keys) = (&pages[*z], &entry_keys[*z]);
                let others = bands(z);
                for band in bands(x).iter().filter(|band| others.contains(band)) {
                    let meet = keys.contains(band) || search_keys.iter().any(|key| keys.contains(key));
                    assert!(meet, "{x:?} does not find {z:?}");
                }
            }
        }
    }
}

#[test]
fn entries_of_a_family_are_not_listed_by_band() {
    let policy: Policy = "jaccard:tau=0.8".parse().unwrap();
    let seed = BandSeed(1);
    let pages = pages(&mut Random::new(1), 60, 100, (3, 1 << 30));
    let mut families = Families::default();
    for page in &pages {
        band_keys(policy, seed, page).iter().for_each(|band| refine(&mut families, *band, &pages));
    }
    for page in &pages {
        let bands = band_keys(policy, seed, page);
        let keys = families.listing(policy.metric(), seed, page, bands.clone()).keys;
        assert!(bands.iter().all(|band| !keys.contains(band)));
    }
    // A page of another length than any partner of the family has no family keys.
    let tokens: Vec<u64> = (0..100_000).collect();
    let long = Arc::new(Builder::new().build(&tokens));
    let bands = band_keys(policy, seed, &long);
    let sample = std::slice::from_ref(&long);
    bands.iter().for_each(|band| refine(&mut families, *band, sample));
    assert_eq!(families.listing(policy.metric(), seed, &long, bands.clone()).keys, bands);
    assert!(families.search_keys(policy.metric(), seed, &long, &bands).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn a_search_finds_every_linked_entry(
        seed: u64,
        tau in prop::sample::select(vec!["0.5", "0.8", "0.9"]),
        (words, own_max) in prop::sample::select(vec![(20, 4), (60, 8), (110, 12), (240, 60)]),
        vocabulary in prop::sample::select(vec![3, 100, 1 << 30]),
    ) {
        check(format!("jaccard:tau={tau}").parse().unwrap(), seed, words, (own_max, vocabulary));
    }
}
