//! Tests that compare the recomputation with components computed from the definition.

use std::convert::Infallible;

use doppel_model::pairwise::{Features, Signer};
use doppel_model::signature::Builder;

use super::*;

/// Chains of contents. Each content differs from its neighbour in two words of 100.
fn chains(chains: u64, length: u64) -> Vec<Arc<Signature>> {
    let mut builder = Builder::new();
    let mut signatures = Vec::new();
    for chain in 0..chains {
        for at in 0..length {
            let word = |i: u64| chain * 1_000_000 + if i < 2 * at { 1_000 + i } else { i };
            let tokens: Vec<u64> = (0..100).map(|i| word(i).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            signatures.push(Arc::new(builder.build(&tokens)));
        }
    }
    signatures
}

fn found(
    policy: Policy,
    signatures: &[Option<Arc<Signature>>],
    first: usize,
    limit: usize,
) -> Vec<Vec<usize>> {
    let mut read = |number: usize| Ok::<_, Infallible>(signatures[number].clone());
    let Ok(components) = components_within(policy, signatures.len(), first, limit, &mut read);
    components
}

/// Components by definition: every pair is compared.
fn expected(policy: Policy, signatures: &[Option<Arc<Signature>>]) -> Vec<Vec<usize>> {
    let mut component: Vec<usize> = (0..signatures.len()).collect();
    for (i, a) in signatures.iter().enumerate() {
        for (j, b) in signatures.iter().enumerate().take(i) {
            let linked = a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| policy.linked(a, b));
            if linked && component[i] != component[j] {
                let (from, to) = (component[i], component[j]);
                component.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
            }
        }
    }
    let of = |c: usize| {
        let component = &component;
        (0..signatures.len()).filter(move |i| component[*i] == c && signatures[*i].is_some())
    };
    let mut all: Vec<Vec<usize>> = (0..signatures.len()).map(|c| of(c).collect()).collect();
    all.retain(|component| !component.is_empty());
    all
}

#[test]
fn components_match_the_definition_with_any_cache_limit() {
    let mut signatures: Vec<_> = chains(3, 12).into_iter().map(Some).collect();
    // Missing contents tear one chain apart.
    signatures[16..20].fill(None);
    let mut expected = expected(Policy::default(), &signatures);
    expected.sort();
    assert!(expected.len() > 3, "{expected:?}");
    for (limit, first) in [(usize::MAX, 0), (0, 30), (3_000, 17)] {
        let found = found(Policy::default(), &signatures, first, limit);
        assert!(first == 17 || found[0].contains(&first));
        assert!(found[1..].is_sorted_by_key(|component| std::cmp::Reverse(component.len())));
        let mut found = found;
        found.sort();
        assert_eq!(found, expected);
    }
}

