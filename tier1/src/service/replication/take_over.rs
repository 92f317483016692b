//! Decides when a node takes a range over, begins its ownership, and ends it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId};
use doppel_protocol::Settlement;
use doppel_protocol::beats::{DEAD_AFTER, ReportedReplica};

use super::configuration::LogLease;
use super::{KeeperState, KeptReplica, ReplicatedRange, lock};
use crate::replica::{OwnedRows, Replica, ReplicaError};
use crate::service::open::Error;
use crate::service::ownership::owner::OpenedRange;
use crate::storage::database::LogConsumer;
use crate::storage::progress;

/// Each further replica in the list waits this much longer, so that not all try at once.
const NEXT: Duration = Duration::from_millis(500);

/// How long the report of a replica counts as its answer to how far it is. This is one or two beats, and less
/// than the servers of the log take to come back.
const ANSWER: Duration = Duration::from_millis(700);

/// How much longer the other replicas wait for the first owner, if no node has owned the range since this
/// process began.
const START: Duration = Duration::from_secs(5);

/// How long an operator's request to take over holds, whatever fails in the meantime.
const WISH: Duration = Duration::from_secs(30);

/// How long a node leaves a range to others after it took the range over and could not begin it.
const REST: Duration = Duration::from_secs(30);

/// A replica that is about to take over.
struct TakeOverCandidate<'h> {
    range: RangeId,
    /// Name of this node.
    own: &'h str,
    /// Index of the last record of this replica.
    index: u64,
    /// Nodes that are to have the range.
    replicas: &'h [String],
}

impl TakeOverCandidate<'_> {
    /// Whether this replica may take over, after what the other replicas have reported. An operator's request
    /// stands in for replicas that report nothing.
    fn may_take_over(
        &self,
        settlement: Settlement,
        replicas: &[ReportedReplica],
        is_wanted: bool,
    ) -> Result<(), ReplicaError> {
        let (range, here) = (self.range, self.index);
        let others = || replicas.iter().filter(|other| other.node != self.own);
        let answers = |other: &&ReportedReplica| {
            other.claim.known && other.age < ANSWER && self.replicas.contains(&other.node)
        };
        let (heard, count) = (others().filter(answers).count() + 1, self.replicas.len());
        let needed = settlement.answers(count);
        let is_enough = heard >= needed;
        // If enough replicas have reported, a record that only a silent replica has was never settled.
        let is_settled_here = settlement == Settlement::Standby && is_enough;
        for ahead in others().filter(|other| other.claim.index > here) {
            let (node, has) = (&ahead.node, ahead.claim.index);
            if ahead.age < DEAD_AFTER || !is_wanted && !is_settled_here {
                return Err(ReplicaError::OtherAhead { range, node: node.clone() });
            }
            tracing::warn!(
                range = range.0,
                node,
                has,
                here,
                is_wanted,
                "this node takes the range over without the records that only a silent node has"
            );
        }
        if !is_enough && !is_wanted {
            return Err(ReplicaError::TooFewReports { range, heard, needed, replicas: count });
        }
        Ok(())
    }
}

/// Releases the log from the index and the status table, which read it at another owner now.
fn release_log(replica: &Replica) {
    for reader in [LogConsumer::Index, LogConsumer::Statuses] {
        replica.database().keep_log(reader, None);
    }
}

impl KeptReplica {
    /// Whether an operator wants this node to take over, and the node may.
    pub(super) fn is_wanted(&self) -> bool {
        let is_new = lock(&self.requested_at).is_some_and(|wish| wish.elapsed() < WISH);
        is_new && !self.barred.load(Ordering::Relaxed)
    }
}

