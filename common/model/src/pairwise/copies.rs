//! `copies`: the exact Jaccard coefficient of the sets of pairs of words of the main contents is above a threshold, which depends
//! on where the two pages are.
//!
//! There are three: of two plain texts; of a pair on one site, where different items share a template; and of a pair on two sites,
//! where the template differs around the same content. A pair of a page and a plain text is judged by their sites. Pairs of words
//! and not shingles of five: a changed word, such as a version or another package name, touches two of them and not five, so copies
//! stay further from pages that only resemble each other. The defaults are round figures in the gaps between pairs that were judged
//! (`doppel-eval copies`, docs/POLICIES.md).
//!
//! The coefficient is a metric, and F asks for more than the least threshold of every pair: all that rests on one takes that threshold.
//! Whether a pair is F is decided by its own.
//!
//! The payload is the sketch, the hash of the site, and a byte that is 1 for plain text.

use super::content;
use crate::Tau;
use crate::signature::{Signature, shingles};
use crate::sketch::{BINS, sketch};

/// Tokens of a shingle.
pub(super) const WORDS: usize = 2;

/// The threshold of two plain texts.
pub(super) const TEXT: Tau = Tau::of_hundredths(85);

/// That of a pair on one site.
pub(super) const WITHIN: Tau = Tau::of_hundredths(90);

/// That of a pair on two sites.
pub(super) const ACROSS: Tau = Tau::of_hundredths(85);

/// Bytes of the site.
const SITE_BYTES: usize = 8;

/// The byte that says whether a page is plain text.
pub(super) fn form(is_text: bool) -> &'static [u8] {
    if is_text { &[1] } else { &[0] }
}

/// Writes the set of pairs of words, and appends what else there is.
pub(super) fn sign(tokens: &[u64], site: u64, is_text: bool, set: &mut Vec<u64>, payload: &mut Vec<u8>) {
    shingles::<WORDS>(tokens, set);
    payload.extend(sketch(set));
    payload.extend(site.to_le_bytes());
    payload.extend(form(is_text));
}

/// Where two pages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    /// Both are plain text.
    Text,
    /// Both are on one site, and at least one is a page of markup.
    Within,
    /// They are on two sites, and at least one is a page of markup.
    Across,
}

impl Pair {
    /// What the two signatures say.
    pub(super) fn of(a: &Signature, b: &Signature) -> Self {
        let (x, y) = (own(a), own(b));
        let is_text = |own: &[u8]| own.last() == form(true).last();
        if is_text(x) && is_text(y) {
            Self::Text
        } else if x.get(..SITE_BYTES) == y.get(..SITE_BYTES) {
            Self::Within
        } else {
            Self::Across
        }
    }

    /// The threshold of such a pair.
    pub(super) fn threshold(self, text: Tau, within: Tau, across: Tau) -> Tau {
        match self {
            Self::Text => text,
            Self::Within => within,
            Self::Across => across,
        }
    }

    /// Which pair the threshold is for, in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Text => " (the threshold of two plain texts)",
            Self::Within => " (the threshold within a site)",
            Self::Across => " (the threshold across sites)",
        }
    }
}

/// The least of the three thresholds.
pub(super) const fn least(text: Tau, within: Tau, across: Tau) -> Tau {
    let lower = if text.numerator() < within.numerator() { text } else { within };
    if lower.numerator() < across.numerator() { lower } else { across }
}

/// The site and the form.
fn own(signature: &Signature) -> &[u8] {
    signature.payload().get(BINS..).unwrap_or_default()
}

