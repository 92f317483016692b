//! What depends on a sample: terms, the weights that are learnt of them, lexicons, and the fingerprints made with both.

use std::collections::{BTreeMap, BTreeSet};

use frostem::{Algorithm, Stemmer};

use crate::bits::{Bits, voted};
use crate::written::{golden, hash, hash_of_all, mix, polynomial};

/// The terms of words: without English stop words, ASCII ones of at most 48 bytes reduced to their stems.
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

/// What is learnt: how many of the contents have each term.
pub(crate) struct Learnt {
    contents: u64,
    with: BTreeMap<String, u64>,
}

impl Learnt {
    /// Of the words and terms of pages. Each content counts once, and one without terms not at all.
    pub(crate) fn of<'p>(pages: impl IntoIterator<Item = (&'p [String], &'p [String])>) -> Self {
        let distinct: BTreeMap<&[String], &[String]> = pages.into_iter().collect();
        let mut learnt = Self { contents: 0, with: BTreeMap::new() };
        for terms in distinct.into_values().filter(|terms| !terms.is_empty()) {
            learnt.contents += 1;
            for term in terms.iter().collect::<BTreeSet<_>>() {
                *learnt.with.entry(term.clone()).or_default() += 1;
            }
        }
        // There is room for all of them.
        assert!(learnt.contents <= 20_000 && learnt.with.values().sum::<u64>() <= 8 << 20);
        learnt
    }

    pub(crate) fn contents(&self) -> u64 {
        self.contents
    }

    /// The terms of which a weight is kept: those in more than one content.
    pub(crate) fn kept(&self) -> usize {
        self.with.values().filter(|contents| **contents > 1).count()
    }

    pub(crate) fn seen(&self) -> impl Iterator<Item = &str> {
        self.with.keys().map(String::as_str)
    }

    /// log2((n + 1) / d), in units of 2^-16 and rounded down. A term that was not seen is one of a single content.
    pub(crate) fn weight(&self, term: &str) -> u64 {
        let with = self.with.get(term).copied().unwrap_or(1);
        (((self.contents.max(1) + 1) as f64 / with as f64).log2() * 65_536.0).floor() as u64
    }

    /// The greatest weight.
    fn weight_max(&self) -> u64 {
        (((self.contents.max(1) + 1) as f64).log2() * 65_536.0).floor() as u64
    }
}

/// Whether a lexicon has a term: the first one has all, each other one two thirds of all hashes, mixed with its seed.
pub(crate) fn has(lexicon: u64, term: &str) -> bool {
    let drawn = mix(hash(term) ^ mix(golden(lexicon)));
    lexicon == 0 || 3 * u128::from(drawn) < 2 * u128::from(u64::MAX)
}

/// Eleven fingerprints, each the hash of the hashes of the terms that a lexicon has and whose weight is from 20 to 85 percent of the
/// greatest; 0 where these are fewer than five.
pub(crate) fn imatch(terms: &[String], learnt: &Learnt, random: u64, percent: (u64, u64)) -> Vec<u64> {
    let is_in = |term: &&String| {
        let (weight, greatest) = (100 * learnt.weight(term), learnt.weight_max());
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

/// For each lexicon 32 bits; none where it leaves no sequence of so many terms.
pub(crate) fn multi_simhash(
    terms: &[String],
    learnt: &Learnt,
    words: usize,
    lexicons: u64,
) -> Vec<Option<Bits>> {
    let fingerprint = |lexicon: u64| {
        let left: Vec<&String> = terms.iter().filter(|term| has(lexicon, term)).collect();
        let features: BTreeSet<&[&String]> = left.windows(words).collect();
        let weighted = |feature: &[&String]| {
            let hashes: Vec<u64> = feature.iter().map(|term| hash(term)).collect();
            let weight: u64 = feature.iter().map(|term| learnt.weight(term)).sum();
            (mix(polynomial(&hashes)), weight as i64)
        };
        (!features.is_empty()).then(|| voted(features.into_iter().map(weighted), 32))
    };
    (0..lexicons).map(fingerprint).collect()
}

/// The payload: a bit for each lexicon that has a fingerprint, and four bytes for each.
pub(crate) fn payload(fingerprints: &[Option<Bits>]) -> Vec<u8> {
    let present: Bits = (0..16).map(|at| fingerprints.get(at).is_some_and(Option::is_some)).collect();
    let none = vec![false; 32];
    let all = fingerprints.iter().flat_map(|bits| crate::bits::bytes(bits.as_ref().unwrap_or(&none)));
    crate::bits::bytes(&present).into_iter().chain(all).collect()
}
