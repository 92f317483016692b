//! Faults that tests plant in a sound store at rest. For each fault a check must report the named invariant.
//!
//! The faults stand for mistakes that no checksum detects, because the changed rows have right checksums.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

use std::collections::BTreeMap;

use doppel_contract::Status;
use doppel_model::signature::{Builder, SignatureKind};
use doppel_model::{ContentHash, GroupId, PageId, PageUrl, ShardId, Timestamp};
use doppel_protocol::IndexStateItem;

use super::Invariant;
use super::rows::{RowKey, pieces};
use crate::machine::{Audience, Envelope, Message};
use crate::rows::key::{self, RowKind};
use crate::rows::record::{
    Announcement, ContentState, Election, FanOut, Group, GroupRecord, Member, Membership, Meta, PageRecord,
    PartnerQuery, Reach, RedirectState, Resolution, SearchState, State, VERSION, decode, seal,
};
use crate::storage::store::{Store, StoreError, Write};

/// Encodes a record as the value of a row.
fn encode<T: serde::Serialize>(record: &T) -> Vec<u8> {
    crate::rows::record::encode(record).expect("a record is plain data")
}

/// A fault for a test to plant.
#[derive(Debug)]
pub struct PlantedFault {
    pub name: &'static str,
    pub invariant: Invariant,
    pub writes: Vec<Write>,
}

/// Why a store is not suitable for the faults.
#[derive(Debug, thiserror::Error)]
pub enum UnsuitableStore {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the store lacks this for the faults: {0}")]
    Lacks(&'static str),
}

/// The rows of a sound store, from which faults are made.
struct FaultSample {
    shards: u16,
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    pages: Vec<(PageId, PageRecord)>,
    groups: Vec<(GroupId, GroupRecord)>,
}

/// Returns one fault of each sort.
///
/// # Errors
/// If the store lacks something that the faults need:
/// - a group of three members, in which a duplicate has another content than the winner,
/// - two merged groups,
/// - a unique page,
/// - a redirect that ends at a content page,
/// - two pages without redirects whose URLs are not in normalised form, one of which is purged.
pub fn plantable_faults(store: &dyn Store, shards: u16) -> Result<Vec<PlantedFault>, UnsuitableStore> {
    let sample = FaultSample::of(store, shards)?;
    let mut all = sample.rows_alone()?;
    all.extend(sample.pages_alone()?);
    all.extend(sample.memberships()?);
    all.extend(sample.merged()?);
    all.extend(sample.redirects()?);
    all.extend(sample.spellings()?);
    all.extend(sample.shard_rows()?);
    Ok(all)
}

impl FaultSample {
    fn of(store: &dyn Store, shards: u16) -> Result<Self, UnsuitableStore> {
        let mut sample = Self { shards, rows: BTreeMap::new(), pages: Vec::new(), groups: Vec::new() };
        pieces(store, &mut |key, value| drop(sample.rows.insert(key.to_vec(), value.to_vec())))?;
        for (key, value) in &sample.rows {
            match RowKey::of(key) {
                Some((_, RowKey::Page(page))) => sample.pages.push((page, decode(key, value)?)),
                Some((_, RowKey::Group(group))) => sample.groups.push((group, decode(key, value)?)),
                _ => {}
            }
        }
        Ok(sample)
    }

    fn value(&self, key: &[u8]) -> Result<Vec<u8>, UnsuitableStore> {
        self.rows.get(key).cloned().ok_or(UnsuitableStore::Lacks("such row"))
    }

    fn page_key(&self, page: PageId) -> Vec<u8> {
        key::page(page.shard(self.shards), page)
    }

    fn page(
        &self,
        what: &'static str,
        wanted: impl Fn(&PageRecord) -> bool,
    ) -> Result<(PageId, PageRecord), UnsuitableStore> {
        self.pages.iter().find(|(_, record)| wanted(record)).cloned().ok_or(UnsuitableStore::Lacks(what))
    }

    fn with_status(&self, status: Status) -> Result<(PageId, PageRecord), UnsuitableStore> {
        self.page("page of every status", |record| {
            record.published.status == status && record.content().is_some()
        })
    }

    /// A duplicate whose content differs from the winner's.
    fn loser(&self) -> Result<(PageId, PageRecord, ContentState, Membership), UnsuitableStore> {
        let (page, record) = self.page("duplicate with another content than the winner", |record| {
            record.published.status == Status::Duplicate
                && record.content().is_some_and(|state| {
                    let verdict = state.membership.as_ref().and_then(|m| m.verdict);
                    verdict.is_some_and(|verdict| verdict.content != state.content)
                })
        })?;
        let state = record.content().cloned().ok_or(UnsuitableStore::Lacks("content"))?;
        let membership = state.membership.clone().ok_or(UnsuitableStore::Lacks("membership"))?;
        Ok((page, record, state, membership))
    }

