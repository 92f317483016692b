//! Cuts the terms of a text, which policies with tables compare. A term is the stem of a token; stop words
//! have no term. Each term is represented by its [`stable_hash64`].
//!
//! Stop words and stems are English. The stop words come from the NLTK corpus, and the stemmer is Snowball's
//! English stemmer (Porter 2). The language is not detected, because two versions of a page must have the
//! same terms. Tokens of ASCII letters and digits are therefore stemmed in every language, which does no
//! harm. All other tokens stay unchanged.
//!
//! Any change of these rules, or of the crates for stems and stop words, needs a new
//! [`TERMS_VERSION`](doppel_model::tables::TERMS_VERSION).

use std::collections::BTreeSet;

use doppel_model::stable_hash64;
use frostem::{Algorithm, Stemmer};

use super::tokeniser::Tokeniser;

/// Maximum length of a token that is stemmed. A longer token is not an English word.
const WORD_BYTES_MAX: usize = 48;

/// Number of slots in the cache of terms. Stemming a token costs as much as reading a line.
const CACHE_SLOTS: usize = 1 << 13;

/// Turns the tokens of a text into terms: hashes of English stems, without stop words. The cache and the
/// buffers are reused from text to text.
#[derive(Clone)]
pub(crate) struct Terms {
    stemmer: Stemmer,
    /// Hashes of the stop words.
    stop_words: BTreeSet<u64>,
    /// Cache of terms. The lowest bits of a token's hash name its slot, which stores the hash of the token
    /// and the hash of its term. A stop word has `None` instead of a term.
    cache: Box<[(u64, Option<u64>)]>,
    terms: Vec<u64>,
}

impl Terms {
    pub(crate) fn new() -> Self {
        // The initial hash of a slot belongs to another slot, so no lookup matches it.
        let cache = (0..CACHE_SLOTS as u64).map(|slot| (!slot, None)).collect();
        let stop_words = stop_words().collect();
        Self { stemmer: Stemmer::new(Algorithm::English), stop_words, cache, terms: Vec::new() }
    }

    /// Begins a new text.
    pub(crate) fn clear(&mut self) {
        self.terms.clear();
    }

    /// Appends the term of the next token. `token` is in the form of words, and `hash` is its hash.
    pub(crate) fn push(&mut self, token: &[u8], hash: u64) {
        let slot = hash as usize % CACHE_SLOTS;
        if self.cache[slot].0 != hash {
            self.cache[slot] = (hash, self.term(token, hash));
        }
        self.terms.extend(self.cache[slot].1);
    }

    /// Returns the terms of the text so far.
    pub(crate) fn get(&self) -> &[u64] {
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

/// Returns the hashes of the stop words. A contraction is cut into tokens, and each part is a stop word.
fn stop_words() -> impl Iterator<Item = u64> {
    let mut tokeniser = Tokeniser::default();
    let words = stop_words::lookup("en").unwrap_or_default();
    words.iter().flat_map(move |word| tokeniser.tokens(&mut word.as_bytes().to_vec()).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<u64> {
        let mut terms = Terms::new();
        Tokeniser::default()
            .visit_tokens(&mut text.as_bytes().to_vec(), |token, hash| terms.push(token, hash));
        terms.get().to_vec()
    }

    fn words(text: &str) -> Vec<u64> {
        text.split_whitespace().map(|word| stable_hash64(word.as_bytes())).collect()
    }

    /// Stored signatures depend on each of these examples.
    #[test]
    fn stop_words_are_removed_and_english_words_are_reduced_to_their_stems() {
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

    /// A change of the list of stop words changes signatures and needs a new `TERMS_VERSION`.
    #[test]
    fn the_list_of_stop_words_has_not_changed() {
        let all: BTreeSet<u64> = stop_words().collect();
        let sum = all.iter().fold(0_u64, |sum, hash| sum.wrapping_add(*hash));
        assert_eq!((all.len(), sum), (153, 0x044e_e573_64ca_da61));
    }

    #[test]
    fn a_cached_term_equals_a_computed_term() {
        let mut terms = Terms::new();
        for round in 0..3 {
            for number in 0..40_000_u64 {
                let token = format!("{}s", number / (1 + round)).into_bytes();
                let hash = stable_hash64(&token);
                terms.clear();
                terms.push(&token, hash);
                assert_eq!(terms.get(), Vec::from_iter(terms.term(&token, hash)));
            }
        }
    }
}
