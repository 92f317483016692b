//! Keys of a shard's rows. A key consists of the shard (2 bytes), the kind of the row (1 byte), and
//! identifiers, all in big-endian order. The rows of a shard, of a kind, and of a group or target are
//! therefore adjacent.

use doppel_model::{GroupId, PageId, RangeId, ShardId};
use doppel_protocol::{IndexStateItem, RangeMap, RepairId};

/// Kind of a row. Each comment shows the identifiers in the key and the value of the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum RowKind {
    /// The shard's counters and sequence numbers.
    Meta = b'c',
    /// `event number` → page whose newest event has this number.
    Feed = b'f',
    /// `group` → group record.
    Group = b'g',
    /// `item` → item of the index router's state. Only the first shard has such rows.
    IndexState = b'i',
    /// `target, source` → empty. The redirect `source` ends at `target`.
    InboundRedirect = b'h',
    /// `group, page` → member record.
    Member = b'm',
    /// `group, page` → membership number. The messages of this membership still go through the merged group.
    ForwardingEntry = b'n',
    /// `receiver, number` → message that is not yet delivered. A message to another range stays until it is
    /// confirmed.
    Outbox = b'o',
    /// `page` → page record.
    Page = b'p',
    /// `target, source` → page id. `source` redirects directly to a page of the normalised form `target`. The
    /// value is the id of this page, or empty if the page's URL is in normalised form.
    Source = b'r',
    /// `kind of edge, target` → progress of the round that tells the redirects with these edges about a
    /// change.
    FanOut = b't',
    /// `page` → signature of the page's present content.
    Signature = b's',
    /// `normalised form, page` → URL of a page whose URL is not in normalised form.
    Spelling = b'u',
    /// `number` → entry of the audit trail.
    Audit = b'a',
    /// Greatest number of an audit entry that retention has dropped. The row is missing if retention has
    /// dropped none.
    AuditsDropped = b'd',
}

impl RowKind {
    /// All kinds of rows.
    const ALL: [Self; 15] = [
        Self::Meta,
        Self::Feed,
        Self::Group,
        Self::IndexState,
        Self::InboundRedirect,
        Self::Member,
        Self::ForwardingEntry,
        Self::Outbox,
        Self::Page,
        Self::Source,
        Self::FanOut,
        Self::Signature,
        Self::Spelling,
        Self::Audit,
        Self::AuditsDropped,
    ];

    /// The kind that a key's third byte stands for. `None` if the byte is not a kind.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Whether a key has this kind.
    #[inline]
    pub(crate) fn is_of(self, key: &[u8]) -> bool {
        key.get(2) == Some(&(self as u8))
    }
}

/// The shard that stores the state of the index's router. The owner of its range runs the router.
pub(crate) const INDEX_STATE_SHARD: ShardId = ShardId(0);

/// The range that stores a row. A key that is too short to name a shard maps to the last range.
pub(crate) fn range_of(map: RangeMap, key: &[u8]) -> RangeId {
    let shard = key.first_chunk::<2>().map_or(u16::MAX, |bytes| u16::from_be_bytes(*bytes));
    map.of_shard(ShardId(shard))
}

fn start(shard: ShardId, kind: RowKind, capacity: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(3 + capacity);
    key.extend_from_slice(&shard.0.to_be_bytes());
    key.push(kind as u8);
    key
}

pub(crate) fn meta(shard: ShardId) -> Vec<u8> {
    start(shard, RowKind::Meta, 0)
}

pub(crate) fn page(shard: ShardId, page: PageId) -> Vec<u8> {
    one(shard, RowKind::Page, page)
}

pub(crate) fn signature(shard: ShardId, page: PageId) -> Vec<u8> {
    one(shard, RowKind::Signature, page)
}

fn one(shard: ShardId, kind: RowKind, page: PageId) -> Vec<u8> {
    let mut key = start(shard, kind, 16);
    key.extend_from_slice(page.bytes());
    key
}

pub(crate) fn group(group: GroupId) -> Vec<u8> {
    let mut key = start(group.shard(), RowKind::Group, 8);
    key.extend_from_slice(&group.get().to_be_bytes());
    key
}

pub(crate) fn member(group: GroupId, page: PageId) -> Vec<u8> {
    let mut key = members(group);
    key.extend_from_slice(page.bytes());
    key
}

