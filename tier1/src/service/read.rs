//! Records as the coordinator sees them.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, ShardId};
use doppel_protocol::{
    GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, Line, MemberView, PageView, Tier1Error,
    WinnerView,
};

use super::Tier1;
use crate::key::{self, Kind};
use crate::record::{Group, GroupRecord, Member, PageRecord, Resolution, Similarity, State, decode};
use crate::store::StoreError;
use crate::txn::read;

/// Pages of a host that are collected at a time.
const HOST_STEP: usize = 1_000;

/// A page's public state.
pub(super) fn line(record: &PageRecord) -> Line {
    let published = &record.published;
    Line {
        url: record.url().clone(),
        status: published.status,
        group: published.group,
        winner: published.winner.clone(),
        similarity: published.similarity.map(Similarity::jaccard),
        reason: published.reason,
    }
}

fn view(record: PageRecord) -> PageView {
    let line = line(&record);
    let (mut content, mut winner, mut redirect_to, mut target, mut unresolved) =
        (None, None, None, None, None);
    match &record.state {
        State::Content(state) => {
            content = Some(state.content);
            winner = state
                .membership
                .as_ref()
                .and_then(|m| m.winner.as_ref())
                .map(|w| WinnerView { page: w.page, content: w.content });
        }
        State::Redirect(state) => {
            redirect_to = Some(state.to.clone());
            target = state.attached_to();
            unresolved = match state.resolution {
                Some(Resolution::Unresolved(reason)) => Some(reason),
                Some(Resolution::Content(_)) | None => None,
            };
        }
        State::Dead | State::Purged => {}
    }
    PageView {
        line,
        fetched_at: record.fetched_at,
        content,
        language: record.language,
        canonical: record.canonical,
        redirect_to,
        target,
        unresolved,
        winner,
        rank: record.rank,
    }
}

fn summary(group: GroupId, record: &GroupRecord) -> GroupSummary {
    match record {
        GroupRecord::Active(Group { winner, members, dissimilar, dirty, quarantined, .. }) => GroupSummary {
            group,
            state: GroupState::Active,
            members: *members,
            dissimilar: *dissimilar,
            winner: winner.as_ref().map(|(_, member)| member.rank.url.clone()),
            dirty: *dirty,
            quarantined: *quarantined,
        },
        GroupRecord::Forward(forward) => GroupSummary {
            group,
            state: GroupState::MergedInto { group: forward.into },
            members: 0,
            dissimilar: 0,
            winner: None,
            dirty: false,
            quarantined: false,
        },
    }
}

/// A piece of a group's pages.
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

impl Tier1 {
    pub(super) fn read_page(&self, page: PageId) -> Result<Option<PageView>, Tier1Error> {
        let record: Option<PageRecord> = read(&*self.store, &key::page(self.owner(page), page))?;
        Ok(record.filter(|record| record.state != State::Purged).map(view))
    }

