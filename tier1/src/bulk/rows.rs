//! The rows of a shard in the order of their keys, as the machine would have left them at rest.
//!
//! Invariants:
//! - what [`check`](crate::check) holds of a store at rest holds: both sides of every membership and redirect agree, all
//!   contents are compared, nothing is owed and no message is under way;
//! - the public state of a page is derived by the machine's own function;
//! - the events of a shard number its pages in the order of their ids, so a consumer that begins meets each once.
//!
//! Memory: 20 bytes for each page, 84 for each redirect, and 36 for each page that is spelled otherwise than in its normalised form.

use doppel_contract::Status;
use doppel_join::ContentIndex;
use doppel_model::{ClientId, PageId, ShardId, Timestamp};
use doppel_protocol::RepairId;
use rayon::prelude::*;

use super::groups::{CoveredBy, Group as Grouping, Place};
use super::redirects::Spellings;
use super::resolved::Resolved;
use super::versions::{Page, State as Is};
use crate::key::{self, Kind};
use crate::machine::{public_state, target_note, target_state};
use crate::record::{
    AuditEntry, ContentComparison, ContentState, Cover, CoveringPage, ForwardProbe, Group, GroupRecord,
    Member, Membership, Meta, PageRecord, PublicState, RedirectState, Resolution, SearchState, State, Winner,
    encode,
};
use crate::store::StoreError;
use crate::txn::{share_of_group, share_of_page};

/// The number of the one membership and the one search that a page has had, where it had any.
const FIRST: u32 = 1;

/// A row.
pub(super) enum Value {
    Record(Vec<u8>),
    /// The signature of a content.
    SignatureOf(ContentIndex),
}

/// Takes the rows one by one.
pub(super) type Put<'p> = dyn FnMut(Vec<u8>, Value) -> Result<(), StoreError> + 'p;

/// The rows of a collection.
pub(super) struct Rows<'r> {
    all: &'r Resolved,
    /// Every page and its number.
    pages: Vec<(PageId, u32)>,
    /// Redirects as the pages at their ends know them, and as those they lead straight to: target, source.
    inbound: Vec<(PageId, PageId)>,
    /// The second with the page that the target stands for.
    sources: Vec<(PageId, (PageId, Option<PageId>))>,
    /// By page, for redirects: the page that the target stands for.
    targets: Vec<Option<usize>>,
    /// Pages that are spelled otherwise than in their normalised form, behind that: normalised form, page.
    spellings: Vec<(PageId, (PageId, u32))>,
    /// When the collection was grouped.
    now: Timestamp,
}

impl<'r> Rows<'r> {
    /// Nobody looks for pages by their ids any more.
    pub(super) fn of(all: &'r mut Resolved, now: Timestamp) -> Self {
        let spellings = Spellings::wanted(&all.versions);
        let target = |number: usize| match &all.versions.pages[number].state {
            Is::Redirect(to) => spellings.find(&all.versions, to, number),
            Is::Content(_) | Is::Dead => None,
        };
        let targets: Vec<Option<usize>> = (0..all.versions.pages.len()).into_par_iter().map(target).collect();
        let mut pages: Vec<(PageId, u32)> = std::mem::take(&mut all.versions.numbers).into_iter().collect();
        pages.par_sort_unstable();
        let all = &*all;
        let (mut inbound, mut sources) = (Vec::new(), Vec::new());
        for ((page, end), target) in all.versions.pages.iter().zip(&all.ends).zip(&targets) {
            let Is::Redirect(to) = &page.state else { continue };
            let source = page.rank.url.id();
            let target = target.map(|target| all.versions.pages[target].rank.url.id());
            sources.push((to.normal_id(), (source, target)));
            if let Some(Ok(end)) = end {
                inbound.push((all.versions.pages[*end as usize].rank.url.id(), source));
            }
        }
        inbound.sort_unstable();
        sources.sort_unstable();
        let of_page = |(page, number): &(PageId, u32)| {
            let normalised = all.versions.pages[*number as usize].rank.url.normalised()?;
            Some((normalised.id(), (*page, *number)))
        };
        let mut spellings: Vec<(PageId, (PageId, u32))> = pages.par_iter().filter_map(of_page).collect();
        spellings.par_sort_unstable();
        Self { all, pages, inbound, sources, targets, spellings, now }
    }

