//! The policy `copies`: the Jaccard coefficient of the main contents' sets of word pairs is above a threshold
//! that depends on the sites of the two pages.
//!
//! There are three thresholds:
//!
//! - for two plain texts;
//! - for a pair on one site, where different items share a template;
//! - for a pair on two sites, where different templates surround the same content.
//!
//! The sites also decide about a pair of a markup page and a plain text. The policy uses pairs of words
//! instead of shingles of five. A changed word, such as a version or another package name, changes two pairs
//! but five shingles. With pairs, the coefficients of copies are further from those of pages that only
//! resemble each other. The default thresholds are round numbers in the gaps between judged pairs
//! (`doppel-eval copies`, docs/reference/policies.md).
//!
//! The Jaccard distance is a metric. Code that relies on a metric uses the lowest of the three thresholds,
//! because every pair that F accepts is above it. F itself uses the threshold of the pair.
//!
//! The payload is the sketch, the hash of the site, and a *form byte*, which is 1 for plain text and 0 for
//! markup.

use super::content;
use crate::Tau;
use crate::signature::{Signature, shingles};
use crate::sketch::{BINS, sketch};

/// Number of tokens in a shingle.
pub(in crate::pairwise) const WORDS: usize = 2;

/// Default threshold of two plain texts.
pub(in crate::pairwise) const TEXT: Tau = Tau::of_hundredths(85);

/// Default threshold of a pair on one site.
pub(in crate::pairwise) const WITHIN: Tau = Tau::of_hundredths(90);

/// Default threshold of a pair on two sites.
pub(in crate::pairwise) const ACROSS: Tau = Tau::of_hundredths(85);

/// Number of bytes of the site's hash.
const SITE_BYTES: usize = 8;

/// The form byte, which says whether a page is plain text.
pub(in crate::pairwise) fn form_byte(is_text: bool) -> &'static [u8] {
    if is_text { &[1] } else { &[0] }
}

/// Replaces `set` by the set of word pairs, and appends the sketch, the site and the form byte to the
/// payload.
pub(in crate::pairwise) fn sign(
    tokens: &[u64],
    site: u64,
    is_text: bool,
    set: &mut Vec<u64>,
    payload: &mut Vec<u8>,
) {
    shingles::<WORDS>(tokens, set);
    payload.extend(sketch(set));
    payload.extend(site.to_le_bytes());
    payload.extend(form_byte(is_text));
}

/// The kind of a pair of pages, which decides its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pairwise) enum PairKind {
    /// Both pages are plain text.
    Text,
    /// Both pages are on one site, and at least one is markup.
    Within,
    /// The pages are on two sites, and at least one is markup.
    Across,
}

impl PairKind {
    /// Reads the kind of a pair from the payloads of its signatures.
    pub(in crate::pairwise) fn of(a: &Signature, b: &Signature) -> Self {
        let (x, y) = (site_and_form(a), site_and_form(b));
        let is_text = |site_and_form: &[u8]| site_and_form.last() == form_byte(true).last();
        if is_text(x) && is_text(y) {
            Self::Text
        } else if x.get(..SITE_BYTES) == y.get(..SITE_BYTES) {
            Self::Within
        } else {
            Self::Across
        }
    }

    /// Selects the threshold for this kind of pair.
    pub(in crate::pairwise) fn threshold(self, text: Tau, within: Tau, across: Tau) -> Tau {
        match self {
            Self::Text => text,
            Self::Within => within,
            Self::Across => across,
        }
    }

    /// Says in words for which pairs the threshold is.
    pub(in crate::pairwise) fn threshold_note(self) -> &'static str {
        match self {
            Self::Text => " (the threshold of two plain texts)",
            Self::Within => " (the threshold within a site)",
            Self::Across => " (the threshold across sites)",
        }
    }
}

/// The lowest of the three thresholds.
pub(in crate::pairwise) const fn lowest(text: Tau, within: Tau, across: Tau) -> Tau {
    let lower = if text.numerator() < within.numerator() { text } else { within };
    if lower.numerator() < across.numerator() { lower } else { across }
}

/// The site and the form byte of a payload.
fn site_and_form(signature: &Signature) -> &[u8] {
    signature.payload().get(BINS..).unwrap_or_default()
}

