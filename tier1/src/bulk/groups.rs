//! Groups, winners and statuses of pages whose contents are joined: the rules are those of `machine::group` and
//! `machine::publish`.

use doppel_join::{ContentIndex, Contents, Read};
use doppel_model::{GroupId, ShardId};
use doppel_protocol::{Counters, Rank, Status, Unresolved, WinnerOrder};

use super::versions::{State, Versions};
use super::{BulkError, BulkGroup, Grouped, GroupedPage, redirects};
use crate::record::Similarity;
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
}

/// The pages with a content that are one group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) id: GroupId,
    pub(super) winner: u32,
    pub(super) pages: Vec<u32>,
    pub(super) quarantined: bool,
}

/// A page's place in a group, by the index of that, and its comparison with the winner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) group: u32,
    pub(super) shared: u32,
    pub(super) similar: bool,
}

/// What a page is told.
#[derive(Debug, Clone, Copy)]
struct Told {
    status: Status,
    group: Option<usize>,
    similarity: Option<f64>,
}

impl Told {
    fn alone(status: Status) -> Self {
        Self { status, group: None, similarity: None }
    }

    /// What a redirect is told that ends at a page with this status.
    fn of_redirect(self) -> Self {
        let status = if self.status == Status::Member { Status::Member } else { Status::Duplicate };
        Self { status, similarity: None, ..self }
    }
}

/// Finds the groups of all pages.
pub(super) fn resolve(
    versions: Versions,
    mut contents: Contents,
    read: &Read<'_, BulkError>,
    winners: WinnerOrder,
    group_members_max: u64,
) -> Result<Resolved, BulkError> {
    let end = |(page, state): (usize, &State)| {
        matches!(state, State::Redirect(_)).then(|| redirects::end(&versions, page).map(|end| end as u32))
    };
    let states = versions.pages.iter().map(|page| &page.state);
    let ends: Vec<Option<Result<u32, Unresolved>>> = states.enumerate().map(end).collect();
    let mut inbound = vec![0_u32; ends.len()];
    ends.iter().flatten().flatten().for_each(|end| inbound[*end as usize] += 1);
    let groups = groups(&versions, &contents, read, &inbound, winners, group_members_max)?;
    let places = places(&versions, &contents, read, &groups)?;
    contents.forget_columns();
    Ok(Resolved { versions, contents, ends, inbound, groups, places })
}

/// Pages that a component of contents has, when they are several or redirects end there.
fn groups(
    versions: &Versions,
    contents: &Contents,
    read: &Read<'_, BulkError>,
    inbound: &[u32],
    winners: WinnerOrder,
    group_members_max: u64,
) -> Result<Vec<Group>, BulkError> {
    let with_content = || {
        let numbered = (0..).zip(&versions.pages);
        numbered.filter_map(|(number, page)| Some((number, page.content()?)))
    };
    let mut counts = vec![false; contents.len()];
    with_content().for_each(|(_, content)| counts[content.0 as usize] = true);
    let roots = contents.components(read, |content| counts[content.0 as usize])?;
    // A content without tokens is no duplicate, of an equal one neither.
    let mut by_root: Vec<(Result<ContentIndex, u32>, u32)> = with_content()
        .map(|(number, content)| match contents.tokens(content) {
            0 => (Err(number), number),
            _ => (Ok(roots[content.0 as usize]), number),
        })
        .collect();
    by_root.sort_unstable();
    let rank = |page: u32| &versions.pages[page as usize].rank;
    let groups = by_root.chunk_by(|a, b| a.0 == b.0).filter_map(|component| {
        let pages: Vec<u32> = component.iter().map(|(_, page)| *page).collect();
        let keeps_a_group = pages.len() > 1 || pages.iter().any(|page| inbound[*page as usize] > 0);
        let winner = pages.iter().copied().reduce(|best, page| better(winners, rank, best, page));
        winner.filter(|_| keeps_a_group).map(|winner| Group {
            id: GroupId::new(0, rank(winner).url.id().shard(versions.shards())),
            winner,
            quarantined: pages.len() as u64 > group_members_max,
            pages,
        })
    });
    let mut groups: Vec<Group> = groups.collect();
    groups.sort_unstable_by_key(|group| (group.id.shard(), &rank(group.winner).url));
    for of_shard in groups.chunk_by_mut(|a, b| a.id.shard() == b.id.shard()) {
        for (group, number) in of_shard.iter_mut().zip(1..) {
            group.id = GroupId::new(number, group.id.shard());
        }
    }
    Ok(groups)
}

