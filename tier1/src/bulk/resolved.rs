//! What becomes of every page when all versions are known: the statuses are those of `machine::publish`.

use doppel_contract::{Counters, Market, Status, Unresolved};
use doppel_join::{ContentIndex, Contents, ReadSignature};
use doppel_model::ShardId;
use doppel_protocol::WinnerOrder;

use super::cover::cover;
use super::grouped::{BulkGroup, Grouped, GroupedPage};
use super::groups::{CoveredBy, Group, Place, groups, places};
use super::market::{self, Preferred};
use super::versions::{State, Versions};
use super::{BulkError, Unit, redirects};
use crate::totals;

/// A collection of which all groups are known.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) versions: Versions,
    pub(super) contents: Contents,
    /// By page, for redirects: the page where its chain ends.
    pub(super) ends: Vec<Option<Result<u32, Unresolved>>>,
    /// By page: redirects that end there.
    pub(super) inbound: Vec<u32>,
    /// By shard, and in a shard by the winner's URL.
    pub(super) groups: Vec<Group>,
    /// By page: its place in a group, for those that have a content and are in one.
    pub(super) places: Vec<Option<Place>>,
    /// By group, when there is a market: the page that takes the winner's place in the answer.
    preferred: Vec<Option<Preferred>>,
}

/// What a page is told.
#[derive(Debug, Clone, Copy)]
struct Told {
    status: Status,
    group: Option<usize>,
    duplicate_of: Option<u32>,
    similarity: Option<f64>,
}

impl Told {
    fn alone(status: Status) -> Self {
        Self { status, group: None, duplicate_of: None, similarity: None }
    }

    /// What a redirect is told that ends at this page.
    fn of_redirect(self, end: u32) -> Self {
        let duplicate_of = self.duplicate_of.or(Some(end));
        Self { status: Status::Duplicate, duplicate_of, similarity: None, ..self }
    }
}

/// Finds the groups of all pages.
pub(super) fn resolve(
    versions: Versions,
    mut contents: Contents,
    read: &ReadSignature<'_, BulkError>,
    (winners, market): (WinnerOrder, Option<&Market>),
    group_members_max: u64,
) -> Result<Resolved, BulkError> {
    let spellings = redirects::Spellings::wanted(&versions);
    let end = |(page, state): (usize, &State)| {
        let end = || redirects::end(&versions, &spellings, page).map(|end| end as u32);
        matches!(state, State::Redirect(_)).then(end)
    };
    let states = versions.pages.iter().map(|page| &page.state);
    let ends: Vec<Option<Result<u32, Unresolved>>> = states.enumerate().map(end).collect();
    let mut inbound = vec![0_u32; ends.len()];
    ends.iter().flatten().flatten().for_each(|end| inbound[*end as usize] += 1);
    let groups = groups(&versions, &contents, read, &inbound, winners, group_members_max)?;
    let mut places = places(&versions, &contents, read, &groups)?;
    cover(&versions, (&contents, read), winners, &groups, &mut places)?;
    let of_market =
        |market| market::preferred(&versions, (&contents, read), (winners, market), &groups, &places);
    let preferred = market.map_or(Ok(Vec::new()), of_market)?;
    contents.forget_columns();
    Ok(Resolved { versions, contents, ends, inbound, groups, places, preferred })
}

