//! Checks groups against their members, and the forwards and forwarding entries of merged groups.

use std::collections::HashSet;

use doppel_model::{ContentHash, GroupId, PageId};

use super::pages::Holder;
use super::{Checker, Invariant, ReferencedRow};
use crate::rows::key;
use crate::rows::record::{Cover, Forward, Group, GroupRecord, Member, decode};
use crate::rows::txn::share_of_group;

/// Counts of a group, computed from the rows of its members.
#[derive(Debug, Default)]
struct Recount {
    members: u64,
    with_inbound_redirects: u64,
    dissimilar: u64,
    secondaries: u64,
    contents: HashSet<ContentHash>,
    /// Members that differ from the winner.
    others: Vec<(PageId, Member)>,
    /// First member in the winner order.
    best: Option<(PageId, Member)>,
    /// First in the winner order among the winner in the group's row and the members that the present
    /// election has already read.
    best_so_far: Option<(PageId, Member)>,
    /// A member row could not be read. The scan reports this when it reaches the row.
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

    /// Checks that the group id `id` was assigned. `by` is the group that names it.
    fn check_minted(&mut self, id: GroupId, by: GroupId) {
        let minted = match self.metas.get(usize::from(id.shard().0)) {
            Some(ReferencedRow::Row(meta)) => meta.groups_minted,
            Some(ReferencedRow::Unreadable) => return,
            Some(ReferencedRow::Missing) | None => 0,
        };
        let counter = id.get() >> 16;
        if counter == 0 || counter > minted {
            let detail = format!("names group {id}, but only {minted} ids were assigned");
            self.add_finding(Invariant::Totals, format!("group {by}"), detail);
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
                self.add_finding(Invariant::Counts, &row, format!("counts {says} {what}, but has {is}"));
            }
        }
        let contents = recount.contents.len() as u64;
        if record.contents_max < contents && !recount.incomplete {
            let detail = format!("counts at most {} contents, but has {contents}", record.contents_max);
            self.add_finding(Invariant::Counts, &row, detail);
        }
        // Ignore the fields that the group's copy of its winner does not maintain.
        let comparable = |(page, member): &(PageId, Member)| {
            (*page, Member { dissimilar: false, cover: Cover::Unsent, cover_number: 0, ..member.clone() })
        };
        let best = if record.election.is_some() { &recount.best_so_far } else { &recount.best };
        if record.winner.as_ref().map(comparable) != best.as_ref().map(comparable) && !recount.incomplete {
            let url = |winner: &Option<(PageId, Member)>| match winner {
                Some((_, member)) => member.rank.url.to_string(),
                None => "no page".to_owned(),
            };
            let (says, best) = (url(&record.winner), url(best));
            let detail = format!("has the winner {says}, but its first member in the winner order is {best}");
            self.add_finding(Invariant::Winner, &row, detail);
        }
        if !record.uncovered && !recount.incomplete {
            self.check_cover(group, recount.others);
        }
        if record.members == 0 && !self.underway.has_arrivals(group) {
            self.add_finding(Invariant::Work, &row, "has no member, and no member is under way to it");
        }
        if record.is_continuing() && !self.underway.is_continuing(group) {
            let detail = "has an unfinished election or announcement, but no message continues it";
            self.add_finding(Invariant::Work, &row, detail);
        }
    }

    fn check_forward(&mut self, group: GroupId, forward: &Forward) {
        let row = format!("group {group}");
        let into = forward.into;
        if into >= group {
            self.add_finding(
                Invariant::Merged,
                &row,
                format!("was merged into {into}, which is not smaller"),
            );
        }
        self.check_minted(into, group);
        if !forward.done && !self.underway.is_continuing(group) {
            self.add_finding(
                Invariant::Work,
                &row,
                "has an unfinished transfer of members, but no message continues it",
            );
        }
        let Some(recount) = self.recount(group, &|_| false) else { return };
        if forward.done && recount.members > 0 {
            let detail = format!("was merged into {into}, but still has {} members", recount.members);
            self.add_finding(Invariant::Merged, &row, detail);
        }
        let (mut forwarding_entries, prefix) = (0, key::forwarding_entries(group));
        let counted = self.store.range(&prefix, &key::after_prefix(&prefix), &mut |_, _| {
            forwarding_entries += 1;
            true
        });
        match counted {
            Err(error) => self.add_engine_failure(&error),
            Ok(()) if forwarding_entries != forward.forwarding_entries => {
                let detail = format!(
                    "counts {} forwarding entries, but has {forwarding_entries}",
                    forward.forwarding_entries
                );
                self.add_finding(Invariant::Merged, &row, detail);
            }
            Ok(()) => {}
        }
    }

    /// Counts the rows of a group's members. `looked_at` tells which pages are candidates for
    /// [`best_so_far`](Recount::best_so_far).
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
                self.add_engine_failure(&error);
                None
            }
        }
    }

    /// Checks a member row against the page's record.
    pub(super) fn member(&mut self, group: GroupId, page: PageId, key: &[u8], value: &[u8]) {
        let row = format!("member {} of group {group}", self.describe_page(page));
        let Some(member) = self.decode::<Member>(key, value, row.clone()) else { return };
        if member.rank.url.id() != page {
            return self.add_finding(
                Invariant::Identity,
                row,
                format!("names the URL {}, which is another page", member.rank.url),
            );
        }
        if let ReferencedRow::Missing = self.group_record(group) {
            return self.add_finding(Invariant::Membership, row, "belongs to a group that does not exist");
        }
        if self.underway.is_moving(page) {
            return;
        }
        let membership = match self.record(page) {
            ReferencedRow::Row(record) => {
                let membership_number = record.membership_number;
                let membership = record.content().and_then(|state| state.membership.as_ref());
                membership.map(|m| (m.group, membership_number, m.covered_by.clone()))
            }
            ReferencedRow::Missing => None,
            ReferencedRow::Unreadable => return,
        };
        let Some((of_page, membership_number, covered_by)) = membership else {
            return self.add_finding(Invariant::Membership, row, "belongs to a page that is in no group");
        };
        if membership_number != member.membership_number {
            let detail = format!(
                "has membership {}, but the page has membership {membership_number}",
                member.membership_number
            );
            self.add_finding(Invariant::Membership, &row, detail);
        }
        let expected = match member.cover {
            Cover::By(page, content) => Some((page, content)),
            Cover::Unsent | Cover::Kept => None,
        };
        if covered_by.map(|kept| (kept.page, kept.with.content)) != expected {
            self.add_finding(Invariant::Cover, &row, "names another covering page than the page's record");
        }
        if of_page != group {
            match self.find_holder(of_page, page) {
                Holder::Group(holder, ..) if holder == group => {}
                Holder::Unreadable => {}
                Holder::Group(..) | Holder::Nobody => {
                    let detail = format!("belongs to a page that is in group {of_page}");
                    self.add_finding(Invariant::Membership, row, detail);
                }
            }
        }
    }

    /// Checks a forwarding entry, for a membership whose messages go through a merged group.
    pub(super) fn forwarding_entry(&mut self, group: GroupId, page: PageId, key: &[u8], value: &[u8]) {
        let row = format!("forwarding entry of {} at group {group}", self.describe_page(page));
        let Some(membership_number) = self.decode::<u32>(key, value, row.clone()) else { return };
        match self.group_record(group) {
            ReferencedRow::Row(GroupRecord::Forward(_)) => {}
            ReferencedRow::Row(GroupRecord::Active(_)) | ReferencedRow::Missing => {
                return self.add_finding(Invariant::Merged, row, "belongs to a group that is not merged");
            }
            ReferencedRow::Unreadable => return,
        }
        if self.underway.is_moving(page) {
            return;
        }
        let membership = match self.record(page) {
            ReferencedRow::Row(record) => {
                let of_page = record.membership_number;
                record.content().and_then(|state| state.membership.as_ref().map(|m| (m.enrolled_at, of_page)))
            }
            ReferencedRow::Missing => None,
            ReferencedRow::Unreadable => return,
        };
        let comes_by = match membership {
            Some((enrolled_at, of_page)) => of_page == membership_number && self.leads_by(enrolled_at, group),
            None => false,
        };
        if !comes_by {
            self.add_finding(Invariant::Merged, row, "is not on the path of the page's messages");
        }
    }

    /// Whether a message that is sent to `from` goes through the merged group `by`.
    fn leads_by(&mut self, from: GroupId, by: GroupId) -> bool {
        let mut at = from;
        while at > by {
            match self.group_record(at) {
                ReferencedRow::Row(GroupRecord::Forward(forward)) if forward.into < at => at = forward.into,
                ReferencedRow::Unreadable => return true,
                ReferencedRow::Row(_) | ReferencedRow::Missing => return false,
            }
        }
        at == by
    }
}
