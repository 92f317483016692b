//! Words that the program makes up, drawn as in natural language: the r-th word with a probability in
//! proportion to 1/r.
//!
//! Only the basic operations of IEEE 754 are used, so a seed gives the same words on every machine.

use doppel_model::{PageUrl, Random, Timestamp};

use crate::generator::Source;
use crate::pages::Words;

/// Number of distinct words.
const WORDS: usize = 50_000;
/// Number of syllables of a word. All words have the same number of letters.
const SYLLABLES: u32 = 3;
const CONSONANTS: &[u8] = b"bcdfghjklmnpqrstvwxz";
const VOWELS: &[u8] = b"aeiou";

/// Texts of made-up words.
pub(crate) struct MadeUp {
    /// Number of words of a text.
    length: usize,
    spellings: Vec<String>,
    /// For each word, the sum of the weights of this word and all words before it. The probability of a word
    /// is its weight, divided by the last sum.
    cumulative: Vec<f64>,
}

impl MadeUp {
    /// Creates a source of texts of `length` words.
    pub(crate) fn new(length: usize) -> Self {
        let mut sum = 0.0;
        let weight = |rank: usize| {
            sum += 1.0 / rank as f64;
            sum
        };
        let cumulative = (1..=WORDS).map(weight).collect();
        Self { length, spellings: (0..WORDS).map(spelling).collect(), cumulative }
    }
}

/// Spells a word as syllables, each of a consonant and a vowel.
fn spelling(word: usize) -> String {
    let base = CONSONANTS.len() * VOWELS.len();
    let mut letters = String::new();
    for place in 0..SYLLABLES {
        let syllable = word / base.pow(place) % base;
        letters.push(char::from(CONSONANTS[syllable % CONSONANTS.len()]));
        letters.push(char::from(VOWELS[syllable / CONSONANTS.len()]));
    }
    letters
}

impl Source for MadeUp {
    type Word = u32;

    fn real(&self) -> usize {
        0
    }

    fn page(&self, _: usize) -> &[u32] {
        &[]
    }

    fn family(&self, random: &mut Random) -> Vec<u32> {
        (0..self.length).map(|_| self.word(random)).collect()
    }

    fn word(&self, random: &mut Random) -> u32 {
        let total = self.cumulative.last().copied().unwrap_or_default();
        let drawn = random.unit() * total;
        self.cumulative.partition_point(|upto| *upto <= drawn).min(WORDS - 1) as u32
    }

    fn is_empty(&self) -> bool {
        false
    }
}

impl Words for MadeUp {
    fn spelling(&self, word: u32) -> &str {
        &self.spellings[word as usize]
    }

    fn origin(&self, _: usize) -> Option<(PageUrl, Timestamp)> {
        None
    }
}