    fn redirect(&self) -> Result<(PageId, PageRecord, RedirectState, PageId), UnsuitableStore> {
        for (page, record) in &self.pages {
            if let State::Redirect(state) = &record.state
                && let Some(end) = state.attached_to()
            {
                return Ok((*page, record.clone(), state.clone(), end));
            }
        }
        Err(UnsuitableStore::Lacks("redirect that ends at a content"))
    }

    fn large_group(&self) -> Result<(GroupId, Group), UnsuitableStore> {
        let large = self.groups.iter().find_map(|(id, record)| match record {
            GroupRecord::Active(group) if group.members > 2 => Some((*id, group.clone())),
            _ => None,
        });
        large.ok_or(UnsuitableStore::Lacks("group of three members"))
    }

    fn meta(&self, change: impl FnOnce(&mut Meta)) -> Result<Write, UnsuitableStore> {
        let key = key::meta(ShardId(0));
        let mut meta: Meta = decode(&key, &self.value(&key)?)?;
        change(&mut meta);
        Ok((key, Some(encode(&meta))))
    }

    fn put_page(&self, page: PageId, record: &PageRecord) -> Write {
        (self.page_key(page), Some(encode(record)))
    }

    /// Faults that a check finds in a row by its key, checksum, and version alone.
    fn rows_alone(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let (page, record) = self.with_status(Status::Winner)?;
        let (other, _) = self.with_status(Status::Unique)?;
        let (key, other_key) = (self.page_key(page), self.page_key(other));
        let value = self.value(&key)?;
        let signature = key::signature(page.shard(self.shards), page);
        let flipped = |key: &[u8]| -> Result<Write, UnsuitableStore> {
            let mut bytes = self.value(key)?;
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
            Ok((key.to_vec(), Some(bytes)))
        };
        let older = {
            let body = value.get(1..value.len().saturating_sub(4)).unwrap_or_default();
            seal([&[VERSION - 1], body].concat())
        };
        let mut elsewhere = key.clone();
        elsewhere[1] = u8::try_from((page.shard(self.shards).0 + 1) % self.shards).unwrap_or(0);
        let mut unknown = key.clone();
        unknown[2] = b'z';
        let plan = (key::index_state(IndexStateItem::Plan), encode(&b"a plan".to_vec()));
        let (mut plan_elsewhere, mut plan_damaged) = plan.clone();
        plan_elsewhere[1] = 1;
        plan_damaged[3] ^= 0x10;
        Ok(vec![
            plant("a flipped bit in a page", Invariant::Damage, vec![flipped(&key)?]),
            plant("a flipped bit in a signature", Invariant::Damage, vec![flipped(&signature)?]),
            plant("a row of an older version", Invariant::Version, vec![(key.clone(), Some(older))]),
            plant("a row of no known kind", Invariant::Key, vec![(unknown, Some(value.clone()))]),
            plant("a plan with a flipped bit", Invariant::Damage, vec![(plan.0, Some(plan_damaged))]),
            plant("a plan in another shard", Invariant::Ownership, vec![(plan_elsewhere, Some(plan.1))]),
            plant("a page in another shard", Invariant::Ownership, vec![(elsewhere, Some(encode(&record)))]),
            plant(
                "two pages in each other's place",
                Invariant::Identity,
                vec![(other_key.clone(), Some(value)), (key, Some(self.value(&other_key)?))],
            ),
        ])
    }

