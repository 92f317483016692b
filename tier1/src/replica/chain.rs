//! The rule that decides which entries of a shared log count. All replicas fold the log by this rule, so they
//! agree on the records.
//!
//! A record counts only if it continues the chain. It must name the hash of the previous record and have the
//! next index. Its epoch must be the present epoch, or it must be a take-over with the next epoch. All other
//! entries are *void*. The log's own comparison does not prevent void entries: an append of a deposed owner
//! that is under way can land after the take-over that deposed the owner.
//!
//! A long record has several parts. Each part is a link of the chain, but the record counts only with its
//! last part. A take-over continues the last complete record, and makes the parts of an incomplete record
//! void.

use bytes::Bytes;
use doppel_model::stable_hash128;
use doppel_shared_log::{LogEntry, Sequence};

use super::entry::{self, RecordBody, RecordPart};
use crate::storage::log::{LogId, Position};

/// Position of a reader in a log.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    log: LogId,
    /// Position of the last record that counts.
    last: Position,
    /// Sequence number of the last part of that record.
    last_sequence: Sequence,
    /// Sequence number of the last entry that was read, whether it counts or is void.
    last_read: Sequence,
    /// Parts of the next record that were read.
    partial: Option<PartialRecord>,
}

/// The first parts of a record whose last part was not yet read.
#[derive(Debug, Clone)]
struct PartialRecord {
    /// Number of the next part, counted from 0.
    next: u32,
    /// Number of parts of the whole record.
    parts: u32,
    kind: u8,
    /// Hash of the last part that was read.
    hash: u128,
    payload: Vec<u8>,
}

/// What an entry contributes to the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoldedEntry {
    /// The entry completes a record, which counts from now on.
    Record(ChainRecord),
    /// The entry is a part of a record, but not its last part.
    Part,
    /// The entry does not count.
    Void,
}

/// A record that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainRecord {
    pub(crate) position: Position,
    /// Hash of the previous record.
    pub(crate) previous: u128,
    pub(crate) sequence: Sequence,
    pub(crate) body: RecordBody,
}

impl Chain {
    /// Creates a chain that continues after the record `last`, whose last part has the given sequence number.
    pub(crate) fn after(log: LogId, last: Position, last_sequence: Sequence) -> Self {
        Self { log, last, last_sequence, last_read: last_sequence, partial: None }
    }

    /// Position of the last record that counts.
    pub(crate) fn last(&self) -> Position {
        self.last
    }

