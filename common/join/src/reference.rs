//! The exact join of single contents with a fixed set of contents, the *reference*.
//!
//! Unlike the link relation, the result does not depend on bands: it equals a comparison of all pairs.
//!
//! - Under a policy with a [metric](Policy::metric), candidates share one of their first hashes in one order of all
//!   hashes ([`order`]).
//! - Under every other policy, near-duplicates share a key.

mod order;
mod size_class;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use doppel_model::pairwise::{Comparison, Policy};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, parity};
use rayon::prelude::*;

use crate::{ContentIndex, JoinError, Signatures};
use order::HashOrder;
use size_class::SizeClass;

/// A reference that takes contents.
#[derive(Debug)]
pub struct ReferenceBuilder {
    policy: Policy,
    numbers: HashMap<ContentHash, u32, foldhash::fast::RandomState>,
    signatures: Signatures,
    /// Number of hashes of all contents together.
    hashes: u64,
}

/// The contents of a reference, which can be searched.
#[derive(Debug)]
pub struct ReferenceIndex {
    policy: Policy,
    numbers: HashMap<ContentHash, u32, foldhash::fast::RandomState>,
    signatures: Signatures,
    sizes: Vec<u32>,
    /// The parity bitmaps of all contents, one after another.
    bitmaps: Vec<u64>,
    /// The index in `bitmaps` at which the bitmap of each content begins.
    bitmap_starts: Vec<u64>,
    order: HashOrder,
    /// Sorted by hash or key, then by the class of the content's size, and then by the content.
    postings: Vec<Posting>,
    /// Index of the first posting of each part of the range of hashes or keys.
    parts: Vec<u64>,
    /// Number of bits by which [`mixed`] hashes are shifted to give their part.
    shift: u32,
}

/// A content under one of its first hashes, or one of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Posting {
    /// The hash or key, [`mixed`].
    of: u64,
    content: u32,
    /// Number of hashes of the content that come before this one in the order. Zero for a key.
    position: u32,
}

/// The rest of a list of postings during a search: the list of a hash of the content, or of a key.
#[derive(Debug, Clone, Copy)]
struct PostingList {
    start: usize,
    end: usize,
    /// Number of hashes of the content that come before this one in the order.
    position: u32,
}

/// The number in `heads` that is no list: the content of the reference that is equal to the content in question.
const EQUAL: usize = usize::MAX;

/// Memory that several searches use one after another.
#[derive(Debug, Default)]
pub struct SearchScratch {
    bitmap: Vec<u64>,
    lists: Vec<PostingList>,
    /// The next content of each list, with the number of the list.
    heads: BinaryHeap<Reverse<(u32, usize)>>,
}

/// A content of the reference that is a near-duplicate of the content in question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferencePartner {
    /// Number of the content in the reference.
    pub content: ContentIndex,
    /// The comparison of the two contents.
    pub comparison: Comparison,
}

impl ReferenceBuilder {
    /// Creates an empty reference. Signatures beyond `memory_max` bytes go to a temporary file in `temp_dir`.
    #[must_use]
    pub fn new(policy: Policy, memory_max: usize, temp_dir: &Path) -> Self {
        let signatures = Signatures::new(memory_max, temp_dir);
        Self { policy, numbers: HashMap::default(), signatures, hashes: 0 }
    }

    /// Adds a content by its signature. Returns its number. A content that was added before keeps its number.
    ///
    /// # Errors
    /// If the temporary file cannot be written.
    ///
    /// # Panics
    /// If the reference has 2^32 contents.
    pub fn add(&mut self, signature: &Arc<Signature>) -> Result<ContentIndex, JoinError> {
        let next = u32::try_from(self.numbers.len()).expect("a reference has fewer than 2^32 contents");
        match self.numbers.entry(signature.content()) {
            Entry::Occupied(known) => return Ok(ContentIndex(*known.get())),
            Entry::Vacant(entry) => entry.insert(next),
        };
        self.hashes += signature.set().len() as u64;
        self.signatures.push(signature)?;
        Ok(ContentIndex(next))
    }

