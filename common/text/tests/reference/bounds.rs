//! Tests F at its thresholds, with pairs whose made-up features just reach or just miss the threshold of a
//! policy.

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use proptest::prelude::*;

use crate::bits::Bits;
use crate::compare::ALL;
use crate::rule::{PolicyFeatures, PolicyPage, Rule};

/// Creates a page of `words` words that no page with another name shares.
fn page(name: &str, words: usize, site: Option<&str>, features: PolicyFeatures) -> PolicyPage {
    let words = (0..words).map(|at| format!("{name}{at}")).collect();
    PolicyPage { words, site: site.map(str::to_owned), is_text: false, features }
}

/// Returns whether two pages are near-duplicates. Checks that all functions of the product agree with the
/// reference.
#[track_caller]
fn is_near(text: &str, rule: Rule, a: &PolicyPage, b: &PolicyPage) -> bool {
    let policy: Policy = text.parse().unwrap();
    let [x, y] = [a, b].map(|page| Signature::from_bytes(&rule.signature(page)).unwrap());
    assert!(policy.accepts(&x) && policy.accepts(&y), "{text}");
    let near = rule.near(a, b);
    let long = a.words.len() >= 20 && b.words.len() >= 20;
    let met = long && policy.criteria(&x, &y).iter().all(|criterion| criterion.is_met);
    let product = [policy.similar(&x, &y), policy.similar(&y, &x), policy.compare(&x, &y).similar, met];
    assert_eq!(product, [near; 4], "{text}: {x:?} and {y:?}");
    near
}

/// Returns whether two pages with these features are near-duplicates at 20 words each. Checks that they are
/// not if either page has 19 words.
#[track_caller]
fn near(text: &str, rule: Rule, [a, b]: [PolicyFeatures; 2], sites: [Option<&str>; 2]) -> bool {
    let two = |words: usize| (page("a", words, sites[0], a.clone()), page("b", words, sites[1], b.clone()));
    let (x, y) = two(19);
    assert!(!is_near(text, rule, &x, &y), "{text}: 19 words are too few");
    let ((x, _), (_, y)) = (two(20), two(19));
    assert!(!is_near(text, rule, &x, &y), "{text}: 19 words are too few");
    let (x, y) = two(20);
    is_near(text, rule, &x, &y)
}

/// Returns the reference policy that belongs to the text of a policy.
fn rule(text: &str) -> Rule {
    ALL.iter().find(|(name, _)| *name == text).unwrap().1
}

/// Returns `bits` with the first `differing` bits in `order` inverted.
fn with_flipped_bits(bits: &Bits, order: &[usize], differing: usize) -> Bits {
    let mut bits = bits.clone();
    order[..differing].iter().for_each(|at| bits[*at] = !bits[*at]);
    bits
}

/// Returns two lists of six supershingles, of which exactly `equal` agree at the same position. The others
/// have equal values at other positions.
fn supershingle_pair(equal: usize, shift: usize) -> [[u64; 6]; 2] {
    let a = [11, 12, 13, 14, 15, 16];
    let mut b = a;
    // The other values are rotated. A single value cannot be rotated, so it gets a new number.
    let others: Vec<usize> = (0..6 - equal).map(|at| (at + shift) % 6).collect();
    for (at, place) in others.iter().enumerate() {
        let next = others[(at + 1) % others.len()];
        b[*place] = if others.len() == 1 { 99 } else { a[next] };
    }
    [a, b]
}

fn order(width: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..width).collect::<Vec<_>>()).prop_shuffle()
}

fn some_bits(width: usize) -> impl Strategy<Value = Bits> {
    prop::collection::vec(any::<bool>(), width)
}