    /// Sequence number of the last part of the last record that counts.
    pub(crate) fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }

    /// Sequence number of the last entry that was read. An append names it as the expected last entry.
    pub(crate) fn last_read(&self) -> Sequence {
        self.last_read
    }

    /// Folds the next entry of the log into the chain.
    pub(crate) fn fold(&mut self, entry: &LogEntry) -> FoldedEntry {
        self.last_read = entry.sequence;
        let Some(part) = entry::decode(self.log, &entry.bytes) else { return FoldedEntry::Void };
        let is_next = part.index == self.last.index + 1;
        let is_of_epoch = part.epoch == self.last.epoch
            || entry::may_begin_epoch(part.kind) && part.epoch == self.last.epoch + 1;
        if !is_next || !is_of_epoch {
            return FoldedEntry::Void;
        }
        if part.part == 0 { self.begin(part) } else { self.go_on(&part) }
    }

    /// Folds an announced entry into the chain if it is the next entry and counts. Otherwise returns `None`
    /// and leaves the chain as it is, because the log may contain another entry at this sequence number.
    pub(crate) fn fold_announced(&mut self, entry: &LogEntry) -> Option<FoldedEntry> {
        let last_read = self.last_read;
        if entry.sequence != last_read.next() {
            return None;
        }
        match self.fold(entry) {
            FoldedEntry::Void => {
                self.last_read = last_read;
                None
            }
            folded => Some(folded),
        }
    }

    fn begin(&mut self, part: RecordPart) -> FoldedEntry {
        let takes_over = part.epoch > self.last.epoch;
        // An owner completes its record before it begins another. Only a take-over may come in between.
        if part.previous != self.last.hash || (self.partial.is_some() && !takes_over) {
            return FoldedEntry::Void;
        }
        let RecordPart { kind, parts, hash, payload, .. } = part;
        if parts == 1 {
            return self.finish(kind, part.epoch, hash, &payload);
        }
        // A take-over always has a single part.
        if takes_over {
            return FoldedEntry::Void;
        }
        self.partial = Some(PartialRecord { next: 1, parts, kind, hash, payload: payload.to_vec() });
        FoldedEntry::Part
    }

    fn go_on(&mut self, part: &RecordPart) -> FoldedEntry {
        let Some(partial) = &mut self.partial else { return FoldedEntry::Void };
        let continues = part.epoch == self.last.epoch
            && part.previous == partial.hash
            && (part.part, part.parts, part.kind) == (partial.next, partial.parts, partial.kind);
        if !continues {
            return FoldedEntry::Void;
        }
        partial.payload.extend_from_slice(&part.payload);
        (partial.next, partial.hash) = (part.part + 1, part.hash);
        if partial.next < partial.parts {
            return FoldedEntry::Part;
        }
        let payload = self.partial.take().map(|partial| partial.payload).unwrap_or_default();
        self.finish(part.kind, part.epoch, part.hash, &payload)
    }

    fn finish(&mut self, kind: u8, epoch: u64, hash: u128, payload: &[u8]) -> FoldedEntry {
        // A record that this version cannot decode is void for every process of this version. A take-over can
        // follow it.
        let Some(body) = entry::decode_body(kind, payload) else { return FoldedEntry::Void };
        if epoch > self.last.epoch && !matches!(body, RecordBody::TakeOver { .. }) {
            return FoldedEntry::Void;
        }
        let position = Position { epoch, index: self.last.index + 1, hash };
        let previous = self.last.hash;
        (self.last, self.last_sequence, self.partial) = (position, self.last_read, None);
        FoldedEntry::Record(ChainRecord { position, previous, sequence: self.last_read, body })
    }

    /// Returns how many of `parts` were already read as the first parts of the next record.
    pub(crate) fn parts_read(&self, parts: &[Bytes]) -> usize {
        let Some(partial) = &self.partial else { return 0 };
        let last = parts.get(partial.next as usize - 1);
        let is_same_record = last.is_some_and(|part| stable_hash128(part) == partial.hash);
        if is_same_record { partial.next as usize } else { 0 }
    }

    /// Number of parts that were read of a record whose last part is missing.
    pub(crate) fn unfinished_parts(&self) -> u32 {
        self.partial.as_ref().map_or(0, |partial| partial.next)
    }

    /// Moves the reader back to just after the last record that counts.
    pub(crate) fn rewind(&mut self) {
        (self.last_read, self.partial) = (self.last_sequence, None);
    }

    /// Whether an entry is the last part of the last record that counts.
    pub(crate) fn is_end_of_last_record(&self, bytes: &Bytes) -> bool {
        entry::decode(self.log, bytes).is_some_and(|part| {
            (part.epoch, part.index, part.hash) == (self.last.epoch, self.last.index, self.last.hash)
                && part.part + 1 == part.parts
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::replica::entry::encode;

    const LOG: LogId = LogId(5);
    const START: Position = Position { epoch: 0, index: 0, hash: 0 };

    fn entries(encoded: &[Bytes], from: u64) -> Vec<LogEntry> {
        let number = |(at, bytes): (usize, &Bytes)| LogEntry {
            sequence: Sequence(from + at as u64),
            bytes: bytes.clone(),
        };
        encoded.iter().enumerate().map(number).collect()
    }

    fn chain() -> Chain {
        Chain::after(LOG, START, Sequence(0))
    }

    fn rows(number: u8, bytes: usize) -> RecordBody {
        RecordBody::Rows(vec![(vec![number], Some(vec![number; bytes])), (vec![number, 1], None)])
    }

    fn take_over(owner: &str) -> RecordBody {
        RecordBody::TakeOver { owner: owner.to_owned(), incarnation: 7 }
    }

    #[test]
    fn a_record_in_parts_counts_when_its_last_part_is_read() {
        let mut chain = chain();
        let begun = encode(LOG, (START, 1), &take_over("a"), 100).unwrap();
        assert!(matches!(chain.fold(&entries(&begun.parts, 1)[0]), FoldedEntry::Record(_)));
        let long = encode(LOG, (begun.position, 1), &rows(3, 250), 100).unwrap();
        assert_eq!(long.parts.len(), 3);
        let entries = entries(&long.parts, 2);
        assert_eq!(chain.fold(&entries[0]), FoldedEntry::Part);
        assert_eq!(
            chain.fold(&LogEntry { sequence: Sequence(9), ..entries[0].clone() }),
            FoldedEntry::Void,
            "a repeated part"
        );
        assert_eq!(chain.fold(&entries[1]), FoldedEntry::Part);
        assert_eq!(chain.last(), begun.position);
        match chain.fold(&entries[2]) {
            FoldedEntry::Record(record) => {
                assert_eq!((record.position, record.body), (long.position, rows(3, 250)));
            }
            other => panic!("{other:?}"),
        }
        assert!(chain.is_end_of_last_record(&long.parts[2]) && !chain.is_end_of_last_record(&long.parts[1]));
    }

    #[test]
    fn a_take_over_voids_an_incomplete_record_and_all_later_entries_of_the_deposed_owner() {
        let mut chain = chain();
        let begun = encode(LOG, (START, 1), &take_over("a"), 100).unwrap();
        let long = encode(LOG, (begun.position, 1), &rows(3, 250), 100).unwrap();
        let then = encode(LOG, (long.position, 1), &rows(4, 1), 100).unwrap();
        let by_b = encode(LOG, (begun.position, 2), &take_over("b"), 100).unwrap();
        let by_c = encode(LOG, (begun.position, 2), &take_over("c"), 100).unwrap();
        let rows_of_b = encode(LOG, (by_b.position, 2), &rows(5, 1), 100).unwrap();
        let sent = [
            (&begun.parts[0], true),
            (&long.parts[0], false),
            (&by_b.parts[0], true),
            (&long.parts[1], false),
            (&by_c.parts[0], false),
            (&long.parts[2], false),
            (&then.parts[0], false),
            (&rows_of_b.parts[0], true),
        ];
        for (at, (bytes, counts)) in (1..).zip(sent) {
            let entry = LogEntry { sequence: Sequence(at), bytes: bytes.clone() };
            assert_eq!(matches!(chain.fold(&entry), FoldedEntry::Record(_)), counts, "{at}");
        }
        assert_eq!(
            (chain.last(), chain.last_sequence(), chain.last_read()),
            (rows_of_b.position, Sequence(8), Sequence(8))
        );
    }

    #[test]
    fn entries_that_are_foreign_or_damaged_or_out_of_place_are_void() {
        let mut chain = chain();
        let begun = encode(LOG, (START, 1), &take_over("a"), 100).unwrap();
        let other = encode(LogId(6), (START, 1), &take_over("a"), 100).unwrap();
        let mut damaged = begun.parts[0].to_vec();
        damaged[30] ^= 1;
        let not_begun = encode(LOG, (START, 1), &rows(1, 1), 100).unwrap();
        let of_epoch_2 = encode(LOG, (START, 2), &take_over("a"), 100).unwrap();
        let wrong = [Bytes::new(), Bytes::from_static(b"x"), other.parts[0].clone(), damaged.into()];
        for (at, bytes) in
            (1..).zip(wrong.into_iter().chain([not_begun.parts[0].clone(), of_epoch_2.parts[0].clone()]))
        {
            assert_eq!(chain.fold(&LogEntry { sequence: Sequence(at), bytes }), FoldedEntry::Void, "{at}");
        }
        assert_eq!(chain.last(), START);
        assert!(matches!(chain.fold(&entries(&begun.parts, 7)[0]), FoldedEntry::Record(_)));
    }

    proptest! {
        /// Three owners append records without regard for each other. A reader that starts after any record
        /// that counts finds the same later records as a reader from the beginning. Each index has one
        /// record.
        #[test]
        fn readers_that_start_at_different_records_agree(seed in any::<u64>()) {
            let mut random = doppel_model::Random::new(seed);
            let mut views: Vec<Chain> = (0..3).map(|_| chain()).collect();
            let mut log: Vec<LogEntry> = Vec::new();
            for _ in 0..60 {
                let at = random.below(3) as usize;
                let view = &mut views[at];
                // The owner may be behind. Its entry then continues a record that is not the last, but the
                // log appends it anyway.
                let unread = log.len() as u64 - view.last_read().0;
                let read = if random.below(2) == 0 { unread } else { random.below(unread + 1) };
                for entry in &log[view.last_read().0 as usize..][..read as usize] {
                    view.fold(entry);
                }
                let last = view.last();
                let takes_over = last.epoch == 0 || random.below(4) == 0;
                let body = if takes_over { take_over(&at.to_string()) } else { rows(at as u8, random.below(300) as usize) };
                let encoded = encode(LOG, (last, last.epoch + u64::from(takes_over)), &body, 100).unwrap();
                let parts = encoded.parts.len();
                let sent = if random.below(4) == 0 { random.below(parts as u64 + 1) as usize } else { parts };
                let next = log.len() as u64 + 1;
                log.extend(entries(&encoded.parts[..sent], next));
            }
            let fold = |mut chain: Chain| {
                let mut counted = BTreeMap::new();
                for entry in &log[chain.last_read().0 as usize..] {
                    if let FoldedEntry::Record(record) = chain.fold(entry) {
                        prop_assert!(counted.insert(record.position.index, record).is_none());
                    }
                }
                Ok(counted)
            };
            let all = fold(chain())?;
            for (index, record) in &all {
                let behind = fold(Chain::after(LOG, record.position, record.sequence))?;
                prop_assert!(behind.iter().eq(all.range(index + 1..)));
            }
        }
    }
}
