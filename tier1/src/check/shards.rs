//! What a shard has once: totals, message numbers, the feed, the audit.

use doppel_model::{PageId, ShardId};

use super::rows::RowKey;
use super::{Checker, Found, Invariant};
use crate::key::{self, Kind};
use crate::machine::Envelope;
use crate::record::{AuditEntry, Meta};

impl Checker<'_> {
    /// Reads what the shards say of themselves, before all other rows.
    pub(super) fn read_metas(&mut self) {
        for shard in (0..self.shards).map(ShardId) {
            let key = key::meta(shard);
            let row = || format!("the totals of shard {}", shard.0);
            let meta = match self.store.get(&key) {
                Ok(Some(value)) => {
                    self.decode::<Meta>(&key, &value, row()).map_or(Found::Unreadable, Found::Row)
                }
                Ok(None) => Found::Missing,
                Err(error) => {
                    self.engine(&error);
                    Found::Unreadable
                }
            };
            let peers = usize::from(self.shards);
            match meta {
                Found::Row(meta) if meta.sent.len() != peers || meta.applied.len() != peers => {
                    let detail = format!("number messages with {} shards, not {peers}", meta.sent.len());
                    self.find(Invariant::Totals, row(), detail);
                    self.metas.push(Found::Unreadable);
                }
                meta => self.metas.push(meta),
            }
            // Those that retention has dropped count as read.
            let dropped = self.read::<u64>(&key::audits_dropped(shard));
            self.recounts[usize::from(shard.0)].audits = dropped.row().copied().unwrap_or_default();
        }
    }

    /// Reads all messages under way, and whether any is missing.
    pub(super) fn read_outboxes(&mut self) {
        for from in (0..self.shards).map(ShardId) {
            // What should come next, by receiver.
            let mut next: Vec<Option<u64>> =
                (0..self.shards).map(|to| self.applied(ShardId(to), from).map(|n| n + 1)).collect();
            let (start, end) = key::all(from, Kind::Outbox);
            let mut rows = Vec::new();
            let read = self.store.range(&start, &end, &mut |key, value| {
                rows.push((key.to_vec(), value.to_vec()));
                true
            });
            if let Err(error) = read {
                return self.engine(&error);
            }
            for (key, value) in rows {
                self.message(from, &key, &value, &mut next);
            }
            for to in (0..self.shards).map(ShardId) {
                self.check_sent(from, to, next[usize::from(to.0)]);
            }
        }
    }

    fn message(&mut self, from: ShardId, key: &[u8], value: &[u8], next: &mut [Option<u64>]) {
        let Some((_, RowKey::Outbox(to, number))) = RowKey::of(key) else { return };
        let row = format!("message {number} from shard {} to {}", from.0, to.0);
        match next.get_mut(usize::from(to.0)) {
            None => return self.find(Invariant::Key, row, "is for a shard that there is not"),
            // Its receiver has applied it, and the sender was not yet told so.
            Some(Some(expected))
                if number < *expected && self.map.of_shard(from) != self.map.of_shard(to) =>
            {
                let _ = self.decode::<Envelope>(key, value, row);
                return;
            }
            Some(Some(expected)) => {
                if number != *expected {
                    let detail = format!("comes where message {expected} should");
                    self.find(Invariant::Outbox, &row, detail);
                }
                *expected = number + 1;
            }
            Some(None) => {}
        }
        let Some(envelope) = self.decode::<Envelope>(key, value, row.clone()) else { return };
        if (envelope.from, envelope.to, envelope.number) != (from, to, number) {
            self.find(Invariant::Outbox, row, "says another number, sender or receiver");
        }
        self.underway.add(&envelope.message);
    }

    /// The last message sent is the last one applied or under way.
    fn check_sent(&mut self, from: ShardId, to: ShardId, next: Option<u64>) {
        // A shard that never did anything has no row, and nothing sent or applied.
        let sent = match &self.metas[usize::from(from.0)] {
            Found::Row(meta) => meta.sent[usize::from(to.0)],
            Found::Missing => 0,
            Found::Unreadable => return,
        };
        let Some(next) = next else { return };
        if sent + 1 != next {
            let (row, there) = (format!("the messages from shard {} to {}", from.0, to.0), next - 1);
            self.find(Invariant::Outbox, row, format!("were numbered to {sent}, and end at {there}"));
        }
    }

    /// The last message of `from` that `to` has applied; none when that cannot be read.
    fn applied(&self, to: ShardId, from: ShardId) -> Option<u64> {
        match &self.metas[usize::from(to.0)] {
            Found::Row(meta) => Some(meta.applied[usize::from(from.0)]),
            Found::Missing => Some(0),
            Found::Unreadable => None,
        }
    }

    /// What is in it is known to the router of the index alone.
    pub(super) fn index_state(&mut self, row_key: &RowKey, key: &[u8], value: &[u8]) {
        let row = self.named(row_key);
        let _ = self.decode::<Vec<u8>>(key, value, row);
    }

    /// Compares the totals with the recount, after all other rows.
    pub(super) fn check_metas(&mut self) {
        if !self.failed.is_empty() {
            // What was not read cannot be counted.
            return;
        }
        let metas = std::mem::take(&mut self.metas);
        let recounts = std::mem::take(&mut self.recounts);
        for ((number, meta), recount) in metas.iter().enumerate().zip(&recounts) {
            let row = format!("the totals of shard {number}");
            let meta = match meta {
                Found::Row(meta) => meta,
                Found::Missing if *recount != Meta::default() => {
                    self.find(Invariant::Totals, row, "are missing, and it has pages or groups");
                    continue;
                }
                Found::Missing | Found::Unreadable => continue,
            };
            for (what, says, is) in compared(meta, recount) {
                if says != is {
                    self.find(Invariant::Totals, &row, format!("are {says} {what}, and there are {is}"));
                }
            }
            if meta.events_dropped > meta.events {
                self.find(Invariant::Totals, &row, "name a dropped event that there never was");
            }
            if recount.audits != meta.audits {
                let detail = format!("has audit entries to {}, and wrote {}", recount.audits, meta.audits);
                self.find(Invariant::Audit, format!("shard {number}"), detail);
            }
        }
        self.metas = metas;
    }

    /// An event of the feed.
    pub(super) fn feed(&mut self, shard: ShardId, number: u64, value: &[u8]) {
        let row = format!("event {number} of shard {}", shard.0);
        let Ok(page) = <[u8; 16]>::try_from(value).map(PageId::from_bytes) else {
            return self.find(Invariant::Damage, row, "names no page");
        };
        if let Some(meta) = self.metas.get(usize::from(shard.0)).and_then(Found::row)
            && !(1..=meta.events).contains(&number)
        {
            self.find(Invariant::Feed, &row, format!("was never given: {} were", meta.events));
        }
        let newest = match self.record(page) {
            Found::Row(record) if self.owner(page) == shard => Some(record.event),
            Found::Row(_) | Found::Missing => None,
            Found::Unreadable => return,
        };
        if newest != Some(number) {
            let name = self.name(page);
            self.find(Invariant::Feed, row, format!("is not the newest of {name}"));
        }
    }

    /// A repair that was written down.
    pub(super) fn audit(&mut self, shard: ShardId, number: u64, key: &[u8], value: &[u8]) {
        let row = format!("audit entry {number} of shard {}", shard.0);
        let recount = &mut self.recounts[usize::from(shard.0)];
        recount.audits += 1;
        let expected = recount.audits;
        if number != expected {
            self.find(Invariant::Audit, &row, format!("comes where entry {expected} should"));
        }
        let Some(entry) = self.decode::<AuditEntry>(key, value, row.clone()) else { return };
        if entry.group.shard() != shard {
            self.find(Invariant::Audit, row, format!("is of group {}", entry.group));
        }
    }

    /// How many of them are dropped; it was read before, and is compared with the shard's total at the end.
    pub(super) fn audits_dropped(&mut self, shard: ShardId, key: &[u8], value: &[u8]) {
        let row = format!("the number of audit entries that shard {} has dropped", shard.0);
        let _read = self.decode::<u64>(key, value, row);
    }
}

/// The totals that are of the present: what, as kept, as counted.
fn compared(meta: &Meta, recount: &Meta) -> [(&'static str, u64, u64); 14] {
    let (kept, counted) = (&meta.counters, &recount.counters);
    [
        ("live pages", kept.live, counted.live),
        ("redirects", kept.redirects, counted.redirects),
        ("unresolved redirects", kept.unresolved, counted.unresolved),
        ("dead pages", kept.dead, counted.dead),
        ("pages at which very many redirects end", kept.crowded, counted.crowded),
        ("groups", kept.groups, counted.groups),
        ("winners", kept.winners, counted.winners),
        ("duplicates", kept.duplicates, counted.duplicates),
        ("secondaries", kept.secondaries, counted.secondaries),
        ("pending pages", meta.pending, recount.pending),
        ("deferred searches", meta.deferred, recount.deferred),
        ("members to be verified", meta.unverified, recount.unverified),
        ("dirty groups", meta.dirty, recount.dirty),
        ("uncovered groups", meta.uncovered, recount.uncovered),
    ]
}