/// The common prefix of a group's member rows.
pub(crate) fn members(group: GroupId) -> Vec<u8> {
    let mut key = start(group.shard(), RowKind::Member, 24);
    key.extend_from_slice(&group.get().to_be_bytes());
    key
}

pub(crate) fn forwarding_entry(group: GroupId, page: PageId) -> Vec<u8> {
    let mut key = forwarding_entries(group);
    key.extend_from_slice(page.bytes());
    key
}

/// The common prefix of a merged group's forwarding entries.
pub(crate) fn forwarding_entries(group: GroupId) -> Vec<u8> {
    let mut key = start(group.shard(), RowKind::ForwardingEntry, 24);
    key.extend_from_slice(&group.get().to_be_bytes());
    key
}

/// The key of an edge: the row in which `source` refers to `target`. `kind` must be [`RowKind::Source`],
/// [`RowKind::InboundRedirect`], or [`RowKind::Spelling`].
pub(crate) fn edge(shard: ShardId, kind: RowKind, target: PageId, source: PageId) -> Vec<u8> {
    let mut key = edges(shard, kind, target);
    key.extend_from_slice(source.bytes());
    key
}

/// The common prefix of a target's edges of one kind.
pub(crate) fn edges(shard: ShardId, kind: RowKind, target: PageId) -> Vec<u8> {
    let mut key = start(shard, kind, 32);
    key.extend_from_slice(target.bytes());
    key
}

/// The key of a round. `edges` must be [`RowKind::Source`] or [`RowKind::InboundRedirect`].
pub(crate) fn fan_out(shard: ShardId, edges: RowKind, target: PageId) -> Vec<u8> {
    let mut key = start(shard, RowKind::FanOut, 17);
    key.push(edges as u8);
    key.extend_from_slice(target.bytes());
    key
}

pub(crate) fn feed(shard: ShardId, number: u64) -> Vec<u8> {
    let mut key = start(shard, RowKind::Feed, 8);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

pub(crate) fn audit(repair: RepairId) -> Vec<u8> {
    let mut key = start(repair.shard, RowKind::Audit, 8);
    key.extend_from_slice(&repair.number.to_be_bytes());
    key
}

pub(crate) fn audits_dropped(shard: ShardId) -> Vec<u8> {
    start(shard, RowKind::AuditsDropped, 0)
}

pub(crate) fn index_state(item: IndexStateItem) -> Vec<u8> {
    let mut key = start(INDEX_STATE_SHARD, RowKind::IndexState, 1);
    key.push(index_state_byte(item));
    key
}

/// The byte that stands for an item in its key.
pub(crate) fn index_state_byte(item: IndexStateItem) -> u8 {
    match item {
        IndexStateItem::Plan => b'p',
        IndexStateItem::Requests => b'r',
    }
}

pub(crate) fn outbox(shard: ShardId, receiver: ShardId, number: u64) -> Vec<u8> {
    let mut key = start(shard, RowKind::Outbox, 10);
    key.extend_from_slice(&receiver.0.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The common prefix of the messages from one shard to another.
pub(crate) fn outbox_pair(shard: ShardId, receiver: ShardId) -> Vec<u8> {
    let mut key = start(shard, RowKind::Outbox, 2);
    key.extend_from_slice(&receiver.0.to_be_bytes());
    key
}

/// Decodes the receiver and the number from the key of a message.
pub(crate) fn receiver_and_number(key: &[u8]) -> Option<(ShardId, u64)> {
    let (receiver, number) = key.get(3..)?.split_first_chunk::<2>()?;
    Some((ShardId(u16::from_be_bytes(*receiver)), u64::from_be_bytes(number.try_into().ok()?)))
}

/// The half-open interval of keys of one kind in a shard.
pub(crate) fn all(shard: ShardId, kind: RowKind) -> (Vec<u8>, Vec<u8>) {
    let from = start(shard, kind, 0);
    let to = after_prefix(&from);
    (from, to)
}

/// The least key that is greater than all keys with this prefix.
pub(crate) fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < 0xff {
            end.push(last + 1);
            break;
        }
    }
    end
}

/// The least key that is greater than `key`.
pub(crate) fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

/// The page id at the end of a key.
pub(crate) fn last_page(key: &[u8]) -> Option<PageId> {
    key.last_chunk::<16>().copied().map(PageId::from_bytes)
}

/// The 64-bit number at the end of a key.
pub(crate) fn last_number(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().copied().map(u64::from_be_bytes)
}
