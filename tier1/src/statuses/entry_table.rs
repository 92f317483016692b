//! A hash table in many small parts. Each entry costs its own size, and four bytes plus a control byte to
//! find it.
//!
//! Invariant: a change touches one part only. So growing copies only one of [`PARTS`] parts at a time.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Slot;

/// Number of parts; a power of two.
pub(super) const PARTS: usize = 256;

/// Number of entries for which a part always keeps memory.
const SMALL: usize = 64;

/// A value with an id of its own.
pub(super) trait TableEntry {
    type Id: Copy + Eq + Hash;

    fn id(&self) -> Self::Id;
}

/// A hash table of entries, by id.
pub(super) struct EntryTable<E> {
    parts: Box<[TablePart<E>]>,
    /// The key of the hasher is secret, so nobody can choose ids that all fall into one part.
    hasher: RandomState,
}

struct TablePart<E> {
    /// Indexes into `entries`, by the hash of the id.
    indexes: HashTable<u32>,
    entries: Vec<E>,
}

impl<E: TableEntry> EntryTable<E> {
    pub(super) fn new(hasher: RandomState) -> Self {
        let part = || TablePart { indexes: HashTable::new(), entries: Vec::new() };
        Self { parts: (0..PARTS).map(|_| part()).collect(), hasher }
    }

    /// Returns the entries of one of the [`PARTS`] parts.
    pub(super) fn part(&self, part: usize) -> &[E] {
        &self.parts[part].entries
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.entries.len()).sum()
    }

    pub(super) fn get(&self, id: E::Id) -> Option<&E> {
        let hash = self.hasher.hash_one(id);
        let TablePart { indexes, entries } = &self.parts[part_of(hash)];
        let at = indexes.find(hash, |at| entries[*at as usize].id() == id)?;
        entries.get(*at as usize)
    }

    pub(super) fn get_mut(&mut self, id: E::Id) -> Option<&mut E> {
        let hash = self.hasher.hash_one(id);
        let TablePart { indexes, entries } = &mut self.parts[part_of(hash)];
        let at = indexes.find(hash, |at| entries[*at as usize].id() == id)?;
        entries.get_mut(*at as usize)
    }

    /// Inserts an entry. Returns the earlier entry with the same id, if there was one.
    pub(super) fn put(&mut self, entry: E) -> Option<E> {
        let (id, hasher) = (entry.id(), &self.hasher);
        let hash = hasher.hash_one(id);
        let TablePart { indexes, entries } = &mut self.parts[part_of(hash)];
        let is_it = |at: &u32| entries[*at as usize].id() == id;
        let slot = indexes.entry(hash, is_it, |at| hasher.hash_one(entries[*at as usize].id()));
        match slot {
            Slot::Occupied(slot) => Some(std::mem::replace(&mut entries[*slot.get() as usize], entry)),
            Slot::Vacant(slot) => {
                slot.insert(u32::try_from(entries.len()).unwrap_or(u32::MAX));
                if entries.len() == entries.capacity() {
                    // Doubling the capacity would leave a quarter of the memory unused on average.
                    entries.reserve_exact((entries.len() / 8).max(4));
                }
                entries.push(entry);
                None
            }
        }
    }

    pub(super) fn remove(&mut self, id: E::Id) -> Option<E> {
        let hash = self.hasher.hash_one(id);
        let TablePart { indexes, entries } = &mut self.parts[part_of(hash)];
        let slot = indexes.find_entry(hash, |at| entries[*at as usize].id() == id).ok()?;
        let (at, _) = slot.remove();
        let removed = entries.swap_remove(at as usize);
        // The last entry has moved to the free index.
        if let Some(moved) = entries.get(at as usize) {
            let hash = self.hasher.hash_one(moved.id());
            if let Some(slot) = indexes.find_mut(hash, |slot| *slot as usize == entries.len()) {
                *slot = at;
            }
        }
        // Free the memory that a wave of pages has left behind.
        if entries.capacity() > SMALL && entries.len() < entries.capacity() / 4 {
            entries.shrink_to(2 * entries.len());
            indexes.shrink_to(2 * entries.len(), |at| self.hasher.hash_one(entries[*at as usize].id()));
        }
        Some(removed)
    }

    /// Returns the memory used in bytes, without what entries have allocated themselves.
    pub(super) fn bytes(&self) -> usize {
        let of_part = |part: &TablePart<E>| {
            part.indexes.allocation_size()
                + part.entries.capacity() * size_of::<E>()
                + size_of::<TablePart<E>>()
        };
        self.parts.iter().map(of_part).sum()
    }
}

/// Chooses the part from bits of the hash that the tables of the parts do not use.
fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use doppel_model::Random;

    use super::*;

    impl TableEntry for (u64, u64) {
        type Id = u64;

        fn id(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn the_table_agrees_with_a_map() {
        let (mut table, mut map) = (EntryTable::new(RandomState::new()), BTreeMap::new());
        let mut random = Random::new(5);
        for turn in 0..60_000 {
            // The table grows, then shrinks again.
            let id = random.below(9_000);
            if random.below(60_000) > turn {
                assert_eq!(table.put((id, turn)), map.insert(id, turn).map(|old| (id, old)));
            } else {
                assert_eq!(table.remove(id), map.remove(&id).map(|old| (id, old)));
            }
            let other = random.below(9_000);
            assert_eq!(table.get(other).map(|entry| entry.1), map.get(&other).copied());
            if let Some(entry) = table.get_mut(other) {
                entry.1 += 1;
                map.entry(other).and_modify(|value| *value += 1);
            }
        }
        assert_eq!(table.len(), map.len());
        for id in map.keys() {
            assert!(table.remove(*id).is_some());
        }
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn an_entry_takes_little_more_than_its_size() {
        let mut table = EntryTable::new(RandomState::new());
        for id in 0..200_000 {
            table.put((id, 0));
        }
        let each = table.bytes() as f64 / 200_000.0;
        assert!((16.0..30.0).contains(&each), "{each} bytes");
    }
}