    /// Faults that a check finds in a page's record, signature, or event.
    fn pages_alone(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let (page, record, state, _) = self.loser()?;
        let (other, _) = self.with_status(Status::Unique)?;
        let [signature, other_signature] =
            [page, other].map(|page| key::signature(page.shard(self.shards), page));
        let swapped = vec![
            (signature.clone(), Some(self.value(&other_signature)?)),
            (other_signature, Some(self.value(&signature)?)),
        ];
        // A signature of the same content for another policy.
        let foreign = Builder::new().with_payload(
            SignatureKind::Supershingles,
            state.content,
            (state.tokens, state.size),
            &[],
            &mut Vec::new(),
        );
        let as_unique = {
            let mut record = record.clone();
            record.published.status = Status::Unique;
            record
        };
        let future = {
            let mut record = record.clone();
            record.rank.first_seen = Timestamp::from_millis(record.fetched_at.millis() + 1);
            record
        };
        let popularity = |value: Option<f64>, at: Option<i64>| {
            let mut record = record.clone();
            record.rank.popularity = value;
            record.popularity_at =
                at.map(|millis| Timestamp::from_millis(record.fetched_at.millis() + millis));
            self.put_page(page, &record)
        };
        let undated = popularity(Some(1.0), None);
        let after_its_fetch = popularity(Some(1.0), Some(1));
        let before_all_versions = popularity(Some(1.0), Some(i64::from(i32::MIN) * 1_000));
        let asking = {
            let mut record = record.clone();
            let partner_query = Some(PartnerQuery { unanswered: 1, stale: false, groups: Vec::new() });
            record.state = State::Content(ContentState { partner_query, ..state });
            record
        };
        let feed = key::feed(page.shard(self.shards), record.event);
        Ok(vec![
            plant("a page without a signature", Invariant::Signature, vec![(signature.clone(), None)]),
            plant(
                "a signature of another policy",
                Invariant::Signature,
                vec![(signature, Some(foreign.as_bytes().to_vec()))],
            ),
            plant("two signatures in each other's place", Invariant::Signature, swapped),
            plant("a state published wrongly", Invariant::Published, vec![self.put_page(page, &as_unique)]),
            plant("a page seen after its fetch", Invariant::Record, vec![self.put_page(page, &future)]),
            plant("a popularity without a date", Invariant::Record, vec![undated]),
            plant("a popularity after the newest fetch", Invariant::Record, vec![after_its_fetch]),
            plant("a popularity before all versions", Invariant::Record, vec![before_all_versions]),
            plant(
                "a query of partners without a message under way",
                Invariant::Work,
                vec![self.put_page(page, &asking)],
            ),
            plant("a page without an event", Invariant::Feed, vec![(feed, None)]),
        ])
    }

    /// Faults in memberships, groups, and their winners.
    fn memberships(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let (page, record, state, membership) = self.loser()?;
        let (group, of_group) = self.large_group()?;
        let (winner, winner_member) = of_group.winner.clone().ok_or(UnsuitableStore::Lacks("winner"))?;
        let (stranger, stranger_record) = self.with_status(Status::Unique)?;
        let key = key::member(membership.group, page);
        let member: Member = decode(&key, &self.value(&key)?)?;
        let group_row = |change: &dyn Fn(&mut Group)| {
            let mut of_group = of_group.clone();
            change(&mut of_group);
            (key::group(group), Some(encode(&GroupRecord::Active(of_group))))
        };
        let member_row = |change: &dyn Fn(&mut Member)| {
            let mut member = member.clone();
            change(&mut member);
            (key.clone(), Some(encode(&member)))
        };
        let page_row = |change: &dyn Fn(&mut Membership)| {
            let mut membership = membership.clone();
            change(&mut membership);
            let state = ContentState { membership: Some(membership), ..state.clone() };
            self.put_page(page, &PageRecord { state: State::Content(state), ..record.clone() })
        };
        let stray = Member {
            rank: stranger_record.rank,
            membership_number: stranger_record.membership_number,
            content: ContentHash([7; 16]),
            ..winner_member
        };
        let stray = (key::member(group, stranger), Some(encode(&stray)));
        let announcement = Some(Announcement { after: None, search_again: false });
        let election = Some(Election { after: None, announced: None });
        let loser_as_winner = Some((page, member.clone()));
        Ok(vec![
            plant("a lost member", Invariant::Membership, vec![(key.clone(), None)]),
            plant("a lost page", Invariant::Membership, vec![(self.page_key(page), None)]),
            plant("a lost group", Invariant::Membership, vec![(key::group(group), None)]),
            plant("a stray member", Invariant::Membership, vec![stray]),
            plant(
                "a member under another membership number",
                Invariant::Membership,
                vec![member_row(&|m| m.membership_number += 1)],
            ),
            plant(
                "a member to which no redirect is attached, marked as having one",
                Invariant::Membership,
                vec![member_row(&|m| m.has_inbound_redirects = !m.has_inbound_redirects)],
            ),
            plant(
                "a page that records another winner",
                Invariant::Membership,
                vec![page_row(&|m| {
                    m.winner.iter_mut().for_each(|w| w.content = ContentHash([9; 16]));
                    m.verdict = None;
                })],
            ),
            plant(
                "a forged comparison",
                Invariant::Verdict,
                vec![page_row(&|m| {
                    m.verdict.iter_mut().for_each(|v| v.similarity.shared += 1);
                })],
            ),
            plant("a wrong count of members", Invariant::Counts, vec![group_row(&|g| g.members += 1)]),
            plant(
                "a wrong count of dissimilar members",
                Invariant::Counts,
                vec![group_row(&|g| g.dissimilar += 1)],
            ),
            plant(
                "a duplicate as the winner",
                Invariant::Winner,
                vec![(
                    key::group(membership.group),
                    Some(self.with_winner(membership.group, loser_as_winner)?),
                )],
            ),
            plant("a winner that is lost", Invariant::Winner, vec![(key::member(group, winner), None)]),
            plant(
                "an announcement that no message continues",
                Invariant::Work,
                vec![group_row(&|g| {
                    g.announcement = announcement;
                })],
            ),
            plant(
                "an election that no message continues",
                Invariant::Work,
                vec![group_row(&|g| g.election = election)],
            ),
            plant(
                "an election whose best member so far is missing",
                Invariant::Winner,
                vec![group_row(&|g| g.election = election), (key::member(group, winner), None)],
            ),
        ])
    }

