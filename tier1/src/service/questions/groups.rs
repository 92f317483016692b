//! Groups and their members as the coordinator sees them.

use doppel_model::{GroupId, PageId, ShardId};
use doppel_protocol::{
    GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, MemberView, Tier1Error,
};

use crate::rows::key::{self, RowKind};
use crate::rows::record::{GroupRecord, Member, decode};
use crate::service::questions::pages::line;
use crate::service::questions::rows::{PIECE_ROWS, RowReader};

fn summary(group: GroupId, record: &GroupRecord) -> GroupSummary {
    match record {
        GroupRecord::Active(record) => GroupSummary {
            group,
            state: GroupState::Active,
            members: record.members,
            dissimilar: record.dissimilar,
            // All pages of a group in quarantine are kept.
            secondaries: if record.quarantined {
                record.members.saturating_sub(1)
            } else {
                record.secondaries
            },
            uncovered: record.owes_cover(),
            winner: record.winner.as_ref().map(|(_, member)| member.rank.url.clone()),
            dirty: record.dirty,
            quarantined: record.quarantined,
        },
        GroupRecord::Forward(forward) => GroupSummary {
            group,
            state: GroupState::MergedInto { group: forward.into },
            members: 0,
            dissimilar: 0,
            secondaries: 0,
            uncovered: false,
            winner: None,
            dirty: false,
            quarantined: false,
        },
    }
}

/// A part of the pages of a group.
struct Listing {
    members: Vec<MemberView>,
    last: Option<GroupPosition>,
    limit: usize,
}

impl Listing {
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.members.len())
    }
}

impl RowReader {
    pub(in crate::service) fn read_summary(
        &self,
        group: GroupId,
    ) -> Result<Option<GroupSummary>, Tier1Error> {
        if group.shard().0 >= self.shards() {
            return Ok(None);
        }
        Ok(self.record(key::group(group))?.map(|record| summary(group, &record)))
    }

    pub(in crate::service) fn read_group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        let Some(summary) = self.read_summary(group)? else { return Ok(None) };
        let mut listing = Listing { members: Vec::new(), last: after, limit };
        if let Some(after) = after.filter(|_| redirects) {
            self.list_inbound_redirects(&mut listing, after)?;
        }
        let prefix = key::members(group);
        let end = key::after_prefix(&prefix);
        let mut from =
            after.map_or_else(|| prefix.clone(), |after| key::after(&key::member(group, after.member)));
        while listing.room() > 0 {
            let rows = self.piece(&from, &end, listing.room().min(PIECE_ROWS))?;
            let Some((last, _)) = rows.last() else { break };
            from = key::after(last);
            let mut members: Vec<(PageId, Member)> = Vec::new();
            for (key, bytes) in &rows {
                if let Some(page) = key::last_page(key) {
                    members.push((page, decode(key, bytes)?));
                }
            }
            let pages: Vec<PageId> = members.iter().map(|(page, _)| *page).collect();
            for ((page, member), record) in members.into_iter().zip(self.pages(&pages)?) {
                if listing.room() == 0 {
                    break;
                }
                let after = GroupPosition { member: page, redirect: None };
                if let Some(record) = record {
                    listing.members.push(MemberView { line: line(&record), content: Some(member.content) });
                }
                listing.last = Some(after);
                if member.has_inbound_redirects && redirects {
                    self.list_inbound_redirects(&mut listing, after)?;
                }
            }
        }
        let next = listing.last.filter(|_| listing.room() == 0);
        Ok(Some(GroupView { summary, members: listing.members, next }))
    }

    /// Lists the redirects that end at a member, after the redirect that `after` names.
    fn list_inbound_redirects(&self, listing: &mut Listing, after: GroupPosition) -> Result<(), Tier1Error> {
        let GroupPosition { member, redirect } = after;
        let shard = self.shard_of(member);
        let prefix = key::edges(shard, RowKind::InboundRedirect, member);
        let end = key::after_prefix(&prefix);
        let mut from = redirect.map_or_else(
            || prefix.clone(),
            |redirect| key::after(&key::edge(shard, RowKind::InboundRedirect, member, redirect)),
        );
        while listing.room() > 0 {
            let rows = self.piece(&from, &end, listing.room().min(PIECE_ROWS))?;
            let Some((last, _)) = rows.last() else { break };
            from = key::after(last);
            let sources: Vec<PageId> = rows.iter().filter_map(|(key, _)| key::last_page(key)).collect();
            for (source, record) in sources.iter().zip(self.pages(&sources)?) {
                if let Some(record) = record {
                    listing.members.push(MemberView { line: line(&record), content: None });
                }
                listing.last = Some(GroupPosition { member, redirect: Some(*source) });
            }
        }
        Ok(())
    }
}

impl RowReader {
    pub(in crate::service) fn read_groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error> {
        let mut found = Vec::new();
        let first = after.map_or(0, |group| group.shard().0);
        for shard in (first..self.shards()).map(ShardId) {
            let (mut from, to) = key::all(shard, RowKind::Group);
            if let Some(group) = after.filter(|group| group.shard() == shard) {
                from = key::after(&key::group(group));
            }
            self.for_each_row(&from, &to, &mut |key, bytes| {
                if let Some(id) = key::last_number(key) {
                    let summary = summary(GroupId::from_stored(id), &decode(key, bytes)?);
                    found.extend(Some(summary).filter(|summary| is_selected(filter, summary)));
                }
                Ok(found.len() < limit)
            })?;
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    /// Follows merges from a group to the group that has its members now. `None` if there is no such group.
    pub(in crate::service) fn surviving_group(
        &self,
        mut group: GroupId,
    ) -> Result<Option<GroupId>, Tier1Error> {
        loop {
            match self.record(key::group(group))? {
                Some(GroupRecord::Active(_)) => return Ok(Some(group)),
                // Forwards lead to smaller ids, so the loop ends.
                Some(GroupRecord::Forward(forward)) => group = forward.into,
                None => return Ok(None),
            }
        }
    }
}

fn is_selected(filter: GroupFilter, summary: &GroupSummary) -> bool {
    summary.state == GroupState::Active
        && match filter {
            GroupFilter::All => true,
            GroupFilter::Suspicious { percent } => {
                summary.quarantined
                    || (summary.dissimilar > 0
                        && summary.dissimilar * 100 >= summary.members * u64::from(percent))
            }
        }
}
