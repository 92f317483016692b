//! Tables as a file. All integers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 16 | magic, [`MAGIC`], with the version of this layout |
//! | 2 | [`TERMS_VERSION`] |
//! | 1 | length of the name of the policy, at most [`NAME_BYTES_MAX`], then the name |
//! | 4 | contents of the sample, at most [`SAMPLE_CONTENTS`] |
//! | 8 each | the seeds of the random lexicons |
//! | 4 | number of terms, n, at most [`TERMS_MAX`] |
//! | 8 n | the terms, strictly ascending |
//! | 4 n | their weights, above 0 and below that of a term in a single content |
//! | 8 | XXH3-64 of all bytes before |
//!
//! The [`TablesHash`](super::TablesHash) is XXH3-128 of the same bytes without the last eight.

use std::collections::HashMap;

use super::{LEXICONS, SAMPLE_CONTENTS, SAMPLE_TERMS, TERMS_VERSION, Tables, weight_max};
use crate::stable_hash64;

const MAGIC: &[u8; 16] = b"doppel tables 1\n";

/// What is before the number of the version in the magic.
const MAGIC_OF_ALL: usize = 14;

/// The longest name of a policy.
const NAME_BYTES_MAX: usize = 32;

/// The most terms: each is in two contents of the sample.
const TERMS_MAX: usize = SAMPLE_TERMS / 2;

const CHECKSUM_BYTES: usize = 8;

/// The largest file that is read.
pub const FILE_BYTES_MAX: u64 =
    (MAGIC.len() + 2 + 1 + NAME_BYTES_MAX + 4 + 8 * (LEXICONS - 1) + 4 + 12 * TERMS_MAX + CHECKSUM_BYTES)
        as u64;

/// Why bytes are no tables, or not those that are needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TablesError {
    /// It is something else.
    #[error("it is no file of tables, as `doppel policy-tables` writes them")]
    Magic,
    /// Another version of this program made it.
    #[error("it is of another version of this program; make tables anew with `doppel policy-tables`")]
    Version,
    /// Its terms are not those of this version.
    #[error(
        "its words are reduced as by version {0}, and this program has version {TERMS_VERSION}; make tables anew with `doppel policy-tables`"
    )]
    Terms(u16),
    /// It is cut off, or longer than it says.
    #[error("it is damaged: {0} bytes are none of such a file")]
    Length(usize),
    /// The bytes were damaged.
    #[error("it is damaged: the checksum does not match")]
    Checksum,
    /// What it says cannot be.
    #[error("it is damaged: {0}")]
    Content(&'static str),
    /// They are of another policy.
    #[error("the tables are those of the policy {of}, and not of {policy}")]
    Policy {
        /// The policy that needs tables.
        policy: &'static str,
        /// That of these.
        of: String,
    },
    /// The policy reads none.
    #[error("the policy {0} reads no tables")]
    Unread(&'static str),
}

impl Tables {
    /// The file without its checksum.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut terms: Vec<(u64, u32)> = self.weights.iter().map(|(term, weight)| (*term, *weight)).collect();
        terms.sort_unstable();
        let mut bytes = Vec::with_capacity(256 + 12 * terms.len());
        bytes.extend(MAGIC);
        bytes.extend(TERMS_VERSION.to_le_bytes());
        // Names are short words.
        bytes.push(self.policy.len() as u8);
        bytes.extend(self.policy.as_bytes());
        bytes.extend(self.contents.to_le_bytes());
        bytes.extend(self.seeds.iter().flat_map(|seed| seed.to_le_bytes()));
        bytes.extend((terms.len() as u32).to_le_bytes());
        bytes.extend(terms.iter().flat_map(|(term, _)| term.to_le_bytes()));
        bytes.extend(terms.iter().flat_map(|(_, weight)| weight.to_le_bytes()));
        bytes
    }

    /// The file, which [`from_file`](Self::from_file) reads.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        let mut bytes = self.to_bytes();
        bytes.extend(stable_hash64(&bytes).to_le_bytes());
        bytes
    }

    /// Reads a file, of at most [`FILE_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// When it is none, or of another version, or damaged.
    pub fn from_file(file: &[u8]) -> Result<Self, TablesError> {
        let magic = file.get(..MAGIC.len()).ok_or(TablesError::Magic)?;
        if magic != MAGIC {
            let is_ours = magic[..MAGIC_OF_ALL] == MAGIC[..MAGIC_OF_ALL];
            return Err(if is_ours { TablesError::Version } else { TablesError::Magic });
        }
        let length = || TablesError::Length(file.len());
        if file.len() as u64 > FILE_BYTES_MAX {
            return Err(length());
        }
        let (bytes, checksum) = file.split_last_chunk::<CHECKSUM_BYTES>().ok_or_else(length)?;
        if stable_hash64(bytes).to_le_bytes() != *checksum {
            return Err(TablesError::Checksum);
        }
        let mut left = Fields(bytes.get(MAGIC.len()..).ok_or_else(length)?);
        let terms_version = u16::from_le_bytes(left.array().ok_or_else(length)?);
        if terms_version != TERMS_VERSION {
            return Err(TablesError::Terms(terms_version));
        }
        let (policy, contents, seeds, count) = left.head().ok_or_else(length)?;
        let policy = policy.ok_or(TablesError::Content("the name of the policy is none"))?;
        if contents as usize > SAMPLE_CONTENTS || count as usize > TERMS_MAX {
            return Err(TablesError::Content("it counts more than fits a sample"));
        }
        let (terms, weights) = left.columns(count as usize).ok_or_else(length)?;
        if !terms.is_sorted_by(|a, b| a < b) {
            return Err(TablesError::Content("its words are not in order"));
        }
        let max = weight_max(contents);
        if weights.iter().any(|weight| *weight == 0 || *weight >= max) {
            return Err(TablesError::Content("a weight is out of bounds"));
        }
        let weights: HashMap<u64, u32> = terms.into_iter().zip(weights).collect();
        Ok(Self::new(policy.into(), contents, seeds, weights))
    }
}

/// What is left to read.
struct Fields<'b>(&'b [u8]);

/// The name of the policy, contents, seeds, and the number of terms.
type Head<'b> = (Option<&'b str>, u32, [u64; LEXICONS - 1], u32);

impl<'b> Fields<'b> {
    fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (bytes, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.first_chunk().copied()
    }

    fn head(&mut self) -> Option<Head<'b>> {
        let [length] = self.array()?;
        let name = self.bytes(usize::from(length).min(NAME_BYTES_MAX))?;
        let is_name = usize::from(length) <= NAME_BYTES_MAX;
        let name = std::str::from_utf8(name).ok().filter(|_| is_name);
        let contents = u32::from_le_bytes(self.array()?);
        let mut seeds = [0; LEXICONS - 1];
        for seed in &mut seeds {
            *seed = u64::from_le_bytes(self.array()?);
        }
        Some((name, contents, seeds, u32::from_le_bytes(self.array()?)))
    }

    /// Terms and weights, when these are all that is left.
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
