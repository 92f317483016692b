//! Keys of a shard's rows: `shard (2 bytes) | kind (1 byte) | identifiers`, all big-endian, so that
//! what belongs together lies together.

use doppel_model::{GroupId, PageId, RangeId, ShardId};
use doppel_protocol::{IndexStateItem, RangeMap, RepairId};

/// Which kind of row a key leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The shard's counters and sequence numbers.
    Meta = b'c',
    /// `feed number` → page whose newest event has that number.
    Feed = b'f',
    /// `group` → group record.
    Group = b'g',
    /// `item` → what the router of the index keeps; in the first shard alone.
    IndexState = b'i',
    /// `target, source` → a redirect that ends at the target (empty value).
    InboundRedirect = b'h',
    /// `group, page` → member.
    Member = b'm',
    /// `group, page` → number of a membership that began at a merged group: its messages still come by here.
    ForwardingEntry = b'n',
    /// `receiver, number` → message not yet delivered.
    Outbox = b'o',
    /// `page` → page record.
    Page = b'p',
    /// `target, source` → a redirect straight to a page of the normalised form `target`: the id of that page, where it is spelled
    /// otherwise.
    Source = b'r',
    /// `kind of the edges, target` → how far the redirects of these edges are told of a change.
    FanOut = b't',
    /// `page` → signature of its current content.
    Signature = b's',
    /// `normalised, page` → URL of a page that is spelled otherwise than in its normalised form, whose id comes first.
    Spelling = b'u',
    /// `number` → audit entry of a repair.
    Audit = b'a',
    /// The greatest number of an audit entry that retention has dropped; no row before the first.
    AuditsDropped = b'd',
}

impl Kind {
    /// Every kind.
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

    /// The kind of a key's third byte; none for what is no kind.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Whether a key is of this kind.
    #[inline]
    pub(crate) fn is_of(self, key: &[u8]) -> bool {
        key.get(2) == Some(&(self as u8))
    }
}

/// The shard that has what the router of the index keeps. The owner of its range has the router.
pub(crate) const INDEX_STATE_SHARD: ShardId = ShardId(0);

/// The range that stores a row. A key that is too short to name a shard maps to the last range.
pub(crate) fn range_of(map: RangeMap, key: &[u8]) -> RangeId {
    let shard = key.first_chunk::<2>().map_or(u16::MAX, |bytes| u16::from_be_bytes(*bytes));
    map.of_shard(ShardId(shard))
}

fn start(shard: ShardId, kind: Kind, capacity: usize) -> Vec<u8> {
    let mut key = Vec::with_capacity(3 + capacity);
    key.extend_from_slice(&shard.0.to_be_bytes());
    key.push(kind as u8);
    key
}

pub(crate) fn meta(shard: ShardId) -> Vec<u8> {
    start(shard, Kind::Meta, 0)
}

pub(crate) fn page(shard: ShardId, page: PageId) -> Vec<u8> {
    one(shard, Kind::Page, page)
}

pub(crate) fn signature(shard: ShardId, page: PageId) -> Vec<u8> {
    one(shard, Kind::Signature, page)
}

fn one(shard: ShardId, kind: Kind, page: PageId) -> Vec<u8> {
    let mut key = start(shard, kind, 16);
    key.extend_from_slice(page.bytes());
    key
}

pub(crate) fn group(group: GroupId) -> Vec<u8> {
    let mut key = start(group.shard(), Kind::Group, 8);
    key.extend_from_slice(&group.get().to_be_bytes());
    key
}

pub(crate) fn member(group: GroupId, page: PageId) -> Vec<u8> {
    let mut key = members(group);
    key.extend_from_slice(page.bytes());
    key
}

/// The prefix of a group's members.
pub(crate) fn members(group: GroupId) -> Vec<u8> {
    let mut key = start(group.shard(), Kind::Member, 24);
    key.extend_from_slice(&group.get().to_be_bytes());
    key
}

pub(crate) fn forwarding_entry(group: GroupId, page: PageId) -> Vec<u8> {
    let mut key = forwarding_entries(group);
    key.extend_from_slice(page.bytes());
    key
}

/// The prefix of the forwarding entries of a merged group.
pub(crate) fn forwarding_entries(group: GroupId) -> Vec<u8> {
    let mut key = start(group.shard(), Kind::ForwardingEntry, 24);
    key.extend_from_slice(&group.get().to_be_bytes());
    key
}

/// `kind` is [`Kind::Source`], [`Kind::InboundRedirect`] or [`Kind::Spelling`].
pub(crate) fn edge(shard: ShardId, kind: Kind, target: PageId, source: PageId) -> Vec<u8> {
    let mut key = edges(shard, kind, target);
    key.extend_from_slice(source.bytes());
    key
}

/// The prefix of a target's edges.
pub(crate) fn edges(shard: ShardId, kind: Kind, target: PageId) -> Vec<u8> {
    let mut key = start(shard, kind, 32);
    key.extend_from_slice(target.bytes());
    key
}

/// `edges` is [`Kind::Source`] or [`Kind::InboundRedirect`].
pub(crate) fn fan_out(shard: ShardId, edges: Kind, target: PageId) -> Vec<u8> {
    let mut key = start(shard, Kind::FanOut, 17);
    key.push(edges as u8);
    key.extend_from_slice(target.bytes());
    key
}

pub(crate) fn feed(shard: ShardId, number: u64) -> Vec<u8> {
    let mut key = start(shard, Kind::Feed, 8);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

pub(crate) fn audit(repair: RepairId) -> Vec<u8> {
    let mut key = start(repair.shard, Kind::Audit, 8);
    key.extend_from_slice(&repair.number.to_be_bytes());
    key
}

pub(crate) fn audits_dropped(shard: ShardId) -> Vec<u8> {
    start(shard, Kind::AuditsDropped, 0)
}

pub(crate) fn index_state(item: IndexStateItem) -> Vec<u8> {
    let mut key = start(INDEX_STATE_SHARD, Kind::IndexState, 1);
    key.push(index_state_byte(item));
    key
}

/// What names an item in its key.
pub(crate) fn index_state_byte(item: IndexStateItem) -> u8 {
    match item {
        IndexStateItem::Plan => b'p',
        IndexStateItem::Requests => b'r',
    }
}

pub(crate) fn outbox(shard: ShardId, receiver: ShardId, number: u64) -> Vec<u8> {
    let mut key = start(shard, Kind::Outbox, 10);
    key.extend_from_slice(&receiver.0.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// The prefix of the messages from one shard to another.
pub(crate) fn outbox_pair(shard: ShardId, receiver: ShardId) -> Vec<u8> {
    let mut key = start(shard, Kind::Outbox, 2);
    key.extend_from_slice(&receiver.0.to_be_bytes());
    key
}

/// The receiver and the number that the key of a message names.
pub(crate) fn receiver_and_number(key: &[u8]) -> Option<(ShardId, u64)> {
    let (receiver, number) = key.get(3..)?.split_first_chunk::<2>()?;
    Some((ShardId(u16::from_be_bytes(*receiver)), u64::from_be_bytes(number.try_into().ok()?)))
}

/// All rows of a kind: from, to.
pub(crate) fn all(shard: ShardId, kind: Kind) -> (Vec<u8>, Vec<u8>) {
    let from = start(shard, kind, 0);
    let to = after_prefix(&from);
    (from, to)
}

/// The first key that does not begin with `prefix`.
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

/// The first key after `key`.
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
