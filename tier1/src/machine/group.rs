//! The owner's side of a group: members, winner, dissolution.

use doppel_model::{ContentHash, GroupId, PageId};

use super::{Effect, Machine, Message, Regrouped};
use crate::key;
use crate::record::{Announcing, Group, GroupRecord, Member, Winner, decode, encode};
use crate::store::StoreError;

impl Machine<'_, '_> {
    pub(super) fn enrolled(
        &mut self,
        group: GroupId,
        page: PageId,
        member: Member,
        via: Option<(PageId, ContentHash)>,
        unsettled: bool,
    ) -> Result<(), StoreError> {
        let mut record = match self.txn.group(group)? {
            None => {
                let seat = member.seat;
                self.send_to_page(page, Message::Refused { page, seat });
                return Ok(());
            }
            Some(GroupRecord::Forward(mut forward)) => {
                let stay = (page, member.seat);
                self.forget_unforwarded(group, &mut forward, stay, Some(member.content))?;
                let into = forward.into;
                self.begin_passages(group, forward, &[stay])?;
                self.send(into.shard(), Message::Enroll { group: into, page, member, via, unsettled });
                return Ok(());
            }
            Some(GroupRecord::Active(record)) => record,
        };
        // The partner has gone meanwhile: the group must be recomputed, and the newcomer, which may have
        // left others out on the strength of it, must look again.
        let mut overtaken = false;
        if let Some((partner, content)) = via
            && !self.is_member(group, partner, content)?
        {
            record.touch();
            overtaken = true;
        }
        let seat = member.seat;
        let winner_before = record.winner.clone();
        if !self.seat_member(group, &mut record, page, member)? {
            return Ok(());
        }
        let announce = record.winner_changed(winner_before.as_ref()) || unsettled;
        if announce {
            self.announce(group, &mut record, unsettled);
        } else {
            self.assign(group, &record, page, seat, false);
        }
        if overtaken {
            self.assign(group, &record, page, seat, true);
        }
        self.put_active(group, record)
    }

    /// Puts a member's row and what follows for the group; false when a later seat is there already.
    fn seat_member(
        &mut self,
        group: GroupId,
        record: &mut Group,
        page: PageId,
        member: Member,
    ) -> Result<bool, StoreError> {
        let key = key::member(group, page);
        let before: Option<Member> = self.txn.get(&key)?;
        match &before {
            Some(old) if old.seat > member.seat => return Ok(false),
            Some(old) => {
                if old.content != member.content {
                    record.touch();
                }
                record.uncount(old);
            }
            None => {}
        }
        record.count(&member);
        record.changes += 1;
        let is_winner = record.winner.as_ref().is_some_and(|(winner, _)| *winner == page);
        let was_better = before.as_ref().is_some_and(|old| self.beats(old, &member));
        self.txn.put(key, encode(&member));
        if is_winner && was_better {
            record.winner = self.elect(group)?;
        } else if is_winner || record.winner.as_ref().is_none_or(|(_, winner)| self.beats(&member, winner)) {
            record.winner = Some((page, member));
        }
        if self.is_giant(record) && !record.quarantined {
            record.quarantined = true;
            self.announce(group, record, false);
        }
        Ok(true)
    }

    pub(super) fn left(
        &mut self,
        group: GroupId,
        page: PageId,
        seat: u32,
        unsettled: bool,
    ) -> Result<(), StoreError> {
        let mut record = match self.txn.group(group)? {
            None => return Ok(()),
            Some(GroupRecord::Forward(mut forward)) => {
                self.forget_unforwarded(group, &mut forward, (page, seat), None)?;
                let into = forward.into;
                self.end_passage(group, forward, page, seat)?;
                let group = into;
                self.send(group.shard(), Message::Leave { group, page, seat, unsettled });
                return Ok(());
            }
            Some(GroupRecord::Active(record)) => record,
        };
        if !self.remove_member(group, &mut record, page, seat)? && !unsettled {
            return Ok(());
        }
        record.touched |= record.members > 1;
        self.after_losses(group, record, unsettled)
    }

    /// Past the size limit, and more than double of what an operator has looked at.
    fn is_giant(&self, record: &Group) -> bool {
        record.members > self.shards.settings.group_members_max.max(record.accepted.saturating_mul(2))
    }

    /// Whether so many members differ from the winner that the group should be recomputed. Members may differ
    /// for good, in a chain, so their number must have doubled since they were last the reason.
    fn is_doubtful(&self, record: &Group) -> bool {
        let share = u64::from(self.shards.settings.doubtful_percent);
        share > 0
            && record.dissimilar.saturating_mul(100) >= record.members.saturating_mul(share)
            && record.dissimilar >= record.examined.saturating_mul(2).max(1)
    }

