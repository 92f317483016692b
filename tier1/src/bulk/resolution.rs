//! The status of every page when all versions are known, by the rules of `machine::publish`.

use doppel_contract::{Counters, Market, Status, UnresolvedReason};
use doppel_join::{ContentIndex, Contents, ReadSignature};
use doppel_model::ShardId;
use doppel_protocol::WinnerOrder;

use super::cover::cover;
use super::grouped::{BulkGroup, GroupedCollection, GroupedPage, NamedRecord};
use super::groups::{ContentGroup, CoveredBy, GroupMember, compare_with_winners, groups};
use super::market::{self, MarketWinner};
use super::versions::{PageState, Versions};
use super::{BulkError, Unit, redirects};
use crate::rows::totals;

/// A collection whose groups are known.
#[derive(Debug)]
pub(super) struct ResolvedCollection {
    pub(super) versions: Versions,
    pub(super) contents: Contents,
    /// By page, for redirects: the page at the end of the chain.
    pub(super) ends: Vec<Option<Result<u32, UnresolvedReason>>>,
    /// By page: number of redirects that end there.
    pub(super) inbound: Vec<u32>,
    /// Groups, ordered by shard and then by the winner's URL.
    pub(super) groups: Vec<ContentGroup>,
    /// By page, for pages with content in a group: the group and the comparison with the winner.
    pub(super) members: Vec<Option<GroupMember>>,
    /// By group, if there is a market: the page that takes the winner's place in the answer.
    preferred: Vec<Option<MarketWinner>>,
}

/// Status of a page in the answer.
#[derive(Debug, Clone, Copy)]
struct PageStatus {
    status: Status,
    group: Option<usize>,
    duplicate_of: Option<u32>,
    similarity: Option<f64>,
}

impl PageStatus {
    fn alone(status: Status) -> Self {
        Self { status, group: None, duplicate_of: None, similarity: None }
    }

    /// Returns the status of a redirect that ends at this page.
    fn of_redirect(self, end: u32) -> Self {
        let duplicate_of = self.duplicate_of.or(Some(end));
        Self { status: Status::Duplicate, duplicate_of, similarity: None, ..self }
    }
}

/// Finds the groups of all pages and their statuses.
pub(super) fn resolve(
    versions: Versions,
    mut contents: Contents,
    read: &ReadSignature<'_, BulkError>,
    (winners, market): (WinnerOrder, Option<&Market>),
    group_members_max: u64,
) -> Result<ResolvedCollection, BulkError> {
    let spellings = redirects::Spellings::needed_by_redirects(&versions);
    let end = |(page, state): (usize, &PageState)| {
        let end = || redirects::end_of_chain(&versions, &spellings, page).map(|end| end as u32);
        matches!(state, PageState::Redirect(_)).then(end)
    };
    let states = versions.pages.iter().map(|page| &page.state);
    let ends: Vec<Option<Result<u32, UnresolvedReason>>> = states.enumerate().map(end).collect();
    let mut inbound = vec![0_u32; ends.len()];
    ends.iter().flatten().flatten().for_each(|end| inbound[*end as usize] += 1);
    let groups = groups(&versions, &contents, read, &inbound, winners, group_members_max)?;
    let mut members = compare_with_winners(&versions, &contents, read, &groups)?;
    cover(&versions, (&contents, read), winners, &groups, &mut members)?;
    let of_market =
        |market| market::preferred(&versions, (&contents, read), (winners, market), &groups, &members);
    let preferred = market.map_or(Ok(Vec::new()), of_market)?;
    contents.forget_columns();
    Ok(ResolvedCollection { versions, contents, ends, inbound, groups, members, preferred })
}

impl ResolvedCollection {
    /// Returns the answer.
    pub(super) fn into_grouped(self) -> GroupedCollection {
        let mut groups: Vec<BulkGroup> =
            self.groups.iter().enumerate().map(|(number, group)| self.summary(number, group)).collect();
        let statuses: Vec<PageStatus> =
            (0..self.versions.pages.len()).map(|page| self.status_of(page)).collect();
        let intake = self.versions.intake.iter().map(|counters| (*counters, Default::default()));
        let (mut counters, _) = totals::add(intake);
        counters.groups = groups.iter().filter(|group| group.has_judged()).count() as u64;
        let unit = self.versions.unit();
        let (mut pages, mut dead) = (Vec::with_capacity(statuses.len()), Vec::new());
        let mut protected = 0_u64..;
        for (number, ((page, end), page_status)) in
            (0_u32..).zip(self.versions.pages.into_iter().zip(self.ends).zip(statuses))
        {
            if page.state == PageState::Dead {
                counters.dead += 1;
                if unit == Unit::Page {
                    dead.extend(page.record.map(|record| record.number));
                    continue;
                }
            } else if !page.is_protected() {
                count(&mut counters, page_status.status, end.is_some());
            }
            let PageStatus { status, group, duplicate_of, similarity } = page_status;
            let content = page.content().map(|content| self.contents.hash(content));
            let record = match page.reference {
                Some(_) => protected.next().map(NamedRecord::Protected),
                None => page.record.map(|record| NamedRecord::Input(record.number)),
            };
            let page = GroupedPage {
                url: page.rank.url,
                status,
                group,
                duplicate_of,
                similarity,
                reason: end.and_then(Result::err),
                content,
                record,
            };
            pages.push((number, page));
        }
        let is_protected = |(_, page): &(u32, GroupedPage)| page.is_protected();
        let judged = pages.iter().filter(|page| !is_protected(page)).count();
        // Until here pages are referred to by their numbers, which for records are the final indexes.
        if unit == Unit::Page || judged < pages.len() {
            match unit {
                Unit::Page => pages.sort_unstable_by(|a, b| {
                    is_protected(a).cmp(&is_protected(b)).then_with(|| a.1.url.cmp(&b.1.url))
                }),
                Unit::Record => pages.sort_by_key(is_protected),
            }
            let mut indexes = vec![0; self.inbound.len()];
            (0..).zip(&pages).for_each(|(index, (number, _))| indexes[*number as usize] = index);
            let index_of = |number: u32| indexes[number as usize];
            pages.iter_mut().for_each(|(_, page)| page.duplicate_of = page.duplicate_of.map(index_of));
            groups.iter_mut().for_each(|group| group.winner_place = index_of(group.winner_place));
        }
        let pages = pages.into_iter().map(|(_, page)| page).collect();
        GroupedCollection { pages, judged, groups, counters, dead }
    }

