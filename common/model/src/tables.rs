//! Tables: what a policy learns about the words of a collection before it makes signatures. They hold the
//! weight of each word, and random lexicons.
//!
//! The words of a text are its *terms*: the hashes of its tokens without stop words, each token reduced to
//! its stem.
//!
//! Invariant: tables are learnt once for a collection, from a [`TermSample`], and never change. With other
//! tables, equal texts would have different signatures. Tables travel as one file. Two processes compare
//! [`TablesHash`] values to see whether they have equal tables.
//!
//! - **Weight** is the inverse document frequency. The weight of a term in d of the sample's n contents is
//!   log2((n + 1) / d), in units of 2^-[`WEIGHT_BITS`]. The 1 gives a weight above 0 even to terms in all
//!   contents. Weights are computed in integers ([`log2`]), so they are equal on every machine. A term
//!   outside the sample weighs as much as a term in a single content. Therefore tables store only terms in
//!   two or more contents.
//! - **Lexicons** are sets of terms. Lexicon 0 has all terms, and every other lexicon has a random two thirds
//!   of them. The hash of a term and the seed of a lexicon decide whether the lexicon has the term, so the
//!   sample need not contain it. The seed of lexicon l is l times 2^64 / golden ratio, mixed by the finaliser
//!   of SplitMix64. The lexicon has a term if the hash of the term, xor the seed and mixed again, is below
//!   two thirds of the greatest number.

mod file;
mod log2;
mod sample;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use file::{FILE_BYTES_MAX, TablesError};
pub use log2::log2;
pub use sample::{CONTENT_TERMS_MAX, SAMPLE_CONTENTS, SAMPLE_TERMS, TermSample};

use crate::sketch::mix;
use crate::stable_hash128;

/// The version of the rules by which the crate `doppel-text` makes terms from tokens. Tables and signatures
/// of different versions are not compared.
///
/// Version 2 makes terms from tokens of the *form* of a text, which is one spelling for all equal texts.
pub const TERMS_VERSION: u16 = 2;

/// Number of fractional bits of a weight.
pub const WEIGHT_BITS: u32 = 16;

/// Number of lexicons, including lexicon 0, which has all terms.
pub const LEXICONS: usize = 17;

/// Multiplier that gives each lexicon another seed: 2^64 / golden ratio, odd.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A random lexicon has the terms whose mixed hash is below this bound, which is two thirds of the greatest
/// number.
const LEXICON_BOUND: u64 = u64::MAX / 3 * 2;

/// The tables of a policy: the weights of terms, and the seeds of the lexicons.
#[derive(Clone, PartialEq, Eq)]
pub struct Tables {
    /// The name of the policy that the tables were learnt for.
    policy: Box<str>,
    /// Number of contents in the sample.
    contents: u32,
    /// The seeds of lexicons 1 and above.
    seeds: [u64; LEXICONS - 1],
    /// The weights of terms in more than one content.
    weights: HashMap<u64, u32>,
    /// The weight of every other term.
    weight_max: u32,
    hash: TablesHash,
}

/// The hash of all that tables contain. The text form has 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TablesHash(u128);

/// The text is not a hash of tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a hash of tables, which has 32 hex digits")]
pub struct TablesHashError(String);

impl Tables {
    /// Learns the tables of a policy from a sample of the collection.
    #[must_use]
    pub fn learn(policy: &str, sample: &TermSample) -> Self {
        let contents = sample.contents() as u32;
        let mut weights = HashMap::new();
        sample.each_common_term(|term, document_frequency| {
            weights.insert(term, log2(u64::from(contents) + 1, document_frequency.into()));
        });
        let seeds = std::array::from_fn(|lexicon| mix(SEED.wrapping_mul(lexicon as u64 + 1)));
        Self::new(policy.into(), contents, seeds, weights)
    }

    fn new(policy: Box<str>, contents: u32, seeds: [u64; LEXICONS - 1], weights: HashMap<u64, u32>) -> Self {
        let weight_max = weight_max(contents);
        let mut tables = Self { policy, contents, seeds, weights, weight_max, hash: TablesHash(0) };
        tables.hash = TablesHash(stable_hash128(&tables.to_bytes()));
        tables
    }

    /// The name of the policy that the tables were learnt for.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// The number of contents that the tables were learnt from.
    #[must_use]
    pub fn contents(&self) -> u32 {
        self.contents
    }

    /// The number of terms whose weight the tables store.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.weights.len()
    }

    /// The hash of all that the tables contain.
    #[must_use]
    pub fn hash(&self) -> TablesHash {
        self.hash
    }

    /// The weight of a term, in units of 2^-[`WEIGHT_BITS`]. Always above 0.
    #[inline]
    #[must_use]
    pub fn weight(&self, term: u64) -> u32 {
        self.weights.get(&term).copied().unwrap_or(self.weight_max)
    }

    /// The weight of a term that is in at most one content. No term weighs more.
    #[inline]
    #[must_use]
    pub fn weight_max(&self) -> u32 {
        self.weight_max
    }

    /// Whether a lexicon has a term. Lexicons are numbered from 0, and there are [`LEXICONS`] of them.
    #[inline]
    #[must_use]
    pub fn has(&self, lexicon: usize, term: u64) -> bool {
        lexicon == 0 || self.seeds.get(lexicon - 1).is_some_and(|seed| mix(term ^ seed) < LEXICON_BOUND)
    }
}

/// The weight of a term in a single one of `contents` contents. An empty sample counts as one content.
fn weight_max(contents: u32) -> u32 {
    log2(u64::from(contents.max(1)) + 1, 1)
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (policy, contents, terms) = (&self.policy, self.contents, self.weights.len());
        write!(f, "Tables({policy}, {}, {terms} terms of {contents} contents)", self.hash)
    }
}

impl fmt::Display for TablesHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TablesHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TablesHash {
    type Err = TablesHashError;

    fn from_str(text: &str) -> Result<Self, TablesHashError> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let hash = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
        hash.map(Self).ok_or_else(|| TablesHashError(text.to_owned()))
    }
}

impl TryFrom<String> for TablesHash {
    type Error = TablesHashError;

    fn try_from(text: String) -> Result<Self, TablesHashError> {
        text.parse()
    }
}

impl From<TablesHash> for String {
    fn from(hash: TablesHash) -> Self {
        hash.to_string()
    }
}
