//! The sweep: rows that have ended are found by going round all of them, a piece at a time.

use doppel_common::api::Refused;
use doppel_common::model::{GroupId, ShardId, Timestamp};

use super::{Tier1, now};
use crate::key::{self, Kind};
use crate::machine::Command;
use crate::record::{GroupRecord, PageRecord, decode};

/// Rows of a piece.
const PIECE_ROWS: usize = 2_000;

/// Where the sweep is on its round.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    shard: u16,
    /// Pages first, then groups.
    groups: bool,
    after: Option<Vec<u8>>,
}

impl Sweep {
    /// The commands that the next piece gives rise to: so many rows, or the rest of the round.
    pub(super) fn piece(&mut self, tier1: &Tier1) -> Result<Vec<Command>, Refused> {
        let now = now();
        let mut commands = Vec::new();
        let mut left = PIECE_ROWS;
        loop {
            let (shard, kind) = (ShardId(self.shard), if self.groups { Kind::Group } else { Kind::Page });
            let (mut from, to) = key::all(shard, kind);
            if let Some(after) = self.after.take() {
                from = key::after(&after);
            }
            tier1.store.range(&from, &to, &mut |key, bytes| {
                commands.extend(due(tier1, kind, key, bytes, now));
                left -= 1;
                if left == 0 {
                    self.after = Some(key.to_vec());
                }
                left > 0
            })?;
            if left == 0 {
                return Ok(commands);
            }
            if self.groups {
                self.shard = (self.shard + 1) % tier1.settings.shards;
            }
            self.groups = !self.groups;
            if self.shard == 0 && !self.groups {
                return Ok(commands);
            }
        }
    }
}

/// What is due for a row. One that cannot be read is somebody else's to report.
fn due(tier1: &Tier1, kind: Kind, key: &[u8], bytes: &[u8], now: Timestamp) -> Option<Command> {
    let retention = tier1.settings.retention;
    if kind == Kind::Page {
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