impl KeeperState {
    /// Whether it is this node's turn to take over. No node has claimed the range for a while, and every node
    /// before this one in the list is silent or has had its time.
    pub(super) fn is_due(&self, replicated: &ReplicatedRange, kept: &KeptReplica, replica: &Replica) -> bool {
        if kept.barred.load(Ordering::Relaxed)
            || self.refusals.check().is_err()
            || lock(&kept.state).rests_until.is_some_and(|until| Instant::now() < until)
        {
            return false;
        }
        let (now, membership) = (Instant::now(), &self.replication.membership);
        let is_heard = |node: &&String| {
            **node == self.replication.node
                || membership.silence(node, now).is_some_and(|silence| silence < DEAD_AFTER)
        };
        let before =
            replicated.replicas.iter().filter(is_heard).take_while(|node| **node != self.replication.node);
        let mut wait = DEAD_AFTER + NEXT * u32::try_from(before.count()).unwrap_or(u32::MAX);
        let alive = now.saturating_duration_since(self.begun);
        let silence = membership.owner_silence(replicated.range, now);
        // While a cluster starts, each range is left to its first node.
        if silence.is_none() && replicated.replicas.first() != Some(&self.replication.node) {
            wait += START;
        }
        // A node that has just taken over needs a moment before it claims the range.
        let silence = silence.unwrap_or(alive).min(replica.time_since_take_over().unwrap_or(alive));
        silence.min(alive) >= wait
    }

