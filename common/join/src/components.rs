//! Finds the connected components of linked contents: proposes candidates by key, rejects most of them by
//! length and parity bitmap, and compares the others exactly.
//!
//! The join works in *turns*: one for each band of the sketch, or one for each key number (see [`SortKeys`]).
//! In a turn the join sorts the contents by key and size. Contents with equal keys form a *run*, and every
//! two contents of a run are candidates.
//!
//! Within a run, contents that are known to be connected form a *tree*. The join takes the contents of a run
//! in order, and compares each content with the trees of the earlier contents. It stops at the first link to
//! each tree. Therefore the cost of a family of near-duplicates does not grow with the square of its size. A
//! pair that shares several keys is compared only for the first of these keys.
//!
//! Most contents of a run may be unlinked, such as pages made from one template. If a run compares too many
//! pairs in vain, its contents are compared by their differences from a template ([`refinement`]).
//!
//! Invariant: the components depend only on which pairs are linked, not on the order in which the threads
//! work.

mod refinement;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use doppel_model::pairwise::Policy;
use doppel_model::parity;
use doppel_model::signature::Signature;
use rayon::prelude::*;
use smallvec::SmallVec;

use crate::atomic_union_find::AtomicUnionFind;
use crate::budget::{Budget, RefinementLimits, Trials};
use crate::sort_keys::SortKeys;
use crate::trees::Tree;
use refinement::RunRefinement;

/// If a run has at least this many trees, a content is compared with them on all threads.
const PARALLEL_TREES_MIN: usize = 64;

/// Number of differences that the refinements of a turn hold in memory at a time, in 8 bytes each.
const DIFFERENCES_MAX: u64 = 1 << 26;

/// The policy and the columns of a collection that the join needs. The number of a content is its index in
/// `sizes` and in `bitmap_starts`.
pub(crate) struct Columns<'c> {
    pub(crate) policy: Policy,
    pub(crate) sizes: &'c [u32],
    pub(crate) sort_keys: &'c SortKeys,
    /// The parity bitmaps of all contents, one after another.
    pub(crate) bitmaps: &'c [u64],
    /// The index in `bitmaps` at which the bitmap of each content begins.
    pub(crate) bitmap_starts: &'c [u64],
    pub(crate) limits: RefinementLimits,
}

/// A content with one of its sort keys and with its size. Entries are sorted by key, then by size. The size
/// is what [`Signature::size`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SortEntry {
    pub(crate) key: u32,
    pub(crate) size: u32,
    pub(crate) content: u32,
}

/// Reads the signature of the content that has the given number.
pub(crate) type SignatureReader<'r, E> = dyn Fn(u32) -> Result<Arc<Signature>, E> + Sync + 'r;

impl Columns<'_> {
    /// The root of every content's component. Only the contents in `compared` are compared; every other
    /// content is its own root. Fails if `read` fails.
    pub(crate) fn components<E: Send + Sync>(
        &self,
        compared: &[u32],
        read: &SignatureReader<'_, E>,
    ) -> Result<Vec<u32>, E> {
        let connected = AtomicUnionFind::new(self.sizes.len());
        let failure = OnceLock::new();
        let stop = AtomicBool::new(false);
        for turn in 0..self.sort_keys.turns() {
            let mut entries: Vec<SortEntry> =
                compared.par_iter().flat_map_iter(|content| self.entries_in_turn(turn, *content)).collect();
            entries.par_sort_unstable();
            let runs: Vec<&[SortEntry]> =
                entries.chunk_by(|a, b| a.key == b.key).filter(|run| run.len() > 1).collect();
            let state = Turn {
                columns: self,
                turn,
                connected: &connected,
                read,
                stop: &stop,
                differences: Budget::new(DIFFERENCES_MAX),
            };
            runs.par_iter().for_each(|run| {
                if let Err(error) = state.connect_run(run) {
                    stop.store(true, Ordering::Relaxed);
                    let _ = failure.set(error);
                }
            });
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        match failure.into_inner() {
            Some(error) => Err(error),
            None => Ok(connected.into_roots()),
        }
    }

    /// The entries of a content in a turn: one for each sort key that the content has in this turn.
    fn entries_in_turn(&self, turn: usize, content: u32) -> SmallVec<[SortEntry; 1]> {
        let (size, mut entries) = (self.sizes[content as usize], SmallVec::new());
        self.sort_keys.for_each_in_turn(turn, content, |key| entries.push(SortEntry { key, size, content }));
        entries
    }

    pub(crate) fn bitmap(&self, content: u32) -> &[u64] {
        let at = content as usize;
        let end = self.bitmap_starts.get(at + 1).map_or(self.bitmaps.len(), |start| *start as usize);
        &self.bitmaps[self.bitmap_starts[at] as usize..end]
    }
}

