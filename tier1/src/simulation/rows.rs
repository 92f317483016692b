//! The rows of a store as public types.

use doppel_contract::{Status, UnresolvedReason};
use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId, PageUrl, ShardId, Timestamp};

use crate::rows::key::{self, RowKind};
use crate::rows::record::{GroupRecord, Member, PageRecord, SearchState, State, decode};
use crate::storage::store::{Store, StoreError, for_each_row};

/// Record of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRow {
    pub page: PageId,
    pub url: PageUrl,
    pub fetched_at: Timestamp,
    pub first_seen: Timestamp,
    pub popularity: Option<f64>,
    /// Date of the version that has the popularity.
    pub popularity_at: Option<Timestamp>,
    pub language: Option<Box<str>>,
    /// `None` for a page without content.
    pub content: Option<ContentHash>,
    pub redirect_to: Option<PageUrl>,
    pub attached_to: Option<PageId>,
    pub inbound_redirects: u32,
    pub membership_number: u32,
    pub purged: bool,
    /// Whether the page's search is complete.
    pub compared: bool,
    pub event: u64,
    pub status: Status,
    pub group: Option<GroupId>,
    pub winner: Option<PageUrl>,
    pub duplicate_of: Option<PageUrl>,
    pub similarity: Option<f64>,
    pub reason: Option<UnresolvedReason>,
}

/// Record of a group in use.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    pub group: GroupId,
    pub winner: Option<PageId>,
    pub members: u64,
    pub with_inbound_redirects: u64,
    pub dissimilar: u64,
    pub secondaries: u64,
    pub uncovered: bool,
    pub quarantined: bool,
    /// Number of distinct contents at the last repair.
    pub contents_at_repair: u64,
    pub dirty: bool,
}

/// Member row of a page in its group.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberRow {
    pub group: GroupId,
    pub page: PageId,
    pub membership_number: u32,
    pub content: ContentHash,
    pub has_inbound_redirects: bool,
    pub dissimilar: bool,
}

/// A row of a store.
#[derive(Debug, Clone, PartialEq)]
pub enum DecodedRow {
    Page(Box<PageRow>),
    Group(GroupRow),
    /// A merged group, which redirects messages.
    Forward {
        group: GroupId,
        into: GroupId,
        done: bool,
    },
    Member(MemberRow),
    /// The chain of the redirect `source` ends at `target`.
    InboundRedirect {
        target: PageId,
        source: PageId,
    },
    /// `source` redirects directly to `target`.
    Source {
        target: PageId,
        source: PageId,
    },
    /// The URL of `page` is not in normalised form; the page id of that form is `normal`.
    Spelling {
        normal: PageId,
        page: PageId,
    },
    Signature {
        page: PageId,
        content: ContentHash,
    },
    Feed {
        shard: ShardId,
        number: u64,
        page: PageId,
    },
    Outbox {
        from: ShardId,
        number: u64,
    },
    /// Messages of a membership still go through a merged group.
    ForwardingEntry {
        group: GroupId,
        page: PageId,
    },
}

/// Returns all rows of all shards, except for meta rows, the audit trail, rounds, and the state of the
/// index's router.
///
/// # Errors
/// If a row is damaged.
pub fn rows(store: &dyn Store, shards: u16) -> Result<Vec<DecodedRow>, StoreError> {
    let mut rows = Vec::new();
    for shard in (0..shards).map(ShardId) {
        for kind in [
            RowKind::Page,
            RowKind::Group,
            RowKind::Member,
            RowKind::InboundRedirect,
            RowKind::Source,
            RowKind::Spelling,
            RowKind::Signature,
            RowKind::Feed,
            RowKind::Outbox,
            RowKind::ForwardingEntry,
        ] {
            for_each_row(store, shard, kind, |key, bytes| {
                rows.extend(row(shard, kind, key, bytes)?);
                Ok(())
            })?;
        }
    }
    Ok(rows)
}

