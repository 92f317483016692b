//! Merging two groups. The group with the larger id stops changing, transfers its members to the other group
//! in bounded steps, and remains as a *forward* that redirects messages.
//!
//! Messages must not overtake each other. All messages of one membership therefore follow the path of its
//! first message, through forwards if necessary, and each forward keeps a *forwarding entry* for every
//! membership that still uses it. When a page learns the new id of its group, it sends a probe along the old
//! path. The reply proves that every earlier message has arrived. If the page sent nothing in the meantime,
//! it switches to the new id, and the forwarding entries are released.
//!
//! A forward without forwarding entries only answers questions about the old id, until retention deletes it.
//!
//! Invariants:
//! - Groups merge into smaller ids only, so forwards have no cycle (G1).
//! - If the pair that caused a merge no longer links the two groups, the survivor owes a recomputation.

use doppel_model::{GroupId, PageId};

use crate::machine::{Machine, Message, Transfer, TransferEnd};
use crate::rows::key;
use crate::rows::record::{
    Evidence, Forward, Group, GroupRecord, IncomingTransfer, LinkedPage, Member, decode, encode,
};
use crate::storage::store::StoreError;

/// Maximum number of merged groups whose members come in steps at the same time. A group beyond it causes a
/// recomputation once its members have come.
const INCOMING_MAX: usize = 16;

impl Machine<'_, '_> {
    /// Handles [`Message::Merge`]: turns `group` into a forward to `into`, and begins to transfer its
    /// members.
    pub(in crate::machine) fn on_merge(
        &mut self,
        group: GroupId,
        into: GroupId,
        evidence: Evidence,
    ) -> Result<(), StoreError> {
        if group == into {
            return Ok(());
        }
        match self.txn.group(group)? {
            None => {
                // The group has dissolved in the meantime, so the pair must be found again.
                self.repeat_pair_search(evidence);
            }
            Some(GroupRecord::Forward(forward)) => {
                let (small, large) = (into.min(forward.into), into.max(forward.into));
                if small != large {
                    self.send(large.shard(), Message::Merge { group: large, into: small, evidence });
                }
            }
            Some(GroupRecord::Active(_)) if into > group => {
                self.send(into.shard(), Message::Merge { group: into, into: group, evidence });
            }
            Some(GroupRecord::Active(record)) => {
                self.meta().counters.merges += 1;
                if record.quarantined {
                    self.report_quarantine(group, record.members, false, Some(into))?;
                }
                // If both pages of the pair are members, or neither is, the pair no longer links the two
                // groups. One page has changed groups while this message was under way.
                let links = self.is_still_linked(group, evidence.page)?
                    != self.is_still_linked(group, evidence.partner)?;
                let forward = Forward {
                    into,
                    dirty: record.dirty || !links,
                    search_again: record.announcement.is_some_and(|a| a.search_again),
                    evidence,
                    begun: false,
                    done: false,
                    forwarding_entries: 0,
                    ended: None,
                };
                self.txn.put_group(group, Some(GroupRecord::Forward(forward)))?;
                if !record.is_continuing() {
                    self.send(group.shard(), Message::Continue { group });
                }
            }
        }
        Ok(())
    }

    /// Transfers the next members of a merged group.
    pub(in crate::machine) fn transfer_members(
        &mut self,
        group: GroupId,
        mut forward: Forward,
    ) -> Result<(), StoreError> {
        if forward.done {
            return Ok(());
        }
        let step_rows = self.shards.settings.step_rows;
        let rows = self.txn.scan(&key::members(group), None, step_rows)?;
        let last = rows.len() < step_rows;
        let mut members = Vec::with_capacity(rows.len());
        for (key, bytes) in rows {
            if let Some(page) = key::last_page(&key) {
                members.push((page, decode::<Member>(&key, &bytes)?));
            }
            self.txn.delete(key);
        }
        let passing = memberships(&members);
        let done = last.then_some(TransferEnd {
            dirty: forward.dirty,
            search_again: forward.search_again,
            evidence: forward.evidence,
        });
        self.send_members(group, &mut forward, members, done);
        if !last {
            self.send(group.shard(), Message::Continue { group });
        }
        self.add_forwarding_entries(group, forward, &passing)
    }

