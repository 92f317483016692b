//! Retention: ended pages, merged groups and entries of the audit trail are kept for a while, then dropped.
//!
//! The machine has no clock, so each sweep of the rows passes the time with its commands. The first sweep
//! that finds a row ended stores this time in the row. A later sweep drops the row. The page's own dates may
//! be of another century, and play no part.
//!
//! Invariants:
//! - A page that comes back begins with membership numbers and tickets greater than all those of its earlier
//!   life.
//! - A consumer of the feed that may have missed a dropped event is told so, because each shard keeps the
//!   greatest number of a dropped event.

use std::time::Duration;

use doppel_model::{GroupId, PageId, Timestamp};

use super::{Effect, Machine};
use crate::rows::key;
use crate::rows::record::{AuditEntry, Forward, GroupRecord, PageRecord, State};
use crate::storage::store::StoreError;

/// Retention periods of ended pages, merged groups and audit entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Retention period of dead pages. During it an older version is recognised as stale, and the feed
    /// reports the death.
    pub dead: Duration,
    /// Retention period of purged pages. During it the feed reports the page as unknown.
    pub purged: Duration,
    /// Merged groups without forwarding entries, which only answer questions about the old id.
    pub merged: Duration,
    /// Entries of the audit trail. If the period is zero, the machine writes no entries.
    pub audit: Duration,
}

impl Retention {
    /// 30 days for dead pages and merged groups, one day for purged pages, 365 days for audit entries.
    pub const DEFAULT: Self = {
        let day = Duration::from_secs(24 * 60 * 60);
        let (month, year) = (day.saturating_mul(30), day.saturating_mul(365));
        Self { dead: month, purged: day, merged: month, audit: year }
    };
}

impl Retention {
    /// Returns whether a sweep must change an ended page: note its end, or drop it because its period is
    /// over.
    pub(crate) fn is_page_due(&self, record: &PageRecord, now: Timestamp) -> bool {
        let keep = if record.state == State::Purged { self.purged } else { self.dead };
        record.ended.is_none_or(|ended| is_over(ended, now, keep))
    }

    /// Returns whether a sweep must change a merged group: note its end, or drop it because its period is
    /// over.
    pub(crate) fn is_group_due(&self, forward: &Forward, now: Timestamp) -> bool {
        forward.ended.is_none_or(|ended| is_over(ended, now, self.merged))
    }

    /// Returns whether the retention period of an audit entry is over.
    pub(crate) fn is_repair_due(&self, entry: &AuditEntry, now: Timestamp) -> bool {
        self.audit.is_zero() || is_over(entry.at, now, self.audit)
    }
}

impl PageRecord {
    /// Returns whether the page is dead or purged and no redirect ends at it.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Dead | State::Purged) && self.inbound_redirects == 0
    }
}

impl Forward {
    /// Returns whether all members have been transferred and no membership sends messages through the
    /// forward.
    pub(crate) fn has_ended(&self) -> bool {
        self.done && self.forwarding_entries == 0
    }
}

impl Machine<'_, '_> {
    /// Notes the end of a dead or purged page, or drops the page if its period is over.
    pub(super) fn expire_page(&mut self, page: PageId, now: Timestamp) -> Result<(), StoreError> {
        self.current_shard = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        if !record.has_ended() || !self.shards.settings.retention.is_page_due(&record, now) {
            return self.give_back(page, record);
        }
        if record.ended.is_none() {
            record.ended = Some(now);
            return self.txn.put_page(self.current_shard, page, record);
        }
        if record.event > 0 {
            self.txn.delete(key::feed(self.current_shard, record.event));
        }
        let meta = self.meta();
        meta.events_dropped = meta.events_dropped.max(record.event);
        meta.first_membership_number =
            meta.first_membership_number.max(record.membership_number).max(record.ticket).saturating_add(1);
        let url = record.url().clone();
        self.txn.drop_page(self.current_shard, page)?;
        self.effects.push(Effect::Changed);
        // For redirects, a dropped dead target becomes an unknown target.
        self.reroute_sources(&url, false)
    }

    /// Notes the end of a merged group, or drops the group if its period is over.
    pub(super) fn expire_group(&mut self, group: GroupId, now: Timestamp) -> Result<(), StoreError> {
        self.current_shard = group.shard();
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
