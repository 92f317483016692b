//! What a start finds in the store: the shards' state, and the work that was owed.

use std::collections::VecDeque;

use doppel_model::{ContentHash, GroupId, PageId, ShardId};

use crate::key::{self, Kind};
use crate::machine::{Settings, Shards};
use crate::record::{Envelope, GroupRecord, Meta, PageRecord, SearchState, decode};
use crate::store::{Store, StoreError};
use crate::txn::read;

/// Work that the records say is owed.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// Pages to be compared: page, content, ticket.
    pub(crate) pending: Vec<(PageId, ContentHash, u32)>,
    pub(crate) deferred: Vec<PageId>,
    /// Members to be verified: page, content, winner, its content.
    pub(crate) unverified: Vec<(PageId, ContentHash, PageId, ContentHash)>,
    pub(crate) dirty: Vec<GroupId>,
}

/// Reads the shards' own state.
pub(crate) fn shards(store: &dyn Store, settings: Settings) -> Result<Shards, StoreError> {
    let mut shards = Shards::new(settings);
    let mut queue: VecDeque<(Envelope, bool)> = VecDeque::new();
    for number in 0..settings.shards {
        let shard = ShardId(number);
        if let Some(meta) = read::<Meta>(store, &key::meta(shard))? {
            shards.metas[usize::from(number)] = meta;
        }
        each(store, shard, Kind::Outbox, |key, bytes| {
            queue.push_back((decode(key, bytes)?, true));
            Ok(())
        })?;
    }
    shards.queue = queue;
    Ok(shards)
}

/// Collects what is owed, and hands every content that tier 2 must have to `content`.
pub(crate) fn owed(
    store: &dyn Store,
    shards: u16,
    content: &mut dyn FnMut(PageId, ContentHash),
) -> Result<Owed, StoreError> {
    let mut owed = Owed::default();
    for number in 0..shards {
        let shard = ShardId(number);
        each(store, shard, Kind::Page, |key, bytes| {
            let record: PageRecord = decode(key, bytes)?;
            let (Some(page), Some(state)) = (key::last_page(key), record.content()) else { return Ok(()) };
            if state.tokens == 0 {
                return Ok(());
            }
            content(page, state.content);
            // A page that asks its partners is answered by messages that are still in the outbox.
            match state.search {
                SearchState::Pending if state.asking.is_none() => {
                    owed.pending.push((page, state.content, record.ticket));
                }
                SearchState::Deferred => owed.deferred.push(page),
                SearchState::Pending | SearchState::Settled => {}
            }
            if let Some(winner) = state.membership.as_ref().and_then(|m| m.winner.as_ref())
                && state.owes_verdict(page)
            {
                owed.unverified.push((page, state.content, winner.page, winner.content));
            }
            Ok(())
        })?;
        each(store, shard, Kind::Group, |key, bytes| {
            if let (GroupRecord::Active(group), Some(id)) = (decode(key, bytes)?, key::last_number(key))
                && group.owes_recomputation()
            {
                owed.dirty.push(GroupId::from_stored(id));
            }
            Ok(())
        })?;
    }
    Ok(owed)
}

/// Every row of a kind.
pub(crate) fn each(
    store: &dyn Store,
    shard: ShardId,
    kind: Kind,
    mut row: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (from, to) = key::all(shard, kind);
    let mut result = Ok(());
    store.range(&from, &to, &mut |key, bytes| {
        result = row(key, bytes);
        result.is_ok()
    })?;
    result
}
