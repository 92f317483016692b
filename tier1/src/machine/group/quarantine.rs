//! Quarantine: a group with more distinct contents than the limit reports no member as a duplicate. An
//! operator's repair ends a quarantine, and so does a recomputation that finds few enough contents.
//!
//! Pages with one content count once, so copies never cause a quarantine. At rest a group is quarantined if
//! and only if its members have more distinct contents than `group_members_max`, and more than twice the
//! number at the last repair. So quarantine is a function of the pages and of the repairs alone. Bulk
//! grouping counts in the same way (`bulk::groups`).
//!
//! The machine does not count contents as members come. The row of a group has an upper bound instead. The
//! bound is the last count, plus one for each content since then that was not the winner's. If the bound
//! exceeds the limit, the group owes a recomputation, which counts.
//!
//! Invariant: the bound is never below the number of distinct contents of the group's rows.

use doppel_model::{ContentHash, GroupId};

use crate::machine::Machine;
use crate::rows::record::{Group, Member};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Returns how many distinct contents a group may have without quarantine: the limit, or twice the number
    /// at its last repair if that is greater.
    pub(in crate::machine) fn contents_allowed(&self, record: &Group) -> u64 {
        self.shards.settings.group_members_max.max(record.contents_at_repair.saturating_mul(2))
    }

    /// Quarantines or releases a group, by the number of distinct contents that a recomputation has counted.
    /// Each change of a member since the count may have added or removed one content. If that leaves the
    /// decision open, the group is recomputed again.
    pub(in crate::machine) fn count_contents(
        &mut self,
        group: GroupId,
        record: &mut Group,
        counted: u64,
        changes_since: u64,
    ) -> Result<(), StoreError> {
        record.contents_max = counted.saturating_add(changes_since);
        let allowed = self.contents_allowed(record);
        let is_quarantined = if record.contents_max.min(record.members) <= allowed {
            false
        } else if counted.saturating_sub(changes_since) > allowed {
            true
        } else {
            record.dirty = true;
            return Ok(());
        };
        if record.quarantined != is_quarantined {
            self.set_quarantine(group, record, is_quarantined)?;
        }
        Ok(())
    }

    /// Puts a group into quarantine or releases it, and tells its members.
    fn set_quarantine(&mut self, group: GroupId, record: &mut Group, begins: bool) -> Result<(), StoreError> {
        record.quarantined = begins;
        self.announce(group, record, false);
        self.report_quarantine(group, record.members, begins, None)
    }
}

impl Group {
    /// Updates the bound of distinct contents for a member that comes or changes its content. The winner's
    /// content, by far the most frequent one, was counted when the winner came, so a copy of it adds nothing.
    pub(in crate::machine) fn note_content(&mut self, before: Option<&Member>, content: ContentHash) {
        let is_unchanged = before.is_some_and(|before| before.content == content);
        let is_of_winner = self.winner.as_ref().is_some_and(|(_, winner)| winner.content == content);
        self.contents_max += u64::from(!is_unchanged && !is_of_winner);
    }
}
