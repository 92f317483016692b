//! What a policy has learnt of a collection's words before it compares anything: how common each is, and random lexicons.
//!
//! The words of a text are its *terms*: hashes of its tokens without stop words, each reduced to its stem. Tables are learnt once, from a
//! [`Sample`], and never change for a collection, or two equal texts would have signatures that differ. They travel as
//! one file, whose [`TablesHash`] says whether two processes have the same.
//!
//! - **Weight**, the inverse document frequency: of a term in d of the n contents of the sample log2((n + 1) / d), in units of
//!   2^-[`WEIGHT_BITS`]. The 1 leaves a weight to what every content has. It is computed in integers alone ([`log2`]), so it is the same
//!   on every machine. A term that the sample does not have weighs as much as one in a single content, so these are not kept.
//! - **Lexicons.** Lexicon 0 has all terms, each of the others a random two thirds of them. Whether a term is in one
//!   follows from its hash and the seed of the lexicon, so it is known of terms that nobody has seen, too. The seed of lexicon l is l times
//!   2^64 / golden ratio, mixed by the finaliser of SplitMix64; the lexicon has a term whose hash, xor the seed and mixed again, is
//!   below two thirds of the greatest number.

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
pub use sample::{CONTENT_TERMS_MAX, SAMPLE_CONTENTS, SAMPLE_TERMS, Sample};

use crate::sketch::mix;
use crate::stable_hash128;

/// The version of how terms are made of tokens (see [`text`](`doppel-text`)): tables and signatures of another are not compared.
/// Version 2 has tokens of the form of equal text.
pub const TERMS_VERSION: u16 = 2;

/// Bits of a weight behind the point.
pub const WEIGHT_BITS: u32 = 16;

/// Lexicons that tables have, with the one that has all terms.
pub const LEXICONS: usize = 17;

/// Parts the seeds of the lexicons.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes of terms below this bound are in a random lexicon: two thirds of all.
const KEPT_BELOW: u64 = u64::MAX / 3 * 2;

/// Tables of a policy.
#[derive(Clone, PartialEq, Eq)]
pub struct Tables {
    /// The name of the policy that they were learnt for.
    policy: Box<str>,
    /// Contents of the sample.
    contents: u32,
    /// Of the lexicons but the first.
    seeds: [u64; LEXICONS - 1],
    /// The weights of terms in more than one content.
    weights: HashMap<u64, u32>,
    /// That of all others.
    weight_max: u32,
    hash: TablesHash,
}

/// Names tables by all that is in them: 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TablesHash(u128);

/// The text is no hash of tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no tables: 32 hex digits are expected")]
pub struct TablesHashError(String);

impl Tables {
    /// Learns the tables of a policy.
    #[must_use]
    pub fn learn(policy: &str, sample: &Sample) -> Self {
        let contents = sample.contents() as u32;
        let mut weights = HashMap::new();
        sample.each_common_term(|term, contents_with| {
            weights.insert(term, log2(u64::from(contents) + 1, contents_with.into()));
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

    /// The name of the policy that they were learnt for.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// How many contents they were learnt from.
    #[must_use]
    pub fn contents(&self) -> u32 {
        self.contents
    }

    /// How many terms they have a weight of.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.weights.len()
    }

    /// Their name.
    #[must_use]
    pub fn hash(&self) -> TablesHash {
        self.hash
    }

    /// The weight of a term, which is above 0.
    #[inline]
    #[must_use]
    pub fn weight(&self, term: u64) -> u32 {
        self.weights.get(&term).copied().unwrap_or(self.weight_max)
    }

    /// The weight of a term in no content or one.
    #[inline]
    #[must_use]
    pub fn weight_max(&self) -> u32 {
        self.weight_max
    }

    /// Whether a lexicon, below [`LEXICONS`], has a term.
    #[inline]
    #[must_use]
    pub fn has(&self, lexicon: usize, term: u64) -> bool {
        lexicon == 0 || self.seeds.get(lexicon - 1).is_some_and(|seed| mix(term ^ seed) < KEPT_BELOW)
    }
}

/// The weight of a term in one of so many contents; where there are none, as of one.
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
