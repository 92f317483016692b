//! Quarantine: a group with more distinct contents than the limit gives no advice, until an operator has looked at it.
//!
//! Pages with one content count once, so copies never fill a quarantine. At rest a group is quarantined if and only if its members have
//! more distinct contents than `group_members_max`, and more than twice those that it had at the last repair: a function of the pages
//! alone, and of the repairs. Bulk grouping counts in the same way (`bulk::groups`).
//!
//! Nobody counts while members come. The row of a group has an upper bound of the number: the last count, and one for each content since
//! then that was not the winner's. If the bound is above the limit, the group owes a recomputation, which counts.
//!
//! Invariant: the bound is never below the number of distinct contents of the group's rows.

use doppel_model::{ContentHash, GroupId};

use super::Machine;
use crate::record::{Group, Member};
use crate::store::StoreError;

impl Machine<'_, '_> {
    /// The most distinct contents of a group without quarantine: the limit, or twice what an operator has looked at.
    pub(super) fn contents_allowed(&self, record: &Group) -> u64 {
        self.shards.settings.group_members_max.max(record.contents_at_repair.saturating_mul(2))
    }

    /// Quarantines a group, or releases it, by the number of distinct contents that a recomputation has counted. Each change of a
    /// member since then may have brought one or taken one away; when that leaves the decision open, the group is recomputed again.
    pub(super) fn count_contents(
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

    /// Puts a group into quarantine or takes it out: its members are told.
    fn set_quarantine(&mut self, group: GroupId, record: &mut Group, begins: bool) -> Result<(), StoreError> {
        record.quarantined = begins;
        self.announce(group, record, false);
        self.tell_quarantine(group, record.members, begins, None)
    }
}

impl Group {
    /// A member comes, or comes with another content. All contents of the members were counted when they came, so a copy of the
    /// present winner's content, by far the most frequent one, is no new content.
    pub(super) fn note_content(&mut self, before: Option<&Member>, content: ContentHash) {
        let is_unchanged = before.is_some_and(|before| before.content == content);
        let is_of_winner = self.winner.as_ref().is_some_and(|(_, winner)| winner.content == content);
        self.contents_max += u64::from(!is_unchanged && !is_of_winner);
    }
}