proptest! {
    #[test]
    fn supershingles_have_the_documented_thresholds(shift in 0..6_usize) {
        for equal in 0..=6 {
            let features = || supershingle_pair(equal, shift).map(|all| PolicyFeatures::Fingerprints(all.into_iter().map(Some).collect()));
            let is_near = near("supershingle", rule("supershingle"), features(), [None; 2]);
            prop_assert_eq!(is_near, equal >= 2);
            for least in 1..=6 {
                let (text, rule) = (format!("supershingle:equal={least}"), Rule::Supershingle { words: 8, equal: least });
                prop_assert_eq!(near(&text, rule, features(), [None; 2]), equal >= least);
            }
        }
    }

    #[test]
    fn projections_have_the_documented_thresholds(bits in some_bits(384), order in order(384)) {
        for differing in [0, 1, 11, 12, 13, 14, 40, 384] {
            let features = || [bits.clone(), with_flipped_bits(&bits, &order, differing)].map(PolicyFeatures::Bits);
            prop_assert_eq!(near("projection", rule("projection"), features(), [None; 2]), differing <= 12);
            for agreeing in [361, 371, 372, 373, 384] {
                let text = format!("projection:agreeing={agreeing}");
                let is_near = near(&text, Rule::Projection { agreeing }, features(), [None; 2]);
                prop_assert_eq!(is_near, 384 - differing >= agreeing);
            }
        }
    }

    #[test]
    fn combined_and_by_site_have_the_documented_thresholds(bits in some_bits(384), order in order(384), shift in 0..6_usize) {
        for equal in [0, 1, 2, 3, 6] {
            for differing in [0, 12, 13, 28, 29, 30, 60] {
                let features = || {
                    let [a, b] = supershingle_pair(equal, shift);
                    [PolicyFeatures::Both(Some(a), bits.clone()), PolicyFeatures::Both(Some(b), with_flipped_bits(&bits, &order, differing))]
                };
                let both = equal >= 2 && differing <= 29;
                prop_assert_eq!(near("combined", rule("combined"), features(), [None; 2]), both);
                let by_site = |sites| near("by-site", rule("by-site"), features(), sites);
                prop_assert_eq!(by_site([Some("a.org"), Some("a.org")]), both);
                prop_assert_eq!(by_site([Some("a.org"), Some("b.org")]), differing <= 12);
            }
        }
    }

    #[test]
    fn simhashes_have_the_documented_thresholds(bits in some_bits(64), order in order(64)) {
        for bits_apart in 0..=8 {
            let features = || [bits.clone(), with_flipped_bits(&bits, &order, bits_apart)].map(PolicyFeatures::Bits);
            prop_assert_eq!(near("simhash", rule("simhash"), features(), [None; 2]), bits_apart <= 3);
            for differing in 0..=6 {
                let text = format!("simhash:differing={differing}");
                let is_near = near(&text, Rule::Simhash { differing }, features(), [None; 2]);
                prop_assert_eq!(is_near, bits_apart <= differing);
            }
        }
    }

    /// The fingerprints of the lexicon `best` differ in `apart` bits, those of all other lexicons in seven
    /// bits more. A lexicon for which either page has no fingerprint does not count.
    #[test]
    fn multi_simhash_has_the_documented_thresholds(
        bits in prop::collection::vec(some_bits(32), 5), order in order(32), best in 0..5_usize,
        lacks in prop::collection::vec(any::<(bool, bool)>(), 5),
    ) {
        for apart in 0..=8 {
            let other = |at: usize| with_flipped_bits(&bits[at], &order, if at == best { apart } else { apart + 7 });
            let features = |of_best: (bool, bool)| {
                let lacks = |at: usize| if at == best { of_best } else { lacks[at] };
                let a = (0..5).map(|at| (!lacks(at).0).then(|| bits[at].clone())).collect();
                let b = (0..5).map(|at| (!lacks(at).1).then(|| other(at))).collect();
                [PolicyFeatures::Lexicons(a), PolicyFeatures::Lexicons(b)]
            };
            for below in 1..=7 {
                let text = format!("multi-simhash:below={below}");
                let rule = Rule::MultiSimhash { words: 2, lexicons: 5, below };
                prop_assert_eq!(near(&text, rule, features((false, false)), [None; 2]), apart < below);
                for without in [(true, false), (false, true), (true, true)] {
                    prop_assert!(!near(&text, rule, features(without), [None; 2]));
                }
            }
            let default = near("multi-simhash", rule("multi-simhash"), features((false, false)), [None; 2]);
            prop_assert_eq!(default, apart <= 2);
        }
    }

    /// An equal fingerprint at the same position is enough. An equal fingerprint at another position, or a
    /// missing fingerprint on both sides, does not count.
    #[test]
    fn imatch_compares_fingerprints_by_position(at in 0..11_usize, other in 0..11_usize, lacks in prop::collection::vec(any::<bool>(), 11)) {
        let own = |first: u64| -> Vec<Option<u64>> {
            (0..11).map(|at| (!lacks[at]).then_some(first + at as u64)).collect()
        };
        let (mut a, mut b) = (own(100), own(200));
        let is_near = |a: &Vec<_>, b: &Vec<_>| {
            near("imatch", rule("imatch"), [a.clone(), b.clone()].map(PolicyFeatures::Fingerprints), [None; 2])
        };
        prop_assert!(!is_near(&a, &b));
        a[at] = Some(7);
        b[other] = Some(7);
        prop_assert_eq!(is_near(&a, &b), at == other);
    }

    #[test]
    fn overlap_has_the_documented_thresholds(shared in 0..30_u32, own in (0..50_u32, 0..50_u32), places in order(130)) {
        let numbers = |of: std::ops::Range<u32>| of.map(|number| places[number as usize] as u32);
        let set = |numbers: Vec<u32>| {
            let mut numbers = numbers;
            numbers.sort_unstable();
            PolicyFeatures::Chunks(numbers)
        };
        let features = || [
            set(numbers(0..shared).chain(numbers(30..30 + own.0)).collect()),
            set(numbers(0..shared).chain(numbers(80..80 + own.1)).collect()),
        ];
        for (text, least) in [("overlap", 15), ("overlap:lines=2", 25)] {
            prop_assert_eq!(near(text, rule(text), features(), [None; 2]), shared >= least);
        }
        let (text, rule) = (format!("overlap:shared={}", shared.max(1)), Rule::Overlap { lines: 4, shared: shared.max(1) as usize });
        prop_assert_eq!(near(&text, rule, features(), [None; 2]), shared > 0);
    }
}