    fn with_winner(
        &self,
        group: GroupId,
        winner: Option<(PageId, Member)>,
    ) -> Result<Vec<u8>, UnsuitableStore> {
        let key = key::group(group);
        match decode(&key, &self.value(&key)?)? {
            GroupRecord::Active(of_group) => Ok(encode(&GroupRecord::Active(Group { winner, ..of_group }))),
            GroupRecord::Forward(_) => Err(UnsuitableStore::Lacks("group in use")),
        }
    }

    /// Faults in merged groups.
    fn merged(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let mut forwards = self.groups.iter().filter_map(|(id, record)| match record {
            GroupRecord::Forward(forward) => Some((*id, forward.clone())),
            GroupRecord::Active(_) => None,
        });
        let (Some((first, a)), Some((second, b))) = (forwards.next(), forwards.next()) else {
            return Err(UnsuitableStore::Lacks("two merged groups"));
        };
        let (page, record) = self.with_status(Status::Winner)?;
        let row = |group, forward| (key::group(group), Some(encode(&GroupRecord::Forward(forward))));
        let mut counted = a.clone();
        counted.forwarding_entries += 1;
        let mut unfinished = a.clone();
        unfinished.done = false;
        let (mut to_second, mut to_first) = (a.clone(), b);
        to_second.into = second;
        to_first.into = first;
        let forwarding_entry = (key::forwarding_entry(first, page), Some(encode(&record.membership_number)));
        Ok(vec![
            plant(
                "two groups merged into each other",
                Invariant::Merged,
                vec![row(first, to_second), row(second, to_first)],
            ),
            plant(
                "a wrong count of forwarding entries",
                Invariant::Merged,
                vec![row(first, counted.clone())],
            ),
            plant(
                "a forwarding entry that no membership has",
                Invariant::Merged,
                vec![forwarding_entry, row(first, counted)],
            ),
            plant("a transfer that no message continues", Invariant::Work, vec![row(first, unfinished)]),
        ])
    }

    /// Faults in redirects and their rows at both ends.
    fn redirects(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let (page, record, state, end) = self.redirect()?;
        let (other, _) = self.with_status(Status::Unique)?;
        let target = state.to.normal_id();
        let edge = |kind, target: PageId, source| key::edge(target.shard(self.shards), kind, target, source);
        let elsewhere = RedirectState { resolution: Some(Resolution::Content(other)), ..state.clone() };
        let elsewhere = PageRecord { state: State::Redirect(elsewhere), ..record.clone() };
        let untold = PageRecord { state: State::Redirect(RedirectState { target: None, ..state }), ..record };
        let present = Some(Vec::new());
        let reach = Reach { through: None, hops_left: 0 };
        let round = FanOut { after: Some(page), reach, again: None };
        Ok(vec![
            plant(
                "a redirect without a row at its end",
                Invariant::Edge,
                vec![(edge(RowKind::InboundRedirect, end, page), None)],
            ),
            plant(
                "a redirect without a row at its target",
                Invariant::Edge,
                vec![(edge(RowKind::Source, target, page), None)],
            ),
            plant(
                "a row of a redirect that does not exist",
                Invariant::Edge,
                vec![(edge(RowKind::Source, other, other), present.clone())],
            ),
            plant(
                "an inbound redirect that does not end there",
                Invariant::Edge,
                vec![(edge(RowKind::InboundRedirect, other, page), present)],
            ),
            plant(
                "a redirect without its target's state",
                Invariant::Edge,
                vec![self.put_page(page, &untold)],
            ),
            plant(
                "a round that no message continues",
                Invariant::Work,
                vec![(
                    key::fan_out(end.shard(self.shards), RowKind::InboundRedirect, end),
                    Some(encode(&round)),
                )],
            ),
            plant("a redirect to a wrong end", Invariant::Resolution, vec![self.put_page(page, &elsewhere)]),
        ])
    }

