//! Checks the join against a comparison of every pair.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{Random, UnionFind};
use proptest::prelude::*;

use super::budget::RefinementLimits;
use super::*;

/// All policies. Policies without a metric have lenient parameters, so that the texts below form families.
pub(crate) const POLICIES: [&str; 13] = [
    "jaccard:tau=0.5",
    "jaccard:tau=0.8",
    "jaccard:tau=0.9",
    "supershingle:equal=1",
    "projection:agreeing=361",
    "combined:equal=1,agreeing=300",
    "by-site:across=361,equal=1,agreeing=300",
    "simhash:differing=6",
    "imatch:idf-from=0,idf-to=100",
    "multi-simhash:below=7",
    "content",
    "copies:text=0.8,within=0.9,across=0.75",
    "overlap:lines=2,shared=48",
];

/// Signatures of `count` texts in six families. The texts of a family drift apart, and some of them are
/// copies.
pub(crate) fn signatures(policy: Policy, seed: u64, count: usize) -> Vec<Arc<Signature>> {
    let mut random = Random::new(seed);
    let mut families: Vec<Vec<u64>> = (0..6)
        .map(|_| {
            let words = [10, 30, 120, 700][random.below(4) as usize];
            (0..words).map(|_| random.below(1 << 40)).collect()
        })
        .collect();
    let mut signer = Signer::learnt(policy, families.clone());
    (0..count)
        .map(|_| {
            let family = random.below(6) as usize;
            for _ in 0..random.below(1 + families[family].len() as u64 / 40) {
                let at = random.below(families[family].len() as u64) as usize;
                families[family][at] = random.below(1 << 40);
            }
            let site = Some(random.below(2));
            let tokens = &*families[family];
            let main = (random.below(3) > 0).then_some(tokens);
            Arc::new(signer.sign(Features { tokens, site, main, terms: tokens, lines: tokens }))
        })
        .collect()
}

