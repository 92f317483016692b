//! `imatch`: one of several fingerprints is equal, each of the words of a text that are in one lexicon.
//!
//! I-Match of Chowdhury, Frieder, Grossman, McCabe (*Collection statistics for fast duplicate document detection*, TOIS 2002) with the
//! random lexicons of Kolcz, Chowdhury, Alspector (*Improved robustness of signature-based near-replica detection via lexicon
//! randomization*, KDD 2004). The first lexicon has the words that are neither common nor rare in the collection: those whose
//! weight is between two shares of the greatest one. A text's fingerprint is the hash of the set of its words in the lexicon. Each of L
//! further lexicons is the first one without a random third of its words. An edit that changes
//! the first fingerprint leaves that of a lexicon without the edited words. Near-duplicates have at least one of the L + 1
//! fingerprints in common.
//!
//! Both papers vary their parameters, and their texts were not at hand: the shares, the third and the number of lexicons are ours
//! (FreeDiscovery, an implementation of the same papers, keeps 0.7 of the words). And ours is that a text with fewer than [`WORDS_MIN`] different words in a lexicon has no fingerprint there:
//! texts that have hardly anything of it in them would otherwise all be one.

use super::fingerprints::NONE;
use crate::stable_hash64;
use crate::tables::Tables;

/// The most random lexicons.
pub(super) const LEXICONS_MAX: u32 = crate::tables::LEXICONS as u32 - 1;

/// The fewest words of a fingerprint.
pub(super) const WORDS_MIN: usize = 5;

/// The parameters of a signature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lexicons {
    /// Random ones.
    pub(super) random: u32,
    /// Bounds of the weight of a word in the first lexicon, in percent of the greatest.
    pub(super) idf_from: u32,
    pub(super) idf_to: u32,
}

/// How many fingerprints a content has.
pub(super) const fn fingerprints(random: u32) -> u32 {
    random + 1
}

