//! Fingerprints with ids that come and go, and queries for those within a distance.
//!
//! The tables of the paper are static. Here they are log-structured: new fingerprints are in a buffer that every query
//! scans; when it is full it becomes a sorted run of all tables, together with those of the younger runs that are not
//! much larger. So there are few runs, and a fingerprint is merged a number of times that grows with the logarithm.
//!
//! A hash table has the ids of every fingerprint; the tables have each fingerprint once. Removing the last id leaves the
//! fingerprint in its run until a merge, as a dead one without ids: a query finds it, asks for its ids, and there are
//! none. When a quarter of all runs is dead, everything is merged.
//!
//! Invariants:
//! - Each fingerprint of the hash table is in the buffer or in exactly one run, and nothing else is there.
//! - A fingerprint has no ids if and only if it is in `dead`; none of the buffer is dead.
//! - Each run has more than [`Options::growth`] times as many fingerprints as the next had when it was merged.

use std::hint::black_box;
use std::ops::ControlFlow;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

use crate::design::Design;
use crate::error::HammingError;
use crate::ids::Ids;
use crate::limits::{FINGERPRINTS_MAX, RECENT_MAX};
use crate::run::{Dead, Run};
use crate::scan::scan;
use crate::table::{Located, Storage};

/// How an index trades memory, queries and inserts for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How runs keep their tables.
    pub storage: Storage,
    /// Fingerprints in the buffer that every query scans.
    pub recent: usize,
    /// A run is merged with the younger ones when it is at most so many times as large.
    pub growth: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { storage: Storage::Plain, recent: 1024, growth: 4 }
    }
}

/// A stored id whose fingerprint is near the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Bits that differ.
    pub distance: u32,
    /// The stored fingerprint.
    pub fingerprint: u64,
    /// Its id.
    pub id: u64,
}

/// How large an index is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Fingerprints that have ids.
    pub fingerprints: usize,
    /// Fingerprints without ids that wait for a merge.
    pub dead: usize,
    /// Sorted runs.
    pub runs: usize,
    /// Bytes of all tables, without the hash table of ids.
    pub table_bytes: usize,
}

/// An index, see the module.
#[derive(Debug)]
pub struct Index {
    design: Design,
    options: Options,
    ids: HashMap<u64, Ids, foldhash::fast::RandomState>,
    recent: Vec<u64>,
    /// Oldest and largest first.
    runs: Vec<Run>,
    dead: Dead,
}

impl Index {
    /// An empty index.
    pub fn new(design: Design, options: Options) -> Result<Self, HammingError> {
        if !(1..=RECENT_MAX).contains(&options.recent) {
            return Err(HammingError::Recent(options.recent));
        }
        if options.growth == 0 {
            return Err(HammingError::Growth(options.growth));
        }
        let (ids, dead) = (HashMap::default(), Dead::default());
        Ok(Self { design, options, ids, recent: Vec::new(), runs: Vec::new(), dead })
    }

    /// An index of fingerprints and their ids, in one run.
    pub fn build(
        design: Design,
        options: Options,
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
            index.runs.push(Run::new(&index.design, &distinct, options.storage));
        }
        Ok(index)
    }

    /// The design.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// How large the index is now.
    #[must_use]
    pub fn size(&self) -> Size {
        Size {
            fingerprints: self.ids.len() - self.dead.len(),
            dead: self.dead.len(),
            runs: self.runs.len(),
            table_bytes: self.runs.iter().flat_map(Run::tables).map(crate::table::Table::bytes).sum(),
        }
    }

    /// Adds an id with its fingerprint; false if both were there. An id may have several fingerprints.
    ///
    /// One in [`Options::recent`] new fingerprints makes a merge, in the calling thread and those of rayon.
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

    /// Removes an id of a fingerprint; false if it was not there.
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

    /// Calls `visit` with every match within `distance`, in no order, until it breaks.
    ///
    /// The distance is at most that of the design; a greater one is cut to it. Memory does not grow with the matches.
    pub fn search(
        &self,
        fingerprint: u64,
        distance: u32,
        mut visit: impl FnMut(Match) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, HammingError> {
        self.design.check(fingerprint)?;
        let distance = distance.min(self.design.distance());
        // The reads of all tables are begun before the first is awaited.
        let mut tables: SmallVec<[(usize, u64, Located<'_>); 32]> = SmallVec::new();
        for (number, layout) in self.design.layouts().iter().enumerate() {
            let key = layout.permutation().apply(fingerprint);
            tables.extend(self.runs.iter().map(|run| (number, key, run.tables()[number].locate(key))));
        }
        black_box(tables.iter().fold(0, |touched, (_, _, located)| touched ^ located.touch()));
        let mut hits = Hits::new();
        let mut flow = scan(&self.recent, fingerprint, distance, &mut |difference| {
            self.collect(&mut hits, fingerprint, difference, &mut visit)
        });
        let mut decoded = Vec::new();
        for (number, key, located) in &tables {
            if flow.is_break() {
                return Ok(flow);
            }
            flow = located.visit(*key, &mut decoded, |candidates| {
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

    /// Keeps a difference, and reports those that were kept when they are enough.
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

    /// Visits all ids of the fingerprints with these differences. Their look-ups wait together.
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

    /// The nearest matches within `distance`, at most `limit`, by distance, fingerprint and id.
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

    /// Makes a run of the buffer now, with the younger runs that are not much larger.
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

    /// Merges everything into one run, without what is dead.
    pub fn compact(&mut self) {
        self.merge(0);
    }

    /// Replaces the runs from this one on, and the buffer, by one run.
    fn merge(&mut self, from: usize) {
        let old = self.runs.split_off(from);
        let recent = std::mem::take(&mut self.recent);
        let merged = if old.is_empty() {
            Run::new(&self.design, &recent, self.options.storage)
        } else {
            let (merged, buried) = Run::merged(&self.design, &old, &recent, &self.dead, self.options.storage);
            for fingerprint in buried {
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

/// Differences of stored fingerprints whose ids are still to be looked up.
type Hits = SmallVec<[u64; 64]>;

/// Keeps the nearest `limit` matches, in order.
fn keep_nearest(matches: &mut Vec<Match>, limit: usize) {
    matches.sort_unstable();
    matches.truncate(limit);
}
