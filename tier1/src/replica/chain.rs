//! Which entries of a shared log count. Everybody folds the log by the same rule, so everybody agrees.
//!
//! A record counts only if it continues the chain: its hash of the previous one is right, its index is the next, and its
//! epoch is the present one, or it is a take-over of the next epoch. Everything else is void: an entry that a deposed owner had
//! under way may land behind the take-over that deposed it, whatever the log compares.
//!
//! Every part of a record is a link of the chain, but the record counts only with its last part. A take-over continues the last
//! whole record, and unfinished parts are void with it.

use bytes::Bytes;
use doppel_model::stable_hash128;
use doppel_shared_log::{Entry, Sequence};

use super::entry::{self, Part, Said};
use crate::log::{LogId, Position};

/// How far a log was read.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    log: LogId,
    /// The last record that counts.
    whole: Position,
    /// Where its last part is.
    whole_at: Sequence,
    /// The last entry that was read, void or not.
    seen: Sequence,
    unfinished: Option<Unfinished>,
}

/// The first parts of a record.
#[derive(Debug, Clone)]
struct Unfinished {
    next: u32,
    parts: u32,
    kind: u8,
    hash: u128,
    payload: Vec<u8>,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Folded {
    /// The last part of a record, which counts.
    Record(Record),
    /// A part of a record.
    Part,
    /// Nothing.
    Void,
}

/// A record that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) position: Position,
    /// The hash of the one before.
    pub(crate) previous: u128,
    pub(crate) sequence: Sequence,
    pub(crate) said: Said,
}

impl Chain {
    /// Goes on behind a record and its place.
    pub(crate) fn behind(log: LogId, whole: Position, whole_at: Sequence) -> Self {
        Self { log, whole, whole_at, seen: whole_at, unfinished: None }
    }

    /// The last record that counts.
    pub(crate) fn last(&self) -> Position {
        self.whole
    }

    /// Where that one is.
    pub(crate) fn last_at(&self) -> Sequence {
        self.whole_at
    }

    /// The last entry that was read: an append expects it.
    pub(crate) fn seen(&self) -> Sequence {
        self.seen
    }

    /// Takes the next entry.
    pub(crate) fn take(&mut self, entry: &Entry) -> Folded {
        self.seen = entry.sequence;
        let Some(part) = entry::decode(self.log, &entry.bytes) else { return Folded::Void };
        let is_next = part.index == self.whole.index + 1;
        let is_of_epoch =
            part.epoch == self.whole.epoch || entry::begins(part.kind) && part.epoch == self.whole.epoch + 1;
        if !is_next || !is_of_epoch {
            return Folded::Void;
        }
        if part.part == 0 { self.begin(part) } else { self.go_on(&part) }
    }

    /// Takes an entry of which others have told, where it is the next one and counts. Otherwise nothing is known of it: another
    /// may be in its place.
    pub(crate) fn take_told(&mut self, entry: &Entry) -> Option<Folded> {
        let seen = self.seen;
        if entry.sequence != seen.next() {
            return None;
        }
        match self.take(entry) {
            Folded::Void => {
                self.seen = seen;
                None
            }
            folded => Some(folded),
        }
    }

    fn begin(&mut self, part: Part) -> Folded {
        let takes_over = part.epoch > self.whole.epoch;
        // An owner finishes what it has begun; whoever comes after it takes over.
        if part.previous != self.whole.hash || (self.unfinished.is_some() && !takes_over) {
            return Folded::Void;
        }
        let Part { kind, parts, hash, payload, .. } = part;
        if parts == 1 {
            return self.finish(kind, part.epoch, hash, &payload);
        }
        if takes_over {
            return Folded::Void;
        }
        self.unfinished = Some(Unfinished { next: 1, parts, kind, hash, payload: payload.to_vec() });
        Folded::Part
    }

    fn go_on(&mut self, part: &Part) -> Folded {
        let Some(unfinished) = &mut self.unfinished else { return Folded::Void };
        let continues = part.epoch == self.whole.epoch
            && part.previous == unfinished.hash
            && (part.part, part.parts, part.kind) == (unfinished.next, unfinished.parts, unfinished.kind);
        if !continues {
            return Folded::Void;
        }
        unfinished.payload.extend_from_slice(&part.payload);
        (unfinished.next, unfinished.hash) = (part.part + 1, part.hash);
        if unfinished.next < unfinished.parts {
            return Folded::Part;
        }
        let payload = self.unfinished.take().map(|unfinished| unfinished.payload).unwrap_or_default();
        self.finish(part.kind, part.epoch, part.hash, &payload)
    }

    fn finish(&mut self, kind: u8, epoch: u64, hash: u128, payload: &[u8]) -> Folded {
        // One that says nothing that is known is void for everybody of this version, and a take-over can follow it.
        let Some(said) = entry::said(kind, payload) else { return Folded::Void };
        if epoch > self.whole.epoch && !matches!(said, Said::TakeOver { .. }) {
            return Folded::Void;
        }
        let position = Position { epoch, index: self.whole.index + 1, hash };
        let previous = self.whole.hash;
        (self.whole, self.whole_at, self.unfinished) = (position, self.seen, None);
        Folded::Record(Record { position, previous, sequence: self.seen, said })
    }

    /// How many of these parts of the next record are there already, as the last of what was read.
    pub(crate) fn begun(&self, parts: &[Bytes]) -> usize {
        let Some(unfinished) = &self.unfinished else { return 0 };
        let last = parts.get(unfinished.next as usize - 1);
        let is_of_them = last.is_some_and(|part| stable_hash128(part) == unfinished.hash);
        if is_of_them { unfinished.next as usize } else { 0 }
    }