    /// Makes the index of all contents.
    ///
    /// # Errors
    /// If the temporary file cannot be written or read.
    pub fn finish(self) -> Result<ReferenceIndex, JoinError> {
        let Self { policy, numbers, mut signatures, hashes } = self;
        signatures.flush()?;
        let count = numbers.len() as u32;
        let mut order = HashOrder::for_hashes(if policy.metric().is_some() { hashes } else { 0 });
        let (mut sizes, mut bitmaps, mut bitmap_starts) = (Vec::new(), Vec::new(), Vec::new());
        for content in 0..count {
            let signature = signatures.get(ContentIndex(content))?;
            sizes.push(signature.size());
            bitmap_starts.push(bitmaps.len() as u64);
            if policy.metric().is_some() && policy.comparable(&signature) {
                order.count(signature.set());
                parity::append(&signature, &mut bitmaps);
            }
        }
        let postings = |content: u32| {
            let signature = signatures.get(ContentIndex(content))?;
            Ok(postings(policy, &order, (content, &signature)))
        };
        let postings: Result<Vec<Vec<Posting>>, JoinError> =
            (0..count).into_par_iter().map(postings).collect();
        let mut postings = postings?.concat();
        let class = |content: u32| SizeClass::of(sizes[content as usize]);
        postings.par_sort_unstable_by_key(|posting| (posting.of, class(posting.content), posting.content));
        let bits = postings.len().next_power_of_two().ilog2().max(1);
        let shift = u64::BITS - bits;
        let mut parts = vec![0; (1 << bits) + 1];
        postings.iter().for_each(|posting| parts[(posting.of >> shift) as usize + 1] += 1);
        let mut sum = 0;
        for part in &mut parts {
            sum += *part;
            *part = sum;
        }
        Ok(ReferenceIndex {
            policy,
            numbers,
            signatures,
            sizes,
            bitmaps,
            bitmap_starts,
            order,
            postings,
            parts,
            shift,
        })
    }
}

/// The postings of a content.
fn postings(policy: Policy, order: &HashOrder, (content, signature): (u32, &Signature)) -> Vec<Posting> {
    let mut postings = Vec::new();
    if !policy.comparable(signature) {
        return postings;
    }
    match policy.metric() {
        Some(tau) => {
            let first = order.first_hashes(signature, tau);
            let posting = |(hash, position)| Posting { of: mixed(hash), content, position };
            postings.extend(first.iter().map(posting));
        }
        None => {
            policy.keys(signature, |key| postings.push(Posting { of: mixed(key), content, position: 0 }));
            postings.sort_unstable();
            postings.dedup();
        }
    }
    postings
}

/// Spreads hashes and keys over the whole range. Different values stay different.
fn mixed(value: u64) -> u64 {
    // An odd factor is a permutation of the range: Steele and Vigna, "Computationally easy, spectrally good
    // multipliers for congruential pseudorandom number generators", table 4 (64 bits).
    value.wrapping_mul(0xf135_7aea_2e62_a9c5)
}