    /// Sends some members of a merged group to the survivor. `done` is set if they are the last ones.
    fn send_members(
        &mut self,
        from: GroupId,
        forward: &mut Forward,
        members: Vec<(PageId, Member)>,
        done: Option<TransferEnd>,
    ) {
        let into = forward.into;
        let first = !std::mem::replace(&mut forward.begun, true);
        forward.done |= done.is_some();
        let transfer = Transfer { from, first, members, done };
        self.send(into.shard(), Message::TransferMembers { into, transfer });
    }

    /// Sends a page's row ahead of the others, if it was not transferred yet. Returns the page's membership.
    /// The caller must store the forward.
    pub(in crate::machine) fn send_ahead(
        &mut self,
        group: GroupId,
        forward: &mut Forward,
        page: PageId,
    ) -> Result<Option<(PageId, u32)>, StoreError> {
        let key = key::member(group, page);
        let Some(member) = self.txn.get::<Member>(&key)? else { return Ok(None) };
        self.txn.delete(key);
        let membership = (page, member.membership_number);
        self.send_members(group, forward, vec![(page, member)], None);
        Ok(Some(membership))
    }

    /// Handles [`Message::TransferMembers`]: adopts members of a merged group, or passes them on if `into`
    /// was merged too.
    pub(in crate::machine) fn on_transfer_members(
        &mut self,
        into: GroupId,
        transfer: Transfer,
    ) -> Result<(), StoreError> {
        let mut record = match self.txn.group(into)? {
            Some(GroupRecord::Forward(forward)) => {
                let group = into;
                let into = forward.into;
                self.add_forwarding_entries(group, forward, &memberships(&transfer.members))?;
                self.send(into.shard(), Message::TransferMembers { into, transfer });
                return Ok(());
            }
            Some(GroupRecord::Active(record)) => record,
            None => {
                // Only the page that found the pair can report it again.
                if let Some(done) = &transfer.done {
                    self.repeat_pair_search(done.evidence);
                }
                if transfer.members.is_empty() {
                    return Ok(());
                }
                if !self.shards.settings.rules.recomputation {
                    for (page, member) in transfer.members {
                        let membership_number = member.membership_number;
                        self.send_to_page(page, Message::Evict { page, membership_number, compare: true });
                    }
                    return Ok(());
                }
                // The survivor dissolved before the members came. The members are still linked to each other,
                // and all were compared. Comparing each of them again would dissolve a giant group because
                // one page has left.
                self.revive_group()
            }
        };
        let Transfer { from, first, members, done } = transfer;
        if first && done.is_none() {
            record.begin_transfer_from(from);
        }
        self.adopt_members(into, &mut record, members)?;
        if let Some(TransferEnd { dirty, search_again, evidence }) = done {
            let lost_none = first || record.has_lost_none_since(from);
            let links =
                self.is_still_linked(into, evidence.page)? && self.is_still_linked(into, evidence.partner)?;
            if dirty || !lost_none || !links {
                record.mark_dirty();
            }
            if search_again {
                self.announce(into, &mut record, true);
            }
        }
        self.put_active(into, record)
    }

    /// Asks the page that found a pair to search again, because the pair could not join two groups.
    fn repeat_pair_search(&mut self, evidence: Evidence) {
        let LinkedPage { page, content, .. } = evidence.page;
        self.send_to_page(page, Message::SearchAgain { page, content });
    }

    /// Creates a group under the id of a dissolved group. The group owes a recomputation. Its counters start
    /// above all counters of the dissolved group, so a late recomputation of the dissolved group does not
    /// match.
    fn revive_group(&mut self) -> Group {
        let meta = self.meta();
        meta.groups_minted += 1;
        let number = meta.groups_minted << 32;
        Group { changes: number, losses: number, cover_changes: number, dirty: true, ..Group::new() }
    }

