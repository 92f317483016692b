//! Groups, winners and statuses of pages whose contents are joined: the rules are those of `machine::group` and
//! `machine::publish`.

use doppel_join::{ContentIndex, Contents, JoinError};
use doppel_model::{GroupId, ShardId};
use doppel_protocol::{Counters, Rank, Status, Unresolved, WinnerOrder};

use super::versions::{State, Versions};
use super::{Bulk, BulkGroup, Grouped, GroupedPage, redirects};

/// What a page is told. A group is named by its place in the list.
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

/// The pages with a content that are one group.
struct Members {
    winner: usize,
    pages: Vec<usize>,
}

pub(super) fn grouped(bulk: Bulk) -> Result<Grouped, JoinError> {
    let Bulk { versions, mut contents, winners, group_members_max } = bulk;
    let end = |(page, state): (usize, &State)| {
        matches!(state, State::Redirect(_)).then(|| redirects::end(&versions, page))
    };
    let states = versions.pages.iter().map(|page| &page.state);
    let ends: Vec<Option<Result<usize, Unresolved>>> = states.enumerate().map(end).collect();
    let mut inbound = vec![0_u64; ends.len()];
    ends.iter().flatten().flatten().for_each(|end| inbound[*end] += 1);

    let mut members = members(&versions, &mut contents, &inbound, winners)?;
    let url = |members: &Members| &versions.pages[members.winner].rank.url;
    members.sort_unstable_by(|a, b| url(a).cmp(url(b)));
    let groups: Vec<BulkGroup> =
        members.iter().zip(1..).map(|(members, id)| members.summary(id, &versions, &inbound)).collect();
    let told = told(&versions, &contents, &members, group_members_max)?;
    drop((members, contents));

    let mut counters = Counters { groups: groups.len() as u64, ..versions.counters };
    let mut pages = Vec::with_capacity(ends.len());
    for (number, (page, end)) in versions.pages.into_iter().zip(ends).enumerate() {
        let told = match end {
            _ if page.state == State::Dead => {
                counters.dead += 1;
                continue;
            }
            None => told[number],
            Some(Ok(end)) => told[end].of_redirect(),
            Some(Err(_)) => Told::alone(Status::Unresolved),
        };
        count(&mut counters, told.status, end.is_some());
        let Told { status, group, similarity } = told;
        let reason = end.and_then(Result::err);
        pages.push(GroupedPage { url: page.rank.url, status, group, similarity, reason });
    }
    pages.sort_unstable_by(|a, b| a.url.cmp(&b.url));
    Ok(Grouped { pages, groups, counters })
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

/// Pages that a component of contents has, when they are several or redirects end there.
fn members(
    versions: &Versions,
    contents: &mut Contents,
    inbound: &[u64],
    winners: WinnerOrder,
) -> Result<Vec<Members>, JoinError> {
    let with_content = || {
        versions.pages.iter().enumerate().filter_map(|(number, page)| match page.state {
            State::Content(content) => Some((number, content)),
            State::Redirect(_) | State::Dead => None,
        })
    };
    let mut counts = vec![false; contents.len()];
    with_content().for_each(|(_, content)| counts[content.0 as usize] = true);
    let roots = contents.components(|content| counts[content.0 as usize])?;
    // A content without tokens is no duplicate, of an equal one neither.
    let mut by_root: Vec<(Result<ContentIndex, usize>, usize)> = with_content()
        .map(|(number, content)| match contents.tokens(content) {
            0 => (Err(number), number),
            _ => (Ok(roots[content.0 as usize]), number),
        })
        .collect();
    by_root.sort_unstable();
    let rank = |page: usize| &versions.pages[page].rank;
    let groups = by_root.chunk_by(|a, b| a.0 == b.0).filter_map(|component| {
        let pages: Vec<usize> = component.iter().map(|(_, page)| *page).collect();
        let keeps_a_group = pages.len() > 1 || pages.iter().any(|page| inbound[*page] > 0);
        let winner = pages.iter().copied().reduce(|best, page| better(winners, rank, best, page));
        winner.filter(|_| keeps_a_group).map(|winner| Members { winner, pages })
    });
    Ok(groups.collect())
}

fn better<'r>(winners: WinnerOrder, rank: impl Fn(usize) -> &'r Rank, best: usize, page: usize) -> usize {
    if winners.beats(rank(page), rank(best)) { page } else { best }
}

impl Members {
    fn content(&self, page: usize, versions: &Versions) -> Option<ContentIndex> {
        match versions.pages[page].state {
            State::Content(content) => Some(content),
            State::Redirect(_) | State::Dead => None,
        }
    }

    fn summary(&self, id: u64, versions: &Versions, inbound: &[u64]) -> BulkGroup {
        let winner = self.content(self.winner, versions);
        BulkGroup {
            group: GroupId::new(id, ShardId(0)),
            winner: versions.pages[self.winner].rank.url.clone(),
            pages: self.pages.iter().map(|page| 1 + inbound[*page]).sum(),
            contents: self.pages.len() as u64,
            same: self.pages.iter().all(|page| self.content(*page, versions) == winner),
        }
    }
}

/// What every page with a content is told: by comparison with its group's winner.
fn told(
    versions: &Versions,
    contents: &Contents,
    groups: &[Members],
    group_members_max: u64,
) -> Result<Vec<Told>, JoinError> {
    // Each content once, and with its own winner: a content is in one group.
    let mut pairs: Vec<(ContentIndex, ContentIndex)> = Vec::new();
    for group in groups {
        let Some(winner) = group.content(group.winner, versions) else { continue };
        let others = group.pages.iter().filter_map(|page| group.content(*page, versions));
        pairs.extend(others.filter(|content| *content != winner).map(|content| (content, winner)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let comparisons = contents.compare_all(&pairs)?;

    let mut told = vec![Told::alone(Status::Unique); versions.pages.len()];
    for (number, group) in groups.iter().enumerate() {
        let winner = group.content(group.winner, versions);
        let is_quarantined = group.pages.len() as u64 > group_members_max;
        for &page in &group.pages {
            let content = group.content(page, versions);
            let (similar, similarity) = match content.zip(winner) {
                Some((content, winner)) if content != winner => {
                    match pairs.binary_search(&(content, winner)) {
                        Ok(at) => (comparisons[at].similar, comparisons[at].jaccard()),
                        Err(_) => (false, 0.0),
                    }
                }
                _ => (true, 1.0),
            };
            told[page] = if page == group.winner {
                Told { status: Status::Winner, group: Some(number), similarity: None }
            } else {
                let status = if similar && !is_quarantined { Status::Duplicate } else { Status::Member };
                Told { status, group: Some(number), similarity: Some(similarity) }
            };
        }
    }
    Ok(told)
}
