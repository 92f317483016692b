//! A page's side of its membership.

use doppel_model::{ContentHash, GroupId, PageId};

use super::{Machine, Message};
use crate::record::{
    ContentState, Cover, Measured, Member, Membership, PageRecord, Resolving, SearchState, State, Winner,
};
use crate::store::StoreError;

impl Machine<'_, '_> {
    /// Ends a membership of a group.
    pub(super) fn leave(&mut self, page: PageId, membership_number: &mut u32, membership: &Membership) {
        let Membership { enrolled_at: group, compared, .. } = *membership;
        self.send(
            group.shard(),
            Message::Leave { group, page, membership_number: *membership_number, uncompared: !compared },
        );
        *membership_number += 1;
    }

    /// Tells the group's owner what it needs to know of the page.
    pub(super) fn enroll(
        &mut self,
        page: PageId,
        record: &mut PageRecord,
        via: Option<(PageId, ContentHash)>,
        uncompared: bool,
    ) {
        let State::Content(state) = &mut record.state else { return };
        let Some(membership) = &mut state.membership else { return };
        membership.message_sent();
        let group = membership.enrolled_at;
        let member = Member {
            membership_number: record.membership_number,
            content: membership.content,
            rank: record.rank.clone(),
            has_inbound_redirects: record.inbound_redirects > 0,
            dissimilar: membership.dissimilar,
            cover: Cover::Untold,
            cover_number: membership.cover_number,
        };
        self.send(group.shard(), Message::Enroll { group, page, member, via, uncompared });
    }

    /// The group goes by another id now: asks whether the membership can go on under it.
    fn resolve_forward(&mut self, page: PageId, membership_number: u32, membership: &mut Membership) {
        if membership.wants_resolution() {
            membership.resolving = Resolving::Asked;
            let group = membership.enrolled_at;
            self.send(group.shard(), Message::ResolveForward { group, page, membership_number });
        }
    }

    /// All messages of the membership up to the question have arrived at this group.
    pub(super) fn forward_resolved(
        &mut self,
        page: PageId,
        membership_number: u32,
        group: GroupId,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let is_current = record.membership_number == membership_number;
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let Some(membership) = state.membership.as_mut().filter(|_| is_current) else {
            return self.give_back(page, record);
        };
        let old = membership.enrolled_at;
        let asked = std::mem::replace(&mut membership.resolving, Resolving::No);
        if asked == Resolving::Asked && old != group {
            membership.enrolled_at = group;
            self.send(
                old.shard(),
                Message::ReleaseForward { group: old, page, membership_number, until: group },
            );
        }
        // A message was sent since, or the group has merged again.
        self.resolve_forward(page, membership_number, membership);
        self.put(page, record)
    }

    /// The page changed in what its group's owner knows of it. `uncompared`: its last content was never
    /// compared to the end.
    pub(super) fn refresh_member(&mut self, page: PageId, record: &mut PageRecord, uncompared: bool) {
        self.enroll(page, record, None, uncompared);
    }

    /// The owner tells the group's winner.
    pub(super) fn assigned(
        &mut self,
        page: PageId,
        membership_number: u32,
        group: GroupId,
        winner: Winner,
        search_again: bool,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let is_current = record.membership_number == membership_number;
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        let Some(membership) = state.membership.as_mut().filter(|_| is_current) else {
            return self.give_back(page, record);
        };
        // Groups merge into smaller ids only, so a larger one is an old message that was overtaken.
        if group > membership.group {
            return self.give_back(page, record);
        }
        let known = membership.group == group && membership.winner.as_ref() == Some(&winner);
        if known && !membership.wants_resolution() && !search_again && !state.owes_verdict(page) {
            return self.give_back(page, record);
        }
        let Some(membership) = &mut state.membership else { return self.give_back(page, record) };
        membership.group = group;
        if membership.winner.as_ref().is_some_and(|w| w.content != winner.content || w.page != winner.page) {
            membership.verdict = None;
        }
        membership.winner = Some(winner);
        if search_again && state.search != SearchState::Pending {
            self.owe_search(page, &mut record);
        }
        if let State::Content(ContentState { membership: Some(membership), .. }) = &mut record.state {
            self.resolve_forward(page, membership_number, membership);
        }
        self.put(page, record)
    }

    /// The group has dissolved before the page arrived.
    pub(super) fn refused(&mut self, page: PageId, membership_number: u32) -> Result<(), StoreError> {
        self.evicted(page, membership_number, true)
    }

    /// The owner has put the page out. `compare`: it may have partners elsewhere.
    pub(super) fn evicted(
        &mut self,
        page: PageId,
        membership_number: u32,
        compare: bool,
    ) -> Result<(), StoreError> {
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let is_current = record.membership_number == membership_number;
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        if !is_current {
            return self.give_back(page, record);
        }
        let Some(Membership { enrolled_at, compared, content, .. }) = state.membership.take() else {
            return self.give_back(page, record);
        };
        // A refresh may be on its way to the owner; this ends what it would leave behind.
        self.send(
            enrolled_at.shard(),
            Message::Leave { group: enrolled_at, page, membership_number, uncompared: !compared },
        );
        record.membership_number += 1;
        if state.search == SearchState::Pending {
            // Whoever has found this content relied on the group; the search under way may be older than they are.
            if state.content == content {
                self.owe_search(page, &mut record);
            }
        } else if compare && state.tokens > 0 {
            // A content without tokens has no partners to search for.
            self.search_as_new(page, &mut record);
        } else {
            if record.inbound_redirects > 0 {
                self.mint(page, &mut record)?;
            }
            // It stands alone, unless somebody was on the way to it through a pair that only it knew of.
            self.owe_search(page, &mut record);
        }
        self.put(page, record)
    }

    /// The comparison with the winner, made outside.
    pub(super) fn verified(
        &mut self,
        page: PageId,
        content: ContentHash,
        with: Measured,
    ) -> Result<(), StoreError> {
        self.here = self.shards.owner(page);
        let Some(mut record) = self.take(page)? else { return Ok(()) };
        let State::Content(state) = &mut record.state else { return self.give_back(page, record) };
        if state.content != content || !state.owes_verdict(page) {
            return self.give_back(page, record);
        }
        let Some(membership) = &mut state.membership else { return self.give_back(page, record) };
        if membership.winner.as_ref().is_none_or(|w| w.content != with.content) {
            return self.give_back(page, record);
        }
        membership.verdict = Some(with);
        let counters = &mut self.meta().counters;
        counters.verified += 1;
        counters.rejected += u64::from(!with.similar);
        self.put(page, record)
    }
}
