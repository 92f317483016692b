//! Two groups become one: the larger id freezes, hands its members over in steps and stays as a
//! forward.
//!
//! Word of a stay goes the way its first word went, also by way of forwards, so that none overtakes
//! another. A forward keeps a *passage* for every stay that comes by. When a page learns its group's
//! present id it asks, the old way, where its word arrives. The answer says that all word before it has
//! arrived, so if none was sent since, the page goes on under that address and the passages end. A
//! forward without passages is of use only to those who ask for the old id; retention drops it.

use doppel_model::{ContentHash, GroupId, PageId};

use super::{HandedOver, Machine, Message};
use crate::key;
use crate::record::{Evidence, Forward, Group, GroupRecord, Member, decode, encode};
use crate::store::StoreError;

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
                let Evidence { page, content, .. } = evidence;
                self.send_to_page(page, Message::LookAgain { page, content });
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
                let running = record.announcing;
                let forward = Forward {
                    into,
                    touched: record.touched,
                    look_again: running.is_some_and(|a| a.look_again),
                    evidence,
                    done: false,
                    passages: 0,
                    ended: None,
                };
                self.txn.put_group(group, Some(GroupRecord::Forward(forward)))?;
                if running.is_none() {
                    self.send(group.shard(), Message::Continue { group });
                }
            }
        }
        Ok(())
    }

    /// Hands a step of a merged group's members over.
    pub(super) fn hand_over(&mut self, group: GroupId, mut forward: Forward) -> Result<(), StoreError> {
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
        let passing = seats(&members);
        let into = forward.into;
        let done = last.then_some(HandedOver {
            touched: forward.touched,
            look_again: forward.look_again,
            evidence: forward.evidence,
        });
        self.send(into.shard(), Message::HandOver { into, members, done });
        forward.done = last;
        if !last {
            self.send(group.shard(), Message::Continue { group });
        }
        self.begin_passages(group, forward, &passing)
    }

    pub(super) fn handed_over(
        &mut self,
        into: GroupId,
        members: Vec<(PageId, Member)>,
        done: Option<HandedOver>,
    ) -> Result<(), StoreError> {
        match self.txn.group(into)? {
            None => {
                // Who found the pair finds it anew: nobody else may report it.
                if let Some(HandedOver { evidence: Evidence { page, content, .. }, .. }) = &done {
                    self.send_to_page(*page, Message::LookAgain { page: *page, content: *content });
                }
                if members.is_empty() {
                    return Ok(());
                }
                if !self.shards.settings.rules.recomputation {
                    for (page, member) in members {
                        let seat = member.seat;
                        self.send_to_page(page, Message::Unseat { page, seat, compare: true });
                    }
                    return Ok(());
                }
                // The survivor dissolved before they came. They are still tied to each other, and were all compared:
                // sending each off to be compared anew would undo a giant group for one page that left.
                let mut record = self.revived();
                self.adopt_members(into, &mut record, members)?;
                if done.is_some_and(|done| done.look_again) {
                    self.announce(into, &mut record, true);
                }
                self.put_active(into, record)
            }
            Some(GroupRecord::Forward(forward)) => {
                let (group, into) = (into, forward.into);
                self.begin_passages(group, forward, &seats(&members))?;
                self.send(into.shard(), Message::HandOver { into, members, done });
                Ok(())
            }
            Some(GroupRecord::Active(mut record)) => {
                self.adopt_members(into, &mut record, members)?;
                if let Some(HandedOver { touched, look_again, evidence }) = done {
                    let Evidence { page, content, partner, partner_content } = evidence;
                    let holds = self.is_member(into, page, content)?
                        && self.is_member(into, partner, partner_content)?;
                    if touched || !holds {
                        record.touch();
                    }
                    if look_again {
                        self.announce(into, &mut record, true);
                    }
                }
                self.put_active(into, record)
            }
        }
    }

    /// A group under an id that was dissolved. It is to be recomputed, and its numbers are none of those that a
    /// recomputation of the dissolved one may name.
    fn revived(&mut self) -> Group {
        let meta = self.meta();
        meta.groups_minted += 1;
        let number = meta.groups_minted << 32;
        Group { changes: number, losses: number, touched: true, ..Group::new() }
    }

    /// A page asks where its word arrives: here, or further on.
    pub(super) fn address_asked(
        &mut self,
        group: GroupId,
        page: PageId,
        seat: u32,
    ) -> Result<(), StoreError> {
        match self.txn.group(group)? {
            None => {}
            Some(GroupRecord::Forward(forward)) => {
                let into = forward.into;
                // A row that was not handed over yet goes first: word that takes the shorter way must find it.
                let key = key::member(group, page);
                if let Some(member) = self.txn.get::<Member>(&key)? {
                    self.txn.delete(key);
                    let members = vec![(page, member)];
                    self.begin_passages(group, forward, &seats(&members))?;
                    self.send(into.shard(), Message::HandOver { into, members, done: None });
                }
                self.send(into.shard(), Message::AskAddress { group: into, page, seat });
            }
            Some(GroupRecord::Active(_)) => self.send_to_page(page, Message::Address { page, seat, group }),
        }
        Ok(())
    }

    /// A stay that came by here has a shorter address.
    pub(super) fn passage_ended(
        &mut self,
        group: GroupId,
        page: PageId,
        seat: u32,
        until: GroupId,
    ) -> Result<(), StoreError> {
        if group != until
            && let Some(GroupRecord::Forward(forward)) = self.txn.group(group)?
        {
            let into = forward.into;
            self.end_passage(group, forward, page, seat)?;
            self.send(into.shard(), Message::EndPassage { group: into, page, seat, until });
        }
        Ok(())
    }

    /// A page's row that was not handed over yet is overtaken by newer word of the page. When that says
    /// that the page has gone (`content` is none) or has another content, the group it goes to has lost a
    /// member that it never heard of.
    pub(super) fn forget_unforwarded(
        &mut self,
        group: GroupId,
        forward: &mut Forward,
        (page, seat): (PageId, u32),
        content: Option<ContentHash>,
    ) -> Result<(), StoreError> {
        let key = key::member(group, page);
        if let Some(member) = self.txn.get::<Member>(&key)?.filter(|m| m.seat <= seat) {
            self.txn.delete(key);
            forward.touched |= content != Some(member.content);
        }
        Ok(())
    }

    /// Word of these stays comes by a merged group from now on. Puts the forward.
    pub(super) fn begin_passages(
        &mut self,
        group: GroupId,
        mut forward: Forward,
        stays: &[(PageId, u32)],
    ) -> Result<(), StoreError> {
        for (page, seat) in stays {
            let key = key::passage(group, *page);
            match self.txn.get::<u32>(&key)? {
                Some(known) if known >= *seat => continue,
                Some(_) => {}
                None => forward.passages += 1,
            }
            self.txn.put(key, encode(seat));
        }
        self.txn.put_group(group, Some(GroupRecord::Forward(forward)))
    }

    /// No more word of that stay, or an earlier one of the page, comes by. Puts the forward.
    pub(super) fn end_passage(
        &mut self,
        group: GroupId,
        mut forward: Forward,
        page: PageId,
        seat: u32,
    ) -> Result<(), StoreError> {
        let key = key::passage(group, page);
        if self.txn.get::<u32>(&key)?.is_some_and(|known| known <= seat) {
            self.txn.delete(key);
            forward.passages -= 1;
        }
        self.txn.put_group(group, Some(GroupRecord::Forward(forward)))
    }
}

fn seats(members: &[(PageId, Member)]) -> Vec<(PageId, u32)> {
    members.iter().map(|(page, member)| (*page, member.seat)).collect()
}
