use std::sync::Arc;

use super::*;
use crate::signature::Builder;
use crate::stable_hash64;
use crate::tables::{Tables, TermSample};

fn signature_of(words: impl IntoIterator<Item = u32>) -> Signature {
    let tokens: Vec<u64> = words.into_iter().map(|w| stable_hash64(&w.to_le_bytes())).collect();
    Builder::new().build(&tokens)
}

fn policy(tau: &str) -> Policy {
    Policy::jaccard(tau.parse().unwrap())
}

fn jaccard(comparison: Comparison) -> f64 {
    comparison.similarity.as_f64()
}

#[test]
fn equal_contents_are_similar_unless_they_are_empty() {
    let f = Policy::default();
    let (empty, short) = (signature_of([]), signature_of(0..3));
    assert!(!f.similar(&empty, &empty));
    assert!(!f.compare(&empty, &empty).similar);
    assert!(!f.linked(&empty, &empty));
    assert!(f.similar(&short, &short) && f.linked(&short, &short));
    assert_eq!(jaccard(f.compare(&short, &short)), 1.0);
}

#[test]
fn short_texts_are_similar_only_to_equal_texts() {
    let f = policy("0.5");
    // The first 19 words are equal, so the texts share 15 shingles. 5 and 4 shingles are in one text only.
    let (long, short) = (signature_of(0..20), signature_of(0..19));
    assert!(!f.similar(&long, &short));
    assert!(f.comparable(&long) && !f.comparable(&short));
    assert!(f.similar(&long, &signature_of(1..21)));
}

#[test]
fn a_coefficient_of_exactly_tau_is_not_similar() {
    // One text has n words, and the other has one more. They share n - 4 shingles, and 4 + 5 occur in only
    // one text.
    let f = Policy::default();
    let at = |n: u32| f.compare(&signature_of(0..n), &signature_of(0..n + 1));
    let equal = at(40);
    assert_eq!(equal.similarity, Similarity { shared: 36, of: 45 });
    assert_eq!(jaccard(equal), 0.8);
    assert!(!equal.similar);
    assert!(at(41).similar);
}

#[test]
fn compare_and_similar_agree() {
    for tau in ["0.3", "0.5", "0.8", "0.9"] {
        let f = policy(tau);
        for (a, b) in [(30, 31), (30, 60), (100, 101), (100, 104), (15, 16), (0, 30)] {
            let (a, b) = (signature_of(0..a), signature_of(0..b));
            assert_eq!(f.compare(&a, &b).similar, f.similar(&a, &b));
            assert_eq!(f.similar(&a, &b), f.similar(&b, &a));
            assert!(!f.linked(&a, &b) || f.similar(&a, &b));
        }
    }
}

#[test]
fn bands_have_the_most_rows_that_reach_the_collision_probability() {
    for (tau, rows, count) in
        [("0.3", 1, 64), ("0.4598", 1, 64), ("0.4599", 2, 32), ("0.5", 2, 32), ("0.8", 4, 16), ("0.9", 5, 12)]
    {
        let tau: Tau = tau.parse().unwrap();
        let bands = Bands::for_tau(tau);
        assert_eq!(bands, Bands { rows, count });
        assert!(bands.collision_probability(tau.as_f64()) >= COLLISION_PROBABILITY);
        let wider = Bands { rows: rows + 1, count: 64 / (rows + 1) };
        assert!(wider.collision_probability(tau.as_f64()) < COLLISION_PROBABILITY);
    }
}

#[test]
fn the_keys_of_bands_with_four_rows_are_the_bytes_of_the_sketch() {
    let signature = signature_of(0..50);
    let keys = |policy: Policy| {
        let mut all = Vec::new();
        policy.keys(&signature, |key| all.push(key));
        all
    };
    let all = keys(Policy::default());
    assert!(all.iter().map(|key| key & 255).eq(0..16));
    let bytes: Vec<u8> = all.iter().flat_map(|key| ((key >> 8) as u32).to_le_bytes()).collect();
    assert_eq!(bytes, signature.sketch());
    assert_eq!(keys(policy("0.9")).len(), 12);
}

