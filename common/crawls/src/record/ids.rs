//! A bounded set of the ids of a file's records, which finds ids that repeat.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;

/// The number of slots of an empty table.
const SLOTS_MIN: usize = 1 << 10;

/// A set of the 64-bit hashes of ids, with room for a limited number of them.
///
/// The set is a hash table with linear probing. The slot of a hash follows from its first bits, so the hashes
/// are almost sorted. A lookup therefore touches one cache line, which matters because millions of hashes no
/// longer fit a cache. When the table grows, the new slots are filled from the first to the last.
#[derive(Debug)]
pub(super) struct IdSet {
    /// A power of two of slots. A slot without a hash is 0.
    slots: Vec<u64>,
    remembered: usize,
    max: usize,
    unremembered: u64,
    /// The random key of the hash function. With it, nobody can choose ids that have the same hash or the
    /// same slot.
    key: RandomState,
}

impl IdSet {
    /// Creates an empty set that remembers at most `max` ids.
    pub(super) fn new(max: usize) -> Self {
        Self { slots: vec![0; SLOTS_MIN], remembered: 0, max, unremembered: 0, key: RandomState::new() }
    }

    /// Adds an id, and returns whether it is new. When the set is full, further ids are not remembered and
    /// count as new each time. Two ids with the same hash count as one id.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        self.insert_hash(self.key.hash_one(id).max(1))
    }

    fn insert_hash(&mut self, hash: u64) -> bool {
        let slot = self.slot(hash);
        if self.slots[slot] == hash {
            return false;
        }
        if self.remembered >= self.max {
            self.unremembered += 1;
            return true;
        }
        self.slots[slot] = hash;
        self.remembered += 1;
        // An eighth of the slots stays empty, so that a lookup soon reaches an empty slot.
        if self.remembered >= self.slots.len() / 8 * 7 && self.remembered < self.max {
            self.grow();
        }
        true
    }

    /// The slot that contains a hash, or else the empty slot to which it belongs.
    fn slot(&self, hash: u64) -> usize {
        let last = self.slots.len() - 1;
        let mut slot = (hash >> (u64::BITS - self.slots.len().trailing_zeros())) as usize;
        while self.slots[slot] != hash && self.slots[slot] != 0 {
            slot = (slot + 1) & last;
        }
        slot
    }

    fn grow(&mut self) {
        let twice = vec![0; self.slots.len() * 2];
        for hash in mem::replace(&mut self.slots, twice) {
            if hash != 0 {
                let slot = self.slot(hash);
                self.slots[slot] = hash;
            }
        }
    }

    /// How many times an id was not remembered because the set was full.
    pub(super) fn unremembered(&self) -> u64 {
        self.unremembered
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_is_new_once_until_the_set_is_full() {
        let mut ids = IdSet::new(10_000);
        for number in 0..10_000 {
            assert!(ids.insert(&number.to_string()), "{number}");
        }
        assert!((0..10_000).all(|number| !ids.insert(&number.to_string())));
        assert_eq!(ids.unremembered(), 0);
        assert!(ids.insert("a") && ids.insert("a") && !ids.insert("9999"));
        assert_eq!(ids.unremembered(), 2);
        let mut none = IdSet::new(0);
        assert!(none.insert("a") && none.insert("a"));
        assert_eq!(none.unremembered(), 2);
    }

    proptest! {
        // All hashes belong to slots near the beginning or near the end of the table.
        #[test]
        fn hashes_are_found_like_in_an_ordinary_set(
            hashes in prop::collection::vec((prop_oneof![Just(0), Just(u64::MAX << 12)], 1..2_000_u64), 0..2_500),
            max in prop_oneof![Just(usize::MAX), 0..1_500_usize],
        ) {
            let (mut ids, mut set, mut unremembered) = (IdSet::new(max), HashSet::new(), 0);
            for (first, last) in hashes {
                let hash = first | last;
                let is_new = !set.contains(&hash);
                prop_assert_eq!(ids.insert_hash(hash), is_new);
                if is_new && set.len() < max {
                    set.insert(hash);
                } else {
                    unremembered += u64::from(is_new);
                }
            }
            prop_assert_eq!(ids.unremembered(), unremembered);
            prop_assert!(ids.slots.len() == SLOTS_MIN || ids.slots.len() / 16 * 7 <= set.len());
        }
    }
}
