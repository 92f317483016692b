//! The rows of a shard in the order of their keys, as the machine would have left them at rest.
//!
//! Invariants:
//! - The rows satisfy every rule of [`check`](crate::check) for a store at rest. Both sides of each
//!   membership and redirect agree, all contents are compared, no work is owed, and no message is under way.
//! - The machine's own function derives the public state of a page.
//! - The events of a shard number its pages in the order of their ids, so a new consumer meets each page
//!   once.
//!
//! Memory: 20 bytes for each page, 84 for each redirect, and 36 for each page whose URL is not in normalised
//! form.

use doppel_contract::Status;
use doppel_join::ContentIndex;
use doppel_model::{ClientId, ContentHash, PageId, ShardId, Timestamp};
use doppel_protocol::RepairId;
use rayon::prelude::*;

use super::groups::{ContentGroup, CoveredBy, GroupMember};
use super::redirects::Spellings;
use super::resolution::ResolvedCollection;
use super::versions::{Page, PageState};
use crate::machine::{public_state, target_note, target_state};
use crate::rows::key::{self, RowKind};
use crate::rows::record::{
    AuditEntry, ContentComparison, ContentState, Cover, CoveringPage, ForwardProbe, Group, GroupRecord,
    Member, Membership, Meta, PageRecord, PublicState, RedirectState, Resolution, SearchState, State, Winner,
    encode,
};
use crate::rows::txn::{share_of_group, share_of_page};
use crate::storage::store::StoreError;

/// Number of the only membership and the only search that a page has had.
const FIRST: u32 = 1;

/// Value of a row.
pub(super) enum RowValue {
    Record(Vec<u8>),
    /// The signature of this content.
    SignatureOf(ContentIndex),
}

/// Receives the rows one by one.
pub(super) type RowWriter<'p> = dyn FnMut(Vec<u8>, RowValue) -> Result<(), StoreError> + 'p;

/// Derives the rows of a collection.
pub(super) struct CollectionRows<'r> {
    all: &'r ResolvedCollection,
    /// Ids and numbers of all pages.
    pages: Vec<(PageId, u32)>,
    /// Redirects by the page at the end of the chain: target, source.
    inbound: Vec<(PageId, PageId)>,
    /// Redirects by the normalised form of their direct target: the form, the source, and the page that the
    /// target stands for.
    sources: Vec<(PageId, (PageId, Option<PageId>))>,
    /// By page, for redirects: the page that the target stands for.
    targets: Vec<Option<usize>>,
    /// Pages whose URL is not in normalised form, by the id of that form.
    spellings: Vec<(PageId, (PageId, u32))>,
    /// Time when the collection was grouped.
    now: Timestamp,
}

impl<'r> CollectionRows<'r> {
    /// Prepares the rows. Takes the index of pages by id out of `all`, which nobody needs any more.
    pub(super) fn of(all: &'r mut ResolvedCollection, now: Timestamp) -> Self {
        let spellings = Spellings::needed_by_redirects(&all.versions);
        let target = |number: usize| match &all.versions.pages[number].state {
            PageState::Redirect(to) => spellings.find(&all.versions, to, number),
            PageState::Content(_) | PageState::Dead => None,
        };
        let targets: Vec<Option<usize>> = (0..all.versions.pages.len()).into_par_iter().map(target).collect();
        let mut pages: Vec<(PageId, u32)> = std::mem::take(&mut all.versions.numbers).into_iter().collect();
        pages.par_sort_unstable();
        let all = &*all;
        let (mut inbound, mut sources) = (Vec::new(), Vec::new());
        for ((page, end), target) in all.versions.pages.iter().zip(&all.ends).zip(&targets) {
            let PageState::Redirect(to) = &page.state else { continue };
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

    /// Passes the rows of a shard to `put` in the order of their keys. The row of totals comes last.
    pub(super) fn of_shard(&self, shard: ShardId, put: &mut RowWriter<'_>) -> Result<Meta, StoreError> {
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
            put(key::audit(id), RowValue::Record(encode(&entry)?))?;
        }
        for ((page, _), event) in pages.iter().zip(1..) {
            put(key::feed(shard, event), RowValue::Record(page.bytes().to_vec()))?;
        }
        for group in groups {
            let record = GroupRecord::Active(self.group(group));
            meta.count_group(Default::default(), share_of_group(Some(&record)));
            put(key::group(group.id), RowValue::Record(encode(&record)?))?;
        }
        inbound_redirects(in_shard(&self.inbound, shard, shards), shard, put)?;
        for group in groups {
            let mut members: Vec<(PageId, u32)> =
                group.pages.iter().map(|page| (self.page(*page).rank.url.id(), *page)).collect();
            members.sort_unstable();
            for (id, page) in members {
                if let Some(member) = self.member(page, group) {
                    put(key::member(group.id, id), RowValue::Record(encode(&member)?))?;
                }
            }
        }
        for ((id, page), event) in pages.iter().zip(1..) {
            let record = self.record(*id, *page, event);
            meta.count_page(Default::default(), share_of_page(*id, Some(&record)));
            put(key::page(shard, *id), RowValue::Record(encode(&record)?))?;
        }
        for (normal, (source, target)) in in_shard(&self.sources, shard, shards) {
            let value = RowValue::Record(target_note(*normal, *target));
            put(key::edge(shard, RowKind::Source, *normal, *source), value)?;
        }
        for (id, page) in pages {
            if let Some(content) = self.all.content(*page) {
                put(key::signature(shard, *id), RowValue::SignatureOf(content))?;
            }
        }
        for (normal, (id, page)) in in_shard(&self.spellings, shard, shards) {
            let url = &self.page(*page).rank.url;
            put(key::edge(shard, RowKind::Spelling, *normal, *id), RowValue::Record(encode(url)?))?;
        }
        put(key::meta(shard), RowValue::Record(encode(&meta)?))?;
        Ok(meta)
    }

    /// Returns all pages whose content has tokens, and the content of each, in the order of the pages.
    pub(super) fn pages_with_tokens(&self) -> Vec<(PageId, ContentHash)> {
        let contents = &self.all.contents;
        let with_content = |(id, page): &(PageId, u32)| {
            let content = self.all.content(*page).filter(|content| contents.tokens(*content) > 0)?;
            Some((*id, contents.hash(content)))
        };
        self.pages.par_iter().filter_map(with_content).collect()
    }

    /// Iterates over the contents of all pages.
    pub(super) fn contents(&self) -> impl Iterator<Item = ContentIndex> + '_ {
        self.all.versions.pages.iter().filter_map(Page::content)
    }