    /// Gives the rows of a shard; that of its totals comes last, all others in the order of their keys.
    pub(super) fn of_shard(&self, shard: ShardId, put: &mut Put<'_>) -> Result<Meta, StoreError> {
        let shards = self.all.versions.shards();
        let pages = in_shard(&self.pages, shard, shards);
        let groups = self.all.groups_of(shard);
        let peers = usize::from(shards);
        let mut meta = Meta {
            groups_minted: groups.len() as u64,
            events: pages.len() as u64,
            sent: vec![0; peers],
            applied: vec![0; peers],
            counters: self.all.versions.intake[usize::from(shard.0)],
            ..Meta::default()
        };
        for group in groups.iter().filter(|group| group.quarantined) {
            meta.audits += 1;
            let members = group.pages.len() as u64;
            let entry = AuditEntry::of_quarantine(self.now, group.id, members, true);
            let id = RepairId { shard, number: meta.audits };
            put(key::audit(id), Value::Record(encode(&entry)?))?;
        }
        for ((page, _), event) in pages.iter().zip(1..) {
            put(key::feed(shard, event), Value::Record(page.bytes().to_vec()))?;
        }
        for group in groups {
            let record = GroupRecord::Active(self.group(group));
            meta.count_group(Default::default(), share_of_group(Some(&record)));
            put(key::group(group.id), Value::Record(encode(&record)?))?;
        }
        inbound_redirects(in_shard(&self.inbound, shard, shards), shard, put)?;
        for group in groups {
            let mut members: Vec<(PageId, u32)> =
                group.pages.iter().map(|page| (self.page(*page).rank.url.id(), *page)).collect();
            members.sort_unstable();
            for (id, page) in members {
                if let Some(member) = self.member(page, group) {
                    put(key::member(group.id, id), Value::Record(encode(&member)?))?;
                }
            }
        }
        for ((id, page), event) in pages.iter().zip(1..) {
            let record = self.record(*id, *page, event);
            meta.count_page(Default::default(), share_of_page(*id, Some(&record)));
            put(key::page(shard, *id), Value::Record(encode(&record)?))?;
        }
        for (normal, (source, target)) in in_shard(&self.sources, shard, shards) {
            let value = Value::Record(target_note(*normal, *target));
            put(key::edge(shard, Kind::Source, *normal, *source), value)?;
        }
        for (id, page) in pages {
            if let Some(content) = self.all.content(*page) {
                put(key::signature(shard, *id), Value::SignatureOf(content))?;
            }
        }
        for (normal, (id, page)) in in_shard(&self.spellings, shard, shards) {
            let url = &self.page(*page).rank.url;
            put(key::edge(shard, Kind::Spelling, *normal, *id), Value::Record(encode(url)?))?;
        }
        put(key::meta(shard), Value::Record(encode(&meta)?))?;
        Ok(meta)
    }