impl ReferenceIndex {
    /// Number of distinct contents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether the reference has no contents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Calls `each` for every content of the reference that is a near-duplicate of a content, in the order of their
    /// numbers, until `each` breaks. `scratch` is memory that searches use one after another.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn partners(
        &self,
        signature: &Signature,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(ReferencePartner) -> ControlFlow<()>,
    ) -> Result<(), JoinError> {
        let SearchScratch { bitmap, lists, heads } = scratch;
        bitmap.clear();
        lists.clear();
        heads.clear();
        let equal = self.numbers.get(&signature.content()).copied();
        self.collect_lists(signature, lists);
        if self.policy.metric().is_some() && !lists.is_empty() {
            parity::append(signature, bitmap);
        }
        let first =
            |(number, list): (usize, &PostingList)| Reverse((self.postings[list.start].content, number));
        heads.extend(lists.iter().enumerate().map(first));
        heads.extend(equal.map(|content| Reverse((content, EQUAL))));
        let mut last = None;
        while let Some(Reverse((content, number))) = heads.pop() {
            // A content comes first in the list of the first hash that both have.
            let is_new = last.replace(content) != Some(content);
            let mut may_be_similar = true;
            if let Some(list) = lists.get_mut(number) {
                let posting = self.postings[list.start];
                list.start += 1;
                if list.start < list.end {
                    heads.push(Reverse((self.postings[list.start].content, number)));
                }
                may_be_similar = equal == Some(content)
                    || self.policy.metric().is_none()
                    || (is_new && self.may_be_similar((signature.size(), list.position), posting, bitmap));
            }
            if !is_new || !may_be_similar {
                continue;
            }
            let comparison = self.policy.compare(signature, &*self.signatures.get(ContentIndex(content))?);
            let partner = ReferencePartner { content: ContentIndex(content), comparison };
            if comparison.similar && each(partner).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Collects the lists in which the near-duplicates of a content are, in the order of the content's hashes.
    fn collect_lists(&self, signature: &Signature, lists: &mut Vec<PostingList>) {
        if !self.policy.comparable(signature) {
            return;
        }
        let Some(tau) = self.policy.metric() else {
            self.policy.keys(signature, |key| {
                lists.extend(self.by_class(self.list(mixed(key)), 0).map(|(_, list)| list));
            });
            return;
        };
        let size = signature.size();
        for (hash, position) in self.order.first_hashes(signature, tau).iter() {
            // If the hash is the first that both have, they share at most the hashes from here on.
            let by_class = self.by_class(self.list(mixed(hash)), position);
            let admitted = by_class.filter(|(class, _)| class.may_have_partner(tau, size, size - position));
            lists.extend(admitted.map(|(_, list)| list));
        }
    }

    /// The parts of a list by the class of the contents' sizes, none of them empty. Each part is in the order of the
    /// contents. `position` is that of the list's hash in the content in question.
    fn by_class(
        &self,
        list: Range<usize>,
        position: u32,
    ) -> impl Iterator<Item = (SizeClass, PostingList)> + '_ {
        let class = |posting: &Posting| SizeClass::of(self.sizes[posting.content as usize]);
        let mut rest = list;
        std::iter::from_fn(move || {
            let first = class(self.postings[rest.clone()].first()?);
            let start = rest.start;
            rest.start += self.postings[rest.clone()].partition_point(|posting| class(posting) <= first);
            Some((first, PostingList { start, end: rest.start, position }))
        })
    }

    /// Whether a content of `size` hashes can be similar to the content of a posting. The hash of the
    /// posting is the first that both have, if they are similar, so all others that both have come after it.
    fn may_be_similar(&self, (size, position): (u32, u32), posting: Posting, bitmap: &[u64]) -> bool {
        let content = posting.content as usize;
        let other_size = self.sizes[content];
        let shared_max = (size - position).min(other_size - posting.position);
        if !self.policy.admits(shared_max, size, other_size) {
            return false;
        }
        let start = self.bitmap_starts[content] as usize;
        let end = self.bitmap_starts.get(content + 1).map_or(self.bitmaps.len(), |end| *end as usize);
        let differing = parity::differing(bitmap, &self.bitmaps[start..end]);
        self.policy.admits(parity::shared_max(size, other_size, differing), size, other_size)
    }

    /// Where the postings of a mixed hash or key are.
    fn list(&self, of: u64) -> Range<usize> {
        let part = (of >> self.shift) as usize;
        let (begin, end) = (self.parts[part] as usize, self.parts[part + 1] as usize);
        let part = &self.postings[begin..end];
        let start = part.partition_point(|posting| posting.of < of);
        let end = start + part[start..].partition_point(|posting| posting.of == of);
        begin + start..begin + end
    }
}
