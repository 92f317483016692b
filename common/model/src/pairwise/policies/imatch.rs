//! The policy `imatch`: at least one of several fingerprints is equal. Each fingerprint covers the words of a
//! text that are in one lexicon.
//!
//! This is I-Match of Chowdhury, Frieder, Grossman, McCabe (*Collection statistics for fast duplicate
//! document detection*, TOIS 2002) with the random lexicons of Kolcz, Chowdhury, Alspector (*Improved
//! robustness of signature-based near-replica detection via lexicon randomization*, KDD 2004).
//!
//! The first lexicon has the words that are neither common nor rare in the collection. Their weight is
//! between two percentages of the greatest weight. The fingerprint of a text is the hash of the set of its
//! words in the lexicon. Each of L further lexicons is the first one without a random third of its words. An
//! edit that changes the first fingerprint does not change the fingerprint of a lexicon without the edited
//! words. Near-duplicates share at least one of the L + 1 fingerprints.
//!
//! Both papers vary their parameters, and their texts were not available. Therefore the percentages, the
//! third, and the number of lexicons are choices of Doppel. FreeDiscovery, another implementation of the
//! papers, keeps 0.7 of the words. Doppel also requires [`WORDS_MIN`] different words for a fingerprint.
//! Without this minimum, all texts with hardly any words in a lexicon would be near-duplicates.

use super::fingerprints::MISSING;
use crate::stable_hash64;
use crate::tables::Tables;

/// The largest number of random lexicons.
pub(in crate::pairwise) const LEXICONS_MAX: u32 = crate::tables::LEXICONS as u32 - 1;

/// The smallest number of different words for which there is a fingerprint.
pub(in crate::pairwise) const WORDS_MIN: usize = 5;

/// The lexicons for which a signature has fingerprints.
#[derive(Debug, Clone, Copy)]
pub(in crate::pairwise) struct Lexicons {
    /// Number of random lexicons.
    pub(in crate::pairwise) random: u32,
    /// Minimum weight of a word in the first lexicon, in percent of the greatest weight.
    pub(in crate::pairwise) idf_from: u32,
    /// Maximum weight of a word in the first lexicon, in percent of the greatest weight.
    pub(in crate::pairwise) idf_to: u32,
}

/// The number of fingerprints of a content: one for each random lexicon, and one for the first lexicon.
pub(in crate::pairwise) const fn fingerprints(random: u32) -> u32 {
    random + 1
}

/// Appends the fingerprints of a sequence of terms to the payload. `words` is a scratch buffer.
pub(in crate::pairwise) fn sign(
    terms: &[u64],
    lexicons: Lexicons,
    tables: &Tables,
    words: &mut Vec<u64>,
    payload: &mut Vec<u8>,
) {
    // Weights are compared with percentages of the greatest weight, so both sides are multiplied by 100.
    let percent_of_max = |percent: u32| u64::from(tables.weight_max()) * u64::from(percent);
    let bounds = percent_of_max(lexicons.idf_from)..=percent_of_max(lexicons.idf_to);
    words.clear();
    words.extend(terms.iter().filter(|term| bounds.contains(&(100 * u64::from(tables.weight(**term))))));
    words.sort_unstable();
    words.dedup();
    let mut bytes = Vec::with_capacity(8 * words.len());
    for lexicon in 0..fingerprints(lexicons.random) as usize {
        bytes.clear();
        let in_lexicon = words.iter().filter(|word| tables.has(lexicon, **word));
        bytes.extend(in_lexicon.flat_map(|word| word.to_le_bytes()));
        let fingerprint = if bytes.len() < 8 * WORDS_MIN { MISSING } else { stable_hash64(&bytes) };
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
    use crate::tables::{TermSample, log2};

    /// A direct implementation of the papers, one lexicon and one word at a time. Of the tables it uses only
    /// the lexicons.
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
        let mut sample = TermSample::new();
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
        fn fingerprints_equal_those_of_the_papers_bit_for_bit(
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
        fn payloads_share_a_key_exactly_if_they_share_a_fingerprint(
            a in prop::collection::vec(0..3_u64, 11), b in prop::collection::vec(0..3_u64, 11),
        ) {
            let payload = |all: &[u64]| all.iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<u8>>();
            let keys = |all: &[u64]| {
                let mut keys_of_payload = Vec::new();
                keys(&payload(all), |key| keys_of_payload.push(key));
                keys_of_payload
            };
            let has_shared_key = keys(&a).iter().any(|key| keys(&b).contains(key));
            prop_assert_eq!(equal(&payload(&a), &payload(&b)) > 0, has_shared_key);
        }
    }

    #[test]
    fn rare_words_common_words_and_word_order_do_not_change_fingerprints() {
        let word = |number: u64| stable_hash64(&number.to_le_bytes());
        // Words 0 to 9 are in every text, words 100 to 119 in every fourth, and every other word in one text.
        let texts: Vec<Vec<u64>> = (0..16_u64)
            .map(|text| {
                let first_rare = 1_000 * (1 + text);
                let middle = if text % 4 == 0 { 100..120 } else { 0..0 };
                (0..10).chain(middle).chain(first_rare..first_rare + 10).map(word).collect()
            })
            .collect();
        let (tables, lexicons) = (learnt(&texts), Lexicons { random: 10, idf_from: 20, idf_to: 85 });
        let signed = |words: &[u64]| {
            signed(&words.iter().map(|number| word(*number)).collect::<Vec<_>>(), lexicons, &tables)
        };
        let middle: Vec<u64> = (100..120).collect();
        let mut others: Vec<u64> = middle.iter().rev().copied().chain([0, 3, 3, 5_000, 777]).collect();
        assert_eq!(equal(&signed(&middle), &signed(&others)), 11);
        // Removing one word changes the first fingerprint, but not those of the lexicons that lack the word.
        others.retain(|number| *number != 104);
        let (equal_ones, all) = (equal(&signed(&middle), &signed(&others)), signed(&others).len() / 8);
        assert!((1..11).contains(&equal_ones) && all == 11, "{equal_ones} of {all}");
        // Four words are too few for a fingerprint.
        assert_eq!(equal(&signed(&middle[..4]), &signed(&middle[..4])), 0);
    }
}