    pub(super) fn read_signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        let key = key::signature(self.owner(page), page);
        let Some(bytes) = self.store.get(&key)? else { return Ok(None) };
        Signature::from_bytes(&bytes)
            .map(|signature| Some(Arc::new(signature)))
            .map_err(|error| Tier1Error::Damaged(format!("the signature of page {page:?}: {error}")))
    }

    pub(super) fn read_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        if group.shard().0 >= self.settings.shards {
            return Ok(None);
        }
        Ok(read(&*self.store, &key::group(group))?.map(|record| summary(group, &record)))
    }

    pub(super) fn read_group(
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
        let from =
            after.map_or_else(|| prefix.clone(), |after| key::after(&key::member(group, after.member)));
        let mut rows: Vec<(PageId, Result<Member, StoreError>)> = Vec::new();
        let room = listing.room();
        self.store.range(&from, &key::after_prefix(&prefix), &mut |key, bytes| {
            if rows.len() < room
                && let Some(page) = key::last_page(key)
            {
                rows.push((page, decode(key, bytes)));
            }
            rows.len() < room
        })?;
        for (page, member) in rows {
            if listing.room() == 0 {
                break;
            }
            let (member, after) = (member?, GroupPosition { member: page, redirect: None });
            if let Some(record) = read::<PageRecord>(&*self.store, &key::page(self.owner(page), page))? {
                listing.members.push(MemberView { line: line(&record), content: Some(member.content) });
            }
            listing.last = Some(after);
            if member.pinned && redirects {
                self.list_inbound_redirects(&mut listing, after)?;
            }
        }
        let next = listing.last.filter(|_| listing.room() == 0);
        Ok(Some(GroupView { summary, members: listing.members, next }))
    }

    /// The redirects that end at a member, after the one named.
    fn list_inbound_redirects(&self, listing: &mut Listing, after: GroupPosition) -> Result<(), Tier1Error> {
        let GroupPosition { member, redirect } = after;
        let shard = self.owner(member);
        let prefix = key::edges(shard, Kind::InboundRedirect, member);
        let from = redirect.map_or_else(
            || prefix.clone(),
            |redirect| key::after(&key::edge(shard, Kind::InboundRedirect, member, redirect)),
        );
        let room = listing.room();
        let mut sources = Vec::new();
        self.store.range(&from, &key::after_prefix(&prefix), &mut |key, _| {
            if sources.len() < room {
                sources.extend(key::last_page(key));
            }
            sources.len() < room
        })?;
        for source in sources {
            if let Some(record) = read::<PageRecord>(&*self.store, &key::page(self.owner(source), source))? {
                listing.members.push(MemberView { line: line(&record), content: None });
            }
            listing.last = Some(GroupPosition { member, redirect: Some(source) });
        }
        Ok(())
    }

    pub(super) fn read_groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error> {
        let mut found = Vec::new();
        let first = after.map_or(0, |group| group.shard().0);
        for shard in (first..self.settings.shards).map(ShardId) {
            let (mut from, to) = key::all(shard, Kind::Group);
            if let Some(group) = after.filter(|group| group.shard() == shard) {
                from = key::after(&key::group(group));
            }
            let mut damaged = None;
            self.store.range(&from, &to, &mut |key, bytes| {
                match (key::last_number(key), decode::<GroupRecord>(key, bytes)) {
                    (Some(id), Ok(record)) => {
                        let summary = summary(GroupId::from_stored(id), &record);
                        if wanted(filter, &summary) {
                            found.push(summary);
                        }
                    }
                    (_, Err(error)) => damaged = Some(error),
                    (None, Ok(_)) => {}
                }
                found.len() < limit && damaged.is_none()
            })?;
            if let Some(error) = damaged {
                return Err(error.into());
            }
            if found.len() >= limit {
                break;
            }
        }
        Ok(found)
    }

    pub(super) fn scan_pages(
        &self,
        each: &mut dyn FnMut(Line) -> std::io::Result<()>,
    ) -> Result<String, Tier1Error> {
        use doppel_protocol::Status;
        let cursor = self.cursor_at_end();
        for shard in (0..self.settings.shards).map(ShardId) {
            let mut failed = None;
            crate::recovery::each(&*self.store, shard, Kind::Page, |key, bytes| {
                let record: PageRecord = decode(key, bytes)?;
                let live = !matches!(record.published.status, Status::Dead | Status::Unknown);
                if live && let Err(error) = each(line(&record)) {
                    failed = Some(error.to_string());
                    return Err(StoreError::Engine("stopped".to_owned()));
                }
                Ok(())
            })
            .map_err(|error| match failed.take() {
                Some(reason) => Tier1Error::ReadOnly(format!("the output failed: {reason}")),
                None => error.into(),
            })?;
        }
        Ok(cursor)
    }

    /// Up to [`HOST_STEP`] pages of a host in a shard, purged ones left out, and the page to go on after
    /// unless these were the last.
    pub(super) fn pages_of_host(
        &self,
        host: &str,
        shard: ShardId,
        after: Option<PageId>,
    ) -> Result<(Vec<PageId>, Option<PageId>), Tier1Error> {
        let (mut from, to) = key::all(shard, Kind::Page);
        if let Some(after) = after {
            from = key::after(&key::page(shard, after));
        }
        let mut pages = Vec::new();
        let mut damaged = None;
        self.store.range(&from, &to, &mut |key, bytes| {
            match decode::<PageRecord>(key, bytes) {
                Ok(record)
                    if record.state != State::Purged && record.url().host().eq_ignore_ascii_case(host) =>
                {
                    pages.extend(key::last_page(key));
                }
                Ok(_) => {}
                Err(error) => damaged = Some(error),
            }
            pages.len() < HOST_STEP && damaged.is_none()
        })?;
        if let Some(error) = damaged {
            return Err(error.into());
        }
        let next = pages.last().copied().filter(|_| pages.len() == HOST_STEP);
        Ok((pages, next))
    }
}

fn wanted(filter: GroupFilter, summary: &GroupSummary) -> bool {
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
