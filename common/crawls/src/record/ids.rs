//! The ids of a file's records so far, by their hashes.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::mem;

/// The places of the first table.
const PLACES_MIN: usize = 1 << 10;

/// Hashes of ids, as many as there is room for.
///
/// They are in a table with a place for each value of their first bits, or else in the next place that is free. So an id is found in one line of memory,
/// of which millions are no longer in a cache, and a larger table is filled from its beginning to its end.
#[derive(Debug)]
pub(super) struct Ids {
    /// A power of two of hashes; 0 where there is none.
    places: Vec<u64>,
    remembered: usize,
    max: usize,
    unremembered: u64,
    /// The key of the hashes: nobody can choose ids that have one hash, or one place.
    key: RandomState,
}

impl Ids {
    /// None so far, of which at most `max` will be remembered.
    pub(super) fn new(max: usize) -> Self {
        Self { places: vec![0; PLACES_MIN], remembered: 0, max, unremembered: 0, key: RandomState::new() }
    }

    /// Takes note of an id, and returns whether it is new. One that is not remembered is new each time.
    pub(super) fn note(&mut self, id: &str) -> bool {
        self.note_hash(self.key.hash_one(id).max(1))
    }

    fn note_hash(&mut self, hash: u64) -> bool {
        let place = self.place(hash);
        if self.places[place] == hash {
            return false;
        }
        if self.remembered >= self.max {
            self.unremembered += 1;
            return true;
        }
        self.places[place] = hash;
        self.remembered += 1;
        // An eighth is kept free, so that a search ends soon.
        if self.remembered >= self.places.len() / 8 * 7 && self.remembered < self.max {
            self.grow();
        }
        true
    }

    /// Where a hash is, or else would be.
    fn place(&self, hash: u64) -> usize {
        let last = self.places.len() - 1;
        let mut place = (hash >> (u64::BITS - self.places.len().trailing_zeros())) as usize;
        while self.places[place] != hash && self.places[place] != 0 {
            place = (place + 1) & last;
        }
        place
    }

    fn grow(&mut self) {
        let twice = vec![0; self.places.len() * 2];
        for hash in mem::replace(&mut self.places, twice) {
            if hash != 0 {
                let place = self.place(hash);
                self.places[place] = hash;
            }
        }
    }

    /// How many ids were not remembered, because there were too many.
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
    fn ids_are_new_once_while_there_is_room() {
        let mut ids = Ids::new(10_000);
        for number in 0..10_000 {
            assert!(ids.note(&number.to_string()), "{number}");
        }
        assert!((0..10_000).all(|number| !ids.note(&number.to_string())));
        assert_eq!(ids.unremembered(), 0);
        assert!(ids.note("a") && ids.note("a") && !ids.note("9999"));
        assert_eq!(ids.unremembered(), 2);
        let mut none = Ids::new(0);
        assert!(none.note("a") && none.note("a"));
        assert_eq!(none.unremembered(), 2);
    }

    proptest! {
        // Hashes that all begin alike, at the beginning or at the end of the table.
        #[test]
        fn hashes_are_found_as_in_a_set(
            hashes in prop::collection::vec((prop_oneof![Just(0), Just(u64::MAX << 12)], 1..2_000_u64), 0..2_500),
            max in prop_oneof![Just(usize::MAX), 0..1_500_usize],
        ) {
            let (mut ids, mut set, mut unremembered) = (Ids::new(max), HashSet::new(), 0);
            for (first, last) in hashes {
                let hash = first | last;
                let is_new = !set.contains(&hash);
                prop_assert_eq!(ids.note_hash(hash), is_new);
                if is_new && set.len() < max {
                    set.insert(hash);
                } else {
                    unremembered += u64::from(is_new);
                }
            }
            prop_assert_eq!(ids.unremembered(), unremembered);
            prop_assert!(ids.places.len() == PLACES_MIN || ids.places.len() / 16 * 7 <= set.len());
        }
    }
}