/// The least content of each content's component, found by comparing every pair that counts.
fn exhaustive(policy: Policy, signatures: &[Arc<Signature>], counts: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut connected = UnionFind::new(signatures.len());
    for a in (0..signatures.len()).filter(|a| counts(*a)) {
        for b in (0..a).filter(|b| counts(*b)) {
            if policy.linked(&signatures[a], &signatures[b]) {
                connected.union(a, b);
            }
        }
    }
    (0..signatures.len()).map(|content| connected.root(content)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn components_are_those_of_all_linked_pairs(
        seed in any::<u64>(), policy in prop::sample::select(POLICIES.to_vec()),
        memory in prop::sample::select(vec![0, 20_000, usize::MAX]), left_out in 2..9usize,
    ) {
        let policy: Policy = policy.parse().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut contents = Contents::new(policy);
        let mut store = Signatures::new(memory, dir.path());
        let mut distinct: Vec<Arc<Signature>> = Vec::new();
        for signature in signatures(policy, seed, 150) {
            let (content, is_new) = contents.add(&signature);
            let earlier = distinct.iter().position(|earlier| earlier.content() == signature.content());
            prop_assert_eq!(content.0 as usize, earlier.unwrap_or(distinct.len()));
            prop_assert_eq!(is_new, earlier.is_none());
            if is_new {
                store.push(&signature).unwrap();
                distinct.push(signature);
            }
        }
        prop_assert_eq!(contents.len(), distinct.len());
        let counts = |content: usize| !content.is_multiple_of(left_out);
        let expected = exhaustive(policy, &distinct, counts);
        store.flush().unwrap();
        let read = |content| store.get(content);
        let roots = contents.components(&read, |content| counts(content.0 as usize)).unwrap();
        let roots: Vec<usize> = roots.into_iter().map(|root| root.0 as usize).collect();
        prop_assert_eq!(roots, expected);
        let pairs = [(0, 1), (1, 0), (distinct.len() - 1, 0)];
        let numbered = pairs.map(|(a, b)| (ContentIndex(a as u32), ContentIndex(b as u32)));
        let expected = pairs.map(|(a, b)| policy.compare(&distinct[a], &distinct[b]));
        prop_assert_eq!(contents.compare_all(&read, &numbered).unwrap(), expected);
    }
}

/// The pages share a template, and therefore many keys, but are not near-duplicates.
#[test]
fn a_pair_with_many_keys_in_common_is_compared_once() {
    let policy: Policy = "overlap".parse().unwrap();
    let (mut random, mut signer) = (Random::new(7), Signer::new(policy));
    let template: Vec<u64> = (0..40).map(|_| random.below(1 << 40)).collect();
    let mut page = || {
        let own = (0..400).map(|_| random.below(1 << 40));
        let lines: Vec<u64> = template.iter().copied().chain(own).collect();
        signer.sign(Features { tokens: &lines, lines: &lines, ..Features::default() })
    };
    let pages: Vec<Arc<Signature>> = (0..40).map(|_| Arc::new(page())).collect();
    let shared = pages[0].shared_with(&pages[1]);
    assert_eq!(shared, 10);
    let mut contents = Contents::new(policy);
    for page in &pages {
        contents.add(page);
    }
    let reads = AtomicUsize::new(0);
    let read = |content: ContentIndex| {
        reads.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(Arc::clone(&pages[content.0 as usize]))
    };
    let Ok(roots) = contents.components(&read, |_| true);
    assert!(roots.iter().enumerate().all(|(content, root)| root.0 as usize == content));
    // Each comparison reads the signature of the earlier content. The signature of the later one is read once
    // per run.
    let pairs = pages.len() * (pages.len() - 1) / 2;
    let reads = reads.into_inner();
    assert!((pairs..pairs + 2 * pages.len()).contains(&reads), "{reads} reads for {pairs} pairs");
}

/// Limits under which small runs are refined.
const EARLY: RefinementLimits = RefinementLimits {
    visits_free: 0,
    visits_per_content: 0,
    hashes_per_visit: u64::MAX,
    budget_per_visit: 1,
};

/// Adds signatures, and returns those of the distinct contents, in the order of their numbers.
fn add_all(contents: &mut Contents, mut signatures: Vec<Arc<Signature>>) -> Vec<Arc<Signature>> {
    signatures.retain(|signature| contents.add(signature).1);
    signatures
}

/// Policies whose runs are refined.
pub(crate) const METRICS: [&str; 7] = [
    "jaccard:tau=0.3",
    "jaccard:tau=0.5",
    "jaccard:tau=0.8",
    "jaccard:tau=0.9",
    "jaccard:tau=0.8,words=3",
    "content:tau=0.8",
    "copies:text=0.8,within=0.9,across=0.75",
];

/// Signatures of `count` pages of one or two templates, which share half of their words. Each page has up to
/// `own_max` words of its own, from a vocabulary of `vocabulary` words.
pub(crate) fn family(
    policy: Policy,
    seed: u64,
    count: usize,
    (own_max, vocabulary): (u64, u64),
) -> Vec<Arc<Signature>> {
    let mut random = Random::new(seed);
    let words = 20 + random.below(120);
    let template: Vec<u64> = (0..words).map(|_| random.below(1 << 40)).collect();
    let mut other = template.clone();
    (0..words as usize / 2).for_each(|at| other[at] = random.below(1 << 40));
    let mut signer = Signer::new(policy);
    (0..count)
        .map(|_| {
            let mut tokens = if random.below(3) > 0 { template.clone() } else { other.clone() };
            for _ in 0..random.below(own_max + 1) {
                let at = random.below(words) as usize;
                tokens[at] = 1 << 41 | random.below(vocabulary);
            }
            if random.below(9) == 0 {
                tokens.truncate(random.below(words) as usize);
            }
            let site = Some(random.below(2));
            let main = (random.below(3) > 0).then_some(&*tokens);
            Arc::new(signer.sign(Features { tokens: &tokens, site, main, terms: &tokens, lines: &tokens }))
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn refined_runs_have_the_components_of_all_linked_pairs(
        seed in any::<u64>(), policy in prop::sample::select(METRICS.to_vec()), own_max in 0..14_u64,
        vocabulary in prop::sample::select(vec![3, 50, 1 << 40]),
        (visits_free, budget_per_visit) in prop::sample::select(vec![(0, 1 << 40), (20, 1), (0, 8), (300, 100)]),
    ) {
        let policy: Policy = policy.parse().unwrap();
        let mut contents = Contents::new(policy);
        contents.limits = RefinementLimits { visits_free, budget_per_visit, ..EARLY };
        let distinct = add_all(&mut contents, family(policy, seed, 200, (own_max, vocabulary)));
        let read = |content: ContentIndex| Ok::<_, Infallible>(Arc::clone(&distinct[content.0 as usize]));
        let Ok(roots) = contents.components(&read, |_| true);
        let roots: Vec<usize> = roots.into_iter().map(|root| root.0 as usize).collect();
        prop_assert_eq!(roots, exhaustive(policy, &distinct, |_| true));
    }
}

#[test]
fn a_signature_that_cannot_be_read_ends_the_join_with_its_error() {
    let policy = Policy::default();
    let mut contents = Contents::new(policy);
    contents.limits = RefinementLimits { visits_free: 100, budget_per_visit: 1 << 40, ..EARLY };
    let distinct = add_all(&mut contents, family(policy, 1, 300, (9, 1 << 40)));
    let reads = AtomicUsize::new(0);
    let join = |readable: usize| {
        let read = |content: ContentIndex| {
            let number = reads.fetch_add(1, Ordering::Relaxed);
            (number < readable).then(|| Arc::clone(&distinct[content.0 as usize])).ok_or("not readable")
        };
        contents.components(&read, |_| true)
    };
    assert!(join(usize::MAX).is_ok());
    let needed = reads.swap(0, Ordering::Relaxed);
    for part in 0..20 {
        assert_eq!(join(needed * part / 25), Err("not readable"));
        reads.store(0, Ordering::Relaxed);
    }
}