    /// Handles [`Message::ResolveForward`]: answers a probe if the group is in use, and otherwise passes it
    /// on.
    pub(in crate::machine) fn on_resolve_forward(
        &mut self,
        group: GroupId,
        page: PageId,
        membership_number: u32,
    ) -> Result<(), StoreError> {
        match self.txn.group(group)? {
            None => {}
            Some(GroupRecord::Forward(mut forward)) => {
                let into = forward.into;
                // Messages that take the shorter path must find the page's row at the survivor.
                if let Some(membership) = self.send_ahead(group, &mut forward, page)? {
                    self.add_forwarding_entries(group, forward, &[membership])?;
                }
                self.send(into.shard(), Message::ResolveForward { group: into, page, membership_number });
            }
            Some(GroupRecord::Active(_)) => {
                self.send_to_page(page, Message::ForwardResolved { page, membership_number, group });
            }
        }
        Ok(())
    }

    /// Handles [`Message::ReleaseForward`]: removes the forwarding entry of a membership that now uses a
    /// shorter path.
    pub(in crate::machine) fn on_release_forward(
        &mut self,
        group: GroupId,
        page: PageId,
        membership_number: u32,
        until: GroupId,
    ) -> Result<(), StoreError> {
        if group != until
            && let Some(GroupRecord::Forward(forward)) = self.txn.group(group)?
        {
            let into = forward.into;
            self.remove_forwarding_entry(group, forward, page, membership_number)?;
            self.send(into.shard(), Message::ReleaseForward { group: into, page, membership_number, until });
        }
        Ok(())
    }

    /// Deletes the row of a page that leaves before its transfer. The survivor then owes a recomputation,
    /// because the group has lost a member that the survivor never saw.
    pub(in crate::machine) fn forget_unforwarded(
        &mut self,
        group: GroupId,
        forward: &mut Forward,
        page: PageId,
        membership_number: u32,
    ) -> Result<(), StoreError> {
        let key = key::member(group, page);
        if self.txn.get::<Member>(&key)?.is_some_and(|m| m.membership_number <= membership_number) {
            self.txn.delete(key);
            forward.dirty = true;
        }
        Ok(())
    }

    /// Adds forwarding entries for memberships whose messages pass through a merged group from now on. Stores
    /// the forward.
    pub(in crate::machine) fn add_forwarding_entries(
        &mut self,
        group: GroupId,
        mut forward: Forward,
        memberships: &[(PageId, u32)],
    ) -> Result<(), StoreError> {
        for (page, membership_number) in memberships {
            let key = key::forwarding_entry(group, *page);
            match self.txn.get::<u32>(&key)? {
                Some(known) if known >= *membership_number => continue,
                Some(_) => {}
                None => forward.forwarding_entries += 1,
            }
            self.txn.put(key, encode(membership_number)?);
        }
        self.txn.put_group(group, Some(GroupRecord::Forward(forward)))
    }

    /// Removes the page's forwarding entry if it is for this membership or an earlier one. Stores the
    /// forward.
    pub(in crate::machine) fn remove_forwarding_entry(
        &mut self,
        group: GroupId,
        mut forward: Forward,
        page: PageId,
        membership_number: u32,
    ) -> Result<(), StoreError> {
        let key = key::forwarding_entry(group, page);
        if self.txn.get::<u32>(&key)?.is_some_and(|known| known <= membership_number) {
            self.txn.delete(key);
            forward.forwarding_entries -= 1;
        }
        self.txn.put_group(group, Some(GroupRecord::Forward(forward)))
    }
}

impl Group {
    /// Notes that the members of a merged group have begun to come.
    fn begin_transfer_from(&mut self, from: GroupId) {
        self.incoming.retain(|incoming| incoming.from != from);
        if self.incoming.len() < INCOMING_MAX {
            self.incoming.push(IncomingTransfer { from, losses: self.losses });
        }
    }

    /// Ends the transfer from a merged group. Returns whether the group has lost no member since the first
    /// piece came, as such a member may have linked the others. Returns `false` if the first piece came to
    /// another group, which was then merged into this one: then nothing is known about losses.
    fn has_lost_none_since(&mut self, from: GroupId) -> bool {
        let at = self.incoming.iter().position(|incoming| incoming.from == from);
        at.is_some_and(|at| self.incoming.swap_remove(at).losses == self.losses)
    }
}

fn memberships(members: &[(PageId, Member)]) -> Vec<(PageId, u32)> {
    members.iter().map(|(page, member)| (*page, member.membership_number)).collect()
}
