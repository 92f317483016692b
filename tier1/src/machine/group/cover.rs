//! The cover of a group (G9). In the winner order, a page is kept unless F holds between it and an earlier
//! kept page.
//!
//! The winner comes first, so it is kept. For a member that is similar to the winner, the verdict says
//! enough. For the other members, code outside the machine finds which of them are kept. This module stores
//! the result and tells each member.
//!
//! Invariants:
//! - A member's row says which cover its page was last told for its present content and membership, or that
//!   the page was told nothing. Cover messages are numbered, and the number moves along with the row.
//! - If a member that differs from the winner comes, changes or goes, the group owes a new cover.

use doppel_model::{ContentHash, PageId};

use crate::machine::{CoverUpdate, Machine, MemberCover, Message};
use crate::rows::key;
use crate::rows::record::{Cover, CoveringPage, Group, GroupRecord, Member, State, encode};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Stores the changes in a group's cover, and tells the members.
    pub(in crate::machine) fn on_covered(&mut self, update: CoverUpdate) -> Result<(), StoreError> {
        let CoverUpdate { group, changes, members, last } = update;
        self.current_shard = group.shard();
        let Some(GroupRecord::Active(mut record)) = self.txn.group(group)? else { return Ok(()) };
        for MemberCover { page, membership_number, content, by } in members {
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

    /// Stores the cover that the group's owner has sent to a page.
    pub(in crate::machine) fn on_cover(
        &mut self,
        (page, membership_number): (PageId, u32),
        number: u32,
        content: ContentHash,
        by: Option<CoveringPage>,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let is_current = record.membership_number == membership_number;
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let membership = state.membership.as_mut().filter(|membership| {
            // Through another group, an older message may arrive after a newer one.
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
    /// Marks the cover as owed if the change of a member's row affects it. `None` stands for a missing row.
    pub(in crate::machine) fn note_cover(&mut self, before: Option<&Member>, after: Option<&Member>) {
        let share = |member: &Member| (member.content, member.rank.clone());
        let of = |member: Option<&Member>| member.filter(|member| member.dissimilar).map(share);
        if of(before) != of(after) {
            self.mark_uncovered();
        }
    }
}

impl Member {
    /// Returns the row with the cover from the row `before`, if that cover still applies: same membership,
    /// same content, and dissimilar then and now. The cover number never decreases within a membership.
    pub(in crate::machine) fn with_cover_of(self, before: Option<&Self>) -> Self {
        let is_same = |before: &&Self| {
            before.dissimilar
                && self.dissimilar
                && before.membership_number == self.membership_number
                && before.content == self.content
        };
        let cover = before.filter(is_same).map_or(Cover::Unsent, |before| before.cover);
        let previous = before.filter(|before| before.membership_number == self.membership_number);
        let cover_number = previous.map_or(0, |before| before.cover_number).max(self.cover_number);
        Self { cover, cover_number, ..self }
    }
}
