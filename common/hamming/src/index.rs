//! An index of fingerprints with ids that can be added and removed, and searched by distance.
//!
//! The tables of the paper are static. This index is log-structured instead. New fingerprints go to a buffer
//! that every query scans. When the buffer is full, it becomes a sorted *run*, which contains all tables of
//! the design. This merge includes the youngest runs, as long as they are not much larger. So there are few
//! runs, and each fingerprint is merged a number of times that grows with the logarithm of the size.
//!
//! A hash table maps every fingerprint to its ids, and the tables contain each fingerprint once. When the
//! last id of a fingerprint is removed, the fingerprint becomes *dead*: it stays in its run without ids until
//! a merge. A query may still find a dead fingerprint, but the hash table has no ids for it. When more than a
//! quarter of the fingerprints in runs are dead, and more than the buffer can hold, the index merges all
//! runs.
//!
//! Invariants:
//! - Each fingerprint of the hash table is in the buffer or in exactly one run. The buffer and the runs
//!   contain no other fingerprints.
//! - A fingerprint has no ids if and only if it is in `dead`. No fingerprint in the buffer is dead.
//! - When a run was merged, the next older run was more than [`IndexOptions::growth`] times as large.

mod ids;
mod run;
mod scan;

use std::hint::black_box;
use std::ops::ControlFlow;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use crate::design::Design;
use crate::error::HammingError;
use crate::limits::{FINGERPRINTS_MAX, RECENT_MAX};
use crate::table::{CandidateRange, Storage};
use ids::Ids;
use run::{DeadFingerprints, IndexRun};
use scan::scan;

/// Options that trade memory, query time, and insertion time for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// How runs store their tables.
    pub storage: Storage,
    /// Maximum number of fingerprints in the buffer. Every query scans the buffer.
    pub recent: usize,
    /// A merge includes the next older run if that run is at most this many times as large as everything that
    /// the merge includes already.
    pub growth: usize,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { storage: Storage::Plain, recent: 1024, growth: 4 }
    }
}

/// A stored id whose fingerprint is within the requested distance of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Number of bits that differ from the query.
    pub distance: u32,
    /// Fingerprint that the index stores.
    pub fingerprint: u64,
    /// The id that was stored with the fingerprint.
    pub id: u64,
}

/// The current size of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSize {
    /// Number of fingerprints that have ids.
    pub fingerprints: usize,
    /// Number of fingerprints without ids, which a later merge of their runs removes.
    pub dead: usize,
    /// Number of sorted runs.
    pub runs: usize,
    /// Bytes of all tables, without the hash table of ids.
    pub table_bytes: usize,
}

/// A searchable set of (fingerprint, id) pairs. See the module documentation.
#[derive(Debug)]
pub struct FingerprintIndex {
    design: Design,
    options: IndexOptions,
    ids: HashMap<u64, Ids, foldhash::fast::RandomState>,
    recent: Vec<u64>,
    /// Sorted runs, from the oldest and largest to the youngest.
    runs: Vec<IndexRun>,
    dead: DeadFingerprints,
}

impl FingerprintIndex {
    /// Creates an empty index. Returns an error if `options.recent` or `options.growth` is out of range.
    pub fn new(design: Design, options: IndexOptions) -> Result<Self, HammingError> {
        if !(1..=RECENT_MAX).contains(&options.recent) {
            return Err(HammingError::Recent(options.recent));
        }
        if options.growth == 0 {
            return Err(HammingError::Growth(options.growth));
        }
        let (ids, dead) = (HashMap::default(), DeadFingerprints::default());
        Ok(Self { design, options, ids, recent: Vec::new(), runs: Vec::new(), dead })
    }

