//! F at its bounds: pairs that have exactly as much as is asked for, and exactly less, by bits and fingerprints that are made up.

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use proptest::prelude::*;

use crate::bits::Bits;
use crate::compare::ALL;
use crate::rule::{Compared, Kept, Rule};

/// A page of so many words, of which no other page has one, on this site.
fn page(name: &str, words: usize, site: Option<&str>, kept: Kept) -> Compared {
    let words = (0..words).map(|at| format!("{name}{at}")).collect();
    Compared { words, site: site.map(str::to_owned), is_text: false, kept }
}

/// Whether two pages are near-duplicates: the product and the reference say so, in each of their ways.
#[track_caller]
fn is_near(text: &str, rule: Rule, a: &Compared, b: &Compared) -> bool {
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

/// Two pages of forty words.
#[track_caller]
fn near(text: &str, rule: Rule, [a, b]: [Kept; 2], sites: [Option<&str>; 2]) -> bool {
    let two = |words: usize| (page("a", words, sites[0], a.clone()), page("b", words, sites[1], b.clone()));
    let (x, y) = two(19);
    assert!(!is_near(text, rule, &x, &y), "{text}: 19 words are too few");
    let ((x, _), (_, y)) = (two(20), two(19));
    assert!(!is_near(text, rule, &x, &y), "{text}: 19 words are too few");
    let (x, y) = two(20);
    is_near(text, rule, &x, &y)
}

/// A policy by its text.
fn rule(text: &str) -> Rule {
    ALL.iter().find(|(name, _)| *name == text).unwrap().1
}

/// The same bits but for the first so many in this order.
fn flipped(bits: &Bits, order: &[usize], differing: usize) -> Bits {
    let mut bits = bits.clone();
    order[..differing].iter().for_each(|at| bits[*at] = !bits[*at]);
    bits
}

/// Six supershingles, and six of which exactly these are equal. The others are in each other's places.
fn six(equal: usize, shift: usize) -> [[u64; 6]; 2] {
    let a = [11, 12, 13, 14, 15, 16];
    let mut b = a;
    // A cycle of what is not equal; one alone is another number.
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
    fn supershingles(shift in 0..6_usize) {
        for equal in 0..=6 {
            let kept = || six(equal, shift).map(|all| Kept::Fingerprints(all.into_iter().map(Some).collect()));
            let is_near = near("supershingle", rule("supershingle"), kept(), [None; 2]);
            prop_assert_eq!(is_near, equal >= 2);
            for least in 1..=6 {
                let (text, rule) = (format!("supershingle:equal={least}"), Rule::Supershingle { words: 8, equal: least });
                prop_assert_eq!(near(&text, rule, kept(), [None; 2]), equal >= least);
            }
        }
    }

    #[test]
    fn projections(bits in some_bits(384), order in order(384)) {
        for differing in [0, 1, 11, 12, 13, 14, 40, 384] {
            let kept = || [bits.clone(), flipped(&bits, &order, differing)].map(Kept::Bits);
            prop_assert_eq!(near("projection", rule("projection"), kept(), [None; 2]), differing <= 12);
            for agreeing in [361, 371, 372, 373, 384] {
                let text = format!("projection:agreeing={agreeing}");
                let is_near = near(&text, Rule::Projection { agreeing }, kept(), [None; 2]);
                prop_assert_eq!(is_near, 384 - differing >= agreeing);
            }
        }
    }

    #[test]
    fn both_and_by_site(bits in some_bits(384), order in order(384), shift in 0..6_usize) {
        for equal in [0, 1, 2, 3, 6] {
            for differing in [0, 12, 13, 28, 29, 30, 60] {
                let kept = || {
                    let [a, b] = six(equal, shift);
                    [Kept::Both(Some(a), bits.clone()), Kept::Both(Some(b), flipped(&bits, &order, differing))]
                };
                let both = equal >= 2 && differing <= 29;
                prop_assert_eq!(near("combined", rule("combined"), kept(), [None; 2]), both);
                let by_site = |sites| near("by-site", rule("by-site"), kept(), sites);
                prop_assert_eq!(by_site([Some("a.org"), Some("a.org")]), both);
                prop_assert_eq!(by_site([Some("a.org"), Some("b.org")]), differing <= 12);
            }
        }
    }

    #[test]
    fn simhashes(bits in some_bits(64), order in order(64)) {
        for bits_apart in 0..=8 {
            let kept = || [bits.clone(), flipped(&bits, &order, bits_apart)].map(Kept::Bits);
            prop_assert_eq!(near("simhash", rule("simhash"), kept(), [None; 2]), bits_apart <= 3);
            for differing in 0..=6 {
                let text = format!("simhash:differing={differing}");
                let is_near = near(&text, Rule::Simhash { differing }, kept(), [None; 2]);
                prop_assert_eq!(is_near, bits_apart <= differing);
            }
        }
    }

    /// In one lexicon two are so far apart, in all others seven bits more; a lexicon that one of them lacks says nothing.
    #[test]
    fn simhashes_in_lexicons(
        bits in prop::collection::vec(some_bits(32), 5), order in order(32), best in 0..5_usize,
        lacks in prop::collection::vec(any::<(bool, bool)>(), 5),
    ) {
        for apart in 0..=8 {
            let other = |at: usize| flipped(&bits[at], &order, if at == best { apart } else { apart + 7 });
            let kept = |of_best: (bool, bool)| {
                let lacks = |at: usize| if at == best { of_best } else { lacks[at] };
                let a = (0..5).map(|at| (!lacks(at).0).then(|| bits[at].clone())).collect();
                let b = (0..5).map(|at| (!lacks(at).1).then(|| other(at))).collect();
                [Kept::Lexicons(a), Kept::Lexicons(b)]
            };
            for below in 1..=7 {
                let text = format!("multi-simhash:below={below}");
                let rule = Rule::MultiSimhash { words: 2, lexicons: 5, below };
                prop_assert_eq!(near(&text, rule, kept((false, false)), [None; 2]), apart < below);
                for without in [(true, false), (false, true), (true, true)] {
                    prop_assert!(!near(&text, rule, kept(without), [None; 2]));
                }
            }
            let default = near("multi-simhash", rule("multi-simhash"), kept((false, false)), [None; 2]);
            prop_assert_eq!(default, apart <= 2);
        }
    }

    /// One fingerprint in its place is enough; one in another place, or none in both, is nothing.
    #[test]
    fn fingerprints_of_words(at in 0..11_usize, other in 0..11_usize, lacks in prop::collection::vec(any::<bool>(), 11)) {
        let own = |first: u64| -> Vec<Option<u64>> {
            (0..11).map(|at| (!lacks[at]).then_some(first + at as u64)).collect()
        };
        let (mut a, mut b) = (own(100), own(200));
        let is_near = |a: &Vec<_>, b: &Vec<_>| {
            near("imatch", rule("imatch"), [a.clone(), b.clone()].map(Kept::Fingerprints), [None; 2])
        };
        prop_assert!(!is_near(&a, &b));
        a[at] = Some(7);
        b[other] = Some(7);
        prop_assert_eq!(is_near(&a, &b), at == other);
    }

    #[test]
    fn chunks(shared in 0..30_u32, own in (0..50_u32, 0..50_u32), places in order(130)) {
        let numbers = |of: std::ops::Range<u32>| of.map(|number| places[number as usize] as u32);
        let set = |numbers: Vec<u32>| {
            let mut numbers = numbers;
            numbers.sort_unstable();
            Kept::Chunks(numbers)
        };
        let kept = || [
            set(numbers(0..shared).chain(numbers(30..30 + own.0)).collect()),
            set(numbers(0..shared).chain(numbers(80..80 + own.1)).collect()),
        ];
        for (text, least) in [("overlap", 15), ("overlap:lines=2", 25)] {
            prop_assert_eq!(near(text, rule(text), kept(), [None; 2]), shared >= least);
        }
        let (text, rule) = (format!("overlap:shared={}", shared.max(1)), Rule::Overlap { lines: 4, shared: shared.max(1) as usize });
        prop_assert_eq!(near(&text, rule, kept(), [None; 2]), shared > 0);
    }
}

/// A set of so many numbers, the first of which is this.
fn set(first: u32, length: u32) -> Kept {
    let numbers: Vec<u32> = (first..first + length).collect();
    let hashes = numbers.iter().map(|number| u64::from(*number) << 20).collect();
    Kept::Set(numbers, hashes)
}

/// Exactly at a threshold a pair is none, and one shingle more makes it one. Sets overlap in what is shared of 100.
#[test]
fn coefficients_of_jaccard() {
    let pair = |shared: u32| {
        // The union has 100: both have what is shared, and half of the rest each.
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
                // Where all is shared, two texts have one set of shingles, and are two contents.
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
    // Two plain texts, and others on one site and on two.
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