    pub(super) fn take_over(
        &self,
        replicated: &ReplicatedRange,
        kept: &KeptReplica,
        replica: &Arc<Replica>,
    ) -> Result<(), Error> {
        let is_wanted = kept.is_wanted();
        let began = Instant::now();
        let replicas = self.replication.membership.replicas(replicated.range, began);
        // The records that the other replicas have reported must be in the log.
        while replica.follow()? {}
        let (settlement, own) = (self.replication.settlement, &self.replication.node);
        let candidate = TakeOverCandidate {
            range: replicated.range,
            own,
            index: replica.index(),
            replicas: &replicated.replicas,
        };
        candidate.may_take_over(settlement, &replicas, is_wanted)?;
        let epoch = match replica.take_over() {
            Ok(epoch) => epoch,
            Err(ReplicaError::LostRace { owner, .. }) => {
                tracing::info!(range = replicated.range.0, owner, "another node has taken the range over");
                // A later request may have asked the other node.
                *lock(&kept.requested_at) = None;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = self.begin_ownership(replicated.range, replica, epoch) {
            release_log(replica);
            // The log says that this node owns the range. Other nodes get their turn.
            lock(&kept.state).rests_until = Instant::now().checked_add(REST);
            *lock(&kept.requested_at) = None;
            return Err(error);
        }
        lock(&kept.state).owned = Some(epoch);
        *lock(&kept.requested_at) = None;
        self.beat_soon();
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(range = replicated.range.0, epoch = epoch.0, seconds, "this node owns the range now");
        self.announce_ownership(replicated, kept, (replica, epoch));
        Ok(())
    }

    /// Begins to own a range that this node has taken over.
    fn begin_ownership(&self, id: RangeId, replica: &Arc<Replica>, epoch: Epoch) -> Result<(), Error> {
        let database = replica.database();
        // The index says later from where on it needs the log.
        database.keep_log(LogConsumer::Index, Some(0));
        // A snapshot of the status table from an earlier ownership is void, because others have changed the
        // rows since.
        database.keep_log(LogConsumer::Statuses, None);
        let dir = self.dir(id);
        let opened = OpenedRange {
            store: Arc::new(OwnedRows::new(Arc::clone(replica), epoch)),
            uncached_store: database.uncached(),
            database: Some(Arc::clone(database)),
            dir: Some(dir.clone()),
            saved_statuses: None,
            epoch: Some(epoch),
            lease: Some(Arc::new(LogLease(Arc::clone(replica), epoch))),
        };
        let range = self.tier1.open_range(id, &opened)?;
        progress::verify(&dir, progress::of(&range.shards().metas)).map_err(Error::Store)?;
        self.tier1.begin_range(opened, range)
    }

    /// Ends owning a range, if this node owns it.
    pub(super) fn end_ownership(&self, replicated: &ReplicatedRange, kept: &KeptReplica) {
        let (owned, replica) = {
            let mut state = lock(&kept.state);
            (state.owned.take(), state.replica.clone())
        };
        if owned.is_some() {
            // The writer may wait for the log or a standby, and `end_range` waits for the writer.
            if let Some(replica) = &replica {
                replica.end_ownership();
            }
            self.tier1.end_range(replicated.range);
            if let Some(replica) = &replica {
                release_log(replica);
            }
            self.beat_soon();
            if std::mem::take(&mut lock(&kept.state).is_announced) {
                (self.replication.owned)(replicated.range, false);
            }
        }
    }

    /// Announces that this node owns a range, once everything that it began with is settled.
    pub(super) fn announce_ownership(
        &self,
        replicated: &ReplicatedRange,
        kept: &KeptReplica,
        (replica, epoch): (&Replica, Epoch),
    ) {
        if replica.has_settled(epoch) && !std::mem::replace(&mut lock(&kept.state).is_announced, true) {
            (self.replication.owned)(replicated.range, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use doppel_protocol::beats::RangeClaim;

    use super::*;

    fn heard(node: &str, index: u64, age: Duration) -> ReportedReplica {
        ReportedReplica {
            node: node.to_owned(),
            claim: RangeClaim {
                range: RangeId(0),
                epoch: Epoch(1),
                owns: false,
                index,
                known: true,
                sequence: index,
                needs: index,
                trouble: None,
            },
            age,
        }
    }

    fn allowed(settlement: Settlement, others: &[ReportedReplica], is_wanted: bool) -> Result<(), String> {
        let replicas = ["a", "b", "c"].map(str::to_owned);
        let candidate = TakeOverCandidate { range: RangeId(3), own: "c", index: 5, replicas: &replicas };
        candidate.may_take_over(settlement, others, is_wanted).map_err(|error| match error {
            ReplicaError::OtherAhead { node, .. } => node,
            ReplicaError::TooFewReports { heard, .. } => heard.to_string(),
            other => panic!("{other}"),
        })
    }

    #[test]
    fn a_take_over_always_waits_for_a_live_replica_that_is_ahead() {
        let (live, silent) = (Duration::ZERO, DEAD_AFTER);
        for settlement in [Settlement::Log, Settlement::Standby] {
            for is_wanted in [false, true] {
                let others = [heard("a", 9, silent), heard("b", 6, live)];
                assert!(allowed(settlement, &others, is_wanted).is_err());
                assert!(!is_wanted || allowed(settlement, &others, true) == Err("b".to_owned()));
                let even = [heard("a", 5, live), heard("b", 5, live)];
                assert_eq!(allowed(settlement, &even, is_wanted), Ok(()));
            }
        }
    }

    #[test]
    fn a_record_of_a_silent_replica_delays_a_take_over_only_if_it_may_be_settled() {
        let (live, silent) = (Duration::ZERO, DEAD_AFTER);
        let others = [heard("a", 9, silent), heard("b", 5, live)];
        assert_eq!(allowed(Settlement::Log, &others, false), Err("a".to_owned()));
        assert_eq!(allowed(Settlement::Log, &others, true), Ok(()));
        assert_eq!(allowed(Settlement::Standby, &others, false), Ok(()));
        // The second replica may have the settled record, too, as long as it has not reported.
        let unheard = [heard("a", 9, silent), heard("b", 5, ANSWER)];
        assert_eq!(allowed(Settlement::Standby, &unheard, false), Err("a".to_owned()));
        assert_eq!(allowed(Settlement::Standby, &unheard[1..], false), Err("1".to_owned()));
        assert_eq!(allowed(Settlement::Standby, &unheard, true), Ok(()));
        // A node that is not to have the range any more does not count.
        let strange = [heard("a", 9, silent), heard("d", 5, live)];
        assert_eq!(allowed(Settlement::Standby, &strange, false), Err("a".to_owned()));
    }
}
