//! Candidates by band, rejection by length and bitmap, and exact comparison of what is left.
//!
//! For every band, or key of a number, the contents are sorted by key and size. Within a run of equal keys, those that are known
//! to be connected are kept together as a tree. Each content is compared with the trees before it, and with each only up
//! to the first link: so the cost of a family does not grow with the square of its size. A pair that shares several bands
//! or keys is compared for the first of them only.
//!
//! Invariant: whatever the threads do first, the components are those of all linked pairs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use doppel_model::pairwise::Policy;
use doppel_model::parity;
use doppel_model::signature::Signature;
use rayon::prelude::*;
use smallvec::SmallVec;

use crate::atomic_union_find::AtomicUnionFind;
use crate::keyed;

/// From so many trees on, a content is compared with them on all threads.
const TREES: usize = 64;

/// What a candidate is judged by.
pub(crate) struct Columns<'c> {
    pub(crate) policy: Policy,
    pub(crate) sizes: &'c [u32],
    pub(crate) keyed: &'c keyed::Keyed,
    pub(crate) bitmaps: &'c [u64],
    pub(crate) bitmap_starts: &'c [u64],
}

/// A content in the order of a band.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    key: u32,
    size: u32,
    content: u32,
}

/// Reads the signature of a content.
type Read<'r, E> = dyn Fn(u32) -> Result<Arc<Signature>, E> + Sync + 'r;

/// Contents of a run that are connected: lists by size, ascending.
#[derive(Default)]
struct Tree {
    lists: Vec<Vec<Keyed>>,
    /// The size of the largest member.
    size_max: u32,
}

impl Columns<'_> {
    /// The root of every content, when only `compared` are linked.
    pub(crate) fn components<E: Send + Sync>(
        &self,
        compared: &[u32],
        read: &Read<'_, E>,
    ) -> Result<Vec<u32>, E> {
        let connected = AtomicUnionFind::new(self.sizes.len());
        let failure = OnceLock::new();
        let stop = AtomicBool::new(false);
        for turn in 0..self.keyed.turns() {
            let mut keyed: Vec<Keyed> =
                compared.par_iter().flat_map_iter(|content| self.in_turn(turn, *content)).collect();
            keyed.par_sort_unstable();
            let runs: Vec<&[Keyed]> =
                keyed.chunk_by(|a, b| a.key == b.key).filter(|run| run.len() > 1).collect();
            let band = Turn { columns: self, turn, connected: &connected, read, stop: &stop };
            runs.par_iter().for_each(|run| {
                if let Err(error) = band.connect_run(run) {
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

    fn in_turn(&self, turn: usize, content: u32) -> SmallVec<[Keyed; 1]> {
        let (size, mut keyed) = (self.sizes[content as usize], SmallVec::new());
        self.keyed.in_turn(turn, content, |key| keyed.push(Keyed { key, size, content }));
        keyed
    }

    fn bitmap(&self, content: u32) -> &[u64] {
        let at = content as usize;
        let end = self.bitmap_starts.get(at + 1).map_or(self.bitmaps.len(), |start| *start as usize);
        &self.bitmaps[self.bitmap_starts[at] as usize..end]
    }
}

/// One turn of the join: a band, or the keys of a number.
struct Turn<'b, E> {
    columns: &'b Columns<'b>,
    turn: usize,
    connected: &'b AtomicUnionFind,
    read: &'b Read<'b, E>,
    stop: &'b AtomicBool,
}

impl<E: Send> Turn<'_, E> {
    /// Connects the contents of a run.
    fn connect_run(&self, run: &[Keyed]) -> Result<(), E> {
        let mut trees: Vec<Tree> = Vec::new();
        for content in run {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            // Those of which all are too short for this content are so for all that follow.
            trees.retain(|tree| self.admits_lengths(tree.size_max, *content));
            let mut links = self.links(*content, &trees)?.into_iter();
            let mut own = Tree::default();
            trees.retain_mut(|tree| {
                let is_linked = links.next() == Some(true);
                if is_linked {
                    own.absorb(tree);
                }
                !is_linked
            });
            own.push(*content);
            trees.push(own);
        }
        Ok(())
    }

    /// Which trees a content is connected with; those that it was not are connected then.
    fn links(&self, content: Keyed, trees: &[Tree]) -> Result<Vec<bool>, E> {
        let signature = OnceLock::new();
        let link = |tree: &Tree| self.link(content, &signature, tree);
        if trees.len() < TREES {
            trees.iter().map(link).collect()
        } else {
            trees.par_iter().map(link).collect()
        }
    }

    /// Whether a content is connected with a tree, after comparing it with as many of its members as that takes.
    fn link(&self, content: Keyed, signature: &OnceLock<Arc<Signature>>, tree: &Tree) -> Result<bool, E> {
        let Some(member) = tree.lists.first().and_then(|list| list.first()) else { return Ok(false) };
        if self.connected.root(member.content) == self.connected.root(content.content) {
            return Ok(true);
        }
        let policy = self.columns.policy;
        let bitmap = self.columns.bitmap(content.content);
        for list in &tree.lists {
            // From the nearest in length on; the first that is too short ends the list.
            for other in list.iter().rev().take_while(|other| self.admits_lengths(other.size, content)) {
                let differing = parity::differing(bitmap, self.columns.bitmap(other.content));
                let shared_max = parity::shared_max(content.size, other.size, differing);
                if !policy.admits(shared_max, content.size, other.size)
                    || self.meet_before(content, other.content)
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
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a content of this size can be linked to one that is as large or larger.
    fn admits_lengths(&self, size: u32, content: Keyed) -> bool {
        self.columns.policy.admits(size, content.size, size)
    }

    /// Whether a content of this run and another one are candidates in a run that comes before in the order of turns and keys. They are
    /// compared there, or connected without that.
    fn meet_before(&self, content: Keyed, other: u32) -> bool {
        self.columns.keyed.meet_before(self.turn, content.key, content.content, other)
    }
}

impl Tree {
    /// Takes the members of another.
    fn absorb(&mut self, other: &mut Self) {
        if self.lists.len() < other.lists.len() {
            std::mem::swap(self, other);
        }
        self.lists.append(&mut other.lists);
    }

    /// Adds a member that is as long as any.
    fn push(&mut self, content: Keyed) {
        self.size_max = content.size;
        match self.lists.first_mut() {
            Some(list) => list.push(content),
            None => self.lists.push(vec![content]),
        }
    }
}
