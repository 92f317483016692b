//! A run: the same fingerprints in every table of a design, sorted once and never changed.
//!
//! Invariant: every table has the image of each fingerprint of the run exactly once.

use hashbrown::HashSet;
use rayon::prelude::*;

use crate::design::{Design, Layout};
use crate::table::{Storage, Table};

/// Fingerprints that are still in a run, and count no more.
pub(crate) type Dead = HashSet<u64, foldhash::fast::RandomState>;

/// Sorted tables of the same fingerprints.
#[derive(Debug)]
pub(crate) struct Run {
    tables: Vec<Table>,
    len: usize,
}

impl Run {
    /// Sorts distinct fingerprints for every table.
    pub(crate) fn new(design: &Design, fingerprints: &[u64], storage: Storage) -> Self {
        let table = |layout: &Layout| {
            let mut keys: Vec<u64> = fingerprints.iter().map(|&f| layout.permutation().apply(f)).collect();
            keys.sort_unstable();
            Table::new(keys, design.width(), layout.leading(), storage)
        };
        // A few fingerprints are sorted sooner than other threads begin.
        let tables = if fingerprints.len() < 10_000 {
            design.layouts().iter().map(table).collect()
        } else {
            design.layouts().par_iter().map(table).collect()
        };
        Self { tables, len: fingerprints.len() }
    }

    /// One run of several with new fingerprints, no two of which are equal, without the dead ones; and these.
    pub(crate) fn merged(
        design: &Design,
        runs: &[Self],
        recent: &[u64],
        dead: &Dead,
        storage: Storage,
    ) -> (Self, Vec<u64>) {
        let table = |(number, layout): (usize, &Layout)| {
            let mut keys = Vec::with_capacity(runs.iter().map(Self::len).sum::<usize>() + recent.len());
            runs.iter().for_each(|run| run.tables[number].read(&mut keys));
            keys.extend(recent.iter().map(|&fingerprint| layout.permutation().apply(fingerprint)));
            // The stable sort finds the runs and merges them.
            keys.sort();
            let buried = bury(&mut keys, layout, dead);
            (Table::new(keys, design.width(), layout.leading(), storage), buried)
        };
        let tables: Vec<(Table, Vec<u64>)> = design.layouts().par_iter().enumerate().map(table).collect();
        let buried = tables.first().map_or_else(Vec::new, |(_, buried)| buried.clone());
        let len = runs.iter().map(Self::len).sum::<usize>() + recent.len() - buried.len();
        (Self { tables: tables.into_iter().map(|(table, _)| table).collect(), len }, buried)
    }

    /// The number of fingerprints.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// One for each layout of the design.
    pub(crate) fn tables(&self) -> &[Table] {
        &self.tables
    }
}

/// Removes the images of dead fingerprints from ascending keys, and returns those fingerprints.
fn bury(keys: &mut Vec<u64>, layout: &Layout, dead: &Dead) -> Vec<u64> {
    let permutation = layout.permutation();
    let mut buried = Vec::new();
    if dead.len() > keys.len() {
        // Most dead ones are in older runs: their number must not matter.
        keys.retain(|&key| {
            let fingerprint = permutation.invert(key);
            let is_dead = dead.contains(&fingerprint);
            buried.extend(is_dead.then_some(fingerprint));
            !is_dead
        });
    } else if !dead.is_empty() {
        let mut images: Vec<u64> = dead.iter().map(|&fingerprint| permutation.apply(fingerprint)).collect();
        images.sort_unstable();
        let mut images = images.into_iter().peekable();
        keys.retain(|&key| {
            while images.next_if(|&image| image < key).is_some() {}
            let is_dead = images.peek() == Some(&key);
            buried.extend(is_dead.then(|| permutation.invert(key)));
            !is_dead
        });
    }
    if !buried.is_empty() {
        keys.shrink_to_fit();
    }
    buried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_buries_what_is_dead_in_its_runs() {
        let design = Design::new(64, 3, &[4]).unwrap();
        // Three of the two runs are dead, among few or many dead ones of others.
        for others in [0, 1_000] {
            for storage in [Storage::Plain, Storage::Compressed] {
                let runs = [&[1, 5, 9 << 40][..], &[2, 7 << 60]].map(|f| Run::new(&design, f, storage));
                let dead: Dead = [5, 9 << 40, 2].into_iter().chain((100..).take(others)).collect();
                let (merged, mut buried) = Run::merged(&design, &runs, &[3, 8], &dead, storage);
                buried.sort_unstable();
                assert_eq!(buried, [2, 5, 9 << 40]);
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
