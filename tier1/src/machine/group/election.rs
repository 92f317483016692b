//! The election of a group's winner: its best member by the winner order.
//!
//! A better newcomer replaces the winner at once. If the winner has left, or has become worse, the group
//! examines all its members in steps of a bounded number of rows. Between two steps the machine delivers
//! other messages, and commits may end. So a group of a million pages changes its winner while pages of other
//! groups are decided. If a member comes or changes in the meantime, it is compared with the best member so
//! far. If the best member so far leaves, the election begins again.
//!
//! Invariant: during an election the winner in the group's row is a member, and no member up to `after` is
//! better.

use doppel_model::{ContentHash, GroupId, PageId};

use crate::machine::{Machine, Message};
use crate::rows::key;
use crate::rows::record::{Announcement, Election, Group, Member, decode};
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Returns whether `a` precedes `b` in the winner order.
    pub(in crate::machine) fn beats(&self, a: &Member, b: &Member) -> bool {
        self.shards.settings.winners.beats(&a.rank, &b.rank)
    }

    /// Starts an election at the first member. `best` is the previous winner, if it is still a member. If all
    /// members fit into one step, the election is over on return.
    pub(in crate::machine) fn begin_election(
        &mut self,
        group: GroupId,
        record: &mut Group,
        best: Option<(PageId, Member)>,
    ) -> Result<(), StoreError> {
        let was_continuing = record.is_continuing();
        let election = Election { after: None, announced: record.announced_winner() };
        record.winner = best;
        self.elect(group, record, election)?;
        if record.is_continuing() && !was_continuing {
            self.send(group.shard(), Message::Continue { group });
        }
        Ok(())
    }

    /// Makes the next step of an election. After the last step the group announces the winner, unless every
    /// member already knows this winner.
    pub(in crate::machine) fn elect(
        &mut self,
        group: GroupId,
        record: &mut Group,
        Election { after, announced }: Election,
    ) -> Result<(), StoreError> {
        let step_rows = self.shards.settings.step_rows;
        let after = after.map(|page| key::member(group, page));
        let rows = self.txn.scan(&key::members(group), after.as_deref(), step_rows)?;
        self.rows_read += rows.len();
        for (key, bytes) in &rows {
            let member: Member = decode(key, bytes)?;
            let Some(page) = key::last_page(key) else { continue };
            if record.winner.as_ref().is_none_or(|(_, winner)| self.beats(&member, winner)) {
                record.winner = Some((page, member));
            }
        }
        let last = rows.last().and_then(|(key, _)| key::last_page(key)).filter(|_| rows.len() == step_rows);
        record.election = last.map(|last| Election { after: Some(last), announced });
        if last.is_none() && (record.announced_winner() != announced || record.announcement.is_some()) {
            // Some members may have learnt of another winner earlier, so the announcement starts again.
            let search_again = record.announcement.is_some_and(|announcement| announcement.search_again);
            record.announcement = Some(Announcement { after: None, search_again });
        }
        Ok(())
    }
}

impl Group {
    /// Returns whether the group has a new winner since `before`, or the winner has a new content. Always
    /// `false` during an election.
    pub(in crate::machine) fn has_other_winner(&self, before: Option<&(PageId, Member)>) -> bool {
        self.election.is_none() && self.winner.as_ref().map(winner_key) != before.map(winner_key)
    }

    /// Records that a member is told the best member so far. From now on members may know different winners.
    pub(in crate::machine) fn note_announced(&mut self) {
        let best = self.winner.as_ref().map(winner_key);
        if let Some(election) = self.election.as_mut().filter(|election| election.announced != best) {
            election.announced = None;
        }
    }

    /// Returns the winner that every member knows or is being told; `None` if members know different winners.
    fn announced_winner(&self) -> Option<(PageId, ContentHash)> {
        match self.election {
            Some(election) => election.announced,
            None => self.winner.as_ref().map(winner_key),
        }
    }
}

fn winner_key((page, member): &(PageId, Member)) -> (PageId, ContentHash) {
    (*page, member.content)
}
