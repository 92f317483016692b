use super::*;
use crate::signature::Builder;
use crate::stable_hash64;

fn signature_of(words: impl IntoIterator<Item = u32>) -> Signature {
    let tokens: Vec<u64> = words.into_iter().map(|w| stable_hash64(&w.to_le_bytes())).collect();
    Builder::new().build(&tokens)
}

fn policy(tau: &str) -> Policy {
    Policy { tau: tau.parse().unwrap() }
}

#[test]
fn same_content_is_similar_unless_it_is_empty() {
    let f = Policy::default();
    let (empty, short) = (signature_of([]), signature_of(0..3));
    assert!(!f.similar(&empty, &empty));
    assert!(!f.compare(&empty, &empty).similar);
    assert!(!f.linked(&empty, &empty));
    assert!(f.similar(&short, &short) && f.linked(&short, &short));
    assert_eq!(f.compare(&short, &short).jaccard(), 1.0);
}

#[test]
fn short_texts_are_similar_only_with_equal_content() {
    let f = policy("0.5");
    // The first 19 words are the same: 15 shared shingles, and 4 + 5 that only one text has.
    let (long, short) = (signature_of(0..20), signature_of(0..19));
    assert!(!f.similar(&long, &short));
    assert!(f.comparable(&long) && !f.comparable(&short));
    assert!(f.similar(&long, &signature_of(1..21)));
}

#[test]
fn decides_exactly_at_tau() {
    // One text has n words and the other has one more: they share n - 4 shingles, and 4 + 5 occur in only one
    // of them.
    let f = Policy::default();
    let at = |n: u32| f.compare(&signature_of(0..n), &signature_of(0..n + 1));
    let equal = at(40);
    assert_eq!((equal.shared, equal.a, equal.b), (36, 40, 41));
    assert_eq!(equal.jaccard(), 0.8);
    assert!(!equal.similar);
    assert!(at(41).similar);
}

#[test]
fn comparison_and_decision_agree() {
    for tau in ["0.5", "0.8", "0.9"] {
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
    for (tau, rows, count) in [("0.5", 2, 32), ("0.8", 4, 16), ("0.9", 5, 12)] {
        let tau: Tau = tau.parse().unwrap();
        let bands = Bands::for_tau(tau);
        assert_eq!(bands, Bands { rows, count });
        assert!(bands.collision_probability(tau.as_f64()) >= COLLISION_PROBABILITY);
        let wider = Bands { rows: rows + 1, count: 64 / (rows + 1) };
        assert!(wider.collision_probability(tau.as_f64()) < COLLISION_PROBABILITY);
    }
}

#[test]
fn keys_of_four_rows_are_the_bytes() {
    let signature = signature_of(0..50);
    let keys: Vec<u32> = Policy::default().band_keys(&signature).collect();
    assert_eq!(keys.len(), 16);
    let bytes: Vec<u8> = keys.iter().flat_map(|k| k.to_le_bytes()).collect();
    assert_eq!(bytes, signature.sketch());
    assert_eq!(policy("0.9").band_keys(&signature).count(), 12);
}

#[test]
fn policies_are_strict_json() {
    let f: Policy = serde_json::from_str(r#"{"tau":"0.9"}"#).unwrap();
    assert_eq!(f, policy("0.9"));
    assert_eq!(serde_json::to_string(&f).unwrap(), r#"{"tau":"0.9"}"#);
    assert!(serde_json::from_str::<Policy>(r#"{"tau":"0.9","k":5}"#).is_err());
}
