//! Two groups become one: the larger id freezes, transfers its members in steps and stays as a
//! forward.
//!
//! The messages of a membership go the way its first one went, also by way of forwards, so that none overtakes
//! another. A forward keeps a *forwarding entry* for every membership whose messages come by. When a page learns its
//! group's present id it asks, the old way, where its messages arrive. The answer says that all messages before it have
//! arrived, so if none was sent since, the page goes on under that id and the forwarding entries are released. A
//! forward without forwarding entries is of use only to those who ask for the old id; retention drops it.

use doppel_model::{GroupId, PageId};

use super::{Machine, Message, Transfer, TransferEnd};
use crate::key;
use crate::record::{Evidence, Forward, Group, GroupRecord, Incoming, Linked, Member, decode, encode};
use crate::store::StoreError;

/// Merged groups whose members come in steps at the same time, at most; one more is recomputed when they have come.
const INCOMING_MAX: usize = 16;

impl Machine<'_, '_> {
    pub(super) fn merged(
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
                // It dissolved meanwhile; the pair must be found anew.
                self.pair_lost(evidence);
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
                    self.tell_quarantine(group, record.members, false, Some(into))?;
                }
                // When none of the pair is a member, or both are, the pair no longer links the two groups: one of
                // them changed groups while this message was under way.
                let links = self.holds(group, evidence.page)? != self.holds(group, evidence.partner)?;
                let forward = Forward {
                    into,
                    dirty: record.dirty || !links,
                    search_again: record.announcing.is_some_and(|a| a.search_again),
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

    /// Hands a step of a merged group's members over.
    pub(super) fn transfer_members(
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

    /// Sends a piece of a merged group's members on their way.
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

    /// Sends a page's row, if it was not transferred yet, before the others. Gives its membership. The caller puts the
    /// forward.
    pub(super) fn send_ahead(
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

    pub(super) fn members_transferred(
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
                // Who found the pair finds it anew: nobody else may report it.
                if let Some(done) = &transfer.done {
                    self.pair_lost(done.evidence);
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
                // The survivor dissolved before they came. They are still linked to each other, and were all compared:
                // sending each off to be compared anew would undo a giant group for one page that left.
                self.revived()
            }
        };
        let Transfer { from, first, members, done } = transfer;
        if first && done.is_none() {
            record.expect_more(from);
        }
        self.adopt_members(into, &mut record, members)?;
        if let Some(TransferEnd { dirty, search_again, evidence }) = done {
            let lost_none = first || record.has_lost_none_since(from);
            let links = self.holds(into, evidence.page)? && self.holds(into, evidence.partner)?;
            if dirty || !lost_none || !links {
                record.mark_dirty();
            }
            if search_again {
                self.announce(into, &mut record, true);
            }
        }
        self.put_active(into, record)
    }

    /// A pair could not join two groups: who found it finds it anew.
    fn pair_lost(&mut self, evidence: Evidence) {
        let Linked { page, content, .. } = evidence.page;
        self.send_to_page(page, Message::SearchAgain { page, content });
    }

    /// A group under an id that was dissolved. It is to be recomputed, and its numbers are none of those that a
    /// recomputation of the dissolved one may name.
    fn revived(&mut self) -> Group {
        let meta = self.meta();
        meta.groups_minted += 1;
        let number = meta.groups_minted << 32;
        Group { changes: number, losses: number, cover_changes: number, dirty: true, ..Group::new() }
    }

    /// A page asks where its messages arrive: here, or further on.
    pub(super) fn forward_asked(
        &mut self,
        group: GroupId,
        page: PageId,
        membership_number: u32,
    ) -> Result<(), StoreError> {
        match self.txn.group(group)? {
            None => {}
            Some(GroupRecord::Forward(mut forward)) => {
                let into = forward.into;
                // A message that takes the shorter way must find the row.
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

    /// A membership whose messages came by here uses a shorter way.
    pub(super) fn forward_released(
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

    /// A page leaves before its row was transferred: the group it goes to has lost a member that it never heard of.
    pub(super) fn forget_unforwarded(
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

    /// Messages of these memberships come by a merged group from now on. Puts the forward.
    pub(super) fn add_forwarding_entries(
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

    /// No more messages of that membership, or an earlier one of the page, come by. Puts the forward.
    pub(super) fn remove_forwarding_entry(
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
    /// Members of a merged group begin to come.
    fn expect_more(&mut self, from: GroupId) {
        self.incoming.retain(|incoming| incoming.from != from);
        if self.incoming.len() < INCOMING_MAX {
            self.incoming.push(Incoming { from, losses: self.losses });
        }
    }

    /// The last of them have come: whether no member was lost meanwhile that may have linked them. The first may
    /// have come to a group that was merged into this one since; then it is not known.
    fn has_lost_none_since(&mut self, from: GroupId) -> bool {
        let at = self.incoming.iter().position(|incoming| incoming.from == from);
        at.is_some_and(|at| self.incoming.swap_remove(at).losses == self.losses)
    }
}

fn memberships(members: &[(PageId, Member)]) -> Vec<(PageId, u32)> {
    members.iter().map(|(page, member)| (*page, member.membership_number)).collect()
}
