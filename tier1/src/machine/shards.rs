//! The shards of one range as they are in memory between commits: their metas, and messages on their way.
//!
//! Invariants:
//! - The metas are those of the last commit that was built; they may be ahead of the store, never behind it.
//! - Only metas of the range's own shards say anything.

use std::collections::VecDeque;
use std::ops::Range;

use doppel_model::{PageId, ShardId};

use super::{Envelope, Settings};
use crate::record::Meta;

/// The shards' state that stays in memory between commits.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    pub(crate) settings: Settings,
    pub(crate) metas: Vec<Meta>,
    /// Messages between shards of this range that are not yet delivered, in sending order, and whether the
    /// store has them.
    pub(crate) queue: VecDeque<(Envelope, bool)>,
    /// Messages to other ranges since the last commit.
    pub(super) outgoing: Vec<Envelope>,
    /// The shards of this range; the metas of the others say nothing.
    run: Range<ShardId>,
    /// Whose meta row the next commit must write. A number that was given and not written down would
    /// be given again after a crash, and its message taken for a repetition.
    pub(super) changed: Vec<bool>,
}

impl Shards {
    /// The shards of a range.
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

    /// The shards of this range.
    pub(crate) fn run(&self) -> impl Iterator<Item = ShardId> + use<> {
        (self.run.start.0..self.run.end.0).map(ShardId)
    }

    pub(super) fn has(&self, shard: ShardId) -> bool {
        self.run.contains(&shard)
    }

    /// The last number that a shard of this range has sent to another.
    pub(crate) fn sent(&self, from: ShardId, to: ShardId) -> u64 {
        self.metas[usize::from(from.0)].sent[usize::from(to.0)]
    }

    /// The last number from a shard that one of this range has applied.
    pub(crate) fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.metas[usize::from(to.0)].applied[usize::from(from.0)]
    }

    pub(crate) fn owner(&self, page: PageId) -> ShardId {
        page.shard(self.settings.shards)
    }

    /// A shard's meta, to be changed.
    pub(super) fn meta(&mut self, shard: ShardId) -> &mut Meta {
        self.changed[usize::from(shard.0)] = true;
        &mut self.metas[usize::from(shard.0)]
    }

    /// Messages between shards of this range that are not yet delivered.
    pub(crate) fn undelivered(&self) -> usize {
        self.queue.len()
    }
}