/// One turn of the join, which sorts the contents by one band or key number and compares the contents with
/// equal keys. The threads of the turn share this state.
pub(crate) struct Turn<'b, E> {
    pub(crate) columns: &'b Columns<'b>,
    /// The number of the band, or the key number.
    turn: usize,
    pub(crate) connected: &'b AtomicUnionFind,
    pub(crate) read: &'b SignatureReader<'b, E>,
    /// Set after a signature could not be read, so that all threads stop.
    pub(crate) stop: &'b AtomicBool,
    /// Differences that the refinements of this turn hold in memory.
    differences: Budget,
}

impl<E: Send + Sync> Turn<'_, E> {
    /// Compares the contents of a run, smallest first, and connects linked contents.
    fn connect_run(&self, run: &[SortEntry]) -> Result<(), E> {
        let mut trees: Vec<Tree<SortEntry>> = Vec::new();
        let hashes = run.iter().map(|entry| u64::from(entry.size)).sum();
        let mut trials = Trials::new(self.columns.limits, run.len(), hashes);
        let mut refinement = RunRefinement::Untried;
        for content in run {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            // Sizes ascend. A tree whose largest member is too small for this content is too small for all
            // later contents.
            trees.retain(|tree| tree.last().is_some_and(|last| self.is_large_enough(last.size, *content)));
            let mut links = self.connect_to_trees(*content, &trees)?.into_iter();
            let mut merged = Tree::default();
            trees.retain_mut(|tree| {
                let (is_linked, visited) = links.next().unwrap_or_default();
                trials.add(visited);
                if is_linked {
                    merged.absorb(tree);
                }
                !is_linked
            });
            merged.push(*content);
            trees.push(merged);
            if let Some(visits) = trials.due()
                && refinement.connect(self, run, visits)?
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Connects a content to every tree that has a member linked to the content. Returns for each tree
    /// whether the content and the tree are connected now, and how many members were visited in vain.
    fn connect_to_trees(&self, content: SortEntry, trees: &[Tree<SortEntry>]) -> Result<Vec<(bool, u64)>, E> {
        let signature = OnceLock::new();
        let connect = |tree: &Tree<SortEntry>| self.connect_to_tree(content, &signature, tree);
        if trees.len() < PARALLEL_TREES_MIN {
            trees.iter().map(connect).collect()
        } else {
            trees.par_iter().map(connect).collect()
        }
    }

    /// Connects a content to a tree if a member of the tree is linked to the content. Returns whether the
    /// content and the tree are connected now, and how many members were visited in vain.
    ///
    /// The comparison stops at the first linked member. It is skipped if the content and the tree are
    /// connected already. `signature` caches the signature of the content.
    fn connect_to_tree(
        &self,
        content: SortEntry,
        signature: &OnceLock<Arc<Signature>>,
        tree: &Tree<SortEntry>,
    ) -> Result<(bool, u64), E> {
        let mut visited = 0;
        let Some(member) = tree.first() else { return Ok((false, visited)) };
        if self.connected.root(member.content) == self.connected.root(content.content) {
            return Ok((true, visited));
        }
        let policy = self.columns.policy;
        let bitmap = self.columns.bitmap(content.content);
        for list in tree.lists() {
            // Start with the largest member, which is nearest in size. Stop at the first member that is too
            // small, because all members after it are even smaller.
            for other in list.iter().rev().take_while(|other| self.is_large_enough(other.size, content)) {
                visited += 1;
                let differing = parity::differing(bitmap, self.columns.bitmap(other.content));
                let shared_max = parity::shared_max(content.size, other.size, differing);
                if !policy.admits(shared_max, content.size, other.size)
                    || self.is_earlier_candidate(content, other.content)
                {
                    continue;
                }
                let signature = match signature.get() {
                    Some(signature) => signature,
                    None => {
                        let read = (self.read)(content.content)?;
                        signature.get_or_init(|| read)
                    }
                };
                if policy.compare(signature, &*(self.read)(other.content)?).similar {
                    self.connected.union(content.content, other.content);
                    return Ok((true, visited));
                }
            }
        }
        Ok((false, visited))
    }

    /// Whether a content of `size` is large enough to be linked to `content`. The size of `content` is at
    /// least `size`.
    fn is_large_enough(&self, size: u32, content: SortEntry) -> bool {
        self.columns.policy.admits(size, content.size, size)
    }

    /// Whether `content` and `other` also share a key of an earlier run, in the order of turns and keys. That
    /// run compares them, or finds them connected already.
    pub(crate) fn is_earlier_candidate(&self, content: SortEntry, other: u32) -> bool {
        self.columns.sort_keys.is_earlier_candidate(self.turn, content.key, content.content, other)
    }
}