#[test]
fn policies_are_text_in_json() {
    let f: Policy = serde_json::from_str(r#""jaccard:tau=0.9""#).unwrap();
    assert_eq!(f, policy("0.9"));
    assert_eq!(serde_json::to_string(&f).unwrap(), r#""jaccard:tau=0.9""#);
    assert!(serde_json::from_str::<Policy>(r#"{"tau":"0.9"}"#).is_err());
}

/// Texts in families. The texts of a family differ by no, few, or many changes.
fn families() -> Vec<Vec<u64>> {
    let mut random = crate::Random::new(11);
    let mut texts = Vec::new();
    for family in 0..12_u64 {
        let length = 15 + 40 * family;
        let text: Vec<u64> = (0..length)
            .map(|at| stable_hash64(&((family << 32) | (at % (length / 2 + 9))).to_le_bytes()))
            .collect();
        for changes in [0, 0, 1, 2, 5, 20] {
            let mut changed = text.clone();
            for _ in 0..changes {
                let at = random.below(length) as usize;
                changed[at] = random.number();
            }
            texts.push(changed);
        }
    }
    texts
}

#[test]
fn every_policy_has_the_properties_that_all_policies_share() {
    for policy in Policy::all() {
        let mut signer = Signer::learnt(policy, families());
        let mut signatures = Vec::new();
        for (at, tokens) in families().iter().enumerate() {
            let site = Some(at as u64 % 2);
            signatures.push(signer.sign(Features {
                tokens,
                site,
                main: at.is_multiple_of(3).then_some(tokens),
                terms: tokens,
                lines: tokens,
            }));
        }
        let (mut similar, mut not) = (0, 0);
        for a in &signatures {
            assert!(policy.accepts(a) && Signature::from_bytes(a.as_bytes()).as_ref() == Ok(a));
            assert!(Policy::all().filter(|other| other.accepts(a)).count() == 1);
            for b in &signatures {
                let comparison = policy.compare(a, b);
                assert_eq!(policy.similar(a, b), comparison.similar, "{policy}");
                assert_eq!(policy.similar(a, b), policy.similar(b, a), "{policy}");
                let is_met = policy.criteria(a, b).iter().all(|criterion| criterion.is_met);
                let is_comparable = policy.comparable(a) && policy.comparable(b);
                assert!(
                    comparison.same_content || comparison.similar == (is_met && is_comparable),
                    "{policy}"
                );
                let similarity = comparison.similarity.as_f64();
                assert!((0.0..=1.0).contains(&similarity), "{policy}: {similarity}");
                assert!(a.content() != b.content() || similarity == 1.0 && comparison.similar, "{policy}");
                assert!(
                    a.tokens() >= TOKENS_MIN || a.content() == b.content() || !comparison.similar,
                    "{policy}"
                );
                let keys = |signature: &Signature| {
                    let mut all = Vec::new();
                    policy.keys(signature, |key| all.push(key));
                    all
                };
                // Linked contents share a key. Without bands, all near-duplicates are linked.
                let is_candidate =
                    a.content() == b.content() || keys(a).iter().any(|key| keys(b).contains(key));
                assert!(!policy.linked(a, b) || is_candidate, "{policy}");
                assert!(policy.metric().is_some() || policy.linked(a, b) == policy.similar(a, b), "{policy}");
                (similar, not) =
                    (similar + u32::from(comparison.similar), not + u32::from(!comparison.similar));
            }
        }
        assert!(
            similar as usize > signatures.len() && not as usize > signatures.len(),
            "{policy}: {similar}"
        );
    }
}

#[test]
fn signatures_of_another_policy_are_never_near_duplicates() {
    let tokens: Vec<u64> = (0..100_u64).map(|n| stable_hash64(&n.to_le_bytes())).collect();
    for of in Policy::all() {
        let mut signer = Signer::learnt(of, families());
        let mut sign = |tokens: &[u64]| {
            signer.sign(Features { tokens, site: Some(1), main: Some(tokens), terms: tokens, lines: tokens })
        };
        let (a, b) = (sign(&tokens), sign(&tokens[..99]));
        for policy in Policy::all() {
            assert_eq!(policy.comparable(&a), policy == of, "{policy}, {of}");
            let is_similar =
                policy.similar(&a, &b) || policy.compare(&a, &b).similar || policy.linked(&a, &b);
            assert!(policy == of || !is_similar, "{policy}, {of}");
        }
    }
}

#[test]
fn texts_too_short_for_a_supershingle_share_none() {
    let tokens: Vec<u64> = (0..9_u64).map(|n| stable_hash64(&n.to_le_bytes())).collect();
    for name in ["supershingle", "combined", "by-site"] {
        let policy: Policy = name.parse().unwrap();
        let mut signer = Signer::new(policy);
        let mut sign = |tokens: &[u64]| {
            signer.sign(Features {
                tokens,
                site: Some(1),
                main: Some(tokens),
                terms: tokens,
                ..Features::default()
            })
        };
        let (a, b) = (sign(&tokens[..5]), sign(&tokens[4..]));
        let supershingles = &policy.criteria(&a, &b)[0];
        assert_eq!((supershingles.what, supershingles.has.shared), ("supershingles", 0), "{policy}");
    }
}

#[test]
fn tables_of_another_policy_are_refused() {
    let policy = |name: &str| name.parse::<Policy>().unwrap();
    let tables = || Arc::new(Tables::learn("imatch", &TermSample::new()));
    let refused = |name: &str| Signer::with_tables(policy(name), tables()).unwrap_err().to_string();
    assert_eq!(
        refused("multi-simhash"),
        "the tables were learnt for the policy imatch, so multi-simhash cannot use them"
    );
    assert_eq!(refused("simhash"), "the policy simhash reads no tables");
    let signer = Signer::with_tables(policy("imatch:lexicons=3"), tables()).unwrap();
    assert_eq!(signer.tables().map(|tables| tables.hash()), Some(tables().hash()));
    for policy in Policy::all() {
        let is_refused = std::panic::catch_unwind(|| Signer::new(policy)).is_err();
        assert_eq!(is_refused, policy.reads_tables(), "{policy}");
    }
}

#[test]
fn a_text_on_two_sites_is_two_contents_that_are_similar_unless_they_are_short() {
    let tokens: Vec<u64> = (0..100_u64).map(|n| stable_hash64(&n.to_le_bytes())).collect();
    let policy: Policy = "by-site".parse().unwrap();
    let mut signer = Signer::new(policy);
    let mut sign = |length: usize, site| {
        let tokens = &tokens[..length];
        signer.sign(Features { tokens, site: Some(site), main: Some(tokens), ..Features::default() })
    };
    for length in [1, 19, 20, 100] {
        let (a, same, other) = (sign(length, 1), sign(length, 1), sign(length, 2));
        assert!(policy.linked(&a, &same) && a == same, "{length}");
        assert!(a.content() != other.content(), "{length}");
        assert_eq!(policy.linked(&a, &other), length >= 20, "{length}");
        let comparison = policy.compare(&a, &other);
        assert_eq!((comparison.same_content, comparison.similar), (false, length >= 20), "{length}");
    }
}