    /// Deletes a member's row under this seat or an earlier one; false when there is none.
    fn remove_member(
        &mut self,
        group: GroupId,
        record: &mut Group,
        page: PageId,
        seat: u32,
    ) -> Result<bool, StoreError> {
        let key = key::member(group, page);
        let Some(member) = self.txn.get::<Member>(&key)?.filter(|m| m.seat <= seat) else { return Ok(false) };
        self.txn.delete(key);
        record.uncount(&member);
        record.changes += 1;
        record.losses += 1;
        Ok(true)
    }

    /// Elects and announces, or dissolves, after members were removed.
    fn after_losses(
        &mut self,
        group: GroupId,
        mut record: Group,
        look_again: bool,
    ) -> Result<(), StoreError> {
        if record.members == 0 {
            return self.txn.put_group(group, None);
        }
        if record.is_alone() {
            let look_again = look_again || record.touched || record.announcing.is_some_and(|a| a.look_again);
            return self.dissolve(group, look_again);
        }
        let winner_before = record.winner.clone();
        let lost = match &record.winner {
            Some((winner, _)) => !self.txn.has(&key::member(group, *winner))?,
            None => true,
        };
        if lost {
            record.winner = self.elect(group)?;
        }
        if record.winner_changed(winner_before.as_ref()) || look_again {
            self.announce(group, &mut record, look_again);
        }
        self.put_active(group, record)
    }

    /// Sends the last member off on its own.
    fn dissolve(&mut self, group: GroupId, compare: bool) -> Result<(), StoreError> {
        for (key, bytes) in self.txn.scan(&key::members(group), None, self.shards.settings.step_rows)? {
            let member: Member = decode(&key, &bytes)?;
            if let Some(page) = key::last_page(&key) {
                let seat = member.seat;
                self.send_to_page(page, Message::Unseat { page, seat, compare });
            }
            self.txn.delete(key);
        }
        self.txn.put_group(group, None)
    }

    fn beats(&self, a: &Member, b: &Member) -> bool {
        self.shards.settings.winners.beats(&a.rank, &b.rank)
    }

