//! The contents of a collection, each once, a column per field.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;

use doppel_model::ContentHash;
use doppel_model::pairwise::{Comparison, Policy};
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::sketch::Sketch;
use rayon::prelude::*;

use crate::JoinError;
use crate::candidates::Columns;
use crate::signatures::Signatures;

/// The number of a content, in the order in which contents came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentIndex(pub u32);

/// The contents.
#[derive(Debug)]
pub struct Contents {
    policy: Policy,
    numbers: HashMap<ContentHash, u32, foldhash::fast::RandomState>,
    hashes: Vec<ContentHash>,
    tokens: Vec<u32>,
    shingles: Vec<u32>,
    sketches: Vec<Sketch>,
    /// The bitmaps one after the other, and where each begins.
    bitmaps: Vec<u64>,
    bitmap_starts: Vec<u64>,
    signatures: Signatures,
}

impl Contents {
    /// None yet. Signatures past `memory_max` bytes go to a temporary file in `dir`.
    #[must_use]
    pub fn new(policy: Policy, memory_max: usize, dir: &Path) -> Self {
        Self {
            policy,
            numbers: HashMap::default(),
            hashes: Vec::new(),
            tokens: Vec::new(),
            shingles: Vec::new(),
            sketches: Vec::new(),
            bitmaps: Vec::new(),
            bitmap_starts: Vec::new(),
            signatures: Signatures::new(memory_max, dir),
        }
    }

    /// Takes a content; one that is there already keeps its number.
    ///
    /// # Errors
    /// When the temporary file fails.
    ///
    /// # Panics
    /// When there are 2^32 contents.
    pub fn add(&mut self, signature: &Arc<Signature>) -> Result<ContentIndex, JoinError> {
        let next = u32::try_from(self.hashes.len()).expect("fewer contents than numbers");
        let entry = match self.numbers.entry(signature.content()) {
            Entry::Occupied(known) => return Ok(ContentIndex(*known.get())),
            Entry::Vacant(entry) => entry,
        };
        self.signatures.push(signature)?;
        entry.insert(next);
        self.hashes.push(signature.content());
        self.tokens.push(signature.tokens());
        self.shingles.push(signature.shingles());
        self.sketches.push(*signature.sketch());
        self.bitmap_starts.push(self.bitmaps.len() as u64);
        // What is never compared by similarity needs no bitmap.
        if self.policy.comparable(signature) {
            parity::append(signature, &mut self.bitmaps);
        }
        Ok(ContentIndex(next))
    }

    /// Contents taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The hash of a content.
    #[must_use]
    pub fn hash(&self, content: ContentIndex) -> ContentHash {
        self.hashes[content.0 as usize]
    }

    /// How many tokens a content has.
    #[must_use]
    pub fn tokens(&self, content: ContentIndex) -> u32 {
        self.tokens[content.0 as usize]
    }

    /// The connected components of the link relation among the contents for which `counts` is true: for each content
    /// the least one of its component, and itself for those that do not count.
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn components(
        &mut self,
        counts: impl Fn(ContentIndex) -> bool,
    ) -> Result<Vec<ContentIndex>, JoinError> {
        self.signatures.flush()?;
        let this = &*self;
        let columns = Columns {
            policy: self.policy,
            shingles: &self.shingles,
            sketches: &self.sketches,
            bitmaps: &self.bitmaps,
            bitmap_starts: &self.bitmap_starts,
        };
        let comparable = |content: &u32| {
            self.tokens[*content as usize] >= doppel_model::pairwise::TOKENS_MIN
                && counts(ContentIndex(*content))
        };
        let compared: Vec<u32> = (0..self.hashes.len() as u32).filter(comparable).collect();
        let roots = columns.components(&compared, &|content| this.signatures.get(content as usize))?;
        Ok(roots.into_iter().map(ContentIndex).collect())
    }

    /// Compares two contents exactly, after [`components`](Self::components).
    ///
    /// # Errors
    /// When the temporary file fails.
    pub fn compare(&self, a: ContentIndex, b: ContentIndex) -> Result<Comparison, JoinError> {
        let read = |content: ContentIndex| self.signatures.get(content.0 as usize);
        Ok(self.policy.compare(&*read(a)?, &*read(b)?))
    }

    /// Compares many pairs, on all threads.
    ///
    /// # Errors
    /// The same.
    pub fn compare_all(&self, pairs: &[(ContentIndex, ContentIndex)]) -> Result<Vec<Comparison>, JoinError> {
        pairs.par_iter().map(|(a, b)| self.compare(*a, *b)).collect()
    }
}
