//! What has ended is kept for a while, then dropped.
//!
//! The machine has no clock: who sweeps the rows names the time. The first sweep that finds a row ended
//! writes the time down, a later one drops it, so a page's own dates, which may be of another century,
//! play no part.
//!
//! Invariants:
//! - A page that comes back begins with seats and tickets past all of its earlier life.
//! - A consumer of the feed that may have missed a dropped event is told so: the greatest dropped number is
//!   kept.

use std::time::Duration;

use doppel_common::model::{GroupId, PageId, Timestamp};

use super::Machine;
use crate::key;
use crate::record::{GroupRecord, PageRecord, State};
use crate::store::StoreError;

/// How long what has ended is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Dead pages: so long an older version of one is recognised as stale, and the feed has its death.
    pub dead: Duration,
    /// Purged pages: so long the feed has the word that the page is unknown.
    pub purged: Duration,
    /// Merged groups that nobody needs but who asks for the old id.
    pub merged: Duration,
}

impl Retention {
    /// 30 days for the dead and the merged, one for the purged.
    pub const DEFAULT: Self = {
        let day = Duration::from_secs(24 * 60 * 60);
        Self { dead: day.saturating_mul(30), purged: day, merged: day.saturating_mul(30) }
    };
}

impl PageRecord {
    /// Whether the page has ended and nothing hangs on its record.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Dead | State::Purged) && self.hangers == 0
    }
}

impl Machine<'_, '_> {
    pub(super) fn expire_page(&mut self, page: PageId, now: Timestamp) -> Result<(), StoreError> {
        self.here = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        if !record.has_ended() {
            return self.give_back(page, record);
        }
        let Retention { dead, purged, .. } = self.shards.settings.retention;
        let keep = if record.state == State::Purged { purged } else { dead };
        let Some(ended) = record.ended else {
            record.ended = Some(now);
            return self.txn.put_page(self.here, page, record);
        };
        if !is_over(ended, now, keep) {
            return self.give_back(page, record);
        }
        if record.event > 0 {
            self.txn.delete(key::feed(self.here, record.event));
        }
        let meta = self.meta();
        meta.events_dropped = meta.events_dropped.max(record.event);
        meta.floor = meta.floor.max(record.seat).max(record.ticket).saturating_add(1);
        self.txn.drop_page(self.here, page)?;
        // To the redirects a dead target is an unknown one now.
        self.reroute_sources(page)
    }

    pub(super) fn expire_group(&mut self, group: GroupId, now: Timestamp) -> Result<(), StoreError> {
        self.here = group.shard();
        let Some(GroupRecord::Forward(mut forward)) = self.txn.group(group)? else { return Ok(()) };
        if !forward.done || forward.passages > 0 {
            return Ok(());
        }
        match forward.ended {
            None => forward.ended = Some(now),
            Some(ended) if is_over(ended, now, self.shards.settings.retention.merged) => {
                return self.txn.put_group(group, None);
            }
            Some(_) => return Ok(()),
        }
        self.txn.put_group(group, Some(GroupRecord::Forward(forward)))
    }
}

fn is_over(ended: Timestamp, now: Timestamp, keep: Duration) -> bool {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    now.millis().saturating_sub(ended.millis()) >= keep
}