    /// The best member by the winner order.
    fn elect(&self, group: GroupId) -> Result<Option<(PageId, Member)>, StoreError> {
        let prefix = key::members(group);
        let mut best: Option<(PageId, Member)> = None;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let rows = self.txn.scan(&prefix, after.as_deref(), self.shards.settings.step_rows)?;
            for (key, bytes) in &rows {
                let member: Member = decode(key, bytes)?;
                if let Some(page) = key::last_page(key)
                    && best.as_ref().is_none_or(|(_, b)| self.beats(&member, b))
                {
                    best = Some((page, member));
                }
            }
            match rows.into_iter().next_back() {
                Some((key, _)) => after = Some(key),
                None => return Ok(best),
            }
        }
    }

    /// A recomputation is done: who is tied to the winner by no chain of pairs is put out.
    pub(super) fn regrouped(&mut self, regrouped: Regrouped) -> Result<(), StoreError> {
        let Regrouped { group, changes, losses, out, last, repair, audit } = regrouped;
        self.here = group.shard();
        let Some(GroupRecord::Active(mut record)) = self.txn.group(group)? else { return Ok(()) };
        if let Some(entry) = audit {
            self.audit(&entry);
        }
        let joined_since = record.changes != changes;
        let lost_since = record.losses != losses;
        let mut removed = false;
        for (page, seat, content) in &out {
            let (page, seat) = (*page, *seat);
            if self.is_member(group, page, *content)? && self.remove_member(group, &mut record, page, seat)? {
                self.meta().counters.splits += 1;
                self.send_to_page(page, Message::Unseat { page, seat, compare: true });
                removed = true;
            }
        }
        record.touched = !last || lost_since || (joined_since && !out.is_empty());
        if !last && (joined_since || lost_since) {
            // The next step counts with as many removals as this one named. A member that was not removed,
            // because it changed, must not make up for them.
            record.changes += 1;
            record.losses += 1;
        }
        if last && repair {
            record.accepted = record.members;
        }
        if record.quarantined && !self.is_giant(&record) {
            record.quarantined = false;
            self.announce(group, &mut record, false);
        }
        self.after_losses(group, record, removed && joined_since)
    }

    pub(super) fn reported(
        &mut self,
        group: GroupId,
        page: PageId,
        seat: u32,
        dissimilar: bool,
    ) -> Result<(), StoreError> {
        let key = key::member(group, page);
        let member = self.txn.get::<Member>(&key)?.filter(|m| m.seat == seat);
        match (self.txn.group(group)?, member) {
            (None, _) | (Some(GroupRecord::Active(_)), None) => Ok(()),
            (Some(GroupRecord::Forward(forward)), None) => {
                let group = forward.into;
                self.send(group.shard(), Message::Dissimilar { group, page, seat, dissimilar });
                Ok(())
            }
            // It is not handed over yet, and takes the word along.
            (Some(GroupRecord::Forward(_)), Some(member)) => {
                self.txn.put(key, encode(&Member { dissimilar, ..member }));
                Ok(())
            }
            (Some(GroupRecord::Active(mut record)), Some(member)) => {
                record.uncount(&member);
                let member = Member { dissimilar, ..member };
                record.count(&member);
                self.txn.put(key, encode(&member));
                if self.is_doubtful(&record) {
                    record.examined = record.dissimilar;
                    record.touch();
                    self.meta().counters.doubts += 1;
                }
                self.put_active(group, record)
            }
        }
    }

    /// Tells all members the winner, in steps, from the start.
    pub(super) fn announce(&mut self, group: GroupId, record: &mut Group, look_again: bool) {
        let running = record.announcing;
        record.announcing =
            Some(Announcing { after: None, look_again: look_again || running.is_some_and(|a| a.look_again) });
        if running.is_none() {
            self.send(group.shard(), Message::Continue { group });
        }
    }

    /// One step of telling, or of handing over.
    pub(super) fn continued(&mut self, group: GroupId) -> Result<(), StoreError> {
        let mut record = match self.txn.group(group)? {
            None => return Ok(()),
            Some(GroupRecord::Forward(forward)) => return self.hand_over(group, forward),
            Some(GroupRecord::Active(record)) => record,
        };
        let Some(announcing) = record.announcing else { return Ok(()) };
        let after = announcing.after.map(|page| key::member(group, page));
        let rows = self.txn.scan(&key::members(group), after.as_deref(), self.shards.settings.step_rows)?;
        let mut last = None;
        for (key, bytes) in &rows {
            let member: Member = decode(key, bytes)?;
            let Some(page) = key::last_page(key) else { continue };
            self.assign(group, &record, page, member.seat, announcing.look_again);
            last = Some(page);
        }
        if rows.len() == self.shards.settings.step_rows {
            record.announcing = Some(Announcing { after: last, ..announcing });
            self.send(group.shard(), Message::Continue { group });
        } else {
            record.announcing = None;
        }
        self.put_active(group, record)
    }

    pub(super) fn assign(
        &mut self,
        group: GroupId,
        record: &Group,
        page: PageId,
        seat: u32,
        look_again: bool,
    ) {
        let Some((winner, member)) = &record.winner else { return };
        let winner = Winner {
            page: *winner,
            content: member.content,
            url: member.rank.url.clone(),
            quarantined: record.quarantined,
        };
        self.send_to_page(page, Message::Assign { page, seat, group, winner, look_again });
    }

    pub(super) fn is_member(
        &self,
        group: GroupId,
        page: PageId,
        content: ContentHash,
    ) -> Result<bool, StoreError> {
        Ok(self.txn.get::<Member>(&key::member(group, page))?.is_some_and(|m| m.content == content))
    }

    /// Puts members that came from a merged group.
    pub(super) fn adopt_members(
        &mut self,
        group: GroupId,
        record: &mut Group,
        members: Vec<(PageId, Member)>,
    ) -> Result<(), StoreError> {
        let winner_before = record.winner.clone();
        let mut seated = Vec::new();
        for (page, member) in members {
            let seat = member.seat;
            if self.seat_member(group, record, page, member)? {
                seated.push((page, seat));
            }
        }
        if record.winner_changed(winner_before.as_ref()) {
            self.announce(group, record, false);
        } else {
            for (page, seat) in seated {
                self.assign(group, record, page, seat, false);
            }
        }
        Ok(())
    }

    pub(super) fn put_active(&mut self, group: GroupId, mut record: Group) -> Result<(), StoreError> {
        record.touched &= self.shards.settings.rules.recomputation;
        if record.owes_recomputation() {
            self.effects.push(Effect::Touched(group));
        }
        self.txn.put_group(group, Some(GroupRecord::Active(record)))
    }
}

impl Group {
    fn count(&mut self, member: &Member) {
        self.members += 1;
        self.pinned += u64::from(member.pinned);
        self.dissimilar += u64::from(member.dissimilar);
    }

    fn uncount(&mut self, member: &Member) {
        self.members -= 1;
        self.pinned -= u64::from(member.pinned);
        self.dissimilar -= u64::from(member.dissimilar);
    }

    /// Whether members must be told: another page, or another content of it.
    fn winner_changed(&self, before: Option<&(PageId, Member)>) -> bool {
        let told = |w: &(PageId, Member)| (w.0, w.1.content);
        self.winner.as_ref().map(told) != before.map(told)
    }
}
