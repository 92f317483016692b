//! What a node is told of the replication of its ranges, and how long an owner may answer.

use std::sync::Arc;
use std::time::Duration;

use doppel_model::{Epoch, RangeId};
use doppel_protocol::membership::{Beat, Membership};
use doppel_protocol::range_owner::PeerError;
use doppel_protocol::{LEASE, OWNERS_LAG, Settlement};
use doppel_shared_log::{EngineError, LED, SharedLog};

use crate::lease::Lease;
use crate::replica::Replica;

/// A range of which this node has a replica.
pub struct ReplicatedRange {
    /// The range.
    pub range: RangeId,
    /// The nodes that have replicas, the one first that is to own it where nothing else is known.
    pub replicas: Vec<String>,
    /// Opens its log.
    pub log: Box<dyn Fn() -> Result<Arc<dyn SharedLog>, EngineError> + Send + Sync>,
}

/// What a node is told of the replication of its ranges.
pub struct Replication {
    /// The cluster's id.
    pub cluster: String,
    /// The name of this node.
    pub node: String,
    /// Those of which it has a replica.
    pub ranges: Vec<ReplicatedRange>,
    /// What the nodes say of themselves; the beats of this one must be in it, too.
    pub membership: Arc<Membership>,
    /// When commits are settled; the same for all nodes.
    pub settlement: Settlement,
    /// How long the log keeps what all replicas have, while there is room.
    pub log_window: Duration,
    /// Tells all nodes a beat.
    pub tell: Box<dyn Fn(&Beat) + Send + Sync>,
    /// Called when this node has begun to own a range, and, with false, when it has ended.
    pub owned: Box<dyn Fn(RangeId, bool) + Send + Sync>,
}

/// So much later than it was deposed an owner may answer: it trusts what its log has said for the lease, and that trusts its leader.
const _: () = assert!(LEASE.as_millis() + LED.as_millis() <= OWNERS_LAG.as_millis());

/// What is to be committed is refused once a commit has waited for so long: a stream that is full and standbys that are away may
/// stay so for hours.
const WAITS: Duration = Duration::from_secs(5);

/// An owner may answer as long as its log answers it: for the lease after it sent the last request that the log has answered.
pub(super) struct LogLease(pub(super) Arc<Replica>, pub(super) Epoch);

impl Lease for LogLease {
    fn check(&self) -> Result<(), PeerError> {
        // What deposes it is an answer, too.
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
    use crate::database::Database;
    use crate::replica::{ReplicaLimits, log_id};

    #[test]
    fn an_owner_says_whether_it_is_deposed_or_its_log_is_silent() {
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
