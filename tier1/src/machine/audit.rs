//! The trail of the repairs that operators wanted: written with what it tells of, dropped after a while.
//!
//! Invariants:
//! - An entry is of the same commit as the first step of its repair, so there is none without the other.
//! - Entries of a shard are numbered without a gap up to the last one written, and dropped from the first on.

use std::collections::HashSet;

use doppel_model::{PageId, PageUrl, Timestamp};
use doppel_protocol::{REPAIR_URLS_KEPT, RepairEntry, RepairId};

use super::Machine;
use crate::key;
use crate::record::{AuditEntry, encode};
use crate::store::StoreError;

impl Machine<'_, '_> {
    /// Writes a repair of a group of this shard down.
    pub(super) fn audit(&mut self, entry: &AuditEntry) -> Result<(), StoreError> {
        if self.shards.settings.retention.audit.is_zero() {
            return Ok(());
        }
        let shard = self.here;
        let meta = self.meta();
        meta.audits += 1;
        let number = meta.audits;
        self.txn.put(key::audit(RepairId { shard, number }), encode(entry)?);
        Ok(())
    }

    /// Drops an entry, if it is the first one left: one that a wrong clock has made old waits for those before it.
    pub(super) fn expire_repair(&mut self, repair: RepairId, now: Timestamp) -> Result<(), StoreError> {
        self.here = repair.shard;
        let Some(entry) = self.txn.get::<AuditEntry>(&key::audit(repair))? else { return Ok(()) };
        if !self.shards.settings.retention.is_repair_due(&entry, now) {
            return Ok(());
        }
        let dropped_key = key::audits_dropped(self.here);
        let dropped: u64 = self.txn.get(&dropped_key)?.unwrap_or_default();
        if repair.number == dropped + 1 {
            self.txn.delete(key::audit(repair));
            self.txn.put(dropped_key, encode(&repair.number)?);
        }
        Ok(())
    }

    /// Takes pages that are forgotten out of an entry.
    pub(super) fn forget_in_repair(
        &mut self,
        repair: RepairId,
        pages: &HashSet<PageId>,
    ) -> Result<(), StoreError> {
        self.here = repair.shard;
        let key = key::audit(repair);
        let Some(mut entry) = self.txn.get::<AuditEntry>(&key)? else { return Ok(()) };
        entry.forget(pages);
        self.txn.put(key, encode(&entry)?);
        Ok(())
    }
}

impl AuditEntry {
    /// What it says but for the URLs.
    pub(crate) fn without_urls(&self, id: RepairId) -> RepairEntry {
        RepairEntry {
            id,
            at: self.at,
            by: self.by.clone(),
            group: self.group,
            members: self.members,
            component_count: self.components.len() as u64,
            truncated: self.members > REPAIR_URLS_KEPT as u64,
        }
    }

    /// Every URL in it, most of them twice.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &PageUrl> {
        self.before.iter().chain(self.components.iter().flatten())
    }

    /// Takes pages out. A set stays in its place, be it empty.
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
    use doppel_model::{GroupId, ShardId};

    use super::*;

    #[test]
    fn counts_stay_when_pages_are_forgotten() {
        let url = |n: u64| PageUrl::parse(&format!("http://a/{n}")).unwrap();
        let urls = |numbers: &[u64]| numbers.iter().copied().map(url).collect::<Vec<_>>();
        let mut entry = AuditEntry {
            at: Timestamp::from_millis(5),
            by: "ann".to_owned(),
            group: GroupId::new(1, ShardId(2)),
            members: REPAIR_URLS_KEPT as u64,
            before: urls(&[1, 2, 3, 4]),
            components: vec![urls(&[1, 3]), urls(&[2]), urls(&[4])],
        };
        let id = RepairId { shard: ShardId(2), number: 1 };
        let whole = entry.without_urls(id);
        assert_eq!((whole.component_count, whole.truncated), (3, false));
        entry.forget(&[2, 3, 9].map(|n| url(n).id()).into());
        assert_eq!(
            (entry.before.clone(), entry.components.clone()),
            (urls(&[1, 4]), vec![urls(&[1]), vec![], urls(&[4])])
        );
        assert_eq!(entry.without_urls(id), whole);
        entry.members += 1;
        assert!(entry.without_urls(id).truncated);
    }
}
