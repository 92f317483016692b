//! What a store holds, in public words.

use std::collections::BTreeMap;

use doppel_common::api::{Status, Unresolved};
use doppel_common::model::{ContentHash, GroupId, PageId, PageUrl, ShardId, Timestamp};
use doppel_common::signature::Signature;

use crate::key::{self, Kind};
use crate::record::{GroupRecord, LookState, Member, PageRecord, State, decode};
use crate::recovery::each;
use crate::store::{Store, StoreError};

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    Page {
        page: PageId,
        url: PageUrl,
        fetched_at: Timestamp,
        first_seen: Timestamp,
        popularity: Option<f64>,
        /// Of a page with content.
        content: Option<ContentHash>,
        redirect_to: Option<PageUrl>,
        hung_on: Option<PageId>,
        hangers: u32,
        seat: u32,
        purged: bool,
        settled: bool,
        event: u64,
        status: Status,
        group: Option<GroupId>,
        winner: Option<PageUrl>,
        reason: Option<Unresolved>,
    },
    Group {
        group: GroupId,
        winner: Option<PageId>,
        members: u64,
        pinned: u64,
        dissimilar: u64,
        quarantined: bool,
        touched: bool,
    },
    Forward {
        group: GroupId,
        into: GroupId,
        done: bool,
    },
    Member {
        group: GroupId,
        page: PageId,
        seat: u32,
        content: ContentHash,
        pinned: bool,
        dissimilar: bool,
    },
    /// The redirects of `source` end at `target`.
    Hanger {
        target: PageId,
        source: PageId,
    },
    /// `source` redirects straight to `target`.
    Source {
        target: PageId,
        source: PageId,
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
    /// A word of a stay still goes by a merged group.
    Passage {
        group: GroupId,
        page: PageId,
    },
}

/// Members of each group.
pub type Members = BTreeMap<GroupId, Vec<PageId>>;

/// Every row of all shards but their counters and the audit.
///
/// # Errors
/// When a row is damaged.
pub fn rows(store: &dyn Store, shards: u16) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    for shard in (0..shards).map(ShardId) {
        for kind in [
            Kind::Page,
            Kind::Group,
            Kind::Member,
            Kind::Hanger,
            Kind::Source,
            Kind::Signature,
            Kind::Feed,
            Kind::Outbox,
            Kind::Passage,
        ] {
            each(store, shard, kind, |key, bytes| {
                rows.extend(row(shard, kind, key, bytes)?);
                Ok(())
            })?;
        }
    }
    Ok(rows)
}

fn row(shard: ShardId, kind: Kind, key: &[u8], bytes: &[u8]) -> Result<Option<Row>, StoreError> {
    let before_page = key.len().checked_sub(16).and_then(|end| key.get(..end)).unwrap_or_default();
    let page = key::last_page(key);
    let number = key::last_number(key);
    let group = || key::last_number(before_page).map(GroupId::from_stored);
    Ok(match kind {
        Kind::Page => {
            page.map(|page| decode(key, bytes).map(|record| page_row(page, &record))).transpose()?
        }
        Kind::Group => number
            .map(|number| decode(key, bytes).map(|record| group_row(GroupId::from_stored(number), &record)))
            .transpose()?,
        Kind::Member => {
            let member: Member = decode(key, bytes)?;
            group().zip(page).map(|(group, page)| Row::Member {
                group,
                page,
                seat: member.seat,
                content: member.content,
                pinned: member.pinned,
                dissimilar: member.dissimilar,
            })
        }
        Kind::Hanger => {
            key::last_page(before_page).zip(page).map(|(target, source)| Row::Hanger { target, source })
        }
        Kind::Source => {
            key::last_page(before_page).zip(page).map(|(target, source)| Row::Source { target, source })
        }
        Kind::Signature => {
            let damaged = |_| StoreError::Damaged { key: format!("{key:?}"), reason: "no signature" };
            let content = Signature::from_bytes(bytes).map_err(damaged)?.content();
            page.map(|page| Row::Signature { page, content })
        }
        Kind::Feed => {
            let page = bytes.first_chunk::<16>().copied().map(PageId::from_bytes);
            number.zip(page).map(|(number, page)| Row::Feed { shard, number, page })
        }
        Kind::Outbox => number.map(|number| Row::Outbox { from: shard, number }),
        Kind::Passage => group().zip(page).map(|(group, page)| Row::Passage { group, page }),
        _ => None,
    })
}

fn page_row(page: PageId, record: &PageRecord) -> Row {
    let (mut redirect_to, mut hung_on) = (None, None);
    if let State::Redirect(state) = &record.state {
        redirect_to = Some(state.to.clone());
        hung_on = state.hung_on();
    }
    Row::Page {
        page,
        url: record.url().clone(),
        fetched_at: record.fetched_at,
        first_seen: record.rank.first_seen,
        popularity: record.rank.popularity,
        content: record.content().map(|state| state.content),
        redirect_to,
        hung_on,
        hangers: record.hangers,
        seat: record.seat,
        purged: record.state == State::Purged,
        settled: record.content().is_none_or(|state| state.look == LookState::Settled),
        event: record.event,
        status: record.published.status,
        group: record.published.group,
        winner: record.published.winner.clone(),
        reason: record.published.reason,
    }
}

fn group_row(group: GroupId, record: &GroupRecord) -> Row {
    match record {
        GroupRecord::Active(record) => Row::Group {
            group,
            winner: record.winner.as_ref().map(|(page, _)| *page),
            members: record.members,
            pinned: record.pinned,
            dissimilar: record.dissimilar,
            quarantined: record.quarantined,
            touched: record.touched,
        },
        GroupRecord::Forward(forward) => Row::Forward { group, into: forward.into, done: forward.done },
    }
}
