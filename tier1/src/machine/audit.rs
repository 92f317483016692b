//! The audit trail: repairs that operators requested, and quarantines, which call for repairs.
//!
//! An entry is written together with its event, and dropped after the retention period.
//!
//! Invariants:
//! - An entry is in the same commit as the first step of its repair, or as the quarantine change of its
//!   group. Neither exists without the other.
//! - The entries of a shard are numbered without a gap, and dropped in the order of their numbers.

use std::collections::HashSet;

use doppel_contract::TrailEvent;
use doppel_model::{GroupId, PageId, PageUrl, Timestamp};
use doppel_protocol::{REPAIR_URLS_KEPT, RepairEntry, RepairId};

use super::{Effect, Machine};
use crate::rows::key;
use crate::rows::record::{AuditEntry, encode};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Reports that a group of this shard enters or leaves quarantine. `into` names the survivor if a merge
    /// ended the quarantine.
    pub(super) fn report_quarantine(
        &mut self,
        group: GroupId,
        members: u64,
        begins: bool,
        into: Option<GroupId>,
    ) -> Result<(), StoreError> {
        self.effects.push(Effect::Quarantine { group, members, begins, into });
        self.audit(&AuditEntry { into, ..AuditEntry::of_quarantine(self.now, group, members, begins) })
    }

    /// Writes an entry about a group of this shard. Writes nothing if the retention period of the trail is
    /// zero.
    pub(super) fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        if self.shards.settings.retention.audit.is_zero() {
            return Ok(());
        }
        let shard = self.current_shard;
        let meta = self.meta();
        meta.audits += 1;
        let number = meta.audits;
        self.txn.put(key::audit(RepairId { shard, number }), encode(entry)?);
        Ok(())
    }

    /// Drops an entry whose retention is over, if it is the oldest entry left. After a wrong clock, an entry
    /// may seem too old before its predecessors do; it waits for them.
    pub(super) fn expire_repair(&mut self, repair: RepairId, now: Timestamp) -> Result<(), StoreError> {
        self.current_shard = repair.shard;
        let Some(entry) = self.txn.get::<AuditEntry>(&key::audit(repair))? else { return Ok(()) };
        if !self.shards.settings.retention.is_repair_due(&entry, now) {
            return Ok(());
        }
        let dropped_key = key::audits_dropped(self.current_shard);
        let dropped: u64 = self.txn.get(&dropped_key)?.unwrap_or_default();
        if repair.number == dropped + 1 {
            self.txn.delete(key::audit(repair));
            self.txn.put(dropped_key, encode(&repair.number)?);
        }
        Ok(())
    }

    /// Removes purged pages from an entry.
    pub(super) fn forget_in_repair(
        &mut self,
        repair: RepairId,
        pages: &HashSet<PageId>,
    ) -> Result<(), StoreError> {
        self.current_shard = repair.shard;
        let key = key::audit(repair);
        let Some(mut entry) = self.txn.get::<AuditEntry>(&key)? else { return Ok(()) };
        entry.forget(pages);
        self.txn.put(key, encode(&entry)?);
        Ok(())
    }
}

impl AuditEntry {
    /// Creates the entry for the beginning or the end of a quarantine. The entry does not list the pages,
    /// because there are very many and the group still lists them.
    pub(crate) fn of_quarantine(at: Timestamp, group: GroupId, members: u64, begins: bool) -> Self {
        let event = if begins { TrailEvent::Quarantined } else { TrailEvent::Released };
        Self {
            at,
            event,
            by: String::new(),
            group,
            into: None,
            members,
            before: Vec::new(),
            components: Vec::new(),
        }
    }

    /// Returns the number of member URLs that the entry had before purged pages were removed.
    pub(crate) fn original_url_count(&self) -> u64 {
        match self.event {
            TrailEvent::Repair => self.members.min(REPAIR_URLS_KEPT as u64),
            TrailEvent::Quarantined | TrailEvent::Released => 0,
        }
    }

    /// Returns the entry in its public form, without the URLs.
    pub(crate) fn to_repair_entry(&self, id: RepairId) -> RepairEntry {
        RepairEntry {
            id,
            at: self.at,
            event: self.event,
            by: self.by.clone(),
            group: self.group,
            into: self.into,
            members: self.members,
            component_count: self.components.len() as u64,
            truncated: self.event == TrailEvent::Repair && self.members > REPAIR_URLS_KEPT as u64,
        }
    }

    /// Iterates over all URLs of the entry. Most URLs occur twice.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &PageUrl> {
        self.before.iter().chain(self.components.iter().flatten())
    }

    /// Removes the URLs of these pages. A component keeps its index even if it becomes empty.
    pub(crate) fn forget(&mut self, pages: &HashSet<PageId>) {
        if pages.is_empty() {
            return;
        }
        for urls in std::iter::once(&mut self.before).chain(&mut self.components) {
            urls.retain(|url| !pages.contains(&url.id()));
        }
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::ShardId;

    use super::*;

    #[test]
    fn counts_stay_when_pages_are_forgotten() {
        let url = |n: u64| PageUrl::parse(&format!("http://a/{n}")).unwrap();
        let urls = |numbers: &[u64]| numbers.iter().copied().map(url).collect::<Vec<_>>();
        let mut entry = AuditEntry {
            at: Timestamp::from_millis(5),
            event: TrailEvent::Repair,
            by: "ann".to_owned(),
            group: GroupId::new(1, ShardId(2)),
            into: None,
            members: REPAIR_URLS_KEPT as u64,
            before: urls(&[1, 2, 3, 4]),
            components: vec![urls(&[1, 3]), urls(&[2]), urls(&[4])],
        };
        let id = RepairId { shard: ShardId(2), number: 1 };
        let whole = entry.to_repair_entry(id);
        assert_eq!((whole.component_count, whole.truncated), (3, false));
        entry.forget(&[2, 3, 9].map(|n| url(n).id()).into());
        assert_eq!(
            (entry.before.clone(), entry.components.clone()),
            (urls(&[1, 4]), vec![urls(&[1]), vec![], urls(&[4])])
        );
        assert_eq!(entry.to_repair_entry(id), whole);
        entry.members += 1;
        assert!(entry.to_repair_entry(id).truncated);
    }
}
