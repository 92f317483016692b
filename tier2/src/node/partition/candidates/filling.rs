//! Filling empty tables with all entries of a store. The keys are collected, and sorted at the end.
//!
//! Sorting is faster than inserting key by key, because most insertions miss the cache, and a growing table is
//! copied.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::CandidateTables;
use super::ordered_table::OrderedTable;

impl CandidateTables {
    /// Begins to fill empty tables. Until [`end_filling`](Self::end_filling), entries can only be inserted, and no
    /// lookup finds them.
    pub(crate) fn begin_filling(&mut self) {
        self.collected = Some(std::array::from_fn(|_| Vec::new()));
    }

    /// Ends filling the tables. Every bucket then has its entries in the order of their slots, which is the
    /// order of insertion.
    pub(crate) fn end_filling(&mut self, pool: Option<&ThreadPool>) {
        let Some(mut collected) = self.collected.take() else { return };
        match pool {
            Some(pool) => pool.install(|| collected.par_iter_mut().for_each(|keys| keys.sort_unstable())),
            None => collected.iter_mut().for_each(|keys| keys.sort_unstable()),
        }
        for (table, mut keys) in self.tables.iter_mut().zip(collected) {
            keys.dedup_by(|next, bucket| {
                let is_same = *next >> 32 == *bucket >> 32;
                if is_same {
                    let pushed = self.buckets.push(*bucket as u32, *next as u32);
                    *bucket = *bucket >> 32 << 32 | u64::from(pushed);
                }
                is_same
            });
            let items = keys.into_iter().map(|item| ((item >> 32) as u32, item as u32));
            // The items are valid: the hashes ascend, and no bucket equals the excluded value.
            *table = OrderedTable::from_sorted(items).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::stable_hash64;

    use super::*;
    use crate::node::partition::candidates::{EntryKeys, TableKey};

    #[test]
    fn filled_tables_agree_with_tables_of_inserted_entries() {
        // Buckets of all kinds: of one entry, in cells, and large. An entry may have a key twice.
        let keys_of = |slot: u32| -> EntryKeys {
            let keys = [slot, slot / 2, slot / 20, slot % 7, slot % 7, slot / 400];
            keys.into_iter().map(|key| TableKey::of(stable_hash64(&key.to_le_bytes()))).collect()
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for pool in [None, Some(&pool)] {
            let (mut inserted, mut filled) = (CandidateTables::new(), CandidateTables::new());
            filled.begin_filling();
            for slot in 0..900 {
                inserted.insert(&keys_of(slot), slot);
                filled.insert(&keys_of(slot), slot);
            }
            filled.end_filling(pool);
            // Entries that come later are inserted at their places.
            for tables in [&mut inserted, &mut filled] {
                (900..1_000).for_each(|slot| tables.insert(&keys_of(slot), slot));
            }
            for key in (0..1_000).flat_map(keys_of) {
                assert_eq!(filled.members(key), inserted.members(key));
            }
            assert_eq!(filled.members_of_all(), inserted.members_of_all());
        }
    }
}
