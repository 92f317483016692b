//! Refinement: the entries of crowded buckets get other keys, so that searches visit fewer of them in vain.
//!
//! See [`families`](crate::node::partition::families) for the keys. A node refines between two calls that change it.
//! It reads the signatures of all entries of the crowded buckets first. Then it lists the entries under their
//! new keys, some under each lock, and at last takes them out of the crowded buckets.
//!
//! Invariants:
//! - Between two calls, an entry is listed under its keys of the present families, and under no others. So a
//!   bucket is not refined if one of its entries cannot be read.
//! - A probe that runs during a refinement finds every entry. It looks up refined bands and split lists, too.

use std::sync::Arc;

use doppel_model::signature::Signature;
use hashbrown::HashSet;
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::node::LocalNode;
use crate::node::core::{Core, LoadedSignature};
use crate::node::partition::candidates::{CrowdedList, KeyChange, TableKey};
use crate::node::partition::families::{EntryShapes, Families};
use crate::node::partition::local_index::LocalIndex;
use crate::node::signatures::fetch::{FetchedSignatures, MissingSignature, all_or_missing, with_fetched};
use crate::node::tables::EntryRef;
use crate::seed::Seeded;

/// The largest number of buckets of a partition that are refined at a time.
const BUCKETS_MAX: usize = 64;

/// The largest number of entries that are refined at a time. It bounds memory: the new keys of an entry take
/// about a kilobyte, and at most 4. A larger bucket is not refined.
const ENTRIES_MAX: usize = 1 << 18;

/// Number of entries that are listed under their new keys under one lock.
const ENTRIES_PER_LOCK: usize = 64;

/// Number of entries from which the order of a family is learned.
const SAMPLE: usize = 256;

/// Number of entries that say whether a family is near enough to a bucket.
const NEAREST_SAMPLE: usize = 32;

/// Number of contents of a bucket whose other buckets are looked at, to learn a new family from the largest.
const CONTENTS: usize = 16;

/// Number of hashes from which the order of a family is learned. It bounds memory and time if contents are long.
const SAMPLE_HASHES: usize = 1 << 19;

/// The changes of a partition.
struct Refinement {
    families: Families,
    changes: Vec<EntryChange>,
}

/// The change of one entry.
struct EntryChange {
    slot: u32,
    keys: KeyChange,
    shapes: EntryShapes,
    /// The signature, if it had to be fetched.
    fetched: Option<Arc<Signature>>,
}

impl LocalNode {
    /// Refines buckets that have become crowded. The caller must hold `change`. A refinement that fails is not
    /// made: its buckets become crowded again.
    pub(in crate::node) fn refine_crowded(&self) {
        let partitions = self.read().tables.partitions.len();
        for partition in (0..partitions).map(LocalIndex::from) {
            let has_crowded = self.read().tables.partitions[partition.index()].candidates.has_crowded();
            if !has_crowded || self.check_running().is_err() {
                continue;
            }
            let crowded = {
                let mut core = self.write();
                core.tables.partitions[partition.index()].candidates.take_crowded(BUCKETS_MAX)
            };
            let refinement = with_fetched(&*self.source, |fetched| {
                let refiner =
                    Refiner { core: &self.read(), partition, fetched, pool: self.config.pool.as_deref() };
                refiner.refine(&crowded)
            });
            match refinement {
                Ok(refinement) => self.change_keys(partition, refinement),
                Err(error) => tracing::debug!(%error, "cannot read the entries of crowded buckets"),
            }
        }
    }

    fn change_keys(&self, partition: LocalIndex, Refinement { families, changes }: Refinement) {
        tracing::debug!(entries = changes.len(), "lists entries under other keys");
        self.write().tables.partitions[partition.index()].families = families;
        let mut removed: Vec<(TableKey, u32)> = Vec::new();
        for changes in changes.chunks(ENTRIES_PER_LOCK) {
            let mut core = self.write();
            let host = &mut core.tables.partitions[partition.index()];
            for EntryChange { slot, keys, .. } in changes {
                host.candidates.insert_by_age(&keys.added, *slot, &host.columns);
                removed.extend(keys.removed.iter().map(|key| (*key, *slot)));
            }
            for EntryChange { slot, fetched, .. } in changes {
                if let Some(signature) = fetched {
                    core.rewrite(EntryRef { partition, slot: *slot }, signature);
                }
            }
        }
        removed.sort_unstable();
        for of_key in removed.chunk_by(|a, b| a.0 == b.0) {
            let slots: Vec<u32> = of_key.iter().map(|(_, slot)| *slot).collect();
            let mut core = self.write();
            let host = &mut core.tables.partitions[partition.index()];
            host.candidates.remove_all(of_key[0].0, &slots, &host.columns);
        }
    }
}

/// Reads what a refinement changes.
struct Refiner<'c> {
    core: &'c Core,
    partition: LocalIndex,
    fetched: &'c FetchedSignatures,
    pool: Option<&'c ThreadPool>,
}

