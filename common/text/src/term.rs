//! Terms: the words of a text as policies with tables read them.
//!
//! Tokens without stop words, each reduced to its stem and known by the [`stable_hash64`] of that. Both are English: the stop words are
//! those of the NLTK corpus, and stems are by Snowball's English stemmer (Porter 2). No language is detected, for two versions of
//! a page must have the same terms: a token of ASCII letters and digits is reduced whatever language it is of, which does no harm, and
//! every other token stays as it is.
//!
//! Any change of these rules, and so of either crate, needs a new [`TERMS_VERSION`](doppel_model::tables::TERMS_VERSION).

use std::collections::BTreeSet;

use doppel_model::stable_hash64;
use frostem::{Algorithm, Stemmer};

use super::token::Tokeniser;

/// A longer token is no English word, and stays as it is.
const WORD_BYTES_MAX: usize = 48;

/// Tokens whose terms are remembered: stemming one costs as much as reading a line.
const REMEMBERED: usize = 1 << 13;

/// Makes terms of tokens. It reuses its buffers.
#[derive(Clone)]
pub(super) struct Terms {
    stemmer: Stemmer,
    /// The hashes of stop words.
    stop_words: BTreeSet<u64>,
    /// Hashes of tokens, each in the place that its lowest bits name, and of their terms; none of stop words.
    remembered: Box<[(u64, Option<u64>)]>,
    terms: Vec<u64>,
}

impl Terms {
    pub(super) fn new() -> Self {
        // A hash that belongs in another place is never found.
        let remembered = (0..REMEMBERED as u64).map(|place| (!place, None)).collect();
        let stop_words = stop_words().collect();
        Self { stemmer: Stemmer::new(Algorithm::English), stop_words, remembered, terms: Vec::new() }
    }

    /// Begins a text.
    pub(super) fn clear(&mut self) {
        self.terms.clear();
    }

    /// Takes the next token of the text, in lower case, and its hash.
    pub(super) fn push(&mut self, token: &[u8], hash: u64) {
        let place = hash as usize % REMEMBERED;
        if self.remembered[place].0 != hash {
            self.remembered[place] = (hash, self.term(token, hash));
        }
        self.terms.extend(self.remembered[place].1);
    }

    /// The terms of the text so far.
    pub(super) fn get(&self) -> &[u64] {
        &self.terms
    }

    fn term(&self, token: &[u8], hash: u64) -> Option<u64> {
        if self.stop_words.contains(&hash) {
            return None;
        }
        let is_word = token.is_ascii() && token.len() <= WORD_BYTES_MAX;
        let word = std::str::from_utf8(token).ok().filter(|_| is_word);
        Some(word.map_or(hash, |word| stable_hash64(self.stemmer.stem(word).as_bytes())))
    }
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terms").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// The hashes of stop words. The parts of a contraction are tokens here, and are stop words themselves.
fn stop_words() -> impl Iterator<Item = u64> {
    let mut tokeniser = Tokeniser::default();
    let words = stop_words::lookup("en").unwrap_or_default();
    words.iter().flat_map(move |word| tokeniser.tokens(&mut word.as_bytes().to_vec()).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terms of a text.
    fn terms(text: &str) -> Vec<u64> {
        let mut terms = Terms::new();
        Tokeniser::default().visit_tokens(&mut text.as_bytes().to_vec(), |token, hash| terms.push(token, hash));
        terms.get().to_vec()
    }

    fn words(text: &str) -> Vec<u64> {
        text.split_whitespace().map(|word| stable_hash64(word.as_bytes())).collect()
    }

    /// Stored signatures depend on each of these.
    #[test]
    fn stop_words_go_and_english_is_reduced_to_its_stems() {
        for (text, expected) in [
            ("The cats weren't sitting on their mats, you're told!", "cat sit mat told"),
            (
                "Generalizations of relational databases, running fruitlessly",
                "general relat databas run fruitless",
            ),
            ("HTTP2 skies dying happily 1984", "http2 sky die happili 1984"),
            ("It is not what I will have done; don't.", "done"),
            ("Ünïcode naïveté stays", "ünïcode naïveté stay"),
            ("Автомобили 東京タワー", "автомобили 東京 タワ ワー"),
            ("news inning exceeding proceed succeed", "news inning exceed proceed succeed"),
            ("", ""),
        ] {
            assert_eq!(terms(text), words(expected), "{text}");
        }
        let long = "ings".repeat(13);
        assert_eq!(terms(&long), words(&long));
    }

    /// The list as a whole: a change of it changes signatures, and needs a new version of terms.
    #[test]
    fn the_stop_words_are_those_of_this_version() {
        let all: BTreeSet<u64> = stop_words().collect();
        let sum = all.iter().fold(0_u64, |sum, hash| sum.wrapping_add(*hash));
        assert_eq!((all.len(), sum), (153, 0x044e_e573_64ca_da61));
    }

    #[test]
    fn what_is_remembered_is_what_would_be_made() {
        let mut kept = Terms::new();
        for round in 0..3 {
            for number in 0..40_000_u64 {
                let token = format!("{}s", number / (1 + round)).into_bytes();
                let hash = stable_hash64(&token);
                kept.clear();
                kept.push(&token, hash);
                assert_eq!(kept.get(), Vec::from_iter(kept.term(&token, hash)));
            }
        }
    }
}
