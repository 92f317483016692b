//! The distinct contents of a collection, stored in one column per field.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use doppel_model::ContentHash;
use doppel_model::pairwise::{Comparison, Policy};
use doppel_model::parity;
use doppel_model::signature::Signature;
use rayon::prelude::*;

use crate::budget::RefinementLimits;
use crate::components::Columns;
use crate::sort_keys::SortKeys;

/// The number of a content, counted from 0 in the order in which contents were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentIndex(pub u32);

/// Reads the signature of a content. The caller decides where signatures are stored.
pub type ReadSignature<'r, E> = dyn Fn(ContentIndex) -> Result<Arc<Signature>, E> + Sync + 'r;

/// The distinct contents of a collection, with all that the join needs except their signatures.
#[derive(Debug)]
pub struct Contents {
    policy: Policy,
    numbers: HashMap<ContentHash, u32, foldhash::fast::RandomState>,
    hashes: Vec<ContentHash>,
    tokens: Vec<u32>,
    sizes: Vec<u32>,
    sort_keys: SortKeys,
    /// The parity bitmaps of all contents, one after another.
    bitmaps: Vec<u64>,
    /// The index in `bitmaps` at which the bitmap of each content begins.
    bitmap_starts: Vec<u64>,
    pub(crate) limits: RefinementLimits,
}

impl Contents {
    /// Creates an empty collection, which is compared under `policy`.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            numbers: HashMap::default(),
            hashes: Vec::new(),
            tokens: Vec::new(),
            sizes: Vec::new(),
            sort_keys: SortKeys::new(policy),
            bitmaps: Vec::new(),
            bitmap_starts: Vec::new(),
            limits: RefinementLimits::DEFAULT,
        }
    }

    /// Adds a content by its signature. Returns its number, and whether the content is new. A content that
    /// was added before keeps its number.
    ///
    /// # Panics
    /// If the collection has 2^32 contents.
    pub fn add(&mut self, signature: &Signature) -> (ContentIndex, bool) {
        let next =
            u32::try_from(self.hashes.len()).expect("a collection has fewer than 2^32 distinct contents");
        match self.numbers.entry(signature.content()) {
            Entry::Occupied(known) => return (ContentIndex(*known.get()), false),
            Entry::Vacant(entry) => entry.insert(next),
        };
        self.hashes.push(signature.content());
        self.tokens.push(signature.tokens());
        self.sizes.push(signature.size());
        self.sort_keys.push(signature);
        self.bitmap_starts.push(self.bitmaps.len() as u64);
        // A content that is never compared by similarity needs no bitmap.
        if self.policy.comparable(signature) {
            parity::append(signature, &mut self.bitmaps);
        }
        (ContentIndex(next), true)
    }

    /// The policy under which contents are compared.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Frees the columns that only [`add`](Self::add) and [`components`](Self::components) need. The caller
    /// must not call `add` or `components` afterwards.
    pub fn forget_columns(&mut self) {
        self.numbers = HashMap::default();
        self.sort_keys = SortKeys::new(self.policy);
        self.bitmaps = Vec::new();
        self.bitmap_starts = Vec::new();
    }

    /// The number of distinct contents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether the collection has no contents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The hash of a content.
    #[must_use]
    pub fn hash(&self, content: ContentIndex) -> ContentHash {
        self.hashes[content.0 as usize]
    }

    /// The number of tokens of a content.
    #[must_use]
    pub fn tokens(&self, content: ContentIndex) -> u32 {
        self.tokens[content.0 as usize]
    }

    /// The size of a content, as [`Signature::size`] counts it.
    #[must_use]
    pub fn size(&self, content: ContentIndex) -> u32 {
        self.sizes[content.0 as usize]
    }

    /// Finds the connected components of the link relation among the contents for which `counts` is true.
    ///
    /// The result has an element for each content: the content with the smallest number in its component. A
    /// content for which `counts` is false is alone in its component.
    ///
    /// # Errors
    /// If `read` fails for a signature.
    pub fn components<E: Send + Sync>(
        &self,
        read: &ReadSignature<'_, E>,
        counts: impl Fn(ContentIndex) -> bool,
    ) -> Result<Vec<ContentIndex>, E> {
        let comparable = |content: &u32| {
            self.tokens[*content as usize] >= doppel_model::pairwise::TOKENS_MIN
                && counts(ContentIndex(*content))
        };
        let compared: Vec<u32> = (0..self.hashes.len() as u32).filter(comparable).collect();
        let roots = self.columns().components(&compared, &|content| read(ContentIndex(content)))?;
        Ok(roots.into_iter().map(ContentIndex).collect())
    }

    /// The columns that [`components`](Self::components) needs.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns {
            policy: self.policy,
            sizes: &self.sizes,
            sort_keys: &self.sort_keys,
            bitmaps: &self.bitmaps,
            bitmap_starts: &self.bitmap_starts,
            limits: self.limits,
        }
    }

    /// Compares pairs of contents exactly, on all threads. The results have the order of `pairs`.
    ///
    /// # Errors
    /// If `read` fails for a signature.
    pub fn compare_all<E: Send + Sync>(
        &self,
        read: &ReadSignature<'_, E>,
        pairs: &[(ContentIndex, ContentIndex)],
    ) -> Result<Vec<Comparison>, E> {
        let compare =
            |(a, b): &(ContentIndex, ContentIndex)| Ok(self.policy.compare(&*read(*a)?, &*read(*b)?));
        pairs.par_iter().map(compare).collect()
    }
}
