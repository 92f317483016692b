//! Checks searches against a comparison with every content of the reference.

use proptest::prelude::*;

use super::*;
use crate::tests::{METRICS, POLICIES, family, signatures};

fn index(policy: Policy, memory_max: usize, contents: &[Arc<Signature>]) -> ReferenceIndex {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = ReferenceBuilder::new(policy, memory_max, dir.path());
    for content in contents {
        builder.add(content).unwrap();
    }
    builder.finish().unwrap()
}

/// The first near-duplicates of a content, at most `most`.
fn found(index: &ReferenceIndex, content: &Signature, most: usize) -> Vec<ReferencePartner> {
    let mut found = Vec::new();
    let mut take = |partner| {
        found.push(partner);
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    index.partners(content, &mut SearchScratch::default(), &mut take).unwrap();
    found
}

/// The distinct contents, in the order of the first occurrences.
fn distinct(contents: &[Arc<Signature>]) -> Vec<Arc<Signature>> {
    let mut distinct: Vec<Arc<Signature>> = Vec::new();
    for content in contents {
        if distinct.iter().all(|earlier| earlier.content() != content.content()) {
            distinct.push(Arc::clone(content));
        }
    }
    distinct
}

fn compared_with_all(
    policy: Policy,
    reference: &[Arc<Signature>],
    content: &Signature,
) -> Vec<ReferencePartner> {
    let numbered = (0..).map(ContentIndex).zip(reference);
    let compared = numbered.map(|(content_index, other)| (content_index, policy.compare(content, other)));
    let similar = compared.filter(|(_, comparison)| comparison.similar);
    similar.map(|(content, comparison)| ReferencePartner { content, comparison }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn partners_are_all_near_duplicates_under_every_policy(
        seed in any::<u64>(), policy in prop::sample::select(POLICIES.to_vec()),
        memory in prop::sample::select(vec![0, 20_000, usize::MAX]),
    ) {
        let policy: Policy = policy.parse().unwrap();
        let all = signatures(policy, seed, 160);
        let (reference, others) = all.split_at(80);
        let index = index(policy, memory, reference);
        let reference = distinct(reference);
        prop_assert_eq!(index.len(), reference.len());
        for content in others.iter().chain(&reference) {
            prop_assert_eq!(found(&index, content, usize::MAX), compared_with_all(policy, &reference, content));
        }
    }

    #[test]
    fn partners_in_a_family_are_all_near_duplicates(
        seed in any::<u64>(), policy in prop::sample::select(METRICS.to_vec()), own_max in 0..14_u64,
        vocabulary in prop::sample::select(vec![3, 50, 1 << 40]), in_reference in 1..150_usize,
    ) {
        let policy: Policy = policy.parse().unwrap();
        let all = family(policy, seed, 200, (own_max, vocabulary));
        let (reference, others) = all.split_at(in_reference);
        let index = index(policy, usize::MAX, reference);
        let reference = distinct(reference);
        for content in others {
            let all = compared_with_all(policy, &reference, content);
            prop_assert_eq!(found(&index, content, 1), all[..all.len().min(1)].to_vec());
            prop_assert_eq!(found(&index, content, usize::MAX), all);
        }
    }
}

#[test]
fn an_empty_reference_has_no_partners() {
    let policy = Policy::default();
    let index = index(policy, 0, &[]);
    assert!(index.is_empty());
    for content in signatures(policy, 1, 20) {
        assert_eq!(found(&index, &content, usize::MAX), []);
    }
}