    /// Faults in rows of spellings. No redirect leads to these pages, so only the check of these rows finds
    /// the faults.
    fn spellings(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let row = |normal: PageId, url: &PageUrl| {
            (key::edge(normal.shard(self.shards), RowKind::Spelling, normal, url.id()), Some(encode(url)))
        };
        let has_redirects = |normal: PageId| {
            let sources = key::edges(normal.shard(self.shards), RowKind::Source, normal);
            self.rows.keys().any(|key| key.starts_with(&sources))
        };
        let spelled = |is_purged: bool| {
            let (_, record) = self.page("page in another spelling", |record| {
                let url = record.url();
                url.normalised().is_some()
                    && !has_redirects(url.normal_id())
                    && (record.state == State::Purged) == is_purged
            })?;
            Ok::<_, UnsuitableStore>((record.url().normal_id(), record.url().clone()))
        };
        let (normal, url) = spelled(false)?;
        let (form_of_purged, purged) = spelled(true)?;
        let never_seen = PageUrl::parse(&url.as_str().replacen("HTTP:", "hTTp:", 1));
        let never_seen =
            never_seen.ok().filter(|other| *other != url).ok_or(UnsuitableStore::Lacks("HTTP page"))?;
        let key = row(normal, &url).0;
        Ok(vec![
            plant("a page without a row at its normalised form", Invariant::Edge, vec![(key.clone(), None)]),
            plant(
                "a spelling of a page that was never seen",
                Invariant::Edge,
                vec![row(normal, &never_seen)],
            ),
            plant("a spelling of a page that is purged", Invariant::Edge, vec![row(form_of_purged, &purged)]),
            plant(
                "a spelling that is another page's",
                Invariant::Identity,
                vec![(key, Some(encode(&never_seen)))],
            ),
        ])
    }

    /// Faults in a shard's totals, feed, messages, and audit trail.
    fn shard_rows(&self) -> Result<Vec<PlantedFault>, UnsuitableStore> {
        let shard = ShardId(0);
        let meta: Meta = decode(&key::meta(shard), &self.value(&key::meta(shard))?)?;
        let (page, _) = self.page("page", |_| true)?;
        let message = Message::ContinueTelling { target: page, audience: Audience::InboundRedirects };
        let late = |number| {
            let envelope = Envelope { from: shard, to: shard, number, message: message.clone() };
            (key::outbox(shard, shard, number), Some(encode(&envelope)))
        };
        let sent = meta.sent.first().copied().unwrap_or_default();
        let stray = (key::feed(shard, meta.events + 1), Some(page.bytes().to_vec()));
        let search = {
            let (page, mut record, mut state, _) = self.loser()?;
            state.search = SearchState::Deferred;
            record.state = State::Content(state);
            self.put_page(page, &record)
        };
        Ok(vec![
            plant(
                "a wrong total of live pages",
                Invariant::Totals,
                vec![self.meta(|meta| meta.counters.live += 1)?],
            ),
            plant(
                "a wrong count of pending pages",
                Invariant::Totals,
                vec![self.meta(|meta| meta.pending += 1)?],
            ),
            plant("a search that is not counted", Invariant::Totals, vec![search]),
            plant(
                "group ids that would be assigned again",
                Invariant::Totals,
                vec![self.meta(|meta| meta.groups_minted = 0)?],
            ),
            plant("lost totals", Invariant::Totals, vec![(key::meta(shard), None)]),
            plant("an event of the future", Invariant::Feed, vec![stray]),
            plant("a lost message", Invariant::Outbox, vec![self.meta(|meta| meta.sent[0] += 1)?]),
            plant("a message that was applied before", Invariant::Outbox, vec![late(sent)]),
            plant(
                "a missing message between two others",
                Invariant::Outbox,
                vec![late(sent + 2), self.meta(|meta| meta.sent[0] += 2)?],
            ),
            plant("a lost audit entry", Invariant::Audit, vec![self.meta(|meta| meta.audits += 1)?]),
            plant(
                "dropped audit entries that never existed",
                Invariant::Audit,
                vec![(key::audits_dropped(shard), Some(encode(&(meta.audits + 1))))],
            ),
        ])
    }
}

fn plant(name: &'static str, invariant: Invariant, writes: Vec<Write>) -> PlantedFault {
    PlantedFault { name, invariant, writes }
}
