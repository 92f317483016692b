//! The trail of repairs over all shards, newest first.
//!
//! The entries of a shard are numbered without gaps. A walk back therefore needs only the number of the next
//! entry of each shard, and these numbers are the cursor. The cursor stays right whatever is repaired or
//! dropped in the meantime, and whatever the clock did. The walk reads the next entry of each shard and takes
//! the newest of them first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use doppel_model::{GroupId, PageId, PageUrl, ShardId, Timestamp};
use doppel_protocol::{RepairDetails, RepairEntry, RepairId, RepairPosition, RepairTrail, Tier1Error};

use crate::rows::key;
use crate::rows::record::{AuditEntry, Meta, PageRecord, State, decode};
use crate::service::questions::rows::RowReader;

/// Most entries, and most bytes, that are read for one piece of the trail, beyond the first entry of each
/// shard. This is about one second of work. Past either limit the piece ends early.
const PIECE_ENTRIES: usize = 2_000;
const PIECE_BYTES: usize = 64 << 20;

/// The next entry of a shard. The newest entry compares as the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NextEntry {
    at: Timestamp,
    shard: Reverse<ShardId>,
    number: u64,
}

/// A walk back over the trail.
struct TrailWalk<'r> {
    rows: &'r RowReader,
    group: Option<GroupId>,
    /// Number of the next entry of each shard.
    numbers: Vec<u64>,
    /// The next entry of each shard, without its URLs.
    entries: Vec<Option<RepairEntry>>,
    order: BinaryHeap<NextEntry>,
    read: usize,
    bytes: usize,
}

impl TrailWalk<'_> {
    /// Reads the next entry of a shard. If that entry is gone, the walk of the shard is at its end.
    fn read(&mut self, shard: ShardId) -> Result<(), Tier1Error> {
        let at = usize::from(shard.0);
        let id = RepairId { shard, number: self.numbers[at] };
        let found =
            if id.number == 0 { None } else { self.rows.bytes(vec![key::audit(id)])?.pop().flatten() };
        let Some(bytes) = found else {
            self.numbers[at] = 0;
            return Ok(());
        };
        self.read += 1;
        self.bytes += bytes.len();
        let entry = decode::<AuditEntry>(&key::audit(id), &bytes)?.to_repair_entry(id);
        self.order.push(NextEntry { at: entry.at, shard: Reverse(shard), number: id.number });
        self.entries[at] = Some(entry);
        Ok(())
    }

    /// Takes the newest entry and reads the one before it in its shard.
    fn next(&mut self) -> Result<Option<RepairEntry>, Tier1Error> {
        let Some(NextEntry { shard: Reverse(shard), .. }) = self.order.pop() else { return Ok(None) };
        let at = usize::from(shard.0);
        self.numbers[at] -= 1;
        let entry = self.entries[at].take();
        self.read(shard)?;
        Ok(entry)
    }

    fn is_long(&self) -> bool {
        self.read >= PIECE_ENTRIES + self.numbers.len() || self.bytes >= PIECE_BYTES
    }

    fn run(mut self, limit: usize) -> Result<RepairTrail, Tier1Error> {
        let shards = match self.group {
            Some(group) => group.shard().0..group.shard().0.saturating_add(1),
            None => 0..self.rows.shards(),
        };
        for shard in shards.map(ShardId).filter(|shard| shard.0 < self.rows.shards()) {
            self.read(shard)?;
        }
        let mut repairs = Vec::new();
        while repairs.len() < limit {
            let Some(entry) = self.next()? else { break };
            if self.group.is_none_or(|group| group == entry.group) {
                repairs.push(entry);
            }
            if self.is_long() {
                break;
            }
        }
        let next = (!self.order.is_empty()).then_some(RepairPosition::new(self.numbers));
        Ok(RepairTrail { repairs, next })
    }
}

impl RowReader {
    pub(in crate::service) fn read_repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error> {
        let mut numbers = Vec::new();
        let metas: Vec<_> = (0..self.shards()).map(|shard| key::meta(ShardId(shard))).collect();
        for (at, meta) in self.records::<Meta>(&metas)?.into_iter().enumerate() {
            let last = meta.map_or(0, |meta| meta.audits);
            // A number that this collection never gave leads to no entry.
            let from = before.map_or(last, |before| before.numbers().get(at).copied().unwrap_or(0));
            numbers.push(from.min(last));
        }
        let (entries, order) = (vec![None; numbers.len()], BinaryHeap::new());
        TrailWalk { rows: self, group, numbers, entries, order, read: 0, bytes: 0 }.run(limit)
    }

    pub(in crate::service) fn read_repair(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error> {
        if id.shard.0 >= self.shards() {
            return Ok(None);
        }
        let Some(mut record) = self.record::<AuditEntry>(key::audit(id))? else { return Ok(None) };
        // The sweep removes these URLs from the record when it reaches it.
        record.forget(&self.forgotten(&record));
        let entry = record.to_repair_entry(id);
        let forgotten = record.original_url_count().saturating_sub(record.before.len() as u64);
        Ok(Some(RepairDetails { entry, before: record.before, components: record.components, forgotten }))
    }

    /// The pages of an entry that are purged or not on record any more. A record that cannot be read counts
    /// as on record; the work that needs it reports the failure.
    pub(in crate::service) fn forgotten(&self, entry: &AuditEntry) -> HashSet<PageId> {
        let pages: HashSet<PageId> = entry.urls().map(PageUrl::id).collect();
        let pages: Vec<PageId> = pages.into_iter().collect();
        let is_forgotten =
            |record: &Option<PageRecord>| record.as_ref().is_none_or(|record| record.state == State::Purged);
        let forgotten = |(page, record): (PageId, Option<PageRecord>)| is_forgotten(&record).then_some(page);
        match self.pages(&pages) {
            Ok(records) => pages.into_iter().zip(records).filter_map(forgotten).collect(),
            Err(_) => {
                let one = |page: &PageId| {
                    self.pages(&[*page]).is_ok_and(|records| records.iter().all(is_forgotten))
                };
                pages.into_iter().filter(one).collect()
            }
        }
    }
}