fn row(shard: ShardId, kind: RowKind, key: &[u8], bytes: &[u8]) -> Result<Option<DecodedRow>, StoreError> {
    let before_page = key.len().checked_sub(16).and_then(|end| key.get(..end)).unwrap_or_default();
    let page = key::last_page(key);
    let number = key::last_number(key);
    let group = || key::last_number(before_page).map(GroupId::from_stored);
    Ok(match kind {
        RowKind::Page => {
            page.map(|page| decode(key, bytes).map(|record| page_row(page, &record))).transpose()?
        }
        RowKind::Group => number
            .map(|number| decode(key, bytes).map(|record| group_row(GroupId::from_stored(number), &record)))
            .transpose()?,
        RowKind::Member => {
            let member: Member = decode(key, bytes)?;
            let Member { membership_number, content, has_inbound_redirects, dissimilar, .. } = member;
            group().zip(page).map(|(group, page)| {
                DecodedRow::Member(MemberRow {
                    group,
                    page,
                    membership_number,
                    content,
                    has_inbound_redirects,
                    dissimilar,
                })
            })
        }
        RowKind::InboundRedirect => key::last_page(before_page)
            .zip(page)
            .map(|(target, source)| DecodedRow::InboundRedirect { target, source }),
        RowKind::Source => key::last_page(before_page)
            .zip(page)
            .map(|(target, source)| DecodedRow::Source { target, source }),
        RowKind::Spelling => {
            key::last_page(before_page).zip(page).map(|(normal, page)| DecodedRow::Spelling { normal, page })
        }
        RowKind::Signature => {
            let damaged =
                |_| StoreError::Damaged { key: format!("{key:?}"), reason: "it is not a valid signature" };
            let content = Signature::from_bytes(bytes).map_err(damaged)?.content();
            page.map(|page| DecodedRow::Signature { page, content })
        }
        RowKind::Feed => {
            let page = bytes.first_chunk::<16>().copied().map(PageId::from_bytes);
            number.zip(page).map(|(number, page)| DecodedRow::Feed { shard, number, page })
        }
        RowKind::Outbox => number.map(|number| DecodedRow::Outbox { from: shard, number }),
        RowKind::ForwardingEntry => {
            group().zip(page).map(|(group, page)| DecodedRow::ForwardingEntry { group, page })
        }
        _ => None,
    })
}

fn page_row(page: PageId, record: &PageRecord) -> DecodedRow {
    let (mut redirect_to, mut attached_to) = (None, None);
    if let State::Redirect(state) = &record.state {
        redirect_to = Some(state.to.clone());
        attached_to = state.attached_to();
    }
    DecodedRow::Page(Box::new(PageRow {
        page,
        url: record.url().clone(),
        fetched_at: record.fetched_at,
        first_seen: record.rank.first_seen,
        popularity: record.rank.popularity,
        popularity_at: record.popularity_at,
        language: record.language.clone(),
        content: record.content().map(|state| state.content),
        redirect_to,
        attached_to,
        inbound_redirects: record.inbound_redirects,
        membership_number: record.membership_number,
        purged: record.state == State::Purged,
        compared: record.content().is_none_or(|state| state.search == SearchState::Compared),
        event: record.event,
        status: record.published.status,
        group: record.published.group,
        winner: record.published.winner.clone(),
        duplicate_of: record.published.duplicate_of.clone(),
        similarity: record.published.similarity.map(Similarity::as_f64),
        reason: record.published.reason,
    }))
}

fn group_row(group: GroupId, record: &GroupRecord) -> DecodedRow {
    match record {
        GroupRecord::Active(record) => DecodedRow::Group(GroupRow {
            group,
            winner: record.winner.as_ref().map(|(page, _)| *page),
            members: record.members,
            with_inbound_redirects: record.with_inbound_redirects,
            dissimilar: record.dissimilar,
            secondaries: record.secondaries,
            uncovered: record.owes_cover(),
            quarantined: record.quarantined,
            contents_at_repair: record.contents_at_repair,
            dirty: record.dirty,
        }),
        GroupRecord::Forward(forward) => {
            DecodedRow::Forward { group, into: forward.into, done: forward.done }
        }
    }
}
