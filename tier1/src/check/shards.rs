//! Checks what a shard has once: its totals, message numbers, feed, and audit trail.

use doppel_model::{PageId, ShardId};

use super::rows::RowKey;
use super::{Checker, Invariant, ReferencedRow};
use crate::machine::Envelope;
use crate::rows::key::{self, RowKind};
use crate::rows::record::{AuditEntry, Meta};

impl Checker<'_> {
    /// Reads the meta rows of all shards. The check reads them before all other rows.
    pub(super) fn read_metas(&mut self) {
        for shard in (0..self.shards).map(ShardId) {
            let key = key::meta(shard);
            let row = || format!("the totals of shard {}", shard.0);
            let meta = match self.store.get(&key) {
                Ok(Some(value)) => self
                    .decode::<Meta>(&key, &value, row())
                    .map_or(ReferencedRow::Unreadable, ReferencedRow::Row),
                Ok(None) => ReferencedRow::Missing,
                Err(error) => {
                    self.add_engine_failure(&error);
                    ReferencedRow::Unreadable
                }
            };
            let peers = usize::from(self.shards);
            match meta {
                ReferencedRow::Row(meta) if meta.sent.len() != peers || meta.applied.len() != peers => {
                    let detail =
                        format!("have message numbers for {} shards instead of {peers}", meta.sent.len());
                    self.add_finding(Invariant::Totals, row(), detail);
                    self.metas.push(ReferencedRow::Unreadable);
                }
                meta => self.metas.push(meta),
            }
            // Audit entries that retention has dropped count as read.
            let dropped = self.read::<u64>(&key::audits_dropped(shard));
            self.recounts[usize::from(shard.0)].audits = dropped.row().copied().unwrap_or_default();
        }
    }

    /// Reads all messages under way, and checks that their numbers have no gap.
    pub(super) fn read_outboxes(&mut self) {
        for from in (0..self.shards).map(ShardId) {
            // Expected number of the next message, by receiver.
            let mut next: Vec<Option<u64>> =
                (0..self.shards).map(|to| self.applied(ShardId(to), from).map(|n| n + 1)).collect();
            let (start, end) = key::all(from, RowKind::Outbox);
            let mut rows = Vec::new();
            let read = self.store.range(&start, &end, &mut |key, value| {
                rows.push((key.to_vec(), value.to_vec()));
                true
            });
            if let Err(error) = read {
                return self.add_engine_failure(&error);
            }
            for (key, value) in rows {
                self.message(from, &key, &value, &mut next);
            }
            for to in (0..self.shards).map(ShardId) {
                self.check_sent(from, to, next[usize::from(to.0)]);
            }
        }
    }

    /// Checks a message in the outbox of the shard `from`, and records the work that it makes pending.
    fn message(&mut self, from: ShardId, key: &[u8], value: &[u8], next: &mut [Option<u64>]) {
        let Some((_, RowKey::Outbox(to, number))) = RowKey::of(key) else { return };
        let row = format!("message {number} from shard {} to {}", from.0, to.0);
        match next.get_mut(usize::from(to.0)) {
            None => return self.add_finding(Invariant::Key, row, "is for a shard that does not exist"),
            // The receiver in another range has applied the message, but the sender has no receipt yet.
            Some(Some(expected))
                if number < *expected && self.map.of_shard(from) != self.map.of_shard(to) =>
            {
                let _ = self.decode::<Envelope>(key, value, row);
                return;
            }
            Some(Some(expected)) => {
                if number != *expected {
                    let detail = format!("is in the place of message {expected}");
                    self.add_finding(Invariant::Outbox, &row, detail);
                }
                *expected = number + 1;
            }
            Some(None) => {}
        }
        let Some(envelope) = self.decode::<Envelope>(key, value, row.clone()) else { return };
        if (envelope.from, envelope.to, envelope.number) != (from, to, number) {
            self.add_finding(Invariant::Outbox, row, "has another number, sender or receiver in its value");
        }
        self.underway.add(&envelope.message);
    }

    /// Checks that the last sent message is applied or under way. `next` is the number after the last message
    /// that is.
    fn check_sent(&mut self, from: ShardId, to: ShardId, next: Option<u64>) {
        // A shard without a meta row has sent and applied nothing.
        let sent = match &self.metas[usize::from(from.0)] {
            ReferencedRow::Row(meta) => meta.sent[usize::from(to.0)],
            ReferencedRow::Missing => 0,
            ReferencedRow::Unreadable => return,
        };
        let Some(next) = next else { return };
        if sent + 1 != next {
            let (row, last) = (format!("the messages from shard {} to {}", from.0, to.0), next - 1);
            self.add_finding(
                Invariant::Outbox,
                row,
                format!("were sent up to number {sent}, but end at {last}"),
            );
        }
    }

    /// Number of the last message of `from` that `to` has applied. `None` if the meta row cannot be read.
    fn applied(&self, to: ShardId, from: ShardId) -> Option<u64> {
        match &self.metas[usize::from(to.0)] {
            ReferencedRow::Row(meta) => Some(meta.applied[usize::from(from.0)]),
            ReferencedRow::Missing => Some(0),
            ReferencedRow::Unreadable => None,
        }
    }

    /// Checks that an item of the index's router can be decoded. Only the router understands its contents.
    pub(super) fn index_state(&mut self, row_key: &RowKey, key: &[u8], value: &[u8]) {
        let row = self.describe_row(row_key);
        let _ = self.decode::<Vec<u8>>(key, value, row);
    }

    /// Compares the totals of all shards with the counted rows. The check does this after all other rows.
    pub(super) fn check_metas(&mut self) {
        if !self.failed.is_empty() {
            // Some rows were not read, so the counts are too small.
            return;
        }
        let metas = std::mem::take(&mut self.metas);
        let recounts = std::mem::take(&mut self.recounts);
        for ((number, meta), recount) in metas.iter().enumerate().zip(&recounts) {
            let row = format!("the totals of shard {number}");
            let meta = match meta {
                ReferencedRow::Row(meta) => meta,
                ReferencedRow::Missing if *recount != Meta::default() => {
                    self.add_finding(
                        Invariant::Totals,
                        row,
                        "are missing, but the shard has pages or groups",
                    );
                    continue;
                }
                ReferencedRow::Missing | ReferencedRow::Unreadable => continue,
            };
            for (what, says, is) in compared(meta, recount) {
                if says != is {
                    self.add_finding(
                        Invariant::Totals,
                        &row,
                        format!("count {says} {what}, but there are {is}"),
                    );
                }
            }
            if meta.events_dropped > meta.events {
                self.add_finding(Invariant::Totals, &row, "name a dropped event that never existed");
            }
            if recount.audits != meta.audits {
                let detail = format!("has audit entries up to {}, but wrote {}", recount.audits, meta.audits);
                self.add_finding(Invariant::Audit, format!("shard {number}"), detail);
            }
        }
        self.metas = metas;
    }

    /// Checks an event of the feed.
    pub(super) fn feed(&mut self, shard: ShardId, number: u64, value: &[u8]) {
        let row = format!("event {number} of shard {}", shard.0);
        let Ok(page) = <[u8; 16]>::try_from(value).map(PageId::from_bytes) else {
            return self.add_finding(Invariant::Damage, row, "names no page");
        };
        if let Some(meta) = self.metas.get(usize::from(shard.0)).and_then(ReferencedRow::row)
            && !(1..=meta.events).contains(&number)
        {
            self.add_finding(
                Invariant::Feed,
                &row,
                format!("never existed; the shard has had {} events", meta.events),
            );
        }
        let newest = match self.record(page) {
            ReferencedRow::Row(record) if self.owner(page) == shard => Some(record.event),
            ReferencedRow::Row(_) | ReferencedRow::Missing => None,
            ReferencedRow::Unreadable => return,
        };
        if newest != Some(number) {
            let name = self.describe_page(page);
            self.add_finding(Invariant::Feed, row, format!("is not the newest event of {name}"));
        }
    }

    /// Checks an entry of the audit trail.
    pub(super) fn audit(&mut self, shard: ShardId, number: u64, key: &[u8], value: &[u8]) {
        let row = format!("audit entry {number} of shard {}", shard.0);
        let recount = &mut self.recounts[usize::from(shard.0)];
        recount.audits += 1;
        let expected = recount.audits;
        if number != expected {
            self.add_finding(Invariant::Audit, &row, format!("is in the place of entry {expected}"));
        }
        let Some(entry) = self.decode::<AuditEntry>(key, value, row.clone()) else { return };
        if entry.group.shard() != shard {
            self.add_finding(
                Invariant::Audit,
                row,
                format!("is about group {} of another shard", entry.group),
            );
        }
    }

    /// Checks that the number of dropped audit entries can be decoded. [`read_metas`](Self::read_metas) has
    /// already read the number, and [`check_metas`](Self::check_metas) compares it with the shard's totals.
    pub(super) fn audits_dropped(&mut self, shard: ShardId, key: &[u8], value: &[u8]) {
        let row = format!("the number of audit entries that shard {} has dropped", shard.0);
        let _read = self.decode::<u64>(key, value, row);
    }
}

/// The totals that rows can confirm: for each the name, the recorded number, and the counted number.
fn compared(meta: &Meta, recount: &Meta) -> [(&'static str, u64, u64); 14] {
    let (recorded, counted) = (&meta.counters, &recount.counters);
    [
        ("live pages", recorded.live, counted.live),
        ("redirects", recorded.redirects, counted.redirects),
        ("unresolved redirects", recorded.unresolved, counted.unresolved),
        ("dead pages", recorded.dead, counted.dead),
        ("pages at the end of very many redirects", recorded.crowded, counted.crowded),
        ("groups", recorded.groups, counted.groups),
        ("winners", recorded.winners, counted.winners),
        ("duplicates", recorded.duplicates, counted.duplicates),
        ("secondaries", recorded.secondaries, counted.secondaries),
        ("pending pages", meta.pending, recount.pending),
        ("deferred searches", meta.deferred, recount.deferred),
        ("members to be verified", meta.unverified, recount.unverified),
        ("dirty groups", meta.dirty, recount.dirty),
        ("uncovered groups", meta.uncovered, recount.uncovered),
    ]
}