    pub(super) fn content(&self, page: u32) -> Option<ContentIndex> {
        self.versions.pages[page as usize].content()
    }

    fn status_of(&self, page: usize) -> PageStatus {
        match self.ends[page] {
            _ if self.versions.pages[page].state == PageState::Dead => PageStatus::alone(Status::Dead),
            None => self.status_of_content(page),
            Some(Ok(end)) => self.status_of_content(end as usize).of_redirect(end),
            Some(Err(_)) => PageStatus::alone(Status::Unresolved),
        }
    }

    /// Returns the status of a page with content.
    fn status_of_content(&self, page: usize) -> PageStatus {
        let Some(GroupMember { group, similarity, similar, covered_by }) = self.members[page] else {
            return PageStatus::alone(Status::Unique);
        };
        let (number, page) = (group as usize, page as u32);
        let ContentGroup { winner, quarantined, .. } = self.groups[number];
        let kept = |status| PageStatus { group: Some(number), ..PageStatus::alone(status) };
        let of_winner = match self.preferred(number) {
            Some(MarketWinner { page: first, similarities }) if similar || page == winner => {
                let similarity = self.content(page).and_then(|content| similarities.get(&content)).copied();
                similarity.map(|similarity| CoveredBy { page: *first, similarity })
            }
            _ => similar.then_some(CoveredBy { page: winner, similarity }),
        };
        let is_protected = |page: u32| self.versions.pages[page as usize].is_protected();
        match of_winner.or(covered_by) {
            _ if page == self.stands_for(number) => kept(Status::Winner),
            Some(of) if !is_protected(page) && (!quarantined || is_protected(of.page)) => {
                let similarity = Some(of.similarity.as_f64());
                PageStatus { duplicate_of: Some(of.page), similarity, ..kept(Status::Duplicate) }
            }
            _ => kept(Status::Secondary),
        }
    }

    fn preferred(&self, group: usize) -> Option<&MarketWinner> {
        self.preferred.get(group).and_then(Option::as_ref)
    }

    /// Returns the page that represents a group.
    fn stands_for(&self, group: usize) -> u32 {
        self.preferred(group).map_or(self.groups[group].winner, |preferred| preferred.page)
    }

    fn summary(&self, number: usize, group: &ContentGroup) -> BulkGroup {
        let winner = self.content(group.winner);
        BulkGroup {
            group: group.id,
            winner: self.versions.pages[self.stands_for(number) as usize].rank.url.clone(),
            winner_place: self.stands_for(number),
            pages: group.pages.iter().map(|page| 1 + u64::from(self.inbound[*page as usize])).sum(),
            contents: group.pages.len() as u64,
            protected: group
                .pages
                .iter()
                .filter(|page| self.versions.pages[**page as usize].is_protected())
                .count() as u64,
            quarantined: group.quarantined,
            same: group.pages.iter().all(|page| self.content(*page) == winner),
        }
    }

    /// Returns the groups of a shard.
    pub(super) fn groups_of(&self, shard: ShardId) -> &[ContentGroup] {
        let start = self.groups.partition_point(|group| group.id.shard() < shard);
        let end = self.groups.partition_point(|group| group.id.shard() <= shard);
        &self.groups[start..end]
    }
}

fn count(counters: &mut Counters, status: Status, is_redirect: bool) {
    counters.live += 1;
    counters.redirects += u64::from(is_redirect);
    match status {
        Status::Winner => counters.winners += 1,
        Status::Duplicate => counters.duplicates += 1,
        Status::Secondary => counters.secondaries += 1,
        Status::Unresolved => counters.unresolved += 1,
        Status::Unique | Status::Pending | Status::Unknown | Status::Dead => {}
    }
}
