//! A run: an immutable set of fingerprints, sorted in every table of a design.
//!
//! Invariant: every table contains the image of each fingerprint of the run exactly once.

use hashbrown::HashSet;
use rayon::prelude::*;

use crate::design::{Design, TableLayout};
use crate::table::{FingerprintTable, Storage};

/// Fingerprints that are still in a run but no longer have ids.
pub(crate) type DeadFingerprints = HashSet<u64, foldhash::fast::RandomState>;

/// One sorted table for each layout of a design. Every table stores all fingerprints of the run.
#[derive(Debug)]
pub(crate) struct IndexRun {
    tables: Vec<FingerprintTable>,
    len: usize,
}

impl IndexRun {
    /// Creates a run. Sorts the distinct `fingerprints` for every table.
    pub(crate) fn new(design: &Design, fingerprints: &[u64], storage: Storage) -> Self {
        let table = |layout: &TableLayout| {
            let mut keys: Vec<u64> = fingerprints.iter().map(|&f| layout.permutation().apply(f)).collect();
            keys.sort_unstable();
            FingerprintTable::new(keys, design.width(), layout.leading(), storage)
        };
        // Sorting a few fingerprints takes less time than starting work on other threads.
        let tables = if fingerprints.len() < 10_000 {
            design.layouts().iter().map(table).collect()
        } else {
            design.layouts().par_iter().map(table).collect()
        };
        Self { tables, len: fingerprints.len() }
    }

    /// Merges several runs with the `recent` fingerprints into one run, without dead fingerprints. All inputs
    /// must be disjoint. Also returns the dead fingerprints that the merge removed.
    pub(crate) fn merged(
        design: &Design,
        runs: &[Self],
        recent: &[u64],
        dead: &DeadFingerprints,
        storage: Storage,
    ) -> (Self, Vec<u64>) {
        let table = |(number, layout): (usize, &TableLayout)| {
            let mut keys = Vec::with_capacity(runs.iter().map(Self::len).sum::<usize>() + recent.len());
            runs.iter().for_each(|run| run.tables[number].read(&mut keys));
            keys.extend(recent.iter().map(|&fingerprint| layout.permutation().apply(fingerprint)));
            // The stable sort detects the sorted runs and merges them.
            keys.sort();
            let removed = remove_dead(&mut keys, layout, dead);
            (FingerprintTable::new(keys, design.width(), layout.leading(), storage), removed)
        };
        let tables: Vec<(FingerprintTable, Vec<u64>)> =
            design.layouts().par_iter().enumerate().map(table).collect();
        let removed = tables.first().map_or_else(Vec::new, |(_, removed)| removed.clone());
        let len = runs.iter().map(Self::len).sum::<usize>() + recent.len() - removed.len();
        (Self { tables: tables.into_iter().map(|(table, _)| table).collect(), len }, removed)
    }

    /// Number of fingerprints in the run.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The tables, in the order of the layouts of the design.
    pub(crate) fn tables(&self) -> &[FingerprintTable] {
        &self.tables
    }
}

/// Removes the images of dead fingerprints from ascending keys. Returns the removed fingerprints.
fn remove_dead(keys: &mut Vec<u64>, layout: &TableLayout, dead: &DeadFingerprints) -> Vec<u64> {
    let permutation = layout.permutation();
    let mut removed = Vec::new();
    if dead.len() > keys.len() {
        // Most dead fingerprints are in other runs, so do not spend time proportional to their number.
        keys.retain(|&key| {
            let fingerprint = permutation.invert(key);
            let is_dead = dead.contains(&fingerprint);
            removed.extend(is_dead.then_some(fingerprint));
            !is_dead
        });
    } else if !dead.is_empty() {
        let mut images: Vec<u64> = dead.iter().map(|&fingerprint| permutation.apply(fingerprint)).collect();
        images.sort_unstable();
        let mut images = images.into_iter().peekable();
        keys.retain(|&key| {
            while images.next_if(|&image| image < key).is_some() {}
            let is_dead = images.peek() == Some(&key);
            removed.extend(is_dead.then(|| permutation.invert(key)));
            !is_dead
        });
    }
    if !removed.is_empty() {
        keys.shrink_to_fit();
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_removes_the_dead_fingerprints_of_its_runs() {
        let design = Design::new(64, 3, &[4]).unwrap();
        // Three fingerprints of the two runs are dead. Other runs have no or many dead fingerprints.
        for others in [0, 1_000] {
            for storage in [Storage::Plain, Storage::Compressed] {
                let runs = [&[1, 5, 9 << 40][..], &[2, 7 << 60]].map(|f| IndexRun::new(&design, f, storage));
                let dead: DeadFingerprints =
                    [5, 9 << 40, 2].into_iter().chain((100..).take(others)).collect();
                let (merged, mut removed) = IndexRun::merged(&design, &runs, &[3, 8], &dead, storage);
                removed.sort_unstable();
                assert_eq!(removed, [2, 5, 9 << 40]);
                assert_eq!(merged.len(), 4);
                for (table, layout) in merged.tables().iter().zip(design.layouts()) {
                    let mut keys = Vec::new();
                    table.read(&mut keys);
                    assert!(keys.is_sorted());
                    let mut left: Vec<u64> =
                        keys.iter().map(|&key| layout.permutation().invert(key)).collect();
                    left.sort_unstable();
                    assert_eq!(left, [1, 3, 8, 7 << 60]);
                }
            }
        }
    }
}
