//! Refinement: the entries of crowded buckets get other keys, so that searches visit fewer of them in vain.
//!
//! See [`families`](super::partition::families) for the keys. A node refines between two calls that change it.
//! It reads the signatures of all entries of the crowded buckets first, and then changes their keys under the
//! lock, some at a time.
//!
//! Invariant: a probe that runs meanwhile finds every entry. It looks up the keys of refined bands and split
//! lists, too, under which an entry is listed until its keys change.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_protocol::index_node::NodeError;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::LocalNode;
use super::core::{Core, LoadedSignature};
use super::partition::candidates::{CrowdedList, KeyChange};
use super::partition::families::Families;
use super::partition::local_index::LocalIndex;
use super::signatures::fetch::{FetchedSignatures, MissingSignature, with_fetched};
use super::tables::EntryRef;

/// The largest number of buckets of a partition that are refined at a time.
const BUCKETS_MAX: usize = 64;

/// The largest number of entries in a bucket that is refined. It bounds memory: an entry may take a kilobyte
/// until its keys have changed.
const ENTRIES_MAX: usize = 1 << 19;

/// Number of entries whose keys change under one lock.
const ENTRIES_PER_LOCK: usize = 256;

/// Number of entries from which the order of a family is learned.
const SAMPLE: usize = 256;

/// The changes of a partition.
struct Refinement {
    families: Families,
    changes: Vec<EntryChange>,
}

/// The change of one entry.
struct EntryChange {
    slot: u32,
    keys: KeyChange,
    /// The signature, if it had to be fetched.
    fetched: Option<Arc<Signature>>,
}

impl LocalNode {
    /// Refines buckets that have become crowded. The caller must hold `change`.
    pub(super) fn refine_crowded(&self) -> Result<(), NodeError> {
        let partitions = self.read().tables.partitions.len();
        for partition in (0..partitions).map(LocalIndex::from) {
            if !self.read().tables.partitions[partition.index()].candidates.has_crowded() {
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
            })?;
            self.change_keys(partition, refinement);
        }
        Ok(())
    }

    fn change_keys(&self, partition: LocalIndex, Refinement { families, changes }: Refinement) {
        self.write().tables.partitions[partition.index()].families = families;
        for changes in changes.chunks(ENTRIES_PER_LOCK) {
            let mut core = self.write();
            let host = &mut core.tables.partitions[partition.index()];
            for EntryChange { slot, keys, .. } in changes {
                host.candidates.change_keys(*slot, keys, &host.columns);
            }
            for EntryChange { slot, fetched, .. } in changes {
                if let Some(signature) = fetched {
                    core.rewrite(EntryRef { partition, slot: *slot }, signature);
                }
            }
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
    /// The changes that refine crowded buckets.
    ///
    /// # Errors
    /// The signatures that have to be fetched from tier 1 first.
    fn refine(&self, crowded: &[CrowdedList]) -> Result<Refinement, Vec<MissingSignature>> {
        let tables = &self.core.tables;
        let host = &tables.partitions[self.partition.index()];
        let mut families = host.families.clone();
        let mut entries: Vec<u32> = Vec::new();
        for CrowdedList { key, is_of_family } in crowded {
            let mut members = host.candidates.members(*key);
            if members.len() > ENTRIES_MAX {
                continue;
            }
            if *is_of_family {
                families.split(*key);
            } else if !families.is_refined(*key) {
                members.sort_unstable_by_key(|slot| host.columns.insert_seq(*slot));
                let sample = members.iter().step_by(members.len().div_ceil(SAMPLE).max(1)).copied();
                let sample = self.read_each(&sample.collect::<Vec<_>>(), |_, read| read.signature)?;
                families.refine(*key, &sample);
            }
            entries.append(&mut members);
        }
        entries.sort_unstable_by_key(|slot| (host.columns.insert_seq(*slot), *slot));
        entries.dedup();
        let mut changes = self.read_each(&entries, |slot, LoadedSignature { signature, fetched }| {
            let before = tables.entry_keys(self.partition, &signature);
            let keys = KeyChange::new(&before, &tables.entry_keys_with(&families, &signature));
            EntryChange { slot, keys, fetched: fetched.then_some(signature) }
        })?;
        changes.retain(|change| !change.keys.is_empty() || change.fetched.is_some());
        Ok(Refinement { families, changes })
    }

    /// Reads the signatures of some entries, and returns what `with` makes of each. Leaves out an entry whose
    /// content no page has any more: the order to remove it is on its way.
    fn read_each<T: Send>(
        &self,
        slots: &[u32],
        with: impl Fn(u32, LoadedSignature) -> T + Sync,
    ) -> Result<Vec<T>, Vec<MissingSignature>> {
        let each = |buffer: &mut Vec<u8>, slot: &u32| {
            let entry = EntryRef { partition: self.partition, slot: *slot };
            self.core.read(entry, self.fetched, buffer).map(|read| read.map(|read| with(*slot, read)))
        };
        let mut buffer = Vec::new();
        let all: Vec<Result<Option<T>, MissingSignature>> = match self.pool {
            None => slots.iter().map(|slot| each(&mut buffer, slot)).collect(),
            Some(pool) => pool.install(|| slots.par_iter().map_init(Vec::new, each).collect()),
        };
        let (mut made, mut missing) = (Vec::with_capacity(all.len()), Vec::new());
        for one in all {
            match one {
                Ok(one) => made.extend(one),
                Err(more) => missing.push(more),
            }
        }
        if missing.is_empty() { Ok(made) } else { Err(missing) }
    }
}
