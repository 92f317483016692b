//! The cover of a group (G9): in the winner order a page is kept unless an earlier kept page is F with it. The winner is kept
//! first, so what is like the winner needs no more than the verdict. Of the others it is found out outside the machine
//! which are kept, and each is told.
//!
//! Invariants:
//! - a member's row says what its page was last told of its present content and membership, or that it was told nothing;
//! - what came, changed or went among the members that differ from the winner makes the group owe a new cover.

use doppel_model::{ContentHash, GroupId, PageId};

use super::{Covered, CoveredMember, Machine, Message};
use crate::key;
use crate::record::{Cover, Group, GroupRecord, Kept, Member, State, encode};
use crate::store::StoreError;

impl Machine<'_, '_> {
    /// The owner takes in what is new in a group's cover.
    pub(super) fn covered(&mut self, covered: Covered) -> Result<(), StoreError> {
        let Covered { group, changes, members, last } = covered;
        self.here = group.shard();
        let Some(GroupRecord::Active(mut record)) = self.txn.group(group)? else { return Ok(()) };
        for CoveredMember { page, membership_number, content, by } in members {
            let key = key::member(group, page);
            let Some(member) = self.txn.get::<Member>(&key)? else { continue };
            if (member.membership_number, member.content) != (membership_number, content)
                || !member.dissimilar
            {
                continue;
            }
            let cover = by.as_ref().map_or(Cover::Kept, |kept| Cover::By(kept.page, kept.with.content));
            record.uncount(&member);
            let member = Member { cover, ..member };
            record.count(&member);
            self.txn.put(key, encode(&member)?);
            self.send_to_page(page, Message::Cover { page, membership_number, group, content, by });
        }
        record.uncovered = !last || record.cover_changes != changes;
        self.put_active(group, record)
    }

    /// A page is told of its cover.
    pub(super) fn cover_told(
        &mut self,
        (page, membership_number): (PageId, u32),
        group: GroupId,
        content: ContentHash,
        by: Option<Kept>,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let is_current = record.membership_number == membership_number;
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let membership = state.membership.as_mut().filter(|membership| {
            // From a larger id it is an old message that was overtaken, as with the winner.
            is_current && group <= membership.group && membership.content == content && membership.dissimilar
        });
        match membership {
            Some(membership) if membership.covered_by != by => membership.covered_by = by,
            _ => return self.give_back(page, record),
        }
        self.put(page, record)
    }
}

impl Group {
    /// A member's row changes, comes or goes.
    pub(super) fn note_cover(&mut self, before: Option<&Member>, after: Option<&Member>) {
        let share = |member: &Member| (member.content, member.rank.clone());
        let of = |member: Option<&Member>| member.filter(|member| member.dissimilar).map(share);
        if of(before) != of(after) {
            self.mark_uncovered();
        }
    }
}

impl Member {
    /// With what its page was told before, if that is still about it.
    pub(super) fn told_as(self, before: Option<&Self>) -> Self {
        let is_same = |before: &&Self| {
            before.dissimilar
                && self.dissimilar
                && before.membership_number == self.membership_number
                && before.content == self.content
        };
        let cover = before.filter(is_same).map_or(Cover::Untold, |before| before.cover);
        Self { cover, ..self }
    }
}
