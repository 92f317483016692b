//! The file format of tables. All integers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 16 | magic, [`MAGIC`], with the version of this format |
//! | 2 | [`TERMS_VERSION`] |
//! | 1 | length of the policy's name, at most [`NAME_BYTES_MAX`], then the name |
//! | 4 | number of contents in the sample, at most [`SAMPLE_CONTENTS`] |
//! | 8 each | seeds of the random lexicons |
//! | 4 | number of terms, n, at most [`TERMS_MAX`] |
//! | 8 n | terms, strictly ascending |
//! | 4 n | weights of the terms, above 0 and below the weight of a term in a single content |
//! | 8 | XXH3-64 of all bytes before |
//!
//! The [`TablesHash`](super::TablesHash) is the XXH3-128 of all bytes except the last eight.

use std::collections::HashMap;

use super::{LEXICONS, SAMPLE_CONTENTS, SAMPLE_TERMS, TERMS_VERSION, Tables, weight_max};
use crate::stable_hash64;

const MAGIC: &[u8; 16] = b"doppel tables 1\n";

/// Number of bytes of the magic before the version number.
const MAGIC_PREFIX_BYTES: usize = 14;

/// The longest name of a policy, in bytes.
const NAME_BYTES_MAX: usize = 32;

/// The largest number of terms. Each term is in at least two contents of the sample.
const TERMS_MAX: usize = SAMPLE_TERMS / 2;

const CHECKSUM_BYTES: usize = 8;

/// The size of the largest valid file, in bytes.
pub const FILE_BYTES_MAX: u64 =
    (MAGIC.len() + 2 + 1 + NAME_BYTES_MAX + 4 + 8 * (LEXICONS - 1) + 4 + 12 * TERMS_MAX + CHECKSUM_BYTES)
        as u64;

