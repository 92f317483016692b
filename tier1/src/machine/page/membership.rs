//! A membership on the side of the member page.
//!
//! The page enrolls in a group, leaves it, learns its winner, and stores the verdict on the winner. The owner
//! of the group may be in another shard, so all of this travels by messages. Every message names its
//! membership number, and the page ignores messages about a membership that has ended.
//!
//! Invariant: all messages of a membership go to the group id in `enrolled_at`. After a merge that id is a
//! forward. The page switches to the new id only when a probe has shown that no earlier message is still
//! under way.

use doppel_model::{ContentHash, GroupId, PageId};

use crate::machine::{Machine, Message};
use crate::rows::record::{
    ContentComparison, ContentState, Cover, ForwardProbe, Member, Membership, PageRecord, SearchState, State,
    Winner,
};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Ends a membership: tells the group's owner, and increments the membership number.
    pub(in crate::machine) fn leave(
        &mut self,
        page: PageId,
        membership_number: &mut u32,
        membership: &Membership,
    ) {
        let Membership { enrolled_at: group, compared, .. } = *membership;
        self.send(
            group.shard(),
            Message::Leave { group, page, membership_number: *membership_number, uncompared: !compared },
        );
        *membership_number += 1;
    }

    /// Sends the group's owner what it needs to know about the page.
    pub(in crate::machine) fn enroll(
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
            cover: Cover::Unsent,
            cover_number: membership.cover_number,
        };
        self.send(group.shard(), Message::Enroll { group, page, member, via, uncompared });
    }

    /// Sends a probe along the path of the membership if the group has a new id. The reply tells whether the
    /// page may switch to the new id.
    fn resolve_forward(&mut self, page: PageId, membership_number: u32, membership: &mut Membership) {
        if membership.wants_resolution() {
            membership.forward_probe = ForwardProbe::InFlight;
            let group = membership.enrolled_at;
            self.send(group.shard(), Message::ResolveForward { group, page, membership_number });
        }
    }

    /// Handles [`Message::ForwardResolved`]: all messages of the membership up to the probe have arrived at
    /// `group`.
    pub(in crate::machine) fn on_forward_resolved(
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
        let probe = std::mem::replace(&mut membership.forward_probe, ForwardProbe::Idle);
        if probe == ForwardProbe::InFlight && old != group {
            membership.enrolled_at = group;
            self.send(
                old.shard(),
                Message::ReleaseForward { group: old, page, membership_number, until: group },
            );
        }
        // The page has sent a message after the probe, or the group has merged again.
        self.resolve_forward(page, membership_number, membership);
        self.put(page, record)
    }

    /// Sends the page's changed data to the owner of its group. `uncompared` means that the search for its
    /// previous content was never completed.
    pub(in crate::machine) fn refresh_member(
        &mut self,
        page: PageId,
        record: &mut PageRecord,
        uncompared: bool,
    ) {
        self.enroll(page, record, None, uncompared);
    }

    /// Handles [`Message::Assign`]: stores the winner that the group's owner announces.
    pub(in crate::machine) fn on_assign(
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
        // Groups merge into smaller ids only, so a message from a larger id is out of date.
        if group > membership.group {
            return self.give_back(page, record);
        }
        let is_unchanged = membership.group == group && membership.winner.as_ref() == Some(&winner);
        if is_unchanged && !membership.wants_resolution() && !search_again && !state.owes_verdict(page) {
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

    /// Handles [`Message::EnrollRefused`]: the group had dissolved before the page arrived.
    pub(in crate::machine) fn on_enroll_refused(
        &mut self,
        page: PageId,
        membership_number: u32,
    ) -> Result<(), StoreError> {
        self.on_evict(page, membership_number, true)
    }

    /// Handles [`Message::Evict`]: the group's owner has removed the page. `compare` means that the page may
    /// have partners elsewhere.
    pub(in crate::machine) fn on_evict(
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
        // An update may be under way to the owner. This message removes the row that the update would leave
        // behind.
        self.send(
            enrolled_at.shard(),
            Message::Leave { group: enrolled_at, page, membership_number, uncompared: !compared },
        );
        record.membership_number += 1;
        if state.search == SearchState::Pending {
            // Pages that found this content relied on the group to link them. The search under way may be
            // older than these pages.
            if state.content == content {
                self.owe_search(page, &mut record);
            }
        } else if compare && state.tokens > 0 {
            // Only a content with tokens has partners to search for.
            self.search_as_new(page, &mut record);
        } else {
            if record.inbound_redirects > 0 {
                self.mint(page, &mut record)?;
            }
            // The page stands alone, unless another page is joining it through a pair that only this page's
            // search found. Search again to find that pair.
            self.owe_search(page, &mut record);
        }
        self.put(page, record)
    }

    /// Stores the comparison with the winner, which was made outside the machine.
    pub(in crate::machine) fn on_verified(
        &mut self,
        page: PageId,
        content: ContentHash,
        with: ContentComparison,
    ) -> Result<(), StoreError> {
        self.current_shard = self.shards.owner(page);
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