impl Resolved {
    /// The answer.
    pub(super) fn into_grouped(self) -> Grouped {
        let mut groups: Vec<BulkGroup> =
            self.groups.iter().enumerate().map(|(number, group)| self.summary(number, group)).collect();
        let told: Vec<Told> = (0..self.versions.pages.len()).map(|page| self.told(page)).collect();
        let intake = self.versions.intake.iter().map(|counters| (*counters, Default::default()));
        let (mut counters, _) = totals::add(intake);
        counters.groups = groups.len() as u64;
        let unit = self.versions.unit();
        let (mut pages, mut dead) = (Vec::with_capacity(told.len()), Vec::new());
        for (number, ((page, end), told)) in
            (0_u32..).zip(self.versions.pages.into_iter().zip(self.ends).zip(told))
        {
            if page.state == State::Dead {
                counters.dead += 1;
                if unit == Unit::Page {
                    dead.extend(page.record.map(|record| record.number));
                    continue;
                }
            } else {
                count(&mut counters, told.status, end.is_some());
            }
            let Told { status, group, duplicate_of, similarity } = told;
            let content = page.content().map(|content| self.contents.hash(content));
            let page = GroupedPage {
                url: page.rank.url,
                status,
                group,
                duplicate_of,
                similarity,
                reason: end.and_then(Result::err),
                content,
                record: page.record.map(|record| record.number),
            };
            pages.push((number, page));
        }
        // So far pages are named by their numbers, which are the places of records.
        if unit == Unit::Page {
            pages.sort_unstable_by(|(_, a), (_, b)| a.url.cmp(&b.url));
            let mut places = vec![0; self.inbound.len()];
            (0..).zip(&pages).for_each(|(place, (number, _))| places[*number as usize] = place);
            let place = |number: u32| places[number as usize];
            pages.iter_mut().for_each(|(_, page)| page.duplicate_of = page.duplicate_of.map(place));
            groups.iter_mut().for_each(|group| group.winner_place = place(group.winner_place));
        }
        Grouped { pages: pages.into_iter().map(|(_, page)| page).collect(), groups, counters, dead }
    }

    pub(super) fn content(&self, page: u32) -> Option<ContentIndex> {
        self.versions.pages[page as usize].content()
    }

    fn told(&self, page: usize) -> Told {
        match self.ends[page] {
            _ if self.versions.pages[page].state == State::Dead => Told::alone(Status::Dead),
            None => self.told_of_content(page),
            Some(Ok(end)) => self.told_of_content(end as usize).of_redirect(end),
            Some(Err(_)) => Told::alone(Status::Unresolved),
        }
    }

    /// What a page with content is told.
    fn told_of_content(&self, page: usize) -> Told {
        let Some(Place { group, similarity, similar, covered_by }) = self.places[page] else {
            return Told::alone(Status::Unique);
        };
        let (number, page) = (group as usize, page as u32);
        let Group { winner, quarantined, .. } = self.groups[number];
        let kept = |status| Told { group: Some(number), ..Told::alone(status) };
        let of_winner = match self.preferred(number) {
            Some(Preferred { page: first, similarities }) if similar || page == winner => {
                let similarity = self.content(page).and_then(|content| similarities.get(&content)).copied();
                similarity.map(|similarity| CoveredBy { page: *first, similarity })
            }
            _ => similar.then_some(CoveredBy { page: winner, similarity }),
        };
        match of_winner.or(covered_by) {
            _ if page == self.stands_for(number) => kept(Status::Winner),
            Some(of) if !quarantined => {
                let similarity = Some(of.similarity.as_f64());
                Told { duplicate_of: Some(of.page), similarity, ..kept(Status::Duplicate) }
            }
            _ => kept(Status::Secondary),
        }
    }

    fn preferred(&self, group: usize) -> Option<&Preferred> {
        self.preferred.get(group).and_then(Option::as_ref)
    }

    /// The page that a group is represented by.
    fn stands_for(&self, group: usize) -> u32 {
        self.preferred(group).map_or(self.groups[group].winner, |preferred| preferred.page)
    }

    fn summary(&self, number: usize, group: &Group) -> BulkGroup {
        let winner = self.content(group.winner);
        BulkGroup {
            group: group.id,
            winner: self.versions.pages[self.stands_for(number) as usize].rank.url.clone(),
            winner_place: self.stands_for(number),
            pages: group.pages.iter().map(|page| 1 + u64::from(self.inbound[*page as usize])).sum(),
            contents: group.pages.len() as u64,
            quarantined: group.quarantined,
            same: group.pages.iter().all(|page| self.content(*page) == winner),
        }
    }

    /// The groups of a shard.
    pub(super) fn groups_of(&self, shard: ShardId) -> &[Group] {
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
