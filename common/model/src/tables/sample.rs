//! The sample of contents that tables are learnt from.
//!
//! The sample consists of the contents with the smallest hashes: at most [`SAMPLE_CONTENTS`] contents, with
//! at most [`SAMPLE_TERMS`] terms together. Choosing by hash is as good as choosing at random. In addition,
//! equal collections give equal samples, whatever the order of the contents and the number of their copies.
//!
//! Contents with more than [`CONTENT_TERMS_MAX`] terms are left out. A few of them would fill the sample, and
//! the weights would be learnt from a handful of contents.
//!
//! Invariant: sort all other contents offered so far by hash; the sample is the longest prefix that fits the
//! limits. Therefore a content that was left out stays out, and so does every content with a larger hash,
//! even if it would fit alone.

use std::collections::BTreeMap;

use crate::ContentHash;

/// The largest number of contents in a sample.
pub const SAMPLE_CONTENTS: usize = 20_000;

/// The largest number of terms of all contents together. A term counts once for each content. The terms take
/// 64 MB.
pub const SAMPLE_TERMS: usize = 8 << 20;

/// The largest number of distinct terms of one content, so that at least 167 contents fit. A long book has
/// fewer terms.
pub const CONTENT_TERMS_MAX: usize = 50_000;

/// A sample of contents, with the distinct terms of each.
#[derive(Debug, Clone)]
pub struct TermSample {
    contents: BTreeMap<ContentHash, Box<[u64]>>,
    /// Number of terms of all contents together.
    terms: usize,
    /// The smallest hash of a content that did not fit.
    least_rejected: Option<ContentHash>,
    contents_max: usize,
    terms_max: usize,
    content_terms_max: usize,
}

impl Default for TermSample {
    fn default() -> Self {
        Self::with_limits(SAMPLE_CONTENTS, SAMPLE_TERMS, CONTENT_TERMS_MAX)
    }
}

impl TermSample {
    /// Creates an empty sample.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty sample with other limits than the default.
    pub(super) fn with_limits(contents_max: usize, terms_max: usize, content_terms_max: usize) -> Self {
        let contents = BTreeMap::new();
        Self { contents, terms: 0, least_rejected: None, contents_max, terms_max, content_terms_max }
    }

    /// Whether the sample could accept a content that it does not contain yet. This check is cheap, so
    /// callers make it before they compute the terms.
    #[must_use]
    pub fn wants(&self, content: ContentHash) -> bool {
        self.least_rejected.is_none_or(|least| content < least) && !self.contents.contains_key(&content)
    }

    /// Offers a content with its terms, in any order. A content without terms or with too many terms is
    /// ignored.
    ///
    /// The content is added if its hash is small enough, and contents with larger hashes are removed to make
    /// room. `terms` may be left sorted and without duplicates.
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
            self.least_rejected = Some(last);
        }
    }

    /// The number of contents in the sample.
    #[must_use]
    pub fn contents(&self) -> usize {
        self.contents.len()
    }

    /// Calls `each` for every term in more than one content, in ascending order, with the number of its
    /// contents.
    pub(super) fn each_common_term(&self, mut each: impl FnMut(u64, u32)) {
        let mut occurrences: Vec<u64> = Vec::with_capacity(self.terms);
        self.contents.values().for_each(|terms| occurrences.extend_from_slice(terms));
        occurrences.sort_unstable();
        for equal_terms in occurrences.chunk_by(|a, b| a == b).filter(|terms| terms.len() > 1) {
            each(equal_terms[0], equal_terms.len() as u32);
        }
    }
}
