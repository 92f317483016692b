//! The interface that tells which node owns which shard.

use doppel_model::ShardId;

/// Knows which node of a list owns each shard. Owners may change between two calls.
pub trait OwnerLookup: Send + Sync {
    /// Returns the number of shards, which never changes.
    fn shards(&self) -> u16;

    /// Returns the index of the node that owns the shard; `None` if no owner is known.
    fn of_shard(&self, shard: ShardId) -> Option<usize>;

    /// Like [`of_shard`](Self::of_shard), but returns `None` if the owner counts as dead. Questions of
    /// callers use this method.
    fn present(&self, shard: ShardId) -> Option<usize> {
        self.of_shard(shard)
    }

    /// Whether a shard may have another owner later. The answer never changes.
    fn may_change(&self) -> bool {
        false
    }

    /// Returns the indexes of nodes that may have a replica of the shard, the most likely to answer first.
    fn replicas(&self, _shard: ShardId) -> Vec<usize> {
        Vec::new()
    }
}

/// Owners that never change: the index of the owner's node for each shard.
#[derive(Debug, Clone)]
pub struct FixedOwners(pub Vec<usize>);

impl OwnerLookup for FixedOwners {
    fn shards(&self) -> u16 {
        u16::try_from(self.0.len()).unwrap_or(u16::MAX)
    }

    fn of_shard(&self, shard: ShardId) -> Option<usize> {
        self.0.get(usize::from(shard.0)).copied()
    }
}
