//! Candidates by band, rejection by length and bitmap, and exact comparison of what is left.
//!
//! For every band the contents are sorted by key and number of shingles. Within a run of equal keys, a content is
//! compared with those before it that are not connected with it yet and long enough. A pair that shares several bands is
//! compared in the first of them only.
//!
//! Invariant: whatever the threads do first, the components are those of all linked pairs.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use doppel_model::pairwise::{Bands, Policy};
use doppel_model::parity;
use doppel_model::sketch::Sketch;
use rayon::prelude::*;

use crate::JoinError;
use crate::atomic_union_find::AtomicUnionFind;

/// Contents of a run that are dealt out to threads together.
const PIECE: usize = 256;

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

/// Compares two contents exactly.
type Similar<'s> = dyn Fn(u32, u32) -> Result<bool, JoinError> + Sync + 's;

impl Columns<'_> {
    /// The root of every content, when only `compared` are linked.
    pub(crate) fn components(&self, compared: &[u32], similar: &Similar<'_>) -> Result<Vec<u32>, JoinError> {
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
            // A long run is dealt out in pieces, so that no thread has it alone.
            let pieces = runs.par_iter().flat_map_iter(|run| {
                (0..run.len()).step_by(PIECE).map(|from| (*run, from..run.len().min(from + PIECE)))
            });
            pieces.for_each(|(run, piece)| {
                for at in piece {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    if let Err(error) = self.connect(bands, band, &run[..=at], &connected, similar) {
                        stop.store(true, Ordering::Relaxed);
                        let _ = failure.set(error);
                    }
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

    /// Connects the last content of a run with those before it, from the nearest in length on.
    fn connect(
        &self,
        bands: Bands,
        band: usize,
        run: &[Keyed],
        connected: &AtomicUnionFind,
        similar: &Similar<'_>,
    ) -> Result<(), JoinError> {
        let Some((last, before)) = run.split_last() else { return Ok(()) };
        let bitmap = self.bitmap(last.content);
        let mut root = connected.root(last.content);
        for other in before.iter().rev() {
            // It and all before it are too short.
            if !self.policy.admits(other.shingles, last.shingles, other.shingles) {
                break;
            }
            if connected.root(other.content) == root {
                continue;
            }
            let differing = parity::differing(bitmap, self.bitmap(other.content));
            let shared_max = parity::shared_max(last.shingles, other.shingles, differing);
            if !self.policy.admits(shared_max, last.shingles, other.shingles)
                || self.meet_before(bands, band, last.content, other.content)
            {
                continue;
            }
            if similar(last.content, other.content)? {
                connected.union(last.content, other.content);
                root = connected.root(last.content);
            }
        }
        Ok(())
    }

    /// Whether two contents share one of the bands before this one, where they were compared.
    fn meet_before(&self, bands: Bands, band: usize, a: u32, b: u32) -> bool {
        let keys = |content: u32| bands.keys(&self.sketches[content as usize]).take(band);
        keys(a).zip(keys(b)).any(|(a, b)| a == b)
    }

    fn bitmap(&self, content: u32) -> &[u64] {
        let at = content as usize;
        let end = self.bitmap_starts.get(at + 1).map_or(self.bitmaps.len(), |start| *start as usize);
        &self.bitmaps[self.bitmap_starts[at] as usize..end]
    }
}
