//! The sweep goes round all rows of a range, one piece at a time, and finds rows whose retention time is
//! over. It also finds URLs of forgotten pages in the trail of repairs, whatever the reason why the pages
//! were forgotten.

use std::ops::Range;

use doppel_model::{GroupId, ShardId, Timestamp};
use doppel_protocol::{RepairId, Tier1Error};

use crate::machine::Command;
use crate::rows::key::{self, RowKind};
use crate::rows::record::{AuditEntry, GroupRecord, PageRecord, decode};
use crate::service::upkeep::Upkeep;
use crate::storage::store::Store;

/// Rows of one piece. A URL that is looked up counts as one row.
const PIECE_ROWS: usize = 2_000;

/// The kinds of rows that the sweep reads in each shard.
const KINDS: [RowKind; 3] = [RowKind::Page, RowKind::Group, RowKind::Audit];

/// Where the sweep is on its round.
#[derive(Debug)]
pub(in crate::service) struct Sweep {
    run: Range<ShardId>,
    shard: ShardId,
    /// Index into [`KINDS`].
    kind: usize,
    after: Option<Vec<u8>>,
}

impl Sweep {
    /// Starts a sweep over the shards of a range.
    pub(in crate::service) fn new(run: Range<ShardId>) -> Self {
        Self { shard: run.start, run, kind: 0, after: None }
    }

    /// Reads the next piece: [`PIECE_ROWS`] rows, or the rest of the round. Returns the commands that drop
    /// what is due.
    pub(in crate::service) fn next_piece(
        &mut self,
        upkeep: &Upkeep,
        store: &dyn Store,
    ) -> Result<Vec<Command>, Tier1Error> {
        let now = Timestamp::now();
        let mut commands = Vec::new();
        let mut left = PIECE_ROWS;
        while left > 0 {
            let (shard, kind) = (self.shard, KINDS[self.kind]);
            let (mut from, to) = key::all(shard, kind);
            if let Some(after) = self.after.take() {
                from = key::after(&after);
            }
            let mut repair = None;
            store.range(&from, &to, &mut |key, bytes| {
                if kind == RowKind::Audit {
                    repair = Some(bytes.to_vec());
                } else {
                    commands.extend(due_command(upkeep, kind, key, bytes, now));
                }
                left -= 1;
                let stop = left == 0 || repair.is_some();
                if stop {
                    self.after = Some(key.to_vec());
                }
                !stop
            })?;
            if let (Some(key), Some(bytes)) = (&self.after, repair) {
                let (command, looked_up) = repair_command(upkeep, key, &bytes, now);
                commands.extend(command);
                left = left.saturating_sub(looked_up);
            }
            if self.after.is_some() {
                continue;
            }
            self.kind = (self.kind + 1) % KINDS.len();
            if self.kind == 0 {
                self.shard.0 += 1;
                if self.shard >= self.run.end {
                    self.shard = self.run.start;
                    break;
                }
            }
        }
        Ok(commands)
    }
}

/// Returns the command that an entry of the audit trail of repairs is due for, and the number of URLs looked up for it.
fn repair_command(upkeep: &Upkeep, key: &[u8], bytes: &[u8], now: Timestamp) -> (Option<Command>, usize) {
    let entry = decode::<AuditEntry>(key, bytes).ok();
    let (Some(number), Some(entry)) = (key::last_number(key), entry) else {
        return (None, 0);
    };
    let repair = RepairId { shard: entry.group.shard(), number };
    if upkeep.collection.settings.retention.is_repair_due(&entry, now) {
        return (Some(Command::ExpireRepair { repair, now }), 0);
    }
    let pages = upkeep.question_rows.forgotten(&entry);
    let command = (!pages.is_empty()).then_some(Command::ForgetInRepair { repair, pages });
    (command, entry.urls().count())
}

/// What is due for a row. A row that cannot be read is reported by the work that needs it.
fn due_command(upkeep: &Upkeep, kind: RowKind, key: &[u8], bytes: &[u8], now: Timestamp) -> Option<Command> {
    let retention = upkeep.collection.settings.retention;
    if kind == RowKind::Page {
        let record: PageRecord = decode(key, bytes).ok()?;
        let page = key::last_page(key)?;
        return (record.has_ended() && retention.is_page_due(&record, now))
            .then_some(Command::ExpirePage { page, now });
    }
    let GroupRecord::Forward(forward) = decode(key, bytes).ok()? else { return None };
    let group = GroupId::from_stored(key::last_number(key)?);
    (forward.has_ended() && retention.is_group_due(&forward, now))
        .then_some(Command::ExpireGroup { group, now })
}
