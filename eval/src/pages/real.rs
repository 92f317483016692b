//! Texts of real crawls as words, and families of texts recombined from them.
//!
//! A word is a run of characters between white space, with its punctuation. Each spelling is stored once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use doppel_crawls::FetchedPage;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::crawl;
use doppel_model::{PageUrl, Random, Timestamp};
use doppel_terminal::exit::Failure;
use doppel_text::Extractor;

use crate::families;
use crate::generator::Source;
use crate::pages::Words;

/// Minimum number of characters of a text; shorter texts are left out. A space between two words counts.
const CHARACTERS_MIN: usize = 300;

/// Texts of real pages, in the order in which their URLs first came.
#[derive(Default)]
pub(crate) struct RealTexts {
    texts: Vec<Vec<u32>>,
    origins: Vec<(PageUrl, Timestamp)>,
    vocabulary: Vocabulary,
}

impl RealTexts {
    /// Reads the newest version of each page.
    ///
    /// # Errors
    /// If an input does not exist, or if no page has enough text.
    pub(crate) fn read(inputs: &InputArgs) -> anyhow::Result<Self> {
        let mut newest = Newest::default();
        let mut extractor = Extractor::default();
        let tally = crawl::read(inputs, |page| {
            newest.record(&page, &mut extractor);
            Ok(())
        })?;
        tally.verdict(inputs.strict, 0)?;
        let texts = newest.texts();
        if texts.is_empty() {
            let why = format!(
                "no page has a text of {CHARACTERS_MIN} characters or more; give crawls with longer pages"
            );
            return Err(Failure::BadInput(why).into());
        }
        Ok(texts)
    }
}

/// Newest version of each page that has been read so far.
#[derive(Default)]
struct Newest {
    numbers: HashMap<PageUrl, usize>,
    /// URL, date and words of each page. The words are empty if the version is too short or has no content.
    texts: Vec<(PageUrl, Timestamp, Vec<u32>)>,
    vocabulary: Vocabulary,
}

impl Newest {
    fn record(&mut self, page: &FetchedPage, extractor: &mut Extractor) {
        // The reader of crawls supplies a missing date.
        let date = page.fetched_at.unwrap_or(Timestamp::from_millis(0));
        let next = self.texts.len();
        let number = match self.numbers.entry(page.url.clone()) {
            Entry::Vacant(entry) => {
                self.texts.push((page.url.clone(), date, Vec::new()));
                *entry.insert(next)
            }
            Entry::Occupied(known) => *known.get(),
        };
        if self.texts[number].1 > date {
            return;
        }
        let text = page.body.raw_content().and_then(|raw| extractor.page_text(&page.url, raw).text());
        let words = text.map(|text| self.vocabulary.words(&text)).unwrap_or_default();
        (self.texts[number].1, self.texts[number].2) = (date, words);
    }

    fn texts(self) -> RealTexts {
        let mut real = RealTexts { vocabulary: self.vocabulary, ..RealTexts::default() };
        for (url, date, words) in self.texts.into_iter().filter(|(.., words)| !words.is_empty()) {
            real.texts.push(words);
            real.origins.push((url, date));
        }
        real
    }
}

/// Words with their numbers: the number of each spelling, and the spelling of each number.
#[derive(Default)]
struct Vocabulary {
    numbers: HashMap<Box<str>, u32>,
    spellings: Vec<Box<str>>,
}

impl Vocabulary {
    /// Returns the numbers of the words of a text, in text order. Empty if the text is too short.
    fn words(&mut self, text: &str) -> Vec<u32> {
        let characters: usize = text.split_whitespace().map(|word| word.chars().count() + 1).sum();
        if characters <= CHARACTERS_MIN {
            return Vec::new();
        }
        text.split_whitespace().map(|word| self.number(word)).collect()
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(known) = self.numbers.get(word) {
            return *known;
        }
        let next = self.spellings.len() as u32;
        self.spellings.push(word.into());
        self.numbers.insert(word.into(), next);
        next
    }
}

impl Source for RealTexts {
    type Word = u32;

    fn real(&self) -> usize {
        self.texts.len()
    }

    fn page(&self, number: usize) -> &[u32] {
        &self.texts[number]
    }

    fn family(&self, random: &mut Random) -> Vec<u32> {
        families::recombined(&self.texts, random)
    }

    /// Draws a word with a probability in proportion to how often it occurs.
    fn word(&self, random: &mut Random) -> u32 {
        let text = &self.texts[random.index(self.texts.len())];
        text[random.index(text.len())]
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

impl Words for RealTexts {
    fn spelling(&self, word: u32) -> &str {
        &self.vocabulary.spellings[word as usize]
    }

    fn origin(&self, number: usize) -> Option<(PageUrl, Timestamp)> {
        self.origins.get(number).cloned()
    }
}