/// Families whose members differ from a base, and from each other, in a few words, so that many pairs are
/// on either side of tau.
fn families(policy: Policy, seed: u64, count: u64) -> Vec<Arc<Signature>> {
    // Learnt from no content, so that all words have the same weight.
    let mut signer = Signer::learnt(policy, Vec::<Vec<u64>>::new());
    let mut state = seed;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut signature = |number: u64| {
        let family = below(3);
        let mut tokens: Vec<u64> = (0..100).map(|at| family * 1_000 + at).collect();
        for _ in 0..below(5) {
            tokens[below(100) as usize] = 1_000_000 * (1 + number) + below(1_000);
        }
        let tokens: Vec<u64> =
            tokens.into_iter().map(|t| (t + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let main = (!number.is_multiple_of(3)).then_some(&*tokens);
        Arc::new(signer.sign(Features {
            tokens: &tokens,
            site: Some(number % 2),
            main,
            terms: &tokens,
            lines: &tokens,
        }))
    };
    (0..count).map(&mut signature).collect()
}

#[test]
fn components_near_the_threshold_match_the_definition() {
    for policy in [
        "jaccard",
        "supershingle:equal=1",
        "projection:agreeing=361",
        "combined:equal=1,agreeing=300",
        "by-site:across=361,equal=1,agreeing=300",
        "simhash:differing=6",
        "imatch:idf-from=0,idf-to=100",
        "content",
        "copies:text=0.9,within=0.92,across=0.88",
        "multi-simhash:lexicons=1,below=2",
        "overlap:lines=2,shared=48",
    ] {
        let policy: Policy = policy.parse().unwrap();
        let (mut torn, mut joined) = (0, 0);
        for seed in 0..60 {
            let signatures: Vec<_> = families(policy, seed, 40).into_iter().map(Some).collect();
            let mut expected = expected(policy, &signatures);
            expected.sort();
            let mut found = found(policy, &signatures, (seed % 40) as usize, usize::MAX);
            found.sort();
            assert_eq!(found, expected, "{policy}, seed {seed}");
            torn += usize::from(expected.len() > 3);
            let differs = |a: usize, b: usize| signatures[a] != signatures[b];
            joined += usize::from(
                expected.iter().any(|component| differs(component[0], component[component.len() - 1])),
            );
        }
        assert!(torn > 10, "{policy}: only {torn} collections had pairs beyond the threshold");
        assert!(joined > 10, "{policy}: only {joined} collections had pairs within it");
    }
}

/// The signature of a text of the given words. `salt` distinguishes texts with the same word numbers.
fn words(salt: u64, words: impl IntoIterator<Item = u64>) -> Arc<Signature> {
    let token = |word: u64| (salt * 1_000_000 + word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let tokens: Vec<u64> = words.into_iter().map(token).collect();
    Arc::new(Builder::new().build(&tokens))
}

/// The list in another order, which depends on the seed.
fn shuffled<T>(mut list: Vec<T>, seed: u64) -> Vec<T> {
    let mut state = seed;
    for at in (1..list.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        list.swap(at, (state >> 33) as usize % (at + 1));
    }
    list
}

/// Two stars are linked by a pair of outer contents. Each of the two is nearly at the distance from the other
/// star's center at which it would be excluded.
#[test]
fn a_link_between_outer_contents_of_two_stars_is_found() {
    let policy = Policy::default();
    let mut edges = 0;
    for salt in 0..40 {
        // One shingle decides that `front` and `whole` are linked. Each center is a little farther from the
        // other star.
        let whole = words(salt, 0..1_000);
        let front = words(salt, 0..808);
        let center_of_whole = words(salt, 2..1_000);
        let center_of_front = words(salt, (0..400).chain(401..808));
        let is_linked = |a, b| policy.linked(a, b);
        if !is_linked(&whole, &front)
            || !is_linked(&whole, &center_of_whole)
            || !is_linked(&front, &center_of_front)
        {
            continue;
        }
        assert!(!policy.similar(&front, &center_of_whole) && !policy.similar(&whole, &center_of_front));
        assert!(!policy.similar(&center_of_front, &center_of_whole));
        let apart = |a: &Signature, b: &Signature| 1.0 - policy.compare(a, b).similarity.as_f64();
        let gaps = [
            apart(&front, &center_of_whole) - apart(&center_of_whole, &whole),
            apart(&whole, &center_of_front) - apart(&center_of_front, &front),
        ];
        assert!(gaps.iter().all(|gap| (0.196..0.2).contains(gap)), "{gaps:?}");
        edges += 1;
        let signatures = [center_of_whole, center_of_front, whole, front].map(Some);
        for first in [0, 1] {
            assert_eq!(found(policy, &signatures, first, usize::MAX), [[0, 1, 2, 3]], "salt {salt}");
        }
    }
    assert!(edges > 30, "only {edges} texts have their bands in common");
}

#[test]
fn components_of_shuffled_chains_match_the_definition() {
    let changed = |at: u64| 5 + 12 * at;
    let mut torn = 0;
    for seed in 0..30 {
        // Each text differs from the previous one in `step` words of 1,000, so only neighbours are linked.
        let step = [11, 21][seed as usize % 2];
        let text = |chain: u64, at: u64| {
            let is_changed = |word: u64| word % 12 == 5 && word < changed(at * step);
            let word = |word: u64| chain * 10_000 + if is_changed(word) { 5_000 + word } else { word };
            words(seed, (0..1_000).map(word))
        };
        let length = 80 / step + 1;
        let mut texts: Vec<_> = (0..3).flat_map(|chain| (0..length).map(move |at| (chain, at))).collect();
        texts = shuffled(texts, seed);
        let mut signatures: Vec<_> = texts.iter().map(|(chain, at)| Some(text(*chain, *at))).collect();
        let gone = texts.iter().position(|text| *text == (1, length / 2)).unwrap();
        signatures[gone] = None;
        let mut expected = expected(Policy::default(), &signatures);
        expected.sort();
        torn += usize::from(expected.len() > 3);
        for first in [0, seed as usize % signatures.len(), signatures.len() - 1] {
            let mut found = found(Policy::default(), &signatures, first, usize::MAX);
            found.sort();
            assert_eq!(found, expected, "seed {seed}, first {first}");
        }
    }
    assert!(torn >= 10, "only {torn} collections had a torn chain");
}

/// Pages of one template, which share many keys and are not near-duplicates.
#[test]
fn a_pair_with_many_keys_in_common_is_compared_once() {
    let policy: Policy = "overlap".parse().unwrap();
    let mut signer = Signer::new(policy);
    let mut page = |page: u64| {
        let own = (0..400).map(|line| 1_000_000 * page + line);
        let lines: Vec<u64> =
            (0..40).chain(own).map(|line| (line + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        Arc::new(signer.sign(Features { tokens: &lines, lines: &lines, ..Features::default() }))
    };
    let pages: Vec<_> = (1..41).map(&mut page).collect();
    assert_eq!(pages[0].shared_with(&pages[1]), 10);
    let mut reads = 0;
    let mut read = |number: usize| {
        reads += 1;
        Ok::<_, Infallible>(Some(Arc::clone(&pages[number])))
    };
    // The cache keeps nothing, so every comparison reads a signature.
    let Ok(found) = components_within(policy, pages.len(), 0, 0, &mut read);
    assert_eq!(found.len(), pages.len());
    // A pair is compared once during the assignment, and once when stars are linked.
    let pairs = pages.len() * (pages.len() - 1) / 2;
    assert!(reads >= pairs && reads <= 2 * pairs + 3 * pages.len(), "{reads} reads for {pairs} pairs");
}
