//! Entries that other processes announced as acknowledged, until the reader has read them.
//!
//! Announcements may be lost, late, or repeated, so the stored entries may have gaps. A log that has lost its
//! tail may contain other entries than the announced ones. Therefore a reader must check, by the content of
//! an announced entry, that the entry follows the entries that the reader has already read.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::log::{LogEntry, Sequence};

/// Maximum size of the stored entries in bytes, including their overhead. Entries beyond this size are not
/// stored, and the reader reads them from the log.
const BYTES_MAX: usize = 8 << 20;

/// Overhead of an entry in bytes.
const ENTRY_BYTES: usize = 64;

/// The announced entries that the reader still needs.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedEntries {
    /// Sequence number up to which entries are no longer needed.
    after: u64,
    entries: BTreeMap<u64, Bytes>,
    bytes: usize,
}

impl AnnouncedEntries {
    /// Stores an entry, unless it is no longer needed or would exceed [`BYTES_MAX`]. If another entry is
    /// stored with its sequence number, drops all stored entries.
    pub(crate) fn put(&mut self, sequence: Sequence, entry: Bytes) {
        let bytes = entry.len() + ENTRY_BYTES;
        match self.entries.get(&sequence.0) {
            Some(stored) if *stored == entry => {}
            // Only the log knows which of the two entries it contains.
            Some(_) => self.clear(),
            None if sequence.0 <= self.after || self.bytes + bytes > BYTES_MAX => {}
            None => {
                self.bytes += bytes;
                self.entries.insert(sequence.0, entry);
            }
        }
    }

    /// Drops the entries up to `through`, which are no longer needed.
    pub(crate) fn forget(&mut self, through: Sequence) {
        self.after = self.after.max(through.0);
        while let Some(first) = self.entries.first_entry()
            && *first.key() <= self.after
        {
            self.bytes -= first.remove().len() + ENTRY_BYTES;
        }
    }

    /// Returns the entries after a position, up to the first gap. Drops the entries up to the position.
    pub(crate) fn entries_after(&mut self, after: Sequence) -> Vec<LogEntry> {
        self.forget(after);
        let numbered = (after.0 + 1..).zip(&self.entries);
        let next = numbered.take_while(|(expected, (sequence, _))| expected == *sequence);
        next.map(|(sequence, (_, bytes))| LogEntry { sequence: Sequence(sequence), bytes: bytes.clone() })
            .collect()
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

    fn entries_after(announced: &mut AnnouncedEntries, after: u64) -> Vec<(u64, Bytes)> {
        announced
            .entries_after(Sequence(after))
            .into_iter()
            .map(|entry| (entry.sequence.0, entry.bytes))
            .collect()
    }

    #[test]
    fn entries_are_returned_in_order_up_to_a_gap() {
        let mut announced = AnnouncedEntries::default();
        for (sequence, text) in [(3, "c"), (1, "a"), (2, "b"), (1, "a"), (5, "e")] {
            announced.put(Sequence(sequence), bytes(text));
        }
        assert_eq!(entries_after(&mut announced, 0), [(1, bytes("a")), (2, bytes("b")), (3, bytes("c"))]);
        assert_eq!(entries_after(&mut announced, 1), [(2, bytes("b")), (3, bytes("c"))]);
        assert_eq!(entries_after(&mut announced, 3), []);
        // An entry that was read is not stored again.
        announced.put(Sequence(2), bytes("b"));
        announced.put(Sequence(4), bytes("d"));
        assert_eq!(entries_after(&mut announced, 3), [(4, bytes("d")), (5, bytes("e"))]);
        announced.forget(Sequence(5));
        assert_eq!((announced.bytes, announced.entries.len()), (0, 0));
    }

    #[test]
    fn conflicting_announcements_discard_all_entries() {
        let mut announced = AnnouncedEntries::default();
        announced.put(Sequence(1), bytes("a"));
        announced.put(Sequence(2), bytes("b"));
        announced.put(Sequence(2), bytes("other"));
        assert_eq!((entries_after(&mut announced, 0), announced.bytes), (vec![], 0));
    }

    #[test]
    fn stored_entries_stay_below_the_size_limit() {
        let mut announced = AnnouncedEntries::default();
        let long = Bytes::from(vec![7; BYTES_MAX / 4]);
        (1..9).for_each(|sequence| announced.put(Sequence(sequence), long.clone()));
        assert_eq!(entries_after(&mut announced, 0).len(), 3);
        assert!(announced.bytes <= BYTES_MAX);
        assert_eq!(entries_after(&mut announced, 2).len(), 1);
        announced.put(Sequence(4), long);
        assert_eq!(entries_after(&mut announced, 2).len(), 2);
    }
}