    fn page(&self, page: u32) -> &'r Page {
        &self.all.versions.pages[page as usize]
    }

    fn group(&self, group: &ContentGroup) -> Group {
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
        // The cover is owed when the quarantine ends.
        record.uncovered = group.quarantined && record.dissimilar > 0;
        record.cover_changes = record.dissimilar;
        record.changes = record.members;
        // Grouping the whole collection counts as a recomputation.
        record.dissimilar_at_recheck = record.dissimilar;
        record
    }

    fn is_dissimilar(&self, page: u32, group: &ContentGroup) -> bool {
        page != group.winner && self.all.members[page as usize].is_some_and(|member| !member.similar)
    }

    fn member(&self, page: u32, group: &ContentGroup) -> Option<Member> {
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

    fn cover(&self, page: u32, group: &ContentGroup) -> Cover {
        let member = self.all.members[page as usize].filter(|_| self.is_dissimilar(page, group));
        match member.map(|member| member.covered_by) {
            // The cover of a quarantined group is not found.
            _ if group.quarantined => Cover::Unsent,
            None => Cover::Unsent,
            Some(None) => Cover::Kept,
            Some(Some(by)) => {
                let content = self.all.content(by.page).map(|content| self.all.contents.hash(content));
                content.map_or(Cover::Kept, |content| Cover::By(self.page(by.page).rank.url.id(), content))
            }
        }
    }

    /// Returns the kept page that covers a page, with their comparison.
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
            PageState::Content(content) => State::Content(self.content(number, *content)),
            PageState::Redirect(to) => {
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
            PageState::Dead => State::Dead,
        };
        let member = self.all.members[number as usize];
        let record = PageRecord {
            rank: page.rank.clone(),
            fetched_at: page.fetched_at,
            popularity_at: page.popularity_at,
            language: details.and_then(|details| details.language.clone()),
            canonical: details.and_then(|details| details.canonical.clone()),
            state,
            membership_number: if member.is_some() { FIRST } else { 0 },
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
            self.all.members[page as usize].map(|GroupMember { group, similarity, similar, covered_by }| {
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

/// Returns the part of a sorted list that belongs to a shard.
fn in_shard<T>(sorted: &[(PageId, T)], shard: ShardId, shards: u16) -> &[(PageId, T)] {
    let start = sorted.partition_point(|(id, _)| id.shard(shards) < shard);
    let end = sorted.partition_point(|(id, _)| id.shard(shards) <= shard);
    &sorted[start..end]
}

fn inbound_redirects(
    edges: &[(PageId, PageId)],
    shard: ShardId,
    put: &mut RowWriter<'_>,
) -> Result<(), StoreError> {
    let mut edges = edges.iter();
    edges.try_for_each(|(target, source)| {
        put(key::edge(shard, RowKind::InboundRedirect, *target, *source), RowValue::Record(Vec::new()))
    })
}
