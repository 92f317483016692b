//! When a node takes a range over, how it begins to own it, and how that ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId};
use doppel_protocol::membership::{Replica as Heard, SILENCE};

use super::replication::LogLease;
use super::{Kept, ReplicatedRange, Shared, lock};
use crate::database::Reader;
use crate::progress;
use crate::replica::{OwnedRows, Replica, ReplicaError};
use crate::service::open::Error;
use crate::service::owner::Opened;

/// Each further replica waits so much longer, so that they do not all try at once.
const NEXT: Duration = Duration::from_millis(500);

/// What a replica has said counts for so long as its answer to how far it is: a beat or two, and less than servers of the log
/// take to come back.
const ANSWER: Duration = Duration::from_millis(700);

/// The first owner of a range has so much longer to come when nobody has owned the range since this process began.
const START: Duration = Duration::from_secs(5);

/// A node that could not begin a range that it had taken over leaves it to others for so long.
const REST: Duration = Duration::from_secs(30);

impl Shared {
    /// Whether it is for this node to take over: nobody has claimed the range for a while, and all that come before it in the
    /// list are silent or have had their time.
    pub(super) fn is_due(&self, of: &ReplicatedRange, kept: &Kept, replica: &Replica) -> bool {
        if kept.barred.load(Ordering::Relaxed)
            || self.tier1.check().is_err()
            || lock(&kept.state).rests_until.is_some_and(|until| Instant::now() < until)
        {
            return false;
        }
        let (now, membership) = (Instant::now(), &self.replication.membership);
        let is_heard = |node: &&String| {
            **node == self.replication.node
                || membership.silence(node, now).is_some_and(|silence| silence < SILENCE)
        };
        let before = of.replicas.iter().filter(is_heard).take_while(|node| **node != self.replication.node);
        let mut wait = SILENCE + NEXT * u32::try_from(before.count()).unwrap_or(u32::MAX);
        let alive = now.saturating_duration_since(self.begun);
        let silence = membership.owner_silence(of.range, now);
        // While a cluster starts, each range is left to the node that is to have it.
        if silence.is_none() && of.replicas.first() != Some(&self.replication.node) {
            wait += START;
        }
        // Whoever has just taken over needs a moment before it claims the range.
        let silence = silence.unwrap_or(alive).min(replica.owned_for().unwrap_or(alive));
        silence.min(alive) >= wait
    }

    pub(super) fn take_over(
        &self,
        of: &ReplicatedRange,
        kept: &Kept,
        replica: &Arc<Replica>,
    ) -> Result<(), Error> {
        let is_wanted = kept.wanted.swap(false, Ordering::Relaxed);
        let began = Instant::now();
        let replicas = self.replication.membership.replicas(of.range, began);
        // What they have said to have must be in the log.
        while replica.follow()? {}
        self.may_take_over(of, replica, &replicas, is_wanted)?;
        let epoch = match replica.take_over() {
            Ok(epoch) => epoch,
            Err(ReplicaError::Outrun { owner, .. }) => {
                tracing::info!(range = %of.range, owner, "another node has taken the range over");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if let Err(error) = self.begin(of.range, replica, epoch) {
            // The log says that this node owns it: others are to have their turn.
            lock(&kept.state).rests_until = Instant::now().checked_add(REST);
            return Err(error);
        }
        lock(&kept.state).owned = Some(epoch);
        self.tell_soon();
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(range = %of.range, epoch = epoch.0, seconds, "this node owns the range now");
        self.say_owned(of, kept, (replica, epoch));
        Ok(())
    }

    /// Whether what the replicas of a range have said allows this one to take over. A person who wants it answers for those that
    /// say nothing.
    fn may_take_over(
        &self,
        of: &ReplicatedRange,
        replica: &Replica,
        replicas: &[Heard],
        is_wanted: bool,
    ) -> Result<(), ReplicaError> {
        let range = of.range;
        let others = replicas.iter().filter(|other| other.node != self.replication.node);
        let ahead = others.clone().find(|other| other.index > replica.index());
        if let Some(ahead) = ahead {
            if !is_wanted || ahead.age < SILENCE {
                return Err(ReplicaError::Ahead { range, node: ahead.node.clone() });
            }
            let (node, has, here) = (&ahead.node, ahead.index, replica.index());
            tracing::warn!(%range, node, has, here, "a person has this node take over without what another has");
        }
        let answers =
            others.filter(|other| other.known && other.age < ANSWER && of.replicas.contains(&other.node));
        let (heard, replicas) = (answers.count() + 1, of.replicas.len());
        let needed = self.replication.settlement.answers(replicas);
        if heard < needed && !is_wanted {
            return Err(ReplicaError::TooFew { range, heard, needed, replicas });
        }
        Ok(())
    }

    /// Begins to own a range that was taken over.
    fn begin(&self, id: RangeId, replica: &Arc<Replica>, epoch: Epoch) -> Result<(), Error> {
        let database = replica.database();
        // It has no snapshot of a table that others have changed rows under.
        database.keep_log(Reader::Statuses, None);
        let dir = self.dir(id);
        let opened = Opened {
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

    /// This node owns a range no longer.
    pub(super) fn end(&self, of: &ReplicatedRange, kept: &Kept) {
        if lock(&kept.state).owned.take().is_some() {
            self.tier1.end_range(of.range);
            self.tell_soon();
            if std::mem::take(&mut lock(&kept.state).is_said) {
                (self.replication.owned)(of.range, false);
            }
        }
    }

    /// Says that this node owns a range, once all that it began with may leave it.
    pub(super) fn say_owned(&self, of: &ReplicatedRange, kept: &Kept, (replica, epoch): (&Replica, Epoch)) {
        if replica.has_settled(epoch) && !std::mem::replace(&mut lock(&kept.state).is_said, true) {
            (self.replication.owned)(of.range, true);
        }
    }
}
