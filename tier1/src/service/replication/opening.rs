//! Opens replicas, and closes those whose database has failed, so that they can be opened anew.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use doppel_model::RangeId;

use super::contradiction::Contradiction;
use super::{KeeperState, KeptReplica, ReplicatedRange, lock};
use crate::replica::{Replica, ReplicaError, ReplicaLimits, install_transfer, log_id};
use crate::service::open::Error;
use crate::service::ownership::disk_space::ensure_room;
use crate::storage::database::Database;
use crate::storage::log::LogId;
use crate::storage::store::StoreError;

/// Time between two attempts to get the turn.
const LOOK: Duration = Duration::from_millis(20);

impl KeeperState {
    /// Closes a replica whose database has failed.
    pub(super) fn close_failed(&self, replicated: &ReplicatedRange, kept: &KeptReplica) {
        let failed = {
            let mut state = lock(&kept.state);
            let failed = state.replica.take_if(|replica| replica.has_failed());
            if let Some(failed) = &failed {
                // The disk may have less than the failed database, so its index does not count until it is
                // open again.
                (state.index, state.is_known) = (failed.index(), false);
                state.needs_room = failed.has_full_disk();
            }
            failed
        };
        if failed.is_some() {
            self.end_ownership(replicated, kept);
        }
    }

    pub(super) fn open_replica(
        &self,
        replicated: &ReplicatedRange,
        kept: &KeptReplica,
    ) -> Result<Arc<Replica>, Error> {
        let log = (replicated.log)()?;
        let id = log_id(&self.replication.cluster, replicated.range);
        let dir = self.dir(replicated.range);
        // Beats read the state while the database is opened, so the lock is not kept.
        let needs_room = {
            let state = lock(&kept.state);
            if state.room_from.is_some_and(|from| Instant::now() < from) {
                return Err(StoreError::DiskFull.into());
            }
            state.needs_room
        };
        let database = self.open_database(replicated.range, id, needs_room)?;
        let reached = database.last_copied();
        {
            let mut state = lock(&kept.state);
            (state.index, state.needs) = (reached.position.index, reached.sequence);
        }
        let (node, limits) = (self.replication.node.clone(), ReplicaLimits::new(self.replication.settlement));
        let is_noted = Contradiction::in_directory(&dir).is_noted()?;
        let opened = Replica::open(limits, (replicated.range, id), node, log, database);
        {
            let mut state = lock(&kept.state);
            state.contradicts = is_noted || matches!(opened, Err(ReplicaError::Contradiction { .. }));
            (state.is_noted, state.is_known, state.needs_room) = (is_noted, true, false);
        }
        Ok(Arc::new(opened?.with_replicas(&replicated.replicas)))
    }

    /// Opens the database of a replica. If its disk was full, there must be room first. Until then this node
    /// takes over no range that it had owned.
    fn open_database(
        &self,
        range: RangeId,
        id: LogId,
        needs_room: bool,
    ) -> Result<Arc<Database>, StoreError> {
        let (dir, refusals) = (self.dir(range), &self.refusals);
        let _alone = if needs_room { Some(self.turn_to_open()?) } else { None };
        let open = || {
            if needs_room {
                ensure_room(&dir)?;
            }
            install_transfer(&dir)?;
            Database::open_replica(&dir, id, self.share())
        };
        let opened = open().inspect_err(|error| drop(refusals.note_refusal(range, error)))?;
        if let Some(time) = refusals.note_recovery(range) {
            let seconds = time.as_secs_f64();
            tracing::info!(range = range.0, seconds, "the disk has room again; the replica continues");
        }
        Ok(Arc::new(opened))
    }

    /// Waits until no other range is being opened after its disk was full.
    fn turn_to_open(&self) -> Result<MutexGuard<'_, ()>, StoreError> {
        loop {
            if let Some(turn) = self.refusals.try_reopening_turn() {
                return Ok(turn);
            }
            if self.is_stopping() {
                return Err(StoreError::Engine("the process stops".to_owned()));
            }
            std::thread::sleep(LOOK);
        }
    }
}
