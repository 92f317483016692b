//! Contents as exact sets of shingles. Words, shingles and contents have ids, and two of them are equal
//! exactly if their ids are equal.

use std::collections::HashMap;

use crate::tokens::each_token;

/// Number of words in a shingle (k).
pub const SHINGLE_WORDS: usize = 5;
/// Minimum number of tokens of a comparable content. A shorter content is a duplicate only by equal content
/// or redirect.
pub const TOKENS_MIN: usize = 20;
/// Id of the dummy word that fills up the last shingles of a text. No real word has this id.
const DUMMY: u32 = 0;

/// Id of a distinct token sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentId(u32);

impl ContentId {
    /// Index of the content among [all contents](Contents::all).
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the id of the content at an index.
    #[must_use]
    pub fn at(index: usize) -> Self {
        Self(index as u32)
    }
}

/// Token count and shingles of a content.
#[derive(Debug)]
pub struct Content {
    /// Number of tokens of the content.
    pub tokens: usize,
    /// Ids of the distinct shingles, ascending.
    pub shingles: Box<[u32]>,
}

impl Content {
    /// Shingles of the content if it is long enough to be compared, otherwise an empty slice.
    #[must_use]
    pub fn comparable(&self) -> &[u32] {
        if self.tokens < TOKENS_MIN { &[] } else { &self.shingles }
    }
}

/// All contents that were interned, each once.
#[derive(Debug, Default)]
pub struct Contents {
    words: HashMap<Box<str>, u32>,
    shingles: HashMap<[u32; SHINGLE_WORDS], u32>,
    known: HashMap<Box<[u32]>, ContentId>,
    contents: Vec<Content>,
    sequence: Vec<u32>,
}

impl Contents {
    /// Returns the content of a text, and adds the content if it is new.
    pub fn intern(&mut self, text: &str) -> ContentId {
        self.sequence.clear();
        each_token(text, |token| {
            let id = self.words.get(token).copied().unwrap_or_else(|| {
                let id = DUMMY + 1 + self.words.len() as u32;
                self.words.insert(token.into(), id);
                id
            });
            self.sequence.push(id);
        });
        if let Some(known) = self.known.get(self.sequence.as_slice()) {
            return *known;
        }
        let id = ContentId(self.contents.len() as u32);
        self.known.insert(self.sequence.as_slice().into(), id);
        let tokens = self.sequence.len();
        self.sequence.resize(tokens + SHINGLE_WORDS - 1, DUMMY);
        let mut shingles: Vec<u32> = self
            .sequence
            .windows(SHINGLE_WORDS)
            .take(tokens)
            .map(|words| {
                let mut shingle = [DUMMY; SHINGLE_WORDS];
                shingle.copy_from_slice(words);
                let next = self.shingles.len() as u32;
                *self.shingles.entry(shingle).or_insert(next)
            })
            .collect();
        shingles.sort_unstable();
        shingles.dedup();
        self.contents.push(Content { tokens, shingles: shingles.into() });
        id
    }

    /// Returns the data of a content that this collection has interned.
    #[must_use]
    pub fn get(&self, id: ContentId) -> &Content {
        &self.contents[id.index()]
    }

    /// Returns the id and the tokens of every content, in arbitrary order. `of_word` converts each token.
    pub fn sequences<T: Copy>(
        &self,
        of_word: impl Fn(&str) -> T,
    ) -> impl Iterator<Item = (ContentId, Vec<T>)> {
        let mut words: Vec<(u32, T)> = self.words.iter().map(|(word, id)| (*id, of_word(word))).collect();
        words.sort_unstable_by_key(|(id, _)| *id);
        let word = move |id: &u32| words[(id - DUMMY - 1) as usize].1;
        self.known.iter().map(move |(sequence, content)| (*content, sequence.iter().map(&word).collect()))
    }

    /// Returns every content, in order of its id.
    #[must_use]
    pub fn all(&self) -> &[Content] {
        &self.contents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_are_equal_contents() {
        let mut contents = Contents::default();
        let a = contents.intern("to be or not to be");
        assert_eq!(contents.intern("To be, or not to BE!"), a);
        assert_ne!(contents.intern("to be or not to bee"), a);
        assert_eq!((contents.get(a).tokens, contents.get(a).shingles.len()), (6, 6));
        let repeated = contents.intern("a a a a a a a a");
        // The dummies behind the last four shingles make them different.
        assert_eq!((contents.get(repeated).tokens, contents.get(repeated).shingles.len()), (8, 5));
        let empty = contents.intern("...");
        assert_eq!((contents.get(empty).tokens, contents.get(empty).shingles.len()), (0, 0));
    }
}
