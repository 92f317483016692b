//! The live pages of a crawl and their contents as exact sets.

use std::collections::{BTreeMap, HashMap};

use super::crawl::{Crawl, Found};
use super::{MAX_HOPS, MIN_TOKENS, SHINGLE_WORDS, html, redirect, tokens};

/// A distinct token sequence.
pub(crate) struct Content {
    /// Number of tokens.
    pub(crate) tokens: usize,
    /// Ids of its distinct shingles, ascending; equal ids are equal shingles.
    pub(crate) shingles: Vec<u32>,
}

/// A live page.
pub(crate) enum Page {
    /// A page with the content of this index.
    Content(usize),
    /// A redirect to this URL.
    Redirect(String),
}

/// Where a page ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution<'c> {
    /// At the page with this URL (itself, if it is no redirect) and this content.
    At(&'c str, usize),
    /// Nowhere, for this reason.
    Unresolved(Reason),
}

/// Why a redirect does not resolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Its target was never fetched, or is dead.
    NotLive,
    /// It is in a loop, or more than the allowed hops away from a page.
    LoopOrTooLong,
}

/// All live pages with their contents.
#[derive(Default)]
pub(crate) struct Collection {
    pub(crate) pages: BTreeMap<String, Page>,
    pub(crate) contents: Vec<Content>,
    pub(crate) dead: Vec<String>,
}

impl Collection {
    /// Parses the newest version of every page.
    pub(crate) fn new(crawl: &Crawl) -> Self {
        let mut collection = Self::default();
        let mut interner = Interner::default();
        for (url, found) in crawl.newest() {
            let page = match found {
                Found::Dead => {
                    collection.dead.push(url.to_owned());
                    continue;
                }
                // A reference that is no URL leads nowhere, like one that was never fetched.
                Found::Location(reference) => Page::Redirect(
                    redirect::resolve(url, None, reference).unwrap_or_else(|| reference.clone()),
                ),
                Found::Html(html) => {
                    let page = html::parse(html);
                    match redirect::target(url, &page, html.len()) {
                        Some(target) => Page::Redirect(target),
                        None => Page::Content(collection.content(&mut interner, &page.text)),
                    }
                }
            };
            collection.pages.insert(url.to_owned(), page);
        }
        collection
    }

    /// Follows redirects from a live page.
    pub(crate) fn resolve(&self, url: &str) -> Resolution<'_> {
        let mut at = url;
        for _ in 0..=MAX_HOPS {
            match self.pages.get_key_value(at) {
                None => return Resolution::Unresolved(Reason::NotLive),
                Some((url, Page::Content(content))) => return Resolution::At(url, *content),
                Some((_, Page::Redirect(target))) => at = target,
            }
        }
        Resolution::Unresolved(Reason::LoopOrTooLong)
    }

    /// True for a page with a text of its own, long enough to be compared by similarity.
    pub(crate) fn is_comparable(&self, url: &str) -> bool {
        match self.pages.get(url) {
            Some(Page::Content(content)) => self.contents[*content].tokens >= MIN_TOKENS,
            _ => false,
        }
    }

    fn content(&mut self, interner: &mut Interner, text: &str) -> usize {
        let mut words = Vec::new();
        tokens::each_token(text, |token| words.push(interner.word(token)));
        let count = words.len();
        if let Some(known) = interner.contents.get(&words) {
            return *known;
        }
        let sequence = words.clone();
        words.resize(count + SHINGLE_WORDS - 1, DUMMY);
        let mut shingles: Vec<u32> =
            words.windows(SHINGLE_WORDS).take(count).map(|shingle| interner.shingle(shingle)).collect();
        shingles.sort_unstable();
        shingles.dedup();
        self.contents.push(Content { tokens: count, shingles });
        interner.contents.insert(sequence, self.contents.len() - 1);
        self.contents.len() - 1
    }
}

/// The id of the dummy word that pads the end of a text; no real word has it.
const DUMMY: u32 = 0;

/// Gives equal ids to equal words, shingles and contents, and to no others.
#[derive(Default)]
struct Interner {
    words: HashMap<String, u32>,
    shingles: HashMap<[u32; SHINGLE_WORDS], u32>,
    contents: HashMap<Vec<u32>, usize>,
}

impl Interner {
    fn word(&mut self, word: &str) -> u32 {
        if let Some(id) = self.words.get(word) {
            return *id;
        }
        let id = self.words.len() as u32 + DUMMY + 1;
        self.words.insert(word.to_owned(), id);
        id
    }

    fn shingle(&mut self, words: &[u32]) -> u32 {
        let mut shingle = [DUMMY; SHINGLE_WORDS];
        shingle.copy_from_slice(words);
        let next = self.shingles.len() as u32;
        *self.shingles.entry(shingle).or_insert(next)
    }
}
