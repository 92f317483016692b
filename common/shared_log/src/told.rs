//! Entries of which others have told that they were acknowledged, until they are read.
//!
//! News may be lost, late, or come twice, and a log that has lost its tail may go on with other entries in the same places. So
//! there may be gaps, and whoever takes an entry from here has to see by what it says that it is the next one.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::log::{Entry, Sequence};

/// Bytes that are kept at most. Who is so far behind reads the log.
const BYTES_MAX: usize = 8 << 20;

/// What an entry costs beside its bytes.
const ENTRY_BYTES: usize = 64;

/// The entries.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Entries up to here are not wanted any more.
    after: u64,
    entries: BTreeMap<u64, Bytes>,
    bytes: usize,
}

impl Told {
    /// Takes an entry, where there is room.
    pub(crate) fn put(&mut self, sequence: Sequence, entry: Bytes) {
        let bytes = entry.len() + ENTRY_BYTES;
        match self.entries.get(&sequence.0) {
            Some(known) if *known == entry => {}
            // Which of them is there is not known here.
            Some(_) => self.clear(),
            None if sequence.0 <= self.after || self.bytes + bytes > BYTES_MAX => {}
            None => {
                self.bytes += bytes;
                self.entries.insert(sequence.0, entry);
            }
        }
    }

    /// Entries up to this one are not wanted any more.
    pub(crate) fn forget(&mut self, through: Sequence) {
        self.after = self.after.max(through.0);
        while let Some(first) = self.entries.first_entry()
            && *first.key() <= self.after
        {
            self.bytes -= first.remove().len() + ENTRY_BYTES;
        }
    }

    /// The entries behind a place, up to the first gap. Those up to the place are not wanted any more.
    pub(crate) fn behind(&mut self, after: Sequence) -> Vec<Entry> {
        self.forget(after);
        let places = (after.0 + 1..).zip(&self.entries);
        let next = places.take_while(|(place, (sequence, _))| place == *sequence);
        next.map(|(place, (_, bytes))| Entry { sequence: Sequence(place), bytes: bytes.clone() }).collect()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn behind(told: &mut Told, after: u64) -> Vec<(u64, Bytes)> {
        told.behind(Sequence(after)).into_iter().map(|entry| (entry.sequence.0, entry.bytes)).collect()
    }

    #[test]
    fn entries_come_in_order_up_to_a_gap_however_they_were_told() {
        let mut told = Told::default();
        for (sequence, text) in [(3, "c"), (1, "a"), (2, "b"), (1, "a"), (5, "e")] {
            told.put(Sequence(sequence), bytes(text));
        }
        assert_eq!(behind(&mut told, 0), [(1, bytes("a")), (2, bytes("b")), (3, bytes("c"))]);
        assert_eq!(behind(&mut told, 1), [(2, bytes("b")), (3, bytes("c"))]);
        assert_eq!(behind(&mut told, 3), []);
        // One that was taken is not taken again.
        told.put(Sequence(2), bytes("b"));
        told.put(Sequence(4), bytes("d"));
        assert_eq!(behind(&mut told, 3), [(4, bytes("d")), (5, bytes("e"))]);
        told.forget(Sequence(5));
        assert_eq!((told.bytes, told.entries.len()), (0, 0));
    }

    #[test]
    fn of_two_in_one_place_none_is_believed() {
        let mut told = Told::default();
        told.put(Sequence(1), bytes("a"));
        told.put(Sequence(2), bytes("b"));
        told.put(Sequence(2), bytes("other"));
        assert_eq!((behind(&mut told, 0), told.bytes), (vec![], 0));
    }

    #[test]
    fn no_more_is_kept_than_the_limit() {
        let mut told = Told::default();
        let long = Bytes::from(vec![7; BYTES_MAX / 4]);
        (1..9).for_each(|sequence| told.put(Sequence(sequence), long.clone()));
        assert_eq!(behind(&mut told, 0).len(), 3);
        assert!(told.bytes <= BYTES_MAX);
        assert_eq!(behind(&mut told, 2).len(), 1);
        told.put(Sequence(4), long);
        assert_eq!(behind(&mut told, 2).len(), 2);
    }
}
