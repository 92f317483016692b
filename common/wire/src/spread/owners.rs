//! Which node has which shard.

use doppel_model::ShardId;

/// Which of some nodes owns each shard. It may change between two calls.
pub trait Owners: Send + Sync {
    /// How many shards there are. This never changes.
    fn shards(&self) -> u16;

    /// The place in the list of nodes of the one that owns the shard; none where no owner is known.
    fn of_shard(&self, shard: ShardId) -> Option<usize>;

    /// The same for a question, unless that node is taken for dead.
    fn present(&self, shard: ShardId) -> Option<usize> {
        self.of_shard(shard)
    }

    /// Whether a shard may have another owner later. It never changes.
    fn may_change(&self) -> bool {
        false
    }

    /// The places of the nodes that may have a replica of the shard, those first that are likely to answer for it.
    fn replicas(&self, _shard: ShardId) -> Vec<usize> {
        Vec::new()
    }
}

/// Owners that never change: the place of each shard's node, for all shards that there are.
#[derive(Debug, Clone)]
pub struct FixedOwners(pub Vec<usize>);

impl Owners for FixedOwners {
    fn shards(&self) -> u16 {
        u16::try_from(self.0.len()).unwrap_or(u16::MAX)
    }

    fn of_shard(&self, shard: ShardId) -> Option<usize> {
        self.0.get(usize::from(shard.0)).copied()
    }
}
