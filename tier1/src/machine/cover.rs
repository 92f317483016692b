//! The cover of a group (G9): in the winner order a page is kept unless an earlier kept page is F with it. The winner is kept
//! first, so what is like the winner needs no more than the verdict. Of the others it is found out outside the machine
//! which are kept, and each is told.
//!
//! Invariants:
//! - a member's row says what its page was last told of its present content and membership, or that it was told nothing;
//!   what is told is numbered, and the number goes along with the row;
//! - what came, changed or went among the members that differ from the winner makes the group owe a new cover.

use doppel_model::{ContentHash, PageId};

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
            let number = member.cover_number + 1;
            let member = Member { cover, cover_number: number, ..member };
            record.count(&member);
            self.txn.put(key, encode(&member)?);
            self.send_to_page(page, Message::Cover { page, membership_number, number, content, by });
        }
        record.uncovered = !last || record.cover_changes != changes;
        self.put_active(group, record)
    }

    /// A page is told of its cover.
    pub(super) fn cover_told(
        &mut self,
        (page, membership_number): (PageId, u32),
        number: u32,
        content: ContentHash,
        by: Option<Kept>,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let is_current = record.membership_number == membership_number;
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let membership = state.membership.as_mut().filter(|membership| {
            // What was told before may come after, by way of another group.
            is_current
                && number > membership.cover_number
                && membership.content == content
                && membership.dissimilar
        });
        let Some(membership) = membership else { return self.give_back(page, record) };
        (membership.covered_by, membership.cover_number) = (by, number);
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
        let told = before.filter(|before| before.membership_number == self.membership_number);
        let cover_number = told.map_or(0, |before| before.cover_number).max(self.cover_number);
        Self { cover, cover_number, ..self }
    }
}