fn better<'r>(winners: WinnerOrder, rank: impl Fn(u32) -> &'r Rank, best: u32, page: u32) -> u32 {
    if winners.beats(rank(page), rank(best)) { page } else { best }
}

/// Compares every page in a group with its winner.
fn places(
    versions: &Versions,
    contents: &Contents,
    read: &Read<'_, BulkError>,
    groups: &[Group],
) -> Result<Vec<Option<Place>>, BulkError> {
    let content = |page: u32| versions.pages[page as usize].content();
    // Each content once, and with its own winner: a content is in one group.
    let mut pairs: Vec<(ContentIndex, ContentIndex)> = Vec::new();
    for group in groups {
        let Some(winner) = content(group.winner) else { continue };
        let others = group.pages.iter().filter_map(|page| content(*page));
        pairs.extend(others.filter(|content| *content != winner).map(|content| (content, winner)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let comparisons = contents.compare_all(read, &pairs)?;

    let mut places = vec![None; versions.pages.len()];
    for (number, group) in (0..).zip(groups) {
        let Some(winner) = content(group.winner) else { continue };
        for &page in &group.pages {
            let Some(own) = content(page) else { continue };
            let compared = pairs.binary_search(&(own, winner)).ok().map(|at| comparisons[at]);
            // Those that are not among the pairs have the winner's content.
            let (shared, similar) = compared.map_or_else(
                || (contents.shingles(own), contents.tokens(own) > 0),
                |comparison| (comparison.shared, comparison.similar),
            );
            places[page as usize] = Some(Place { group: number, shared, similar });
        }
    }
    Ok(places)
}

impl Resolved {
    /// The answer.
    pub(super) fn into_grouped(self) -> Grouped {
        let groups: Vec<BulkGroup> = self.groups.iter().map(|group| self.summary(group)).collect();
        let told: Vec<Told> = (0..self.versions.pages.len()).map(|page| self.told(page)).collect();
        let intake = self.versions.intake.iter().map(|counters| (*counters, Default::default()));
        let (mut counters, _) = totals::add(intake);
        counters.groups = groups.len() as u64;
        let mut pages = Vec::with_capacity(told.len());
        for ((page, end), told) in self.versions.pages.into_iter().zip(self.ends).zip(told) {
            if page.state == State::Dead {
                counters.dead += 1;
                continue;
            }
            count(&mut counters, told.status, end.is_some());
            let Told { status, group, similarity } = told;
            let reason = end.and_then(Result::err);
            pages.push(GroupedPage { url: page.rank.url, status, group, similarity, reason });
        }
        pages.sort_unstable_by(|a, b| a.url.cmp(&b.url));
        Grouped { pages, groups, counters }
    }

    pub(super) fn content(&self, page: u32) -> Option<ContentIndex> {
        self.versions.pages[page as usize].content()
    }

    fn told(&self, page: usize) -> Told {
        match self.ends[page] {
            _ if self.versions.pages[page].state == State::Dead => Told::alone(Status::Dead),
            None => self.told_of_content(page),
            Some(Ok(end)) => self.told_of_content(end as usize).of_redirect(),
            Some(Err(_)) => Told::alone(Status::Unresolved),
        }
    }

    fn told_of_content(&self, page: usize) -> Told {
        let Some(Place { group: number, shared, similar }) = self.places[page] else {
            return Told::alone(Status::Unique);
        };
        let (group, winner) = (&self.groups[number as usize], self.groups[number as usize].winner);
        if page as u32 == winner {
            return Told { status: Status::Winner, group: Some(number as usize), similarity: None };
        }
        let status = if similar && !group.quarantined { Status::Duplicate } else { Status::Member };
        let shingles = |page: u32| self.content(page).map_or(0, |content| self.contents.shingles(content));
        let similarity = Similarity { shared, a: shingles(page as u32), b: shingles(winner) };
        Told { status, group: Some(number as usize), similarity: Some(similarity.jaccard()) }
    }

    fn summary(&self, group: &Group) -> BulkGroup {
        let winner = self.content(group.winner);
        BulkGroup {
            group: group.id,
            winner: self.versions.pages[group.winner as usize].rank.url.clone(),
            pages: group.pages.iter().map(|page| 1 + u64::from(self.inbound[*page as usize])).sum(),
            contents: group.pages.len() as u64,
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
        Status::Member => counters.members += 1,
        Status::Unresolved => counters.unresolved += 1,
        Status::Unique | Status::Pending | Status::Unknown | Status::Dead => {}
    }
}
