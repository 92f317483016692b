//! Terms in the reference, and everything that is derived from a sample of pages: weights of terms, lexicons,
//! and the fingerprints that use them.

use std::collections::{BTreeMap, BTreeSet};

use frostem::{Algorithm, Stemmer};

use crate::bits::{Bits, voted};
use crate::layout::{golden, hash, hash_of_all, mix, polynomial};

/// Returns the terms of words: without English stop words, and with ASCII words of at most 48 bytes reduced
/// to their stems.
pub(crate) fn terms(words: &[String]) -> Vec<String> {
    let mut stop_words = BTreeSet::new();
    for word in stop_words::lookup("en").unwrap() {
        // The parts of a contraction are words of their own.
        doppel_baseline::tokens::each_token(word, |token| {
            stop_words.insert(token.to_owned());
        });
    }
    let stemmer = Stemmer::new(Algorithm::English);
    let term = |word: &String| match word.is_ascii() && word.len() <= 48 {
        true => stemmer.stem(word).to_string(),
        false => word.clone(),
    };
    words.iter().filter(|word| !stop_words.contains(*word)).map(term).collect()
}

/// Statistics of a sample: the number of contents that contain each term.
pub(crate) struct TermStatistics {
    contents: u64,
    contents_with: BTreeMap<String, u64>,
}

impl TermStatistics {
    /// Learns from the words and terms of pages. Each content counts once, and contents without terms do not
    /// count.
    pub(crate) fn of<'p>(pages: impl IntoIterator<Item = (&'p [String], &'p [String])>) -> Self {
        let distinct: BTreeMap<&[String], &[String]> = pages.into_iter().collect();
        let mut statistics = Self { contents: 0, contents_with: BTreeMap::new() };
        for terms in distinct.into_values().filter(|terms| !terms.is_empty()) {
            statistics.contents += 1;
            for term in terms.iter().collect::<BTreeSet<_>>() {
                *statistics.contents_with.entry(term.clone()).or_default() += 1;
            }
        }
        // The sample of the product has the same limits, so it takes all contents.
        assert!(statistics.contents <= 20_000 && statistics.contents_with.values().sum::<u64>() <= 8 << 20);
        statistics
    }

    pub(crate) fn contents(&self) -> u64 {
        self.contents
    }

    /// Returns the number of terms whose weight the tables store: terms that occur in more than one content.
    pub(crate) fn weighted_terms(&self) -> usize {
        self.contents_with.values().filter(|contents| **contents > 1).count()
    }

    pub(crate) fn terms(&self) -> impl Iterator<Item = &str> {
        self.contents_with.keys().map(String::as_str)
    }

    /// Returns the weight of a term, log2((n + 1) / d), in units of 2^-16 and rounded down. A term outside
    /// the sample counts as occurring in a single content.
    pub(crate) fn weight(&self, term: &str) -> u64 {
        let contents_with = self.contents_with.get(term).copied().unwrap_or(1);
        (((self.contents.max(1) + 1) as f64 / contents_with as f64).log2() * 65_536.0).floor() as u64
    }

    /// Returns the greatest possible weight.
    fn weight_max(&self) -> u64 {
        (((self.contents.max(1) + 1) as f64).log2() * 65_536.0).floor() as u64
    }
}

/// Whether a lexicon contains a term. The first lexicon contains all terms. Every other lexicon contains two
/// thirds of all hashes, mixed with its seed.
pub(crate) fn has(lexicon: u64, term: &str) -> bool {
    let drawn = mix(hash(term) ^ mix(golden(lexicon)));
    lexicon == 0 || 3 * u128::from(drawn) < 2 * u128::from(u64::MAX)
}

/// Returns `random + 1` fingerprints, one for each lexicon. A fingerprint is the hash of the hashes of the
/// terms that are in the lexicon and whose weight lies within `percent` of the greatest weight. It is 0 if
/// there are fewer than five such terms.
pub(crate) fn imatch(
    terms: &[String],
    statistics: &TermStatistics,
    random: u64,
    percent: (u64, u64),
) -> Vec<u64> {
    let is_in = |term: &&String| {
        let (weight, greatest) = (100 * statistics.weight(term), statistics.weight_max());
        weight >= percent.0 * greatest && weight <= percent.1 * greatest
    };
    let words: BTreeSet<&String> = terms.iter().filter(is_in).collect();
    let fingerprint = |lexicon: u64| {
        let mut own: Vec<u64> =
            words.iter().filter(|term| has(lexicon, term)).map(|term| hash(term)).collect();
        own.sort_unstable();
        if own.len() < 5 { 0 } else { hash_of_all(&own) }
    };
    (0..=random).map(fingerprint).collect()
}

/// Returns 32 bits for each lexicon, or `None` for a lexicon that contains fewer than `words` terms of the
/// page.
pub(crate) fn multi_simhash(
    terms: &[String],
    statistics: &TermStatistics,
    words: usize,
    lexicons: u64,
) -> Vec<Option<Bits>> {
    let fingerprint = |lexicon: u64| {
        let left: Vec<&String> = terms.iter().filter(|term| has(lexicon, term)).collect();
        let features: BTreeSet<&[&String]> = left.windows(words).collect();
        let weighted = |feature: &[&String]| {
            let hashes: Vec<u64> = feature.iter().map(|term| hash(term)).collect();
            let weight: u64 = feature.iter().map(|term| statistics.weight(term)).sum();
            (mix(polynomial(&hashes)), weight as i64)
        };
        (!features.is_empty()).then(|| voted(features.into_iter().map(weighted), 32))
    };
    (0..lexicons).map(fingerprint).collect()
}

/// Returns the payload of a signature: a bit for each lexicon that has a fingerprint, and four bytes for each
/// lexicon.
pub(crate) fn payload(fingerprints: &[Option<Bits>]) -> Vec<u8> {
    let present: Bits = (0..16).map(|at| fingerprints.get(at).is_some_and(Option::is_some)).collect();
    let none = vec![false; 32];
    let all = fingerprints.iter().flat_map(|bits| crate::bits::bytes(bits.as_ref().unwrap_or(&none)));
    crate::bits::bytes(&present).into_iter().chain(all).collect()
}