/// Returns the set of `length` consecutive numbers that begins with `first`.
fn set(first: u32, length: u32) -> PolicyFeatures {
    let numbers: Vec<u32> = (first..first + length).collect();
    let hashes = numbers.iter().map(|number| u64::from(*number) << 20).collect();
    PolicyFeatures::Set(numbers, hashes)
}

/// A pair exactly at the threshold is not near, and a single shared shingle more makes it near. The union of
/// the two sets always has 100 shingles.
#[test]
fn jaccard_coefficients_must_exceed_the_threshold() {
    let pair = |shared: u32| {
        // Both sets have the shared numbers, and each has half of the remaining numbers.
        let own = (100 - shared) / 2;
        [set(0, own + shared), set(own, shared + (100 - shared - own))]
    };
    let near = |text: &str, rule: Rule, shared: u32, sites: [Option<&str>; 2], texts: [bool; 2]| {
        let [a, b] = pair(shared);
        let [mut a, mut b] = [page("a", 100, sites[0], a), page("b", 100, sites[1], b)];
        (a.is_text, b.is_text) = (texts[0], texts[1]);
        is_near(text, rule, &a, &b)
    };
    for percent in [50, 62, 80, 83, 90, 99] {
        for name in ["jaccard", "content"] {
            let above = 100 * percent as usize;
            let rule =
                if name == "jaccard" { Rule::Jaccard { above, words: 5 } } else { Rule::Content { above } };
            let text = format!("{name}:tau=0.{percent}");
            for shared in percent - 2..=100 {
                // Even if all shingles are shared, the two texts are distinct contents.
                assert_eq!(
                    near(&text, rule, shared, [None; 2], [false; 2]),
                    shared > percent,
                    "{text} {shared}"
                );
            }
        }
    }
    for name in ["jaccard", "content"] {
        assert!(!near(name, rule(name), 80, [None; 2], [false; 2]));
        assert!(near(name, rule(name), 81, [None; 2], [false; 2]));
    }
    // Thresholds of `copies`: for two plain texts, and for other pairs on the same site and across sites.
    let sites = [[Some("a.org"); 2], [Some("a.org"), Some("b.org")]];
    for (sites, texts, percent) in [
        (sites[0], [true, true], 85),
        (sites[1], [true, true], 85),
        (sites[0], [false, false], 90),
        (sites[0], [true, false], 90),
        (sites[0], [false, true], 90),
        (sites[1], [false, false], 85),
        (sites[1], [true, false], 85),
        (sites[1], [false, true], 85),
    ] {
        for shared in 75..=100 {
            let is_near = near("copies", rule("copies"), shared, sites, texts);
            assert_eq!(is_near, shared > percent, "{sites:?} {texts:?} {shared}");
        }
    }
}
