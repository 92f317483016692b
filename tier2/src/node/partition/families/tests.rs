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

/// Refines and splits at random, and checks that every linked pair meets after each step.
fn check(policy: Policy, seed: u64, words: usize, own: (usize, usize)) {
    let mut random = Random::new(seed);
    let band_seed = BandSeed(seed);
    let pages = pages(&mut random, 60, words, own);
    let bands = |page: &Arc<Signature>| band_keys(policy, band_seed, page);
    let mut families = Families::default();
    for step in 0..12 {
        let one = &pages[random.index(pages.len())];
        let keys = families.entry_keys(policy.metric(), band_seed, one, bands(one));
        if step % 4 == 0 {
            let from = random.index(pages.len() - 10);
            let bands = bands(one);
            families.refine(bands[random.index(bands.len())], &pages[from..from + 10]);
        } else {
            keys.iter().filter(|_| random.index(3) > 0).for_each(|key| families.split(*key));
        }
        let entry_keys: Vec<HashSet<TableKey>> = pages
            .iter()
            .map(|page| {
                families.entry_keys(policy.metric(), band_seed, page, bands(page)).into_iter().collect()
            })
            .collect();
        for x in &pages {
            let mut search_keys = bands(x);
            search_keys.extend(families.search_keys(policy.metric(), band_seed, x, &bands(x)));
            for (z, keys) in pages.iter().zip(&entry_keys) {
                if policy.similar(x, z) && policy.linked(x, z) {
                    assert!(search_keys.iter().any(|key| keys.contains(key)), "{x:?} does not find {z:?}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_search_finds_every_linked_entry(
        seed: u64,
        tau in prop::sample::select(vec!["0.5", "0.8", "0.9"]),
        words in 20_usize..120,
        own_max in 1_usize..12,
        vocabulary in prop::sample::select(vec![3, 100, 1 << 30]),
    ) {
        check(format!("jaccard:tau={tau}").parse().unwrap(), seed, words, (own_max, vocabulary));
    }
}

#[test]
fn classes_cover_all_numbers() {
    let mut next = 0;
    for _ in 0..60 {
        let class = CountClass::of(next);
        assert_eq!(class.first, next);
        assert!(
            (class.first..=class.last())
                .step_by(1 + class.width as usize / 5)
                .all(|count| CountClass::of(count) == class)
        );
        next = class.last() + 1;
    }
    assert!(next > 1 << 16);
}