    /// The parts of an unfinished record that were read.
    pub(crate) fn unfinished(&self) -> u32 {
        self.unfinished.as_ref().map_or(0, |unfinished| unfinished.next)
    }

    /// Reads again from the last record on.
    pub(crate) fn rewind(&mut self) {
        (self.seen, self.unfinished) = (self.whole_at, None);
    }

    /// Whether an entry is the last part of the last record.
    pub(crate) fn is_last(&self, bytes: &Bytes) -> bool {
        entry::decode(self.log, bytes).is_some_and(|part| {
            (part.epoch, part.index, part.hash) == (self.whole.epoch, self.whole.index, self.whole.hash)
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

    fn entries(encoded: &[Bytes], from: u64) -> Vec<Entry> {
        let number = |(at, bytes): (usize, &Bytes)| Entry {
            sequence: Sequence(from + at as u64),
            bytes: bytes.clone(),
        };
        encoded.iter().enumerate().map(number).collect()
    }

    fn chain() -> Chain {
        Chain::behind(LOG, START, Sequence(0))
    }

    fn rows(number: u8, bytes: usize) -> Said {
        Said::Rows(vec![(vec![number], Some(vec![number; bytes])), (vec![number, 1], None)])
    }

    fn take_over(owner: &str) -> Said {
        Said::TakeOver { owner: owner.to_owned(), incarnation: 7 }
    }

    #[test]
    fn a_record_in_parts_counts_with_the_last_of_them() {
        let mut chain = chain();
        let begun = encode(LOG, (START, 1), &take_over("a"), 100).unwrap();
        assert!(matches!(chain.take(&entries(&begun.parts, 1)[0]), Folded::Record(_)));
        let long = encode(LOG, (begun.position, 1), &rows(3, 250), 100).unwrap();
        assert_eq!(long.parts.len(), 3);
        let entries = entries(&long.parts, 2);
        assert_eq!(chain.take(&entries[0]), Folded::Part);
        assert_eq!(chain.take(&Entry { sequence: Sequence(9), ..entries[0].clone() }), Folded::Void, "again");
        assert_eq!(chain.take(&entries[1]), Folded::Part);
        assert_eq!(chain.last(), begun.position);
        match chain.take(&entries[2]) {
            Folded::Record(record) => {
                assert_eq!((record.position, record.said), (long.position, rows(3, 250)));
            }
            other => panic!("{other:?}"),
        }
        assert!(chain.is_last(&long.parts[2]) && !chain.is_last(&long.parts[1]));
    }

    #[test]
    fn a_take_over_ends_what_is_unfinished_and_what_the_old_owner_sends_is_void() {
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
            let entry = Entry { sequence: Sequence(at), bytes: bytes.clone() };
            assert_eq!(matches!(chain.take(&entry), Folded::Record(_)), counts, "{at}");
        }
        assert_eq!(
            (chain.last(), chain.last_at(), chain.seen()),
            (rows_of_b.position, Sequence(8), Sequence(8))
        );
    }

    #[test]
    fn what_is_no_entry_of_this_log_is_void() {
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
            assert_eq!(chain.take(&Entry { sequence: Sequence(at), bytes }), Folded::Void, "{at}");
        }
        assert_eq!(chain.last(), START);
        assert!(matches!(chain.take(&entries(&begun.parts, 7)[0]), Folded::Record(_)));
    }

    proptest! {
        /// Owners that do not know of each other append what they like. Whoever begins to read at any record that counts comes
        /// to the same ones behind it, and of each index there is one.
        #[test]
        fn all_that_fold_agree(seed in any::<u64>()) {
            let mut random = doppel_model::Random::new(seed);
            let mut views: Vec<Chain> = (0..3).map(|_| chain()).collect();
            let mut log: Vec<Entry> = Vec::new();
            for _ in 0..60 {
                let at = random.below(3) as usize;
                let view = &mut views[at];
                // It may be behind: then what it appends is for a place that is taken, and lands all the same.
                let unread = log.len() as u64 - view.seen().0;
                let read = if random.below(2) == 0 { unread } else { random.below(unread + 1) };
                for entry in &log[view.seen().0 as usize..][..read as usize] {
                    view.take(entry);
                }
                let last = view.last();
                let takes_over = last.epoch == 0 || random.below(4) == 0;
                let said = if takes_over { take_over(&at.to_string()) } else { rows(at as u8, random.below(300) as usize) };
                let encoded = encode(LOG, (last, last.epoch + u64::from(takes_over)), &said, 100).unwrap();
                let parts = encoded.parts.len();
                let sent = if random.below(4) == 0 { random.below(parts as u64 + 1) as usize } else { parts };
                let next = log.len() as u64 + 1;
                log.extend(entries(&encoded.parts[..sent], next));
            }
            let fold = |mut chain: Chain| {
                let mut counted = BTreeMap::new();
                for entry in &log[chain.seen().0 as usize..] {
                    if let Folded::Record(record) = chain.take(entry) {
                        prop_assert!(counted.insert(record.position.index, record).is_none());
                    }
                }
                Ok(counted)
            };
            let all = fold(chain())?;
            for (index, record) in &all {
                let behind = fold(Chain::behind(LOG, record.position, record.sequence))?;
                prop_assert!(behind.iter().eq(all.range(index + 1..)));
            }
        }
    }
}