impl Refiner<'_> {
    /// The changes that refine crowded buckets. Leaves out a bucket if an entry cannot be read, because no page
    /// has its content any more: the keys of the entry could not be changed.
    ///
    /// # Errors
    /// The signatures that have to be fetched from tier 1 first.
    fn refine(&self, crowded: &[CrowdedList]) -> Result<Refinement, Vec<MissingSignature>> {
        let host = &self.core.tables.partitions[self.partition.index()];
        let mut buckets: Vec<(CrowdedList, Vec<u32>)> = Vec::new();
        let mut entries = 0;
        for list in crowded {
            let mut members = host.candidates.members(list.key);
            if entries + members.len() <= ENTRIES_MAX && !members.is_empty() {
                entries += members.len();
                members.sort_unstable_by_key(|slot| host.columns.insert_seq(*slot));
                buckets.push((*list, members));
            }
        }
        loop {
            let mut families = self.families(&buckets)?;
            let mut slots: Vec<u32> = buckets.iter().flat_map(|(_, members)| members).copied().collect();
            slots.sort_unstable_by_key(|slot| (host.columns.insert_seq(*slot), *slot));
            slots.dedup();
            let mut changes = self.read_each(&slots, |slot, LoadedSignature { signature, fetched }| {
                let before = self.core.tables.entry_keys(self.partition, &signature);
                let listing = self.core.tables.listing(&families, &signature);
                let keys = KeyChange::new(&before, &listing.keys);
                let shapes = listing.shapes;
                EntryChange { slot, keys, shapes, fetched: fetched.then_some(signature) }
            })?;
            if changes.len() == slots.len() {
                changes.iter().for_each(|change| families.add_shapes(&change.shapes));
                changes.retain(|change| !change.keys.is_empty() || change.fetched.is_some());
                return Ok(Refinement { families, changes });
            }
            let readable: HashSet<u32, Seeded> = changes.iter().map(|change| change.slot).collect();
            buckets.retain(|(_, members)| members.iter().all(|slot| readable.contains(slot)));
        }
    }

    /// The families of the partition after these buckets are refined. Their members are sorted by age.
    fn families(&self, buckets: &[(CrowdedList, Vec<u32>)]) -> Result<Families, Vec<MissingSignature>> {
        let host = &self.core.tables.partitions[self.partition.index()];
        let mut families = host.families.clone();
        for (CrowdedList { key, is_of_family }, members) in buckets {
            if *is_of_family {
                families.split(*key);
            } else if !families.is_refined(*key) {
                let few = self.sample(members, NEAREST_SAMPLE)?;
                if families.refine(*key, &few) || families.is_full() {
                    continue;
                }
                let largest = self.largest_bucket(&few);
                if largest.len() >= self.core.tables.crowding.learn_min {
                    let (own, wider) = (self.sample(members, SAMPLE)?, self.sample(&largest, SAMPLE)?);
                    families.refine_in_new(*key, &own, &wider);
                }
            }
        }
        Ok(families)
    }

    /// The members of the largest bucket of some contents, oldest first. All members of a small bucket may lack the
    /// same words of the template, which then would be differences of most contents.
    fn largest_bucket(&self, sample: &[Arc<Signature>]) -> Vec<u32> {
        let host = &self.core.tables.partitions[self.partition.index()];
        let some = sample.iter().step_by(sample.len().div_ceil(CONTENTS).max(1));
        let buckets = some.flat_map(|signature| self.core.tables.band_keys(signature));
        let buckets = buckets.map(|band| host.candidates.members(band));
        let mut largest = buckets.max_by_key(Vec::len).unwrap_or_default();
        largest.sort_unstable_by_key(|slot| host.columns.insert_seq(*slot));
        largest
    }

    /// Reads the signatures of at most `most` of these entries.
    fn sample(&self, members: &[u32], most: usize) -> Result<Vec<Arc<Signature>>, Vec<MissingSignature>> {
        let columns = &self.core.tables.partitions[self.partition.index()].columns;
        let mut hashes = 0;
        let sample: Vec<u32> = members
            .iter()
            .step_by(members.len().div_ceil(most).max(1))
            .copied()
            .take_while(|slot| {
                hashes += columns.total(*slot) as usize;
                hashes <= SAMPLE_HASHES
            })
            .collect();
        self.read_each(&sample, |_, read| read.signature)
    }

    /// Reads the signatures of some entries, and returns what `with` makes of each. Leaves out an entry whose
    /// content no page has any more.
    fn read_each<T: Send>(
        &self,
        slots: &[u32],
        with: impl Fn(u32, LoadedSignature) -> T + Sync,
    ) -> Result<Vec<T>, Vec<MissingSignature>> {
        let each = |buffer: &mut Vec<u8>, slot: &u32| {
            let entry = EntryRef { partition: self.partition, slot: *slot };
            let read = self.core.read(entry, self.fetched, buffer).map_err(|missing| [missing])?;
            Ok(read.map(|read| with(*slot, read)))
        };
        let mut buffer = Vec::new();
        let all: Vec<Result<Option<T>, [MissingSignature; 1]>> = match self.pool {
            None => slots.iter().map(|slot| each(&mut buffer, slot)).collect(),
            Some(pool) => pool.install(|| slots.par_iter().map_init(Vec::new, each).collect()),
        };
        Ok(all_or_missing(all)?.into_iter().flatten().collect())
    }
}
