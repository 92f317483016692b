//! A group's row against its members, and what is left of merged ones.

use std::collections::HashSet;

use doppel_model::{ContentHash, GroupId, PageId};

use super::pages::Holder;
use super::{Checker, Found, Invariant};
use crate::key;
use crate::record::{Cover, Forward, Group, GroupRecord, Member, decode};
use crate::txn::share_of_group;

/// What the rows of a group's members come to.
#[derive(Debug, Default)]
struct Recount {
    members: u64,
    with_inbound_redirects: u64,
    dissimilar: u64,
    secondaries: u64,
    contents: HashSet<ContentHash>,
    /// Those that differ from the winner.
    others: Vec<(PageId, Member)>,
    best: Option<(PageId, Member)>,
    /// The best of the members that an election has looked at, and of the winner of the group's row.
    best_so_far: Option<(PageId, Member)>,
    /// A row could not be read, and is reported where it is met itself.
    incomplete: bool,
}

impl Checker<'_> {
    pub(super) fn group(&mut self, group: GroupId, key: &[u8], value: &[u8]) {
        let row = format!("group {group}");
        let Some(record) = self.decode::<GroupRecord>(key, value, row) else { return };
        let shard = usize::from(group.shard().0);
        self.recounts[shard].count_group(Default::default(), share_of_group(Some(&record)));
        self.check_minted(group, group);
        match record {
            GroupRecord::Active(record) => {
                self.report.groups += 1;
                self.check_active(group, &record);
            }
            GroupRecord::Forward(forward) => self.check_forward(group, &forward),
        }
    }

    /// Whether an id was ever given; `by` is the group that names it.
    fn check_minted(&mut self, id: GroupId, by: GroupId) {
        let minted = match self.metas.get(usize::from(id.shard().0)) {
            Some(Found::Row(meta)) => meta.groups_minted,
            Some(Found::Unreadable) => return,
            Some(Found::Missing) | None => 0,
        };
        let counter = id.get() >> 16;
        if counter == 0 || counter > minted {
            let detail = format!("{id} was never given: {minted} ids were");
            self.find(Invariant::Totals, format!("group {by}"), detail);
        }
    }

    fn check_active(&mut self, group: GroupId, record: &Group) {
        let row = format!("group {group}");
        let winner = record.winner.as_ref().map(|(winner, _)| *winner);
        let looked_at = |page: PageId| {
            let after = record.election.and_then(|election| election.after);
            Some(page) <= after || Some(page) == winner
        };
        let Some(recount) = self.recount(group, &looked_at) else { return };
        for (what, says, is) in [
            ("members", record.members, recount.members),
            ("members with redirects", record.with_inbound_redirects, recount.with_inbound_redirects),
            ("members unlike the winner", record.dissimilar, recount.dissimilar),
            ("secondary members", record.secondaries, recount.secondaries),
        ] {
            if says != is && !recount.incomplete {
                self.find(Invariant::Counts, &row, format!("counts {says} {what}, and has {is}"));
            }
        }
        let contents = recount.contents.len() as u64;
        if record.contents_max < contents && !recount.incomplete {
            let detail = format!("counts at most {} contents, and has {contents}", record.contents_max);
            self.find(Invariant::Counts, &row, detail);
        }
        // What the group knows of its winner beside.
        let told = |(page, member): &(PageId, Member)| {
            (*page, Member { dissimilar: false, cover: Cover::Unsent, cover_number: 0, ..member.clone() })
        };
        let best = if record.election.is_some() { &recount.best_so_far } else { &recount.best };
        if record.winner.as_ref().map(told) != best.as_ref().map(told) && !recount.incomplete {
            let url = |winner: &Option<(PageId, Member)>| match winner {
                Some((_, member)) => member.rank.url.to_string(),
                None => "nobody".to_owned(),
            };
            let (says, best) = (url(&record.winner), url(best));
            let detail = format!("has the winner {says}, and the best of its members is {best}");
            self.find(Invariant::Winner, &row, detail);
        }
        if !record.uncovered && !recount.incomplete {
            self.check_cover(group, recount.others);
        }
        if record.members == 0 && !self.underway.has_arrivals(group) {
            self.find(Invariant::Work, &row, "has no member, and none is on the way to it");
        }
        if record.is_continuing() && !self.underway.is_continuing(group) {
            let detail = "elects its winner or tells its members of it, and nothing goes on with it";
            self.find(Invariant::Work, &row, detail);
        }
    }

    fn check_forward(&mut self, group: GroupId, forward: &Forward) {
        let row = format!("group {group}");
        let into = forward.into;
        if into >= group {
            self.find(Invariant::Merged, &row, format!("was merged into {into}, which is not smaller"));
        }
        self.check_minted(into, group);
        if !forward.done && !self.underway.is_continuing(group) {
            self.find(Invariant::Work, &row, "transfers its members, and nothing goes on with it");
        }
        let Some(recount) = self.recount(group, &|_| false) else { return };
        if forward.done && recount.members > 0 {
            let detail = format!("was merged into {into} and still has {} members", recount.members);
            self.find(Invariant::Merged, &row, detail);
        }
        let (mut forwarding_entries, prefix) = (0, key::forwarding_entries(group));
        let counted = self.store.range(&prefix, &key::after_prefix(&prefix), &mut |_, _| {
            forwarding_entries += 1;
            true
        });
        match counted {
            Err(error) => self.engine(&error),
            Ok(()) if forwarding_entries != forward.forwarding_entries => {
                let detail = format!(
                    "counts {} memberships that pass, and there are {forwarding_entries}",
                    forward.forwarding_entries
                );
                self.find(Invariant::Merged, &row, detail);
            }
            Ok(()) => {}
        }
    }

    /// Reads the rows of a group's members. `looked_at`: whether the best so far is to be compared with a page.
    fn recount(&mut self, group: GroupId, looked_at: &dyn Fn(PageId) -> bool) -> Option<Recount> {
        let (mut recount, prefix) = (Recount::default(), key::members(group));
        let counted = self.store.range(&prefix, &key::after_prefix(&prefix), &mut |key, value| {
            recount.members += 1;
            match (key::last_page(key), decode::<Member>(key, value)) {
                (Some(page), Ok(member)) => {
                    recount.with_inbound_redirects += u64::from(member.has_inbound_redirects);
                    recount.dissimilar += u64::from(member.dissimilar);
                    recount.secondaries += u64::from(member.is_secondary());
                    recount.contents.insert(member.content);
                    if member.dissimilar {
                        recount.others.push((page, member.clone()));
                    }
                    let is_better =
                        |(_, best): &(PageId, Member)| self.winners.beats(&member.rank, &best.rank);
                    if looked_at(page) && recount.best_so_far.as_ref().is_none_or(is_better) {
                        recount.best_so_far = Some((page, member.clone()));
                    }
                    if recount.best.as_ref().is_none_or(is_better) {
                        recount.best = Some((page, member));
                    }
                }
                _ => recount.incomplete = true,
            }
            true
        });
        match counted {
            Ok(()) => Some(recount),
            Err(error) => {
                self.engine(&error);
                None
            }
        }
    }

    /// A member's row, from the group's side.
    pub(super) fn member(&mut self, group: GroupId, page: PageId, key: &[u8], value: &[u8]) {
        let row = format!("member {} of group {group}", self.name(page));
        let Some(member) = self.decode::<Member>(key, value, row.clone()) else { return };
        if member.rank.url.id() != page {
            return self.find(Invariant::Identity, row, format!("is about {}", member.rank.url));
        }
        if let Found::Missing = self.group_record(group) {
            return self.find(Invariant::Membership, row, "and there is no such group");
        }
        if self.underway.is_moving(page) {
            return;
        }
        let membership = match self.record(page) {
            Found::Row(record) => {
                let membership_number = record.membership_number;
                let membership = record.content().and_then(|state| state.membership.as_ref());
                membership.map(|m| (m.group, membership_number, m.covered_by.clone()))
            }
            Found::Missing => None,
            Found::Unreadable => return,
        };
        let Some((of_page, membership_number, covered_by)) = membership else {
            return self.find(Invariant::Membership, row, "and the page is in no group");
        };
        if membership_number != member.membership_number {
            let detail = format!(
                "has membership {}, and the page membership {membership_number}",
                member.membership_number
            );
            self.find(Invariant::Membership, &row, detail);
        }
        let told = match member.cover {
            Cover::By(page, content) => Some((page, content)),
            Cover::Unsent | Cover::Kept => None,
        };
        if covered_by.map(|kept| (kept.page, kept.with.content)) != told {
            self.find(
                Invariant::Cover,
                &row,
                "was told of another page that it is a duplicate of than it says",
            );
        }
        if of_page != group {
            match self.holder(of_page, page) {
                Holder::Group(holder, ..) if holder == group => {}
                Holder::Unreadable => {}
                Holder::Group(..) | Holder::Nobody => {
                    let detail = format!("and the page is in group {of_page}");
                    self.find(Invariant::Membership, row, detail);
                }
            }
        }
    }

    /// A membership whose messages pass a merged group.
    pub(super) fn forwarding_entry(&mut self, group: GroupId, page: PageId, key: &[u8], value: &[u8]) {
        let row = format!("forwarding entry of {} by group {group}", self.name(page));
        let Some(membership_number) = self.decode::<u32>(key, value, row.clone()) else { return };
        match self.group_record(group) {
            Found::Row(GroupRecord::Forward(_)) => {}
            Found::Row(GroupRecord::Active(_)) | Found::Missing => {
                return self.find(Invariant::Merged, row, "and the group is not a merged one");
            }
            Found::Unreadable => return,
        }
        if self.underway.is_moving(page) {
            return;
        }
        let membership = match self.record(page) {
            Found::Row(record) => {
                let of_page = record.membership_number;
                record.content().and_then(|state| state.membership.as_ref().map(|m| (m.enrolled_at, of_page)))
            }
            Found::Missing => None,
            Found::Unreadable => return,
        };
        let comes_by = match membership {
            Some((enrolled_at, of_page)) => of_page == membership_number && self.leads_by(enrolled_at, group),
            None => false,
        };
        if !comes_by {
            self.find(Invariant::Merged, row, "and no message of the page comes by there");
        }
    }

    /// Whether a message sent to `from` comes by the merged group `by`.
    fn leads_by(&mut self, from: GroupId, by: GroupId) -> bool {
        let mut at = from;
        while at > by {
            match self.group_record(at) {
                Found::Row(GroupRecord::Forward(forward)) if forward.into < at => at = forward.into,
                Found::Unreadable => return true,
                Found::Row(_) | Found::Missing => return false,
            }
        }
        at == by
    }
}
