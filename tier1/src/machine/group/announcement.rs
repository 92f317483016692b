//! Announcing a group's winner to its members, in steps of a bounded number of rows.
//!
//! A [`Message::Continue`] drives each step, so other messages are delivered between two steps. At most one
//! `Continue` per group is under way. It drives the election of the winner, the announcement, or the transfer
//! of a merged group.

use doppel_model::{GroupId, PageId};

use crate::machine::{Machine, Message};
use crate::rows::key;
use crate::rows::record::{Announcement, Group, GroupRecord, Member, Winner, decode};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Starts an announcement of the winner at the first member. A running announcement starts again.
    pub(in crate::machine) fn announce(&mut self, group: GroupId, record: &mut Group, search_again: bool) {
        let (was_continuing, running) = (record.is_continuing(), record.announcement);
        record.announcement = Some(Announcement {
            after: None,
            search_again: search_again || running.is_some_and(|a| a.search_again),
        });
        if !was_continuing {
            self.send(group.shard(), Message::Continue { group });
        }
    }

    /// Makes the next step of an election, an announcement, or a transfer of members.
    pub(in crate::machine) fn on_continue(&mut self, group: GroupId) -> Result<(), StoreError> {
        let mut record = match self.txn.group(group)? {
            None => return Ok(()),
            Some(GroupRecord::Forward(forward)) => return self.transfer_members(group, forward),
            Some(GroupRecord::Active(record)) => record,
        };
        if let Some(election) = record.election {
            self.elect(group, &mut record, election)?;
            if record.is_continuing() {
                self.send(group.shard(), Message::Continue { group });
            }
            return self.put_active(group, record);
        }
        let Some(announcement) = record.announcement else { return Ok(()) };
        let after = announcement.after.map(|page| key::member(group, page));
        let rows = self.txn.scan(&key::members(group), after.as_deref(), self.shards.settings.step_rows)?;
        let mut last = None;
        for (key, bytes) in &rows {
            let member: Member = decode(key, bytes)?;
            let Some(page) = key::last_page(key) else { continue };
            self.assign(group, &record, page, member.membership_number, announcement.search_again);
            last = Some(page);
        }
        if rows.len() == self.shards.settings.step_rows {
            record.announcement = Some(Announcement { after: last, ..announcement });
            self.send(group.shard(), Message::Continue { group });
        } else {
            record.announcement = None;
        }
        self.put_active(group, record)
    }

    /// Tells one member the winner of its group.
    pub(in crate::machine) fn assign(
        &mut self,
        group: GroupId,
        record: &Group,
        page: PageId,
        membership_number: u32,
        search_again: bool,
    ) {
        let Some((winner, member)) = &record.winner else { return };
        let winner = Winner {
            page: *winner,
            content: member.content,
            url: member.rank.url.clone(),
            quarantined: record.quarantined,
        };
        self.send_to_page(page, Message::Assign { page, membership_number, group, winner, search_again });
    }
}
