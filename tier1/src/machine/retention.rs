//! What has ended is kept for a while, then dropped.
//!
//! The machine has no clock: who sweeps the rows names the time. The first sweep that finds a row ended
//! writes the time down, a later one drops it, so a page's own dates, which may be of another century,
//! play no part.
//!
//! Invariants:
//! - A page that comes back begins with membership numbers and tickets past all of its earlier life.
//! - A consumer of the feed that may have missed a dropped event is told so: the greatest dropped number is
//!   kept.

use std::time::Duration;

use doppel_model::{GroupId, PageId, Timestamp};

use super::{Effect, Machine};
use crate::key;
use crate::record::{AuditEntry, Forward, GroupRecord, PageRecord, State};
use crate::store::StoreError;

/// How long what has ended is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Dead pages: so long an older version of one is recognised as stale, and the feed has its death.
    pub dead: Duration,
    /// Purged pages: so long the feed says that the page is unknown.
    pub purged: Duration,
    /// Merged groups that nobody needs but who asks for the old id.
    pub merged: Duration,
    /// What is written down of operators' repairs; nothing is when it is zero.
    pub audit: Duration,
}

impl Retention {
    /// 30 days for the dead and the merged, one for the purged, a year for repairs.
    pub const DEFAULT: Self = {
        let day = Duration::from_secs(24 * 60 * 60);
        let (month, year) = (day.saturating_mul(30), day.saturating_mul(365));
        Self { dead: month, purged: day, merged: month, audit: year }
    };
}

impl Retention {
    /// Whether an ended page's time is to be written down, or is over.
    pub(crate) fn is_page_due(&self, record: &PageRecord, now: Timestamp) -> bool {
        let keep = if record.state == State::Purged { self.purged } else { self.dead };
        record.ended.is_none_or(|ended| is_over(ended, now, keep))
    }

    /// The same of a merged group.
    pub(crate) fn is_group_due(&self, forward: &Forward, now: Timestamp) -> bool {
        forward.ended.is_none_or(|ended| is_over(ended, now, self.merged))
    }

    /// Whether the time of what is written down of a repair is over.
    pub(crate) fn is_repair_due(&self, entry: &AuditEntry, now: Timestamp) -> bool {
        self.audit.is_zero() || is_over(entry.at, now, self.audit)
    }
}

impl PageRecord {
    /// Whether the page has ended and nothing is attached to its record.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Dead | State::Purged) && self.inbound_redirects == 0
    }
}

impl Forward {
    /// Whether nobody's messages come by any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.done && self.forwarding_entries == 0
    }
}

impl Machine<'_, '_> {
    pub(super) fn expire_page(&mut self, page: PageId, now: Timestamp) -> Result<(), StoreError> {
        self.here = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        if !record.has_ended() || !self.shards.settings.retention.is_page_due(&record, now) {
            return self.give_back(page, record);
        }
        if record.ended.is_none() {
            record.ended = Some(now);
            return self.txn.put_page(self.here, page, record);
        }
        if record.event > 0 {
            self.txn.delete(key::feed(self.here, record.event));
        }
        let meta = self.meta();
        meta.events_dropped = meta.events_dropped.max(record.event);
        meta.first_membership_number =
            meta.first_membership_number.max(record.membership_number).max(record.ticket).saturating_add(1);
        let url = record.url().clone();
        self.txn.drop_page(self.here, page)?;
        self.effects.push(Effect::Changed);
        // To the redirects a dead target is an unknown one now.
        self.reroute_sources(&url, false)
    }

    pub(super) fn expire_group(&mut self, group: GroupId, now: Timestamp) -> Result<(), StoreError> {
        self.here = group.shard();
        let Some(GroupRecord::Forward(mut forward)) = self.txn.group(group)? else { return Ok(()) };
        if !forward.has_ended() || !self.shards.settings.retention.is_group_due(&forward, now) {
            return Ok(());
        }
        let dropped = forward.ended.replace(now).is_some();
        self.txn.put_group(group, (!dropped).then_some(GroupRecord::Forward(forward)))
    }
}

fn is_over(ended: Timestamp, now: Timestamp, keep: Duration) -> bool {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    now.millis().saturating_sub(ended.millis()) >= keep
}