/// Whether the set has the size that is stated, and the payload its length.
pub(super) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BINS + SITE_BYTES + 1 && content::is_set(signature)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::pairwise::{Features, Policy, Signer, TOKENS_MIN};
    use crate::signature::Signature;
    use crate::{Random, stable_hash64};

    /// A page: its words, its site, and whether it is plain text.
    type Page = (Vec<u64>, u64, bool);

    fn sign(signer: &mut Signer, (words, site, is_text): &Page) -> Signature {
        let tokens: Vec<u64> = words.iter().map(|word| stable_hash64(&word.to_le_bytes())).collect();
        // The whole page has more, which nothing reads.
        let whole: Vec<u64> = tokens.iter().copied().chain(0..*site).collect();
        let (main, tokens) = if *is_text { (None, &tokens) } else { (Some(&*tokens), &whole) };
        signer.sign(Features { tokens, site: Some(*site), main, ..Features::default() })
    }

    /// F by its definition, on words and in percent: what `SHINGLE` words each begin with a word, of which the last ones are followed by none.
    fn is_copy<const SHINGLE: usize>(a: &Page, b: &Page, percent: [usize; 3]) -> bool {
        if a == b {
            return !a.0.is_empty();
        }
        let set = |words: &[u64]| -> BTreeSet<[Option<u64>; SHINGLE]> {
            (0..words.len()).map(|at| std::array::from_fn(|i| words.get(at + i).copied())).collect()
        };
        let (x, y) = (set(&a.0), set(&b.0));
        let shared = x.intersection(&y).count();
        let [text, within, across] = percent;
        let percent = if a.2 && b.2 {
            text
        } else if a.1 == b.1 {
            within
        } else {
            across
        };
        let enough = |words: &[u64]| words.len() >= TOKENS_MIN as usize;
        enough(&a.0) && enough(&b.0) && 100 * shared > percent * (x.len() + y.len() - shared)
    }

    /// Pages that are like each other: words of one text, some changed.
    fn page() -> impl Strategy<Value = Page> {
        let words = (0..60_u64, prop::collection::vec((0..60_usize, 100..103_u64), 0..6));
        (words, 1..3_u64, any::<bool>()).prop_map(|((length, changes), site, is_text)| {
            let mut words: Vec<u64> = (0..length).map(|at| at % 45).collect();
            for (at, word) in changes {
                if let Some(place) = words.get_mut(at) {
                    *place = word;
                }
            }
            (words, site, is_text)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn it_is_what_its_definition_says(a in page(), b in page()) {
            for percent in [[85, 90, 80], [60, 55, 90]] {
                let [text, within, across] = percent;
                let policy: Policy =
                    format!("copies:text=0.{text},within=0.{within},across=0.{across}").parse().unwrap();
                let mut signer = Signer::new(policy);
                let (x, y) = (sign(&mut signer, &a), sign(&mut signer, &b));
                prop_assert_eq!(policy.similar(&x, &y), is_copy::<2>(&a, &b, percent));
                prop_assert_eq!(x.content() == y.content(), a == b);
                // No pair is F that is not above the threshold by which it is searched for.
                let least = policy.metric().unwrap();
                let admitted = least.exceeded_by(x.shared_with(&y).into(), x.size().into(), y.size().into());
                prop_assert!(!policy.similar(&x, &y) || admitted || x.content() == y.content());
            }
        }

        #[test]
        fn content_is_jaccard_of_the_main_content(a in page(), b in page()) {
            let policy: Policy = "content".parse().unwrap();
            let mut signer = Signer::new(policy);
            let (x, y) = (sign(&mut signer, &a), sign(&mut signer, &b));
            let without_site = |(words, ..): &Page| (words.clone(), 0, false);
            let expected = is_copy::<5>(&without_site(&a), &without_site(&b), [80; 3]);
            prop_assert_eq!(policy.similar(&x, &y), expected);
            let jaccard = Policy::default();
            let plain = |signer: &mut Signer, page: &Page| sign(signer, &(page.0.clone(), 0, true));
            let mut signer = Signer::new(jaccard);
            let (p, q) = (plain(&mut signer, &a), plain(&mut signer, &b));
            prop_assert_eq!(policy.linked(&x, &y), jaccard.linked(&p, &q));
            prop_assert_eq!(x.sketch(), p.sketch());
            prop_assert!(x.set().eq(p.set()));
        }
    }

    #[test]
    fn a_pair_that_is_f_shares_a_key_almost_surely() {
        // Two hundred pairs of words, of which each changed word touches two: 180 of 220, and 186 of 214.
        for (policy, changes, shared) in [("copies:across=0.8", 10, 180), ("copies", 7, 186)] {
            let policy: Policy = policy.parse().unwrap();
            let mut signer = Signer::new(policy);
            let mut random = Random::new(5);
            let (mut pairs, mut apart) = (0, 0);
            for _ in 0..6_000 {
                let text: Vec<u64> = (0..200).map(|_| random.number()).collect();
                let mut changed = text.clone();
                (0..changes).for_each(|at| changed[20 * at + 7] = random.number());
                let (a, b) = (sign(&mut signer, &(text, 1, false)), sign(&mut signer, &(changed, 2, false)));
                assert_eq!((a.shared_with(&b), policy.similar(&a, &b)), (shared, true));
                let mut keys = BTreeSet::new();
                policy.keys(&a, |key| {
                    keys.insert(key);
                });
                let mut meet = false;
                policy.keys(&b, |key| meet |= keys.contains(&key));
                assert_eq!(meet, policy.linked(&a, &b));
                (pairs, apart) = (pairs + 1, apart + u32::from(!meet));
            }
            // At 0.818 a pair shares none of 16 bands of 4 with a probability of 1.2 in 10,000, and at 0.869 with less.
            assert!(apart <= pairs / 2_000, "{policy}: {apart} of {pairs}");
        }
    }

    #[test]
    fn a_page_and_a_plain_text_are_judged_by_their_sites() {
        let policy: Policy = "copies".parse().unwrap();
        let mut signer = Signer::new(policy);
        let text: Vec<u64> = (0..100).collect();
        let mut changed = text.clone();
        (0..4).for_each(|at| changed[20 * at + 7] = 1_000);
        // 92 of 108.
        let mut similar = |site: u64, texts: [bool; 2]| {
            let a = sign(&mut signer, &(text.clone(), 1, texts[0]));
            let b = sign(&mut signer, &(changed.clone(), site, texts[1]));
            let criteria = policy.criteria(&a, &b);
            assert_eq!(criteria.len(), 1);
            (policy.similar(&a, &b), criteria[0].needed.clone())
        };
        assert!(similar(2, [false; 2]).0 && similar(2, [true, false]).0 && similar(1, [true; 2]).0);
        let (is_similar, needed) = similar(1, [false, true]);
        assert!(!is_similar);
        assert_eq!(needed, "above 0.9 (the threshold within a site)");
    }
}