/// Appends the fingerprints of a sequence of terms. `words` is scratch.
pub(super) fn sign(
    terms: &[u64],
    lexicons: Lexicons,
    tables: &Tables,
    words: &mut Vec<u64>,
    payload: &mut Vec<u8>,
) {
    let share = |percent: u32| u64::from(tables.weight_max()) * u64::from(percent);
    let bounds = share(lexicons.idf_from)..=share(lexicons.idf_to);
    words.clear();
    words.extend(terms.iter().filter(|term| bounds.contains(&(100 * u64::from(tables.weight(**term))))));
    words.sort_unstable();
    words.dedup();
    let mut bytes = Vec::with_capacity(8 * words.len());
    for lexicon in 0..fingerprints(lexicons.random) as usize {
        bytes.clear();
        let kept = words.iter().filter(|word| tables.has(lexicon, **word));
        bytes.extend(kept.flat_map(|word| word.to_le_bytes()));
        let fingerprint = if bytes.len() < 8 * WORDS_MIN { NONE } else { stable_hash64(&bytes) };
        payload.extend(fingerprint.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::fingerprints::{equal, keys};
    use super::*;
    use crate::ContentHash;
    use crate::stable_hash128;
    use crate::tables::{Sample, log2};

    /// As the papers say it, one lexicon and one word at a time; of the tables it takes the lexicons alone.
    fn slow(terms: &[u64], lexicons: Lexicons, texts: &[Vec<u64>], tables: &Tables) -> Vec<u64> {
        let distinct: BTreeSet<&Vec<u64>> = texts.iter().filter(|text| !text.is_empty()).collect();
        let greatest = log2(distinct.len().max(1) as u64 + 1, 1);
        let is_in = |term: u64| {
            let with = distinct.iter().filter(|text| text.contains(&term)).count().max(1) as u64;
            let percent =
                100.0 * f64::from(log2(distinct.len().max(1) as u64 + 1, with)) / f64::from(greatest);
            percent >= f64::from(lexicons.idf_from) && percent <= f64::from(lexicons.idf_to)
        };
        let mut fingerprints = Vec::new();
        for lexicon in 0..=lexicons.random as usize {
            let set: BTreeSet<u64> =
                terms.iter().copied().filter(|term| is_in(*term) && tables.has(lexicon, *term)).collect();
            let bytes: Vec<u8> = set.iter().flat_map(|term| term.to_le_bytes()).collect();
            fingerprints.push(if set.len() < 5 { 0 } else { stable_hash64(&bytes) });
        }
        fingerprints
    }

    fn learnt(texts: &[Vec<u64>]) -> Tables {
        let mut sample = Sample::new();
        for text in texts {
            let bytes: Vec<u8> = text.iter().flat_map(|term| term.to_le_bytes()).collect();
            sample.add(ContentHash(stable_hash128(&bytes).to_be_bytes()), &mut text.clone());
        }
        Tables::learn("imatch", &sample)
    }

    fn signed(terms: &[u64], lexicons: Lexicons, tables: &Tables) -> Vec<u8> {
        let mut payload = Vec::new();
        sign(terms, lexicons, tables, &mut Vec::new(), &mut payload);
        payload
    }

    fn text() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec((0..60_u64).prop_map(|number| stable_hash64(&number.to_le_bytes())), 0..40)
    }

    proptest! {
        #[test]
        fn fingerprints_are_those_of_the_papers_bit_for_bit(
            texts in prop::collection::vec(text(), 1..12), random in 0..=LEXICONS_MAX,
            idf_from in 0..50_u32, idf_to in 50..=100_u32,
        ) {
            let (tables, lexicons) = (learnt(&texts), Lexicons { random, idf_from, idf_to });
            for text in &texts {
                let expected: Vec<u8> =
                    slow(text, lexicons, &texts, &tables).into_iter().flat_map(u64::to_le_bytes).collect();
                prop_assert_eq!(signed(text, lexicons, &tables), expected);
            }
        }

        #[test]
        fn whatever_has_a_fingerprint_in_common_has_a_key_in_common(
            a in prop::collection::vec(0..3_u64, 11), b in prop::collection::vec(0..3_u64, 11),
        ) {
            let payload = |all: &[u64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>();
            let keys = |all: &[u64]| {
                let mut found = Vec::new();
                keys(&payload(all), |key| found.push(key));
                found
            };
            let meets = keys(&a).iter().any(|key| keys(&b).contains(key));
            prop_assert_eq!(equal(&payload(&a), &payload(&b)) > 0, meets);
        }
    }

    #[test]
    fn rare_and_common_words_and_their_order_do_not_matter() {
        let word = |number: u64| stable_hash64(&number.to_le_bytes());
        // Words 0 to 9 are in every text; 100 to 119 in a quarter of them; all others in one.
        let texts: Vec<Vec<u64>> = (0..16_u64)
            .map(|text| {
                let own = 1_000 * (1 + text);
                let some = if text % 4 == 0 { 100..120 } else { 0..0 };
                (0..10).chain(some).chain(own..own + 10).map(word).collect()
            })
            .collect();
        let (tables, lexicons) = (learnt(&texts), Lexicons { random: 10, idf_from: 20, idf_to: 85 });
        let signed = |words: &[u64]| {
            signed(&words.iter().map(|number| word(*number)).collect::<Vec<_>>(), lexicons, &tables)
        };
        let middle: Vec<u64> = (100..120).collect();
        let mut others: Vec<u64> = middle.iter().rev().copied().chain([0, 3, 3, 5_000, 777]).collect();
        assert_eq!(equal(&signed(&middle), &signed(&others)), 11);
        // Without one of them the first fingerprint is another one, and that of a lexicon which lacks the word is not.
        others.retain(|number| *number != 104);
        let (left, of) = (equal(&signed(&middle), &signed(&others)), signed(&others).len() / 8);
        assert!((1..11).contains(&left) && of == 11, "{left} of {of}");
        // Four words are too few.
        assert_eq!(equal(&signed(&middle[..4]), &signed(&middle[..4])), 0);
    }
}
