//! The contents of a collection, each once, a column per field.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use doppel_model::ContentHash;
use doppel_model::pairwise::{Comparison, Policy};
use doppel_model::parity;
use doppel_model::signature::Signature;
use rayon::prelude::*;

use crate::candidates::Columns;
use crate::keyed::Keyed;

/// The number of a content, in the order in which contents came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentIndex(pub u32);

/// Reads the signature of a content, from wherever the caller has it.
pub type Read<'r, E> = dyn Fn(ContentIndex) -> Result<Arc<Signature>, E> + Sync + 'r;

/// The contents.
#[derive(Debug)]
pub struct Contents {
    policy: Policy,
    numbers: HashMap<ContentHash, u32, foldhash::fast::RandomState>,
    hashes: Vec<ContentHash>,
    tokens: Vec<u32>,
    sizes: Vec<u32>,
    keyed: Keyed,
    /// The bitmaps one after the other, and where each begins.
    bitmaps: Vec<u64>,
    bitmap_starts: Vec<u64>,
}

impl Contents {
    /// None yet.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            numbers: HashMap::default(),
            hashes: Vec::new(),
            tokens: Vec::new(),
            sizes: Vec::new(),
            keyed: Keyed::new(policy),
            bitmaps: Vec::new(),
            bitmap_starts: Vec::new(),
        }
    }

    /// Takes a content; one that is there already keeps its number. Whether it is new.
    ///
    /// # Panics
    /// When there are 2^32 contents.
    pub fn add(&mut self, signature: &Signature) -> (ContentIndex, bool) {
        let next = u32::try_from(self.hashes.len()).expect("fewer contents than numbers");
        match self.numbers.entry(signature.content()) {
            Entry::Occupied(known) => return (ContentIndex(*known.get()), false),
            Entry::Vacant(entry) => entry.insert(next),
        };
        self.hashes.push(signature.content());
        self.tokens.push(signature.tokens());
        self.sizes.push(signature.size());
        self.keyed.push(signature);
        self.bitmap_starts.push(self.bitmaps.len() as u64);
        // What is never compared by similarity needs no bitmap.
        if self.policy.comparable(signature) {
            parity::append(signature, &mut self.bitmaps);
        }
        (ContentIndex(next), true)
    }

    /// The pairwise function.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Frees what only the join needs.
    pub fn forget_columns(&mut self) {
        self.numbers = HashMap::default();
        self.keyed = Keyed::new(self.policy);
        self.bitmaps = Vec::new();
        self.bitmap_starts = Vec::new();
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

    /// The size of a content's signature.
    #[must_use]
    pub fn size(&self, content: ContentIndex) -> u32 {
        self.sizes[content.0 as usize]
    }

    /// The connected components of the link relation among the contents for which `counts` is true: for each content
    /// the least one of its component, and itself for those that do not count.
    ///
    /// # Errors
    /// When a signature cannot be read.
    pub fn components<E: Send + Sync>(
        &self,
        read: &Read<'_, E>,
        counts: impl Fn(ContentIndex) -> bool,
    ) -> Result<Vec<ContentIndex>, E> {
        let columns = Columns {
            policy: self.policy,
            sizes: &self.sizes,
            keyed: &self.keyed,
            bitmaps: &self.bitmaps,
            bitmap_starts: &self.bitmap_starts,
        };
        let comparable = |content: &u32| {
            self.tokens[*content as usize] >= doppel_model::pairwise::TOKENS_MIN
                && counts(ContentIndex(*content))
        };
        let compared: Vec<u32> = (0..self.hashes.len() as u32).filter(comparable).collect();
        let roots = columns.components(&compared, &|content| read(ContentIndex(content)))?;
        Ok(roots.into_iter().map(ContentIndex).collect())
    }

    /// Compares pairs of contents exactly, on all threads.
    ///
    /// # Errors
    /// When a signature cannot be read.
    pub fn compare_all<E: Send + Sync>(
        &self,
        read: &Read<'_, E>,
        pairs: &[(ContentIndex, ContentIndex)],
    ) -> Result<Vec<Comparison>, E> {
        let compare =
            |(a, b): &(ContentIndex, ContentIndex)| Ok(self.policy.compare(&*read(*a)?, &*read(*b)?));
        pairs.par_iter().map(compare).collect()
    }
}
