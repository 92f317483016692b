//! The state of a range's shards that stays in memory between commits: their [`Meta`] rows, and messages
//! under way.
//!
//! Invariants:
//! - Each meta is as of the last commit that was built. It may be ahead of the store, never behind it.
//! - Only the metas of the range's own shards are meaningful.

use std::collections::VecDeque;
use std::ops::Range;

use doppel_model::{PageId, ShardId};

use super::{Envelope, Settings};
use crate::rows::record::Meta;

/// State of the shards that stays in memory between commits.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    pub(crate) settings: Settings,
    pub(crate) metas: Vec<Meta>,
    /// Undelivered messages between shards of this range, in sending order. The flag tells whether the store
    /// has the message.
    pub(crate) queue: VecDeque<(Envelope, bool)>,
    /// Messages to other ranges since the last commit.
    pub(super) outgoing: Vec<Envelope>,
    /// Shards of this range. Metas of other shards are unused.
    run: Range<ShardId>,
    /// Shards whose meta row the next commit must write. If a message number were used but not stored, it
    /// would be used again after a crash, and its message would be taken for a repetition.
    pub(super) changed: Vec<bool>,
}

impl Shards {
    /// Creates the state of the shards in `run`, before their rows are read.
    pub(crate) fn new(settings: Settings, run: Range<ShardId>) -> Self {
        let peers = usize::from(settings.shards);
        let meta = Meta { sent: vec![0; peers], applied: vec![0; peers], ..Meta::default() };
        Self {
            settings,
            metas: vec![meta; peers],
            queue: VecDeque::new(),
            outgoing: Vec::new(),
            run,
            changed: vec![false; peers],
        }
    }

    /// Iterates over the shards of this range.
    pub(crate) fn run(&self) -> impl Iterator<Item = ShardId> + use<> {
        (self.run.start.0..self.run.end.0).map(ShardId)
    }

    /// Returns whether the shard belongs to this range.
    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.run.contains(&shard)
    }

    /// Returns the number of the last message that a shard of this range has sent to `to`.
    pub(crate) fn sent(&self, from: ShardId, to: ShardId) -> u64 {
        self.metas[usize::from(from.0)].sent[usize::from(to.0)]
    }

    /// Returns the number of the last message from `from` that a shard of this range has applied.
    pub(crate) fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.metas[usize::from(to.0)].applied[usize::from(from.0)]
    }

    /// Returns the shard that owns a page.
    pub(crate) fn owner(&self, page: PageId) -> ShardId {
        page.shard(self.settings.shards)
    }

    /// Returns a shard's meta for a change, and marks it to be written.
    pub(super) fn meta(&mut self, shard: ShardId) -> &mut Meta {
        self.changed[usize::from(shard.0)] = true;
        &mut self.metas[usize::from(shard.0)]
    }

    /// Returns the number of undelivered messages between shards of this range.
    pub(crate) fn undelivered(&self) -> usize {
        self.queue.len()
    }
}
