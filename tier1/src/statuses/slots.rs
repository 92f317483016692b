//! A hash table in many small parts: entries without gaps, and four bytes and a control byte to find each.
//!
//! Invariant: a change touches one part, so that to make room is to copy one of [`PARTS`].

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

/// Parts; a power of two.
pub(super) const PARTS: usize = 256;

/// A part keeps room for so many entries.
const SMALL: usize = 64;

/// What is kept under an id of its own.
pub(super) trait Entry {
    type Id: Copy + Eq + Hash;

    fn id(&self) -> Self::Id;
}

/// The table.
pub(super) struct Slots<E> {
    parts: Box<[Part<E>]>,
    /// Its key is secret, so nobody can choose ids that all fall into one part.
    hasher: RandomState,
}

struct Part<E> {
    /// Indexes of `entries`.
    places: HashTable<u32>,
    entries: Vec<E>,
}

impl<E: Entry> Slots<E> {
    pub(super) fn new(hasher: RandomState) -> Self {
        let part = || Part { places: HashTable::new(), entries: Vec::new() };
        Self { parts: (0..PARTS).map(|_| part()).collect(), hasher }
    }

    /// The entries of one of the [`PARTS`].
    pub(super) fn part(&self, part: usize) -> &[E] {
        &self.parts[part].entries
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.entries.len()).sum()
    }

    pub(super) fn get(&self, id: E::Id) -> Option<&E> {
        let hash = self.hasher.hash_one(id);
        let Part { places, entries } = &self.parts[part_of(hash)];
        let at = places.find(hash, |at| entries[*at as usize].id() == id)?;
        entries.get(*at as usize)
    }

    pub(super) fn get_mut(&mut self, id: E::Id) -> Option<&mut E> {
        let hash = self.hasher.hash_one(id);
        let Part { places, entries } = &mut self.parts[part_of(hash)];
        let at = places.find(hash, |at| entries[*at as usize].id() == id)?;
        entries.get_mut(*at as usize)
    }

    /// Puts an entry in the place of the one with its id. Gives that, if there was one.
    pub(super) fn put(&mut self, entry: E) -> Option<E> {
        let (id, hasher) = (entry.id(), &self.hasher);
        let hash = hasher.hash_one(id);
        let Part { places, entries } = &mut self.parts[part_of(hash)];
        let is_it = |at: &u32| entries[*at as usize].id() == id;
        let place = places.entry(hash, is_it, |at| hasher.hash_one(entries[*at as usize].id()));
        match place {
            Place::Occupied(place) => Some(std::mem::replace(&mut entries[*place.get() as usize], entry)),
            Place::Vacant(place) => {
                place.insert(u32::try_from(entries.len()).unwrap_or(u32::MAX));
                if entries.len() == entries.capacity() {
                    // Twice as many would leave a quarter of the memory unused on average.
                    entries.reserve_exact((entries.len() / 8).max(4));
                }
                entries.push(entry);
                None
            }
        }
    }

    pub(super) fn remove(&mut self, id: E::Id) -> Option<E> {
        let hash = self.hasher.hash_one(id);
        let Part { places, entries } = &mut self.parts[part_of(hash)];
        let place = places.find_entry(hash, |at| entries[*at as usize].id() == id).ok()?;
        let (at, _) = place.remove();
        let removed = entries.swap_remove(at as usize);
        // The last entry is in its place now.
        if let Some(moved) = entries.get(at as usize) {
            let hash = self.hasher.hash_one(moved.id());
            if let Some(place) = places.find_mut(hash, |place| *place as usize == entries.len()) {
                *place = at;
            }
        }
        // What a wave of pages has left behind is given back.
        if entries.capacity() > SMALL && entries.len() < entries.capacity() / 4 {
            entries.shrink_to(2 * entries.len());
            places.shrink_to(2 * entries.len(), |at| self.hasher.hash_one(entries[*at as usize].id()));
        }
        Some(removed)
    }

    /// Bytes in memory, without what entries have elsewhere.
    pub(super) fn bytes(&self) -> usize {
        let of_part = |part: &Part<E>| {
            part.places.allocation_size() + part.entries.capacity() * size_of::<E>() + size_of::<Part<E>>()
        };
        self.parts.iter().map(of_part).sum()
    }
}

/// The parts' own tables take other bits of the hash.
fn part_of(hash: u64) -> usize {
    (hash >> 32) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use doppel_model::Random;

    use super::*;

    impl Entry for (u64, u64) {
        type Id = u64;

        fn id(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn it_agrees_with_a_map() {
        let (mut slots, mut map) = (Slots::new(RandomState::new()), BTreeMap::new());
        let mut random = Random::new(5);
        for turn in 0..60_000 {
            // It grows, then shrinks again.
            let id = random.below(9_000);
            if random.below(60_000) > turn {
                assert_eq!(slots.put((id, turn)), map.insert(id, turn).map(|old| (id, old)));
            } else {
                assert_eq!(slots.remove(id), map.remove(&id).map(|old| (id, old)));
            }
            let other = random.below(9_000);
            assert_eq!(slots.get(other).map(|entry| entry.1), map.get(&other).copied());
            if let Some(entry) = slots.get_mut(other) {
                entry.1 += 1;
                map.entry(other).and_modify(|value| *value += 1);
            }
        }
        assert_eq!(slots.len(), map.len());
        for id in map.keys() {
            assert!(slots.remove(*id).is_some());
        }
        assert_eq!(slots.len(), 0);
    }

    #[test]
    fn entries_take_little_more_than_their_size() {
        let mut slots = Slots::new(RandomState::new());
        for id in 0..200_000 {
            slots.put((id, 0));
        }
        let each = slots.bytes() as f64 / 200_000.0;
        assert!((16.0..30.0).contains(&each), "{each} bytes");
    }
}