    /// The contents of all pages.
    pub(super) fn contents(&self) -> impl Iterator<Item = ContentIndex> + '_ {
        self.all.versions.pages.iter().filter_map(Page::content)
    }

    fn page(&self, page: u32) -> &'r Page {
        &self.all.versions.pages[page as usize]
    }

    fn group(&self, group: &Grouping) -> Group {
        let winner = self.member(group.winner, group);
        let mut record = Group {
            winner: winner.map(|winner| (self.page(group.winner).rank.url.id(), winner)),
            quarantined: group.quarantined,
            contents_max: group.contents,
            ..Group::new()
        };
        for page in &group.pages {
            record.members += 1;
            record.with_inbound_redirects += u64::from(self.all.inbound[*page as usize] > 0);
            let differs = self.is_dissimilar(*page, group);
            record.dissimilar += u64::from(differs);
            record.secondaries += u64::from(differs && !matches!(self.cover(*page, group), Cover::By(..)));
        }
        // It is owed when the quarantine is over.
        record.uncovered = group.quarantined && record.dissimilar > 0;
        record.cover_changes = record.dissimilar;
        record.changes = record.members;
        // Grouping at once is a recomputation.
        record.dissimilar_at_recheck = record.dissimilar;
        record
    }

    fn is_dissimilar(&self, page: u32, group: &Grouping) -> bool {
        page != group.winner && self.all.places[page as usize].is_some_and(|place| !place.similar)
    }

    fn member(&self, page: u32, group: &Grouping) -> Option<Member> {
        Some(Member {
            membership_number: FIRST,
            content: self.all.contents.hash(self.all.content(page)?),
            rank: self.page(page).rank.clone(),
            has_inbound_redirects: self.all.inbound[page as usize] > 0,
            dissimilar: self.is_dissimilar(page, group),
            cover: self.cover(page, group),
            cover_number: 0,
        })
    }

    fn cover(&self, page: u32, group: &Grouping) -> Cover {
        let place = self.all.places[page as usize].filter(|_| self.is_dissimilar(page, group));
        match place.map(|place| place.covered_by) {
            // Nobody finds the cover of a group that is quarantined.
            _ if group.quarantined => Cover::Unsent,
            None => Cover::Unsent,
            Some(None) => Cover::Kept,
            Some(Some(by)) => {
                let content = self.all.content(by.page).map(|content| self.all.contents.hash(content));
                content.map_or(Cover::Kept, |content| Cover::By(self.page(by.page).rank.url.id(), content))
            }
        }
    }

    /// The kept page that a page which differs from the winner is a duplicate of.
    fn kept(&self, by: CoveredBy) -> Option<CoveringPage> {
        let Page { rank, .. } = self.page(by.page);
        let (contents, content) = (&self.all.contents, self.all.content(by.page)?);
        let content = contents.hash(content);
        let with = ContentComparison { content, similarity: by.similarity, similar: true };
        Some(CoveringPage { page: rank.url.id(), url: rank.url.clone(), with })
    }

    fn record(&self, id: PageId, number: u32, event: u64) -> PageRecord {
        let page = self.page(number);
        let details = page.details.as_deref();
        let state = match &page.state {
            Is::Content(content) => State::Content(self.content(number, *content)),
            Is::Redirect(to) => {
                let end = self.all.ends[number as usize];
                let resolution = end.map(|end| match end {
                    Ok(end) => Resolution::Content(self.page(end).rank.url.id()),
                    Err(reason) => Resolution::Unresolved(reason),
                });
                let target = end
                    .and_then(Result::ok)
                    .map(|end| target_state(&self.page(end).rank.url, &self.published(end)));
                let to = to.clone();
                let stands_for = self.targets[number as usize];
                let stands_for = stands_for.map(|page| self.all.versions.pages[page].rank.url.id());
                State::Redirect(RedirectState { to, stands_for, resolution, target })
            }
            Is::Dead => State::Dead,
        };
        let place = self.all.places[number as usize];
        let record = PageRecord {
            rank: page.rank.clone(),
            fetched_at: page.fetched_at,
            popularity_at: page.popularity_at,
            language: details.and_then(|details| details.language.clone()),
            canonical: details.and_then(|details| details.canonical.clone()),
            state,
            membership_number: if place.is_some() { FIRST } else { 0 },
            ticket: FIRST,
            inbound_redirects: self.all.inbound[number as usize],
            ended: None,
            event,
            published: PublicState::of(Status::Unknown),
        };
        PageRecord { published: public_state(id, &record), ..record }
    }

    fn published(&self, page: u32) -> PublicState {
        self.record(self.page(page).rank.url.id(), page, 0).published
    }

    fn content(&self, page: u32, content: ContentIndex) -> ContentState {
        let contents = &self.all.contents;
        let hash = contents.hash(content);
        let membership =
            self.all.places[page as usize].map(|Place { group, similarity, similar, covered_by }| {
                let group = &self.all.groups[group as usize];
                let is_winner = page == group.winner;
                let with = self.all.content(group.winner).unwrap_or(content);
                let winner = Winner {
                    page: self.page(group.winner).rank.url.id(),
                    content: contents.hash(with),
                    url: self.page(group.winner).rank.url.clone(),
                    quarantined: group.quarantined,
                };
                let verdict = ContentComparison { content: winner.content, similarity, similar };
                Membership {
                    group: group.id,
                    enrolled_at: group.id,
                    content: hash,
                    compared: true,
                    winner: Some(winner),
                    verdict: (!is_winner).then_some(verdict),
                    forward_probe: ForwardProbe::Idle,
                    dissimilar: self.is_dissimilar(page, group),
                    covered_by: covered_by.and_then(|by| self.kept(by)),
                    cover_number: 0,
                }
            });
        ContentState {
            client: ClientId::NONE,
            content: hash,
            tokens: contents.tokens(content),
            size: contents.size(content),
            search: SearchState::Compared,
            partner_query: None,
            membership,
            measured: Vec::new(),
        }
    }
}

/// What of a sorted list is of a shard.
fn in_shard<T>(sorted: &[(PageId, T)], shard: ShardId, shards: u16) -> &[(PageId, T)] {
    let start = sorted.partition_point(|(id, _)| id.shard(shards) < shard);
    let end = sorted.partition_point(|(id, _)| id.shard(shards) <= shard);
    &sorted[start..end]
}

fn inbound_redirects(
    edges: &[(PageId, PageId)],
    shard: ShardId,
    put: &mut Put<'_>,
) -> Result<(), StoreError> {
    let mut edges = edges.iter();
    edges.try_for_each(|(target, source)| {
        put(key::edge(shard, Kind::InboundRedirect, *target, *source), Value::Record(Vec::new()))
    })
}
