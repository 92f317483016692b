//! The configuration of a node's replicas, and the lease of an owner.

use std::sync::Arc;
use std::time::Duration;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::beats::{Beat, ClusterMembership};
use doppel_protocol::range_owner::PeerError;
use doppel_protocol::{LEASE, OWNERS_LAG, Settlement};
use doppel_shared_log::{EngineError, LED, SharedLog};

use crate::lease::Lease;
use crate::replica::Replica;

/// A range of which this node has a replica.
pub struct ReplicatedRange {
    /// Id of the range.
    pub range: RangeId,
    /// Nodes that have replicas. The first one owns the range if nothing else is known.
    pub replicas: Vec<String>,
    /// Opens the log of the range.
    pub log: Box<dyn Fn() -> Result<Arc<dyn SharedLog>, EngineError> + Send + Sync>,
}

/// How the ranges of a node are replicated.
pub struct ReplicationConfig {
    /// Id of the cluster.
    pub cluster: String,
    /// Name of this node.
    pub node: String,
    /// Ranges of which this node has a replica.
    pub ranges: Vec<ReplicatedRange>,
    /// What all nodes report of themselves. The beats of this node must be in it, too.
    pub membership: Arc<ClusterMembership>,
    /// When commits are settled. All nodes have the same setting.
    pub settlement: Settlement,
    /// How long the log keeps entries that all replicas have, while there is room.
    pub log_window: Duration,
    /// Sends a beat to all nodes.
    pub tell: Box<dyn Fn(&Beat) + Send + Sync>,
    /// Called with true when this node has begun to own a range, and with false when it has ended.
    pub owned: Box<dyn Fn(RangeId, bool) + Send + Sync>,
}

/// An owner that was deposed may answer for this long: it trusts the last answer of its log for the lease,
/// and the log trusts its leader.
const _: () = assert!(LEASE.as_millis() + LED.as_millis() <= OWNERS_LAG.as_millis());

/// New tasks are refused once a commit has waited for this long. A full stream, or standbys that are away,
/// may hold commits up for hours.
const WAITS: Duration = Duration::from_secs(5);

/// The lease of an owner under an epoch. The owner may answer for [`LEASE`] after it sent the last request
/// that its log has answered.
pub(super) struct LogLease(pub(super) Arc<Replica>, pub(super) Epoch);

impl Lease for LogLease {
    fn check(&self) -> Result<(), PeerError> {
        // The answer of the log may have deposed the owner.
        if self.0.owner().0 != self.1 || self.0.is_ownership_over() {
            return Err(PeerError::NotOwner(self.0.range()));
        }
        if self.0.has_contact(LEASE) {
            return Ok(());
        }
        Err(PeerError::unreachable(self.0.range(), "its log has not answered its owner for a second"))
    }

    fn end(&self) {
        if self.0.owner().0 == self.1 {
            self.0.end_ownership();
        }
    }

    fn disk_is_full(&self) {
        self.0.note_full_disk();
    }

    fn check_commits(&self) -> Result<(), PeerError> {
        match self.0.wait_reason_after(WAITS) {
            Some(why) => Err(PeerError::unreachable(self.0.range(), format!("its commits wait: {why}"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use doppel_shared_log::memory::MemoryLog;

    use super::*;
    use crate::replica::{ReplicaLimits, log_id};
    use crate::storage::database::Database;

    #[test]
    fn a_lease_tells_a_deposed_owner_from_a_silent_log() {
        let (dir, log, range) = (tempfile::tempdir().unwrap(), MemoryLog::default(), RangeId(3));
        let replica = |node: &str| {
            let (id, limits) = (log_id("cluster", range), ReplicaLimits::new(Settlement::Log));
            let database = Arc::new(Database::open_replica(&dir.path().join(node), id, 1).unwrap());
            let log = Arc::new(log.clone());
            Arc::new(Replica::open(limits, (range, id), node.to_owned(), log, database).unwrap())
        };
        let (owner, next) = (replica("a"), replica("b"));
        let lease = LogLease(Arc::clone(&owner), owner.take_over().unwrap());
        lease.check().unwrap();
        std::thread::sleep(LEASE + Duration::from_millis(50));
        assert!(matches!(lease.check(), Err(PeerError::Unreachable { .. })));
        next.take_over().unwrap();
        while owner.follow().unwrap() {}
        assert!(matches!(lease.check(), Err(PeerError::NotOwner(RangeId(3)))));
        let lease = LogLease(Arc::clone(&next), next.owner().0);
        lease.check().unwrap();
        next.end_ownership();
        assert!(matches!(lease.check(), Err(PeerError::NotOwner(RangeId(3)))));
    }
}
