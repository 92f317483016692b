//! Fixed facts about the collection that every part of the service needs.

use doppel_model::{PageId, ShardId};
use doppel_protocol::RangeMap;

use crate::machine::Settings;

/// Fixed facts about a collection: its id, its settings, and which range stores which shard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectionFacts {
    /// Names the collection in feed cursors.
    pub(crate) id: u64,
    pub(crate) settings: Settings,
    pub(crate) map: RangeMap,
}

impl CollectionFacts {
    /// The shard that stores a page.
    pub(crate) fn shard_of(&self, page: PageId) -> ShardId {
        page.shard(self.settings.shards)
    }
}