/// The bytes are not a valid file of tables, or the tables do not fit the policy.
///
/// In the messages about a file, "it" is the file, whose name the caller adds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TablesError {
    /// The file does not begin with the magic of tables.
    #[error("it is no file of tables, as `doppel policy-tables` writes them")]
    Magic,
    /// Another version of Doppel wrote the file, in another format.
    #[error("another version of Doppel wrote it; make the tables again with `doppel policy-tables`")]
    Version,
    /// The terms in the file were made from words by other rules.
    #[error(
        "its words were reduced to stems by version {0} of the rules, but this version of Doppel has version \
         {TERMS_VERSION}; make the tables again with `doppel policy-tables`"
    )]
    Terms(u16),
    /// The file is cut off, or longer than its counts allow.
    #[error("it is damaged: its length of {0} bytes does not match its counts")]
    Length(usize),
    /// The checksum does not match, so the bytes are damaged.
    #[error("it is damaged: the checksum does not match")]
    Checksum,
    /// A field of the file has an impossible value.
    #[error("it is damaged: {0}")]
    Content(&'static str),
    /// The tables were learnt for another policy.
    #[error("the tables were learnt for the policy {learnt_for}, so {policy} cannot use them")]
    Policy {
        /// The policy that needs tables.
        policy: &'static str,
        /// The policy that the tables were learnt for.
        learnt_for: String,
    },
    /// The policy needs no tables.
    #[error("the policy {0} reads no tables")]
    NotNeeded(&'static str),
}

impl Tables {
    /// The bytes of the file, without the checksum.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut terms: Vec<(u64, u32)> = self.weights.iter().map(|(term, weight)| (*term, *weight)).collect();
        terms.sort_unstable();
        let mut bytes = Vec::with_capacity(256 + 12 * terms.len());
        bytes.extend(MAGIC);
        bytes.extend(TERMS_VERSION.to_le_bytes());
        // Names of policies are far shorter than 256 bytes.
        bytes.push(self.policy.len() as u8);
        bytes.extend(self.policy.as_bytes());
        bytes.extend(self.contents.to_le_bytes());
        bytes.extend(self.seeds.iter().flat_map(|seed| seed.to_le_bytes()));
        bytes.extend((terms.len() as u32).to_le_bytes());
        bytes.extend(terms.iter().flat_map(|(term, _)| term.to_le_bytes()));
        bytes.extend(terms.iter().flat_map(|(_, weight)| weight.to_le_bytes()));
        bytes
    }

    /// The bytes of the file. [`from_file`](Self::from_file) reads them.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        let mut bytes = self.to_bytes();
        bytes.extend(stable_hash64(&bytes).to_le_bytes());
        bytes
    }

    /// Reads tables from the bytes of a file, of which there may be at most [`FILE_BYTES_MAX`].
    ///
    /// # Errors
    /// If the bytes are not a file of tables, or the file is damaged, or another version of Doppel wrote it.
    pub fn from_file(file: &[u8]) -> Result<Self, TablesError> {
        let magic = file.get(..MAGIC.len()).ok_or(TablesError::Magic)?;
        if magic != MAGIC {
            let is_other_version = magic[..MAGIC_PREFIX_BYTES] == MAGIC[..MAGIC_PREFIX_BYTES];
            return Err(if is_other_version { TablesError::Version } else { TablesError::Magic });
        }
        let length = || TablesError::Length(file.len());
        if file.len() as u64 > FILE_BYTES_MAX {
            return Err(length());
        }
        let (bytes, checksum) = file.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(length)?;
        if stable_hash64(bytes).to_le_bytes() != *checksum {
            return Err(TablesError::Checksum);
        }
        let mut fields = Fields(bytes.get(MAGIC.len()..).ok_or_else(length)?);
        let terms_version = u16::from_le_bytes(fields.array().ok_or_else(length)?);
        if terms_version != TERMS_VERSION {
            return Err(TablesError::Terms(terms_version));
        }
        let TablesHeader { policy, contents, seeds, terms } = fields.header().ok_or_else(length)?;
        let policy = policy.ok_or(TablesError::Content("the name of the policy is not valid"))?;
        if contents as usize > SAMPLE_CONTENTS || terms as usize > TERMS_MAX {
            return Err(TablesError::Content("a count is larger than a sample allows"));
        }
        let (terms, weights) = fields.columns(terms as usize).ok_or_else(length)?;
        if !terms.is_sorted_by(|a, b| a < b) {
            return Err(TablesError::Content("its words are not in ascending order"));
        }
        let max = weight_max(contents);
        if weights.iter().any(|weight| *weight == 0 || *weight >= max) {
            return Err(TablesError::Content("a weight is out of bounds"));
        }
        let weights: HashMap<u64, u32> = terms.into_iter().zip(weights).collect();
        Ok(Self::new(policy.into(), contents, seeds, weights))
    }
}

/// Reads the fields of a file. Contains the bytes that are not read yet.
struct Fields<'b>(&'b [u8]);

/// The fields between the version of the terms and the terms themselves.
struct TablesHeader<'b> {
    /// `None` if the name is too long or not valid UTF-8.
    policy: Option<&'b str>,
    /// Number of contents in the sample.
    contents: u32,
    seeds: [u64; LEXICONS - 1],
    /// Number of terms.
    terms: u32,
}

impl<'b> Fields<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    fn header(&mut self) -> Option<TablesHeader<'b>> {
        let [length] = self.array()?;
        let name = self.bytes(usize::from(length).min(NAME_BYTES_MAX))?;
        let is_short = usize::from(length) <= NAME_BYTES_MAX;
        let policy = std::str::from_utf8(name).ok().filter(|_| is_short);
        let contents = u32::from_le_bytes(self.array()?);
        let mut seeds = [0; LEXICONS - 1];
        for seed in &mut seeds {
            *seed = u64::from_le_bytes(self.array()?);
        }
        let terms = u32::from_le_bytes(self.array()?);
        Some(TablesHeader { policy, contents, seeds, terms })
    }

    /// The terms and their weights. `None` if the remaining bytes are not exactly `count` terms and weights.
    fn columns(&mut self, count: usize) -> Option<(Vec<u64>, Vec<u32>)> {
        let terms = self.bytes(count.checked_mul(8)?)?;
        let weights = self.bytes(count.checked_mul(4)?)?;
        let term = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let weight = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let columns =
            (terms.chunks_exact(8).map(term).collect(), weights.chunks_exact(4).map(weight).collect());
        self.0.is_empty().then_some(columns)
    }
}
