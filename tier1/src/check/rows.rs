//! Reads the rows of a store in key order, and decodes their keys.

use doppel_model::{GroupId, PageId, ShardId};
use doppel_protocol::IndexStateItem;

use crate::machine::Audience;
use crate::rows::key::{self, RowKind};
use crate::storage::store::{Store, StoreError};
use doppel_protocol::range_owner::EncodedRow;

/// Maximum number of rows and bytes in a piece. Between two pieces the scan holds no part of the store.
const PIECE_ROWS: usize = 1_000;
const PIECE_BYTES: usize = 4 << 20;

/// A key that is greater than every key in a store.
pub(crate) const END: [u8; 48] = [0xff; 48];

/// A decoded key, without its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKey {
    Meta,
    Audit(u64),
    AuditsDropped,
    Feed(u64),
    Group(GroupId),
    IndexState(IndexStateItem),
    /// Target and source.
    InboundRedirect(PageId, PageId),
    Member(GroupId, PageId),
    ForwardingEntry(GroupId, PageId),
    /// Receiver and number.
    Outbox(ShardId, u64),
    Page(PageId),
    /// Target and source.
    Source(PageId, PageId),
    /// Audience and target of a round.
    FanOut(Audience, PageId),
    Signature(PageId),
    /// Normalised form and page.
    Spelling(PageId, PageId),
}

impl RowKey {
    /// Decodes a key into its shard and the rest. `None` if the key is of no known kind or has a wrong
    /// length.
    pub(crate) fn of(key: &[u8]) -> Option<(ShardId, Self)> {
        let (shard, rest) = key.split_first_chunk::<2>()?;
        let (kind, rest) = rest.split_first()?;
        let row_key = match RowKind::of(*kind)? {
            RowKind::Meta => rest.is_empty().then_some(Self::Meta)?,
            RowKind::Audit => Self::Audit(number(rest)?),
            RowKind::AuditsDropped => rest.is_empty().then_some(Self::AuditsDropped)?,
            RowKind::Feed => Self::Feed(number(rest)?),
            RowKind::Group => Self::Group(group(rest)?),
            RowKind::IndexState => Self::IndexState(item(rest)?),
            RowKind::InboundRedirect => {
                pages(rest).map(|(target, source)| Self::InboundRedirect(target, source))?
            }
            RowKind::Source => pages(rest).map(|(target, source)| Self::Source(target, source))?,
            RowKind::FanOut => {
                let (edges, rest) = rest.split_first()?;
                Self::FanOut(Audience::from_edge_kind(*edges)?, page(rest)?)
            }
            RowKind::Spelling => pages(rest).map(|(normal, page)| Self::Spelling(normal, page))?,
            RowKind::Member => group_page(rest).map(|(group, page)| Self::Member(group, page))?,
            RowKind::ForwardingEntry => {
                group_page(rest).map(|(group, page)| Self::ForwardingEntry(group, page))?
            }
            RowKind::Page => Self::Page(page(rest)?),
            RowKind::Signature => Self::Signature(page(rest)?),
            RowKind::Outbox => {
                let (to, rest) = rest.split_first_chunk::<2>()?;
                Self::Outbox(ShardId(u16::from_be_bytes(*to)), number(rest)?)
            }
        };
        Some((ShardId(u16::from_be_bytes(*shard)), row_key))
    }

    /// The shard to which the row belongs. For kinds of which every shard has rows, this is the shard `found`
    /// of the key.
    pub(super) fn owner(&self, found: ShardId, shards: u16) -> ShardId {
        match self {
            Self::Meta | Self::Audit(_) | Self::AuditsDropped | Self::Feed(_) | Self::Outbox(..) => found,
            Self::IndexState(_) => key::INDEX_STATE_SHARD,
            Self::Group(group) | Self::Member(group, _) | Self::ForwardingEntry(group, _) => group.shard(),
            Self::Page(page)
            | Self::Signature(page)
            | Self::InboundRedirect(page, _)
            | Self::Source(page, _)
            | Self::FanOut(_, page)
            | Self::Spelling(page, _) => page.shard(shards),
        }
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn group(bytes: &[u8]) -> Option<GroupId> {
    number(bytes).map(GroupId::from_stored)
}

fn item(bytes: &[u8]) -> Option<IndexStateItem> {
    let is_named = |item: &IndexStateItem| *bytes == [key::index_state_byte(*item)];
    IndexStateItem::ALL.into_iter().find(is_named)
}

fn page(bytes: &[u8]) -> Option<PageId> {
    bytes.try_into().ok().map(PageId::from_bytes)
}

fn pages(bytes: &[u8]) -> Option<(PageId, PageId)> {
    let (first, second) = bytes.split_first_chunk::<16>()?;
    Some((PageId::from_bytes(*first), page(second)?))
}

fn group_page(bytes: &[u8]) -> Option<(GroupId, PageId)> {
    let (first, second) = bytes.split_first_chunk::<8>()?;
    Some((group(first)?, page(second)?))
}

/// Passes every row to `each`, in key order.
///
/// # Errors
/// If the store fails.
pub(crate) fn pieces(store: &dyn Store, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
    let mut from = Vec::new();
    loop {
        let piece = piece(store, &from)?;
        let Some((last, _)) = piece.last() else { return Ok(()) };
        from = key::after(last);
        piece.iter().for_each(|(key, value)| each(key, value));
    }
}

/// Reads a piece of the rows from a key on. The piece is empty at the end of the store.
///
/// # Errors
/// If the store fails.
pub(crate) fn piece(store: &dyn Store, from: &[u8]) -> Result<Vec<EncodedRow>, StoreError> {
    let (mut piece, mut bytes) = (Vec::new(), 0);
    store.range(from, &END, &mut |key, value| {
        bytes += key.len() + value.len();
        piece.push((key.to_vec(), value.to_vec()));
        piece.len() < PIECE_ROWS && bytes < PIECE_BYTES
    })?;
    Ok(piece)
}
