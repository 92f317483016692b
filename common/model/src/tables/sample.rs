//! The contents that tables are learnt from.
//!
//! They are those with the least hashes, as many as have room: at most [`SAMPLE_CONTENTS`] of them, with at most [`SAMPLE_TERMS`] terms
//! together. A hash is as good as drawing lots, and the same contents give the same sample, in whatever order and how often they come.
//! Contents with more than [`CONTENT_TERMS_MAX`] terms are left out: a few of them would leave no room for others, and how common
//! a word is would be known of a handful.
//!
//! Invariant: the sample is the longest run of the contents seen so far, from the least hash on, that has room. So a content is
//! left out for good once one with a lesser hash was, even where it would have room itself.

use std::collections::BTreeMap;

use crate::ContentHash;

/// The most contents of a sample.
pub const SAMPLE_CONTENTS: usize = 20_000;

/// The most terms of them together, each counted once for a content: 64 MB.
pub const SAMPLE_TERMS: usize = 8 << 20;

/// The most terms of one content, each counted once: so there is room for 167 contents or more. A long book has fewer.
pub const CONTENT_TERMS_MAX: usize = 50_000;

/// Contents, with the terms of each.
#[derive(Debug, Clone)]
pub struct Sample {
    contents: BTreeMap<ContentHash, Box<[u64]>>,
    terms: usize,
    /// The least hash that was left out.
    end: Option<ContentHash>,
    contents_max: usize,
    terms_max: usize,
    content_terms_max: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self::with_room(SAMPLE_CONTENTS, SAMPLE_TERMS, CONTENT_TERMS_MAX)
    }
}

impl Sample {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn with_room(contents_max: usize, terms_max: usize, content_terms_max: usize) -> Self {
        let contents = BTreeMap::new();
        Self { contents, terms: 0, end: None, contents_max, terms_max, content_terms_max }
    }

    /// Whether a content may become one of the sample. That is cheap to ask before its terms are sorted.
    #[must_use]
    pub fn wants(&self, content: ContentHash) -> bool {
        self.end.is_none_or(|end| content < end) && !self.contents.contains_key(&content)
    }

    /// Takes a content with its terms, which are left sorted and each once. One without terms counts for nothing, nor
    /// does one with too many.
    pub fn add(&mut self, content: ContentHash, terms: &mut Vec<u64>) {
        if !self.wants(content) || terms.is_empty() {
            return;
        }
        terms.sort_unstable();
        terms.dedup();
        if terms.len() > self.content_terms_max {
            return;
        }
        self.terms += terms.len();
        self.contents.insert(content, terms.as_slice().into());
        while self.contents.len() > self.contents_max || self.terms > self.terms_max {
            let Some((last, terms)) = self.contents.pop_last() else { break };
            self.terms -= terms.len();
            self.end = Some(last);
        }
    }

    /// How many contents there are.
    #[must_use]
    pub fn contents(&self) -> usize {
        self.contents.len()
    }

    /// Calls `each` for every term in more than one content, in ascending order, with the number of contents that have it.
    pub(super) fn each_common_term(&self, mut each: impl FnMut(u64, u32)) {
        let mut all: Vec<u64> = Vec::with_capacity(self.terms);
        self.contents.values().for_each(|terms| all.extend_from_slice(terms));
        all.sort_unstable();
        for same in all.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
            each(same[0], same.len() as u32);
        }
    }
}
