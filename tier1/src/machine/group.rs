//! A group at its owner: members, winner, dissolution, and the results of recomputations.
//!
//! The owner of a group is the shard that the group's id names. Member pages live in other shards, and reach
//! the group by messages. If the group was merged meanwhile, its forward passes these messages on.
//!
//! The modules below add what the owner does in several steps: it elects a winner (`election`), announces the
//! winner to the members (`announcement`), merges groups (`merge`), and stores which members are kept
//! (`cover`). `counts` and `quarantine` maintain the numbers in the group's row.

mod announcement;
mod counts;
mod cover;
mod election;
mod merge;
mod quarantine;

use doppel_model::{ContentHash, GroupId, PageId};

use super::{Effect, EvictedMember, Machine, Message, RecomputationStep};
use crate::rows::key;
use crate::rows::record::{Cover, Group, GroupRecord, LinkedPage, Member, decode, encode};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Handles [`Message::Enroll`]: admits a new or changed member. `via` is the partner that links the page
    /// to the group.
    pub(super) fn on_enroll(
        &mut self,
        group: GroupId,
        page: PageId,
        member: Member,
        via: Option<(PageId, ContentHash)>,
        uncompared: bool,
    ) -> Result<(), StoreError> {
        let mut record = match self.txn.group(group)? {
            None => {
                let membership_number = member.membership_number;
                self.send_to_page(page, Message::EnrollRefused { page, membership_number });
                return Ok(());
            }
            Some(GroupRecord::Forward(mut forward)) => {
                let membership = (page, member.membership_number);
                // The survivor must see a change of an existing member, not a new member. So send the page's
                // old row first.
                self.send_ahead(group, &mut forward, page)?;
                let into = forward.into;
                self.add_forwarding_entries(group, forward, &[membership])?;
                self.send(into.shard(), Message::Enroll { group: into, page, member, via, uncompared });
                return Ok(());
            }
            Some(GroupRecord::Active(record)) => record,
        };
        // The partner has left in the meantime, so the group must be recomputed. Tier 2 may have left out
        // other partners of the newcomer because it relied on this one, so the newcomer must search again.
        let mut has_partner_left = false;
        if let Some((partner, content)) = via
            && !self.is_member(group, partner, content)?
        {
            record.mark_dirty();
            has_partner_left = true;
        }
        // The group's founder comes after other members. Pages that the founder links may have come and gone
        // already.
        if via.is_none() && record.members > 0 && self.txn.get::<Member>(&key::member(group, page))?.is_none()
        {
            record.mark_dirty();
        }
        let membership_number = member.membership_number;
        let winner_before = record.winner.clone();
        if !self.admit(group, &mut record, page, member)? {
            return Ok(());
        }
        if record.has_other_winner(winner_before.as_ref()) || uncompared {
            self.announce(group, &mut record, uncompared);
        } else {
            self.assign(group, &record, page, membership_number, false);
        }
        if has_partner_left {
            self.assign(group, &record, page, membership_number, true);
        }
        self.put_active(group, record)
    }

    /// Stores a member's row and updates the group. Returns `false` if a row with a later membership exists.
    fn admit(
        &mut self,
        group: GroupId,
        record: &mut Group,
        page: PageId,
        member: Member,
    ) -> Result<bool, StoreError> {
        let key = key::member(group, page);
        let before: Option<Member> = self.txn.get(&key)?;
        let member = if before.is_some() { member.with_cover_of(before.as_ref()) } else { member };
        match &before {
            Some(old) if old.membership_number > member.membership_number => return Ok(false),
            Some(old) => {
                if old.content != member.content {
                    record.mark_dirty();
                }
                record.uncount(old);
            }
            None => {}
        }
        record.note_cover(before.as_ref(), Some(&member));
        record.note_content(before.as_ref(), member.content);
        record.count(&member);
        record.changes += 1;
        let is_winner = record.winner.as_ref().is_some_and(|(winner, _)| *winner == page);
        let was_better = before.as_ref().is_some_and(|old| self.beats(old, &member));
        self.txn.put(key, encode(&member)?);
        if is_winner && was_better {
            self.begin_election(group, record, Some((page, member)))?;
        } else if is_winner || record.winner.as_ref().is_none_or(|(_, winner)| self.beats(&member, winner)) {
            record.winner = Some((page, member));
        }
        record.note_announced();
        if !record.quarantined && record.contents_max.min(record.members) > self.contents_allowed(record) {
            // `contents_max` is only an upper bound. A recomputation counts the contents.
            record.dirty = true;
        }
        Ok(true)
    }

    /// Handles [`Message::Leave`]: removes a member. `uncompared` means that the search for its content was
    /// never completed.
    pub(super) fn on_leave(
        &mut self,
        group: GroupId,
        page: PageId,
        membership_number: u32,
        uncompared: bool,
    ) -> Result<(), StoreError> {
        let mut record = match self.txn.group(group)? {
            None => return Ok(()),
            Some(GroupRecord::Forward(mut forward)) => {
                self.forget_unforwarded(group, &mut forward, page, membership_number)?;
                let into = forward.into;
                self.remove_forwarding_entry(group, forward, page, membership_number)?;
                let group = into;
                self.send(group.shard(), Message::Leave { group, page, membership_number, uncompared });
                return Ok(());
            }
            Some(GroupRecord::Active(record)) => record,
        };
        if !self.remove_member(group, &mut record, page, membership_number)? && !uncompared {
            return Ok(());
        }
        record.dirty |= record.members > 1;
        self.after_losses(group, record, uncompared)
    }

    /// Returns whether enough members differ from the winner to recompute the group. Members of a chain may
    /// differ permanently, so their number must have doubled since they last caused a recomputation.
    fn has_low_cohesion(&self, record: &Group) -> bool {
        let share = u64::from(self.shards.settings.low_cohesion_percent);
        share > 0
            && record.dissimilar.saturating_mul(100) >= record.members.saturating_mul(share)
            && record.dissimilar >= record.dissimilar_at_recheck.saturating_mul(2).max(1)
    }

    /// Deletes a member's row under this membership or an earlier one. Returns `false` if there is no such
    /// row.
    fn remove_member(
        &mut self,
        group: GroupId,
        record: &mut Group,
        page: PageId,
        membership_number: u32,
    ) -> Result<bool, StoreError> {
        let key = key::member(group, page);
        let Some(member) = self.txn.get::<Member>(&key)?.filter(|m| m.membership_number <= membership_number)
        else {
            return Ok(false);
        };
        self.txn.delete(key);
        record.note_cover(Some(&member), None);
        record.uncount(&member);
        record.changes += 1;
        record.losses += 1;
        Ok(true)
    }

    /// After members were removed, elects and announces a winner if needed, or dissolves the group.
    fn after_losses(
        &mut self,
        group: GroupId,
        mut record: Group,
        search_again: bool,
    ) -> Result<(), StoreError> {
        if record.quarantined && (record.members == 0 || record.is_alone()) {
            self.report_quarantine(group, record.members, false, None)?;
        }
        if record.members == 0 {
            return self.txn.put_group(group, None);
        }
        if record.is_alone() {
            let search_again =
                search_again || record.dirty || record.announcement.is_some_and(|a| a.search_again);
            return self.dissolve(group, search_again);
        }
        let winner_before = record.winner.clone();
        let has_winner_left = match &record.winner {
            Some((winner, _)) => !self.txn.has(&key::member(group, *winner))?,
            None => true,
        };
        if has_winner_left {
            self.begin_election(group, &mut record, None)?;
        }
        if record.has_other_winner(winner_before.as_ref()) || search_again {
            self.announce(group, &mut record, search_again);
        }
        self.put_active(group, record)
    }

    /// Dissolves the group and evicts its last member.
    fn dissolve(&mut self, group: GroupId, compare: bool) -> Result<(), StoreError> {
        for (key, bytes) in self.txn.scan(&key::members(group), None, self.shards.settings.step_rows)? {
            let member: Member = decode(&key, &bytes)?;
            if let Some(page) = key::last_page(&key) {
                let membership_number = member.membership_number;
                self.send_to_page(page, Message::Evict { page, membership_number, compare });
            }
            self.txn.delete(key);
        }
        self.txn.put_group(group, None)
    }

    /// Applies one step of a recomputation: evicts the members that no chain of pairs links to the winner.
    pub(super) fn on_recomputed(&mut self, step: RecomputationStep) -> Result<(), StoreError> {
        let RecomputationStep { group, changes, losses, evicted, contents, last, repair, audit } = step;
        self.current_shard = group.shard();
        let Some(GroupRecord::Active(mut record)) = self.txn.group(group)? else { return Ok(()) };
        if let Some(entry) = audit {
            self.audit(&entry)?;
        }
        let changes_since = record.changes.abs_diff(changes);
        let joined_since = changes_since > 0;
        let lost_since = record.losses != losses;
        let mut has_evicted = false;
        for EvictedMember { page, membership_number, content } in evicted.iter().copied() {
            if self.is_member(group, page, content)?
                && self.remove_member(group, &mut record, page, membership_number)?
            {
                self.meta().counters.evictions += 1;
                self.send_to_page(page, Message::Evict { page, membership_number, compare: true });
                has_evicted = true;
            }
        }
        record.dirty = !last || lost_since || (joined_since && !evicted.is_empty());
        if !last && (joined_since || lost_since) {
            // Later steps expect exactly the removals that this step names. A named member that has changed
            // is not removed, and its change would look like the missing removal. Raise both counters, so
            // that later steps see the difference.
            record.changes += 1;
            record.losses += 1;
        }
        if last && repair {
            record.contents_at_repair = contents;
        }
        if last {
            self.count_contents(group, &mut record, contents, changes_since)?;
        }
        self.after_losses(group, record, has_evicted && joined_since)
    }

    /// Handles [`Message::Dissimilar`]: stores whether a member differs from the winner.
    pub(super) fn on_dissimilar(
        &mut self,
        group: GroupId,
        page: PageId,
        membership_number: u32,
        dissimilar: bool,
    ) -> Result<(), StoreError> {
        let key = key::member(group, page);
        let member = self.txn.get::<Member>(&key)?.filter(|m| m.membership_number == membership_number);
        match (self.txn.group(group)?, member) {
            (None, _) | (Some(GroupRecord::Active(_)), None) => Ok(()),
            (Some(GroupRecord::Forward(forward)), None) => {
                let group = forward.into;
                self.send(group.shard(), Message::Dissimilar { group, page, membership_number, dissimilar });
                Ok(())
            }
            // The row is not transferred yet. Store the report in the row, so that the transfer carries it.
            (Some(GroupRecord::Forward(_)), Some(member)) => {
                self.txn.put(key, encode(&Member { dissimilar, cover: Cover::Unsent, ..member })?);
                Ok(())
            }
            (Some(GroupRecord::Active(mut record)), Some(member)) => {
                record.uncount(&member);
                let after = Member { dissimilar, cover: Cover::Unsent, ..member.clone() };
                record.note_cover(Some(&member), Some(&after));
                let member = after;
                record.count(&member);
                self.txn.put(key, encode(&member)?);
                if self.has_low_cohesion(&record) {
                    record.dissimilar_at_recheck = record.dissimilar;
                    record.mark_dirty();
                    self.meta().counters.rechecks += 1;
                }
                self.put_active(group, record)
            }
        }
    }

    /// Returns whether the group has a row of the page with this content.
    pub(super) fn is_member(
        &self,
        group: GroupId,
        page: PageId,
        content: ContentHash,
    ) -> Result<bool, StoreError> {
        Ok(self.txn.get::<Member>(&key::member(group, page))?.is_some_and(|m| m.content == content))
    }

    /// Returns whether the page is still a member as it was when the pair was found, be it through a merged
    /// group.
    pub(super) fn is_still_linked(&self, group: GroupId, linked: LinkedPage) -> Result<bool, StoreError> {
        let LinkedPage { page, membership_number, content } = linked;
        let member = self.txn.get::<Member>(&key::member(group, page))?;
        Ok(member.is_some_and(|m| m.membership_number == membership_number && m.content == content))
    }

    /// Stores the rows of members that came from a merged group.
    pub(super) fn adopt_members(
        &mut self,
        group: GroupId,
        record: &mut Group,
        members: Vec<(PageId, Member)>,
    ) -> Result<(), StoreError> {
        let winner_before = record.winner.clone();
        let mut admitted = Vec::new();
        for (page, member) in members {
            let membership_number = member.membership_number;
            if self.admit(group, record, page, member)? {
                admitted.push((page, membership_number));
            } else {
                // The page took a shorter path under a later membership. Its earlier membership may have
                // linked other members.
                record.mark_dirty();
            }
        }
        if record.has_other_winner(winner_before.as_ref()) {
            self.announce(group, record, false);
        } else {
            for (page, membership_number) in admitted {
                self.assign(group, record, page, membership_number, false);
            }
        }
        Ok(())
    }

    /// Stores a group in use, and reports the work that it owes.
    pub(super) fn put_active(&mut self, group: GroupId, mut record: Group) -> Result<(), StoreError> {
        record.dirty &= self.shards.settings.rules.recomputation;
        record.uncovered &= record.dissimilar > 0;
        record.contents_max = record.contents_max.min(record.members);
        if record.owes_recomputation() {
            self.effects.push(Effect::Dirty(group));
        }
        if record.owes_cover() {
            self.effects.push(Effect::Uncovered(group));
        }
        self.txn.put_group(group, Some(GroupRecord::Active(record)))
    }
}
