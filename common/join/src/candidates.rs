//! Candidates by band, rejection by length and bitmap, and exact comparison of what is left.
//!
//! For every band the contents are sorted by key and number of shingles. Within a run of equal keys, those that are known
//! to be connected are kept together as a tree. Each content is compared with the trees before it, and with each only up
//! to the first link: so the cost of a family does not grow with the square of its size. A pair that shares several bands
//! is compared in the first of them only.
//!
//! Invariant: whatever the threads do first, the components are those of all linked pairs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use doppel_model::pairwise::{Bands, Policy};
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::sketch::Sketch;
use rayon::prelude::*;

use crate::atomic_union_find::AtomicUnionFind;

/// From so many trees on, a content is compared with them on all threads.
const TREES: usize = 64;

/// What a candidate is judged by.
pub(crate) struct Columns<'c> {
    pub(crate) policy: Policy,
    pub(crate) shingles: &'c [u32],
    pub(crate) sketches: &'c [Sketch],
    pub(crate) bitmaps: &'c [u64],
    pub(crate) bitmap_starts: &'c [u64],
}

/// A content in the order of a band.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    key: u32,
    shingles: u32,
    content: u32,
}

/// Reads the signature of a content.
type Read<'r, E> = dyn Fn(u32) -> Result<Arc<Signature>, E> + Sync + 'r;

/// Contents of a run that are connected: lists by number of shingles, ascending.
#[derive(Default)]
struct Tree {
    lists: Vec<Vec<Keyed>>,
    /// The most shingles of a member.
    shingles_max: u32,
}

impl Columns<'_> {
    /// The root of every content, when only `compared` are linked.
    pub(crate) fn components<E: Send + Sync>(
        &self,
        compared: &[u32],
        read: &Read<'_, E>,
    ) -> Result<Vec<u32>, E> {
        let connected = AtomicUnionFind::new(self.shingles.len());
        let bands = self.policy.bands();
        let failure = OnceLock::new();
        let stop = AtomicBool::new(false);
        for band in 0..bands.count {
            let mut keyed: Vec<Keyed> =
                compared.par_iter().map(|content| self.keyed(bands, band, *content)).collect();
            keyed.par_sort_unstable();
            let runs: Vec<&[Keyed]> =
                keyed.chunk_by(|a, b| a.key == b.key).filter(|run| run.len() > 1).collect();
            let band = Band { columns: self, bands, band, connected: &connected, read, stop: &stop };
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

    fn keyed(&self, bands: Bands, band: usize, content: u32) -> Keyed {
        let key = bands.keys(&self.sketches[content as usize]).nth(band).unwrap_or_default();
        Keyed { key, shingles: self.shingles[content as usize], content }
    }

    fn bitmap(&self, content: u32) -> &[u64] {
        let at = content as usize;
        let end = self.bitmap_starts.get(at + 1).map_or(self.bitmaps.len(), |start| *start as usize);
        &self.bitmaps[self.bitmap_starts[at] as usize..end]
    }
}

/// One band of the join.
struct Band<'b, E> {
    columns: &'b Columns<'b>,
    bands: Bands,
    band: usize,
    connected: &'b AtomicUnionFind,
    read: &'b Read<'b, E>,
    stop: &'b AtomicBool,
}

impl<E: Send> Band<'_, E> {
    /// Connects the contents of a run.
    fn connect_run(&self, run: &[Keyed]) -> Result<(), E> {
        let mut trees: Vec<Tree> = Vec::new();
        for content in run {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            // Those of which all are too short for this content are so for all that follow.
            trees.retain(|tree| self.admits_lengths(tree.shingles_max, *content));
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
            for other in list.iter().rev().take_while(|other| self.admits_lengths(other.shingles, content)) {
                let differing = parity::differing(bitmap, self.columns.bitmap(other.content));
                let shared_max = parity::shared_max(content.shingles, other.shingles, differing);
                if !policy.admits(shared_max, content.shingles, other.shingles)
                    || self.meet_before(content.content, other.content)
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

    /// Whether a content of so many shingles can be linked to one that has as many or more.
    fn admits_lengths(&self, shingles: u32, content: Keyed) -> bool {
        self.columns.policy.admits(shingles, content.shingles, shingles)
    }

    /// Whether two contents share one of the bands before this one, where they were compared.
    fn meet_before(&self, a: u32, b: u32) -> bool {
        let keys = |content: u32| self.bands.keys(&self.columns.sketches[content as usize]).take(self.band);
        keys(a).zip(keys(b)).any(|(a, b)| a == b)
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
        self.shingles_max = content.shingles;
        match self.lists.first_mut() {
            Some(list) => list.push(content),
            None => self.lists.push(vec![content]),
        }
    }
}