/// Whether the payload of a signature has the right length, and its set has the size in the signature.
pub(in crate::pairwise) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BINS + SITE_BYTES + 1 && content::is_set(signature)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::pairwise::{Features, Policy, Signer, TOKENS_MIN};
    use crate::signature::Signature;
    use crate::{Random, stable_hash64};

    /// A page: the words of its main content, its site, and whether it is plain text.
    type Page = (Vec<u64>, u64, bool);

    fn sign(signer: &mut Signer, (words, site, is_text): &Page) -> Signature {
        let tokens: Vec<u64> = words.iter().map(|word| stable_hash64(&word.to_le_bytes())).collect();
        // The whole page has more tokens, which the policy must ignore.
        let whole: Vec<u64> = tokens.iter().copied().chain(0..*site).collect();
        let (main, tokens) = if *is_text { (None, &tokens) } else { (Some(&*tokens), &whole) };
        signer.sign(Features { tokens, site: Some(*site), main, ..Features::default() })
    }

    /// F by its definition, with thresholds in percent, on sets of `SHINGLE` words. One shingle begins at
    /// each word, and the last ones are padded with `None`.
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
        let is_comparable = |words: &[u64]| words.len() >= TOKENS_MIN as usize;
        is_comparable(&a.0) && is_comparable(&b.0) && 100 * shared > percent * (x.len() + y.len() - shared)
    }

    /// Similar pages: all have words of the same text, with up to five changes.
    fn page() -> impl Strategy<Value = Page> {
        let words = (0..60_u64, prop::collection::vec((0..60_usize, 100..103_u64), 0..6));
        (words, 1..3_u64, any::<bool>()).prop_map(|((length, changes), site, is_text)| {
            let mut words: Vec<u64> = (0..length).map(|at| at % 45).collect();
            for (at, word) in changes {
                if let Some(changed) = words.get_mut(at) {
                    *changed = word;
                }
            }
            (words, site, is_text)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn copies_decides_as_its_definition_says(a in page(), b in page()) {
            for percent in [[85, 90, 80], [60, 55, 90]] {
                let [text, within, across] = percent;
                let policy: Policy =
                    format!("copies:text=0.{text},within=0.{within},across=0.{across}").parse().unwrap();
                let mut signer = Signer::new(policy);
                let (x, y) = (sign(&mut signer, &a), sign(&mut signer, &b));
                prop_assert_eq!(policy.similar(&x, &y), is_copy::<2>(&a, &b, percent));
                prop_assert_eq!(x.content() == y.content(), a == b);
                // Every pair that F accepts also passes the threshold of the candidates.
                let lowest = policy.metric().unwrap();
                let passes = lowest.exceeded_by(x.shared_with(&y).into(), x.size().into(), y.size().into());
                prop_assert!(!policy.similar(&x, &y) || passes || x.content() == y.content());
            }
        }

        #[test]
        fn content_decides_like_jaccard_on_the_main_content(a in page(), b in page()) {
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
    fn near_duplicates_share_a_key_almost_surely() {
        // A text has 200 word pairs, and each changed word changes two. 10 changes give 180/220, and 7 give
        // 186/214.
        for (policy, changes, shared) in [("copies:across=0.8", 10, 180), ("copies", 7, 186)] {
            let policy: Policy = policy.parse().unwrap();
            let mut signer = Signer::new(policy);
            let mut random = Random::new(5);
            let (mut pairs, mut missed) = (0, 0);
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
                let mut has_shared_key = false;
                policy.keys(&b, |key| has_shared_key |= keys.contains(&key));
                assert_eq!(has_shared_key, policy.linked(&a, &b));
                (pairs, missed) = (pairs + 1, missed + u32::from(!has_shared_key));
            }
            // At J = 0.818 a pair shares none of 16 bands of 4 bytes with probability 0.00012, and at 0.869
            // with less.
            assert!(missed <= pairs / 2_000, "{policy}: {missed} of {pairs} pairs share no key");
        }
    }

    #[test]
    fn the_sites_decide_the_threshold_of_a_page_and_a_plain_text() {
        let policy: Policy = "copies".parse().unwrap();
        let mut signer = Signer::new(policy);
        let text: Vec<u64> = (0..100).collect();
        let mut changed = text.clone();
        (0..4).for_each(|at| changed[20 * at + 7] = 1_000);
        // The texts share 92 of 108 word pairs.
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
