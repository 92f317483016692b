//! Two groups become one: the larger id freezes, hands its members over in steps and stays as a
//! forward.

use doppel_common::model::{GroupId, PageId};

use super::{HandedOver, Machine, Message, STEP_ROWS};
use crate::key;
use crate::record::{Evidence, Forward, GroupRecord, Member, decode};
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
        let rows = self.txn.scan(&key::members(group), None, STEP_ROWS)?;
        let last = rows.len() < STEP_ROWS;
        let mut members = Vec::with_capacity(rows.len());
        for (key, bytes) in rows {
            if let Some(page) = key::last_page(&key) {
                members.push((page, decode::<Member>(&key, &bytes)?));
            }
            self.txn.delete(key);
        }
        let into = forward.into;
        let done = last.then_some(HandedOver {
            touched: forward.touched,
            look_again: forward.look_again,
            evidence: forward.evidence,
        });
        self.send(into.shard(), Message::HandOver { into, members, done });
        if last {
            forward.done = true;
            self.txn.put_group(group, Some(GroupRecord::Forward(forward)))?;
        } else {
            self.send(group.shard(), Message::Continue { group });
        }
        Ok(())
    }

    pub(super) fn handed_over(
        &mut self,
        into: GroupId,
        members: Vec<(PageId, Member)>,
        done: Option<HandedOver>,
    ) -> Result<(), StoreError> {
        match self.txn.group(into)? {
            None => {
                // The survivor dissolved before they came: each looks for its partners anew.
                for (page, member) in members {
                    let seat = member.seat;
                    self.send_to_page(page, Message::Unseat { page, seat, compare: true });
                }
                Ok(())
            }
            Some(GroupRecord::Forward(forward)) => {
                let into = forward.into;
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
                        // A recomputation that is under way does not know of it.
                        record.touched = true;
                        record.losses += 1;
                    }
                    if look_again {
                        self.announce(into, &mut record, true);
                    }
                }
                self.put_active(into, record)
            }
        }
    }

    /// A page's row that was not handed over yet, and is overtaken by newer word of the page.
    pub(super) fn forget_unforwarded(
        &mut self,
        group: GroupId,
        page: PageId,
        seat: u32,
    ) -> Result<(), StoreError> {
        let key = key::member(group, page);
        if self.txn.get::<Member>(&key)?.is_some_and(|m| m.seat <= seat) {
            self.txn.delete(key);
        }
        Ok(())
    }
}