    /// Builds an index of (fingerprint, id) pairs with a single run.
    pub fn build(
        design: Design,
        options: IndexOptions,
        fingerprints: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Self, HammingError> {
        let mut index = Self::new(design, options)?;
        for (fingerprint, id) in fingerprints {
            index.design.check(fingerprint)?;
            index.ids.entry(fingerprint).or_default().insert(id);
            if index.ids.len() > FINGERPRINTS_MAX {
                return Err(HammingError::Full);
            }
        }
        let distinct: Vec<u64> = index.ids.keys().copied().collect();
        if !distinct.is_empty() {
            index.runs.push(IndexRun::new(&index.design, &distinct, options.storage));
        }
        Ok(index)
    }

    /// The design of the tables.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The current size of the index.
    #[must_use]
    pub fn size(&self) -> IndexSize {
        IndexSize {
            fingerprints: self.ids.len() - self.dead.len(),
            dead: self.dead.len(),
            runs: self.runs.len(),
            table_bytes: self
                .runs
                .iter()
                .flat_map(IndexRun::tables)
                .map(crate::table::FingerprintTable::bytes)
                .sum(),
        }
    }

    /// Adds an id with its fingerprint. Returns false if the pair was already stored. An id may have several
    /// fingerprints. Returns an error if the fingerprint has too many bits, or if the index is full.
    ///
    /// An insertion that fills the buffer of [`IndexOptions::recent`] fingerprints also merges the buffer
    /// into a run. The merge runs in the calling thread and on the rayon thread pool.
    pub fn insert(&mut self, fingerprint: u64, id: u64) -> Result<bool, HammingError> {
        self.design.check(fingerprint)?;
        let full = self.ids.len() >= FINGERPRINTS_MAX;
        match self.ids.entry(fingerprint) {
            Entry::Occupied(mut known) => {
                if known.get().is_empty() {
                    self.dead.remove(&fingerprint);
                }
                return Ok(known.get_mut().insert(id));
            }
            Entry::Vacant(_) if full => return Err(HammingError::Full),
            Entry::Vacant(new) => {
                new.insert(Ids::One(id));
            }
        }
        self.recent.push(fingerprint);
        if self.recent.len() >= self.options.recent {
            self.flush();
        }
        Ok(true)
    }

    /// Removes an id of a fingerprint. Returns false if the pair was not stored.
    pub fn remove(&mut self, fingerprint: u64, id: u64) -> bool {
        let Some(ids) = self.ids.get_mut(&fingerprint) else { return false };
        if !ids.remove(id) {
            return false;
        }
        if !ids.is_empty() {
            return true;
        }
        if let Some(at) = self.recent.iter().position(|&recent| recent == fingerprint) {
            self.recent.swap_remove(at);
            self.ids.remove(&fingerprint);
            return true;
        }
        self.dead.insert(fingerprint);
        if self.dead.len() > self.options.recent.max((self.ids.len() - self.recent.len()) / 4) {
            self.compact();
        }
        true
    }

    /// Calls `visit` for every match within `distance`, in no particular order, until `visit` breaks.
    ///
    /// A `distance` above the distance of the design is reduced to the distance of the design. Memory use
    /// does not grow with the number of matches.
    pub fn search(
        &self,
        fingerprint: u64,
        distance: u32,
        mut visit: impl FnMut(Match) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, HammingError> {
        self.design.check(fingerprint)?;
        let distance = distance.min(self.design.distance());
        // Locate the candidates in all tables and touch them first, so that the memory accesses overlap.
        let mut tables: SmallVec<[(usize, u64, CandidateRange<'_>); 32]> = SmallVec::new();
        for (number, layout) in self.design.layouts().iter().enumerate() {
            let key = layout.permutation().apply(fingerprint);
            tables.extend(self.runs.iter().map(|run| (number, key, run.tables()[number].locate(key))));
        }
        black_box(tables.iter().fold(0, |touched, (_, _, range)| touched ^ range.touch()));
        let mut hits = Hits::new();
        let mut flow = scan(&self.recent, fingerprint, distance, &mut |difference| {
            self.collect(&mut hits, fingerprint, difference, &mut visit)
        });
        let mut decoded = Vec::new();
        for (number, key, range) in &tables {
            if flow.is_break() {
                return Ok(flow);
            }
            flow = range.visit(*key, &mut decoded, |candidates| {
                scan(candidates, *key, distance, &mut |difference| {
                    let difference = self.design.layouts()[*number].permutation().invert(difference);
                    if self.design.is_first(*number, difference) {
                        self.collect(&mut hits, fingerprint, difference, &mut visit)
                    } else {
                        ControlFlow::Continue(())
                    }
                })
            });
        }
        if flow.is_continue() {
            flow = self.report(&mut hits, fingerprint, &mut visit);
        }
        Ok(flow)
    }

    /// Stores the difference between the query and a fingerprint that it matches. Reports all stored
    /// differences when `hits` is full.
    #[inline]
    fn collect(
        &self,
        hits: &mut Hits,
        fingerprint: u64,
        difference: u64,
        visit: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        hits.push(difference);
        if hits.len() < hits.inline_size() {
            return ControlFlow::Continue(());
        }
        self.report(hits, fingerprint, visit)
    }

    /// Looks up the ids of all fingerprints in `hits`, passes the matches to `visit`, and empties `hits`. The
    /// look-ups in the hash table overlap.
    fn report(
        &self,
        hits: &mut Hits,
        fingerprint: u64,
        visit: &mut impl FnMut(Match) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let found: SmallVec<[Option<&Ids>; 64]> =
            hits.iter().map(|difference| self.ids.get(&(fingerprint ^ difference))).collect();
        for (difference, ids) in hits.drain(..).zip(found) {
            for id in ids.into_iter().flat_map(Ids::iter) {
                let (distance, fingerprint) = (difference.count_ones(), fingerprint ^ difference);
                visit(Match { distance, fingerprint, id })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The `limit` nearest matches within `distance`, sorted by distance, fingerprint, and id.
    pub fn within(&self, fingerprint: u64, distance: u32, limit: usize) -> Result<Vec<Match>, HammingError> {
        let mut nearest = Vec::new();
        let _ = self.search(fingerprint, distance, |found| {
            nearest.push(found);
            if nearest.len() >= limit.saturating_mul(2).max(64) {
                keep_nearest(&mut nearest, limit);
            }
            ControlFlow::Continue(())
        })?;
        keep_nearest(&mut nearest, limit);
        Ok(nearest)
    }

    /// Merges the buffer and the youngest runs that are not much larger into one run now. Does nothing if the
    /// buffer is empty.
    pub fn flush(&mut self) {
        if self.recent.is_empty() {
            return;
        }
        let (mut from, mut size) = (self.runs.len(), self.recent.len());
        while from > 0 && self.runs[from - 1].len() <= size.saturating_mul(self.options.growth) {
            from -= 1;
            size += self.runs[from].len();
        }
        self.merge(from);
    }

    /// Merges the buffer and all runs into one run, and removes dead fingerprints (fingerprints without ids).
    pub fn compact(&mut self) {
        self.merge(0);
    }

    /// Replaces the buffer and the runs from index `from` on by one run.
    fn merge(&mut self, from: usize) {
        let old = self.runs.split_off(from);
        let recent = std::mem::take(&mut self.recent);
        let merged = if old.is_empty() {
            IndexRun::new(&self.design, &recent, self.options.storage)
        } else {
            let (merged, removed) =
                IndexRun::merged(&self.design, &old, &recent, &self.dead, self.options.storage);
            for fingerprint in removed {
                self.dead.remove(&fingerprint);
                self.ids.remove(&fingerprint);
            }
            merged
        };
        if merged.len() > 0 {
            self.runs.push(merged);
        }
        self.recent = recent;
        self.recent.clear();
    }
}

/// Differences (XORs) between the query and the fingerprints that it matches. The ids of these fingerprints
/// have not been looked up yet.
type Hits = SmallVec<[u64; 64]>;

/// Sorts the matches and keeps the nearest `limit` matches.
fn keep_nearest(matches: &mut Vec<Match>, limit: usize) {
    matches.sort_unstable();
    matches.truncate(limit);
}
