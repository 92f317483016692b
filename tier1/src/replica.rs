//! A replica of a range: a database that copies its records from a shared log.
//!
//! All replicas of a range read the same shared log, so they all copy the same records at the same positions.
//! At most one of them is the owner: the node with the last take-over record in the log
//! ([`Replica::take_over`]). The owner writes. A commit of the owner is a record in the shared log before it
//! is anything else; [`OwnedRows`] is the owner's view of the rows. All other replicas are standbys, which
//! [follow](Replica::follow) the log and copy every record that counts.
//!
//! A replica has no thread, and its decisions do not depend on clocks. The keeper (`service::replication`) runs
//! it.
//!
//! | module | responsibility |
//! |---|---|
//! | `entry` | encodes a record as log entries |
//! | `chain` | decides which log entries count |
//! | `log_io` | appends, reads, and copies entries |
//! | `commit` | appends one commit, part by part |
//! | `settlement` | decides when a commit is settled |
//! | `tail_loss` | detects a log that has lost its tail, and puts lost records back |
//! | `transfer` | copies rows from the owner if the log was trimmed too far |
//! | `owned_rows` | the owner's view of the rows |
//! | `replica_store` | the interface of the database that stores copied records |
//! | `limits` | times and sizes that a replica uses |
//! | `error` | reasons why a replica cannot continue |
//! | `failure` | whether the replica's database has failed |
//!
//! Invariants:
//! - The database contains only records that count in the shared log. An owner that is deposed therefore has
//!   nothing to undo.
//! - At most one append is under way at a time. It names the last entry that the replica has read.
//! - A node that takes the range over has read the log to its end. It has copied every record in the log, and
//!   has put back the records that the log had lost and this node had copied.

mod chain;
mod commit;
mod entry;
mod error;
mod failure;
mod limits;
mod log_io;
mod owned_rows;
mod replica_store;
mod settlement;
pub(crate) mod tail_loss;
#[cfg(test)]
mod tests;
mod transfer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId, stable_hash64};
use doppel_shared_log::{Extent, LogError, Sequence, SharedLog};

use crate::storage::database::Database;
use crate::storage::log::{LogId, Position, SequencedPosition};
use crate::storage::store::{StoreError, Write};
use entry::encode;
pub use error::ReplicaError;
pub(crate) use limits::ReplicaLimits;
pub(crate) use owned_rows::OwnedRows;
pub use transfer::TransferError;
pub(crate) use transfer::{TransferSource, install_transfer, transfer};
pub(crate) use {chain::Chain, chain::FoldedEntry, entry::RecordBody, replica_store::ReplicaStore};
#[cfg(feature = "simulation")]
pub(crate) use {commit::CommitInProgress, entry::decode_single_part, replica_store::RecordVisitor};

/// Maximum number of bytes to read from the log in one call.
const READ_BYTES: usize = 4 << 20;

/// Pause before the next attempt after the log has refused an entry or did not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Returns the id of a range's log. The shared log and the local logs of all replicas have this id.
pub(crate) fn log_id(cluster: &str, range: RangeId) -> LogId {
    LogId(stable_hash64(format!("{cluster}/{}", range.0).as_bytes()))
}

/// A replica of a range.
pub(crate) struct Replica<D = Database> {
    range: RangeId,
    /// Name of this node.
    node: String,
    /// Nodes that are configured to have a replica of the range. `None` if every node that follows the log
    /// counts. Reports of other nodes settle no commit, because nobody asks those nodes after the owner has
    /// died.
    replicas: Option<Vec<String>>,
    id: LogId,
    log: Arc<dyn SharedLog>,
    database: Arc<D>,
    state: Mutex<ReplicaState>,
    limits: ReplicaLimits,
    /// Random number of this instance of the replica. It distinguishes two processes with one node name.
    incarnation: u64,
    /// Last owner that this process has read of. Readable while an append holds the lock of `state`.
    last_owner: Mutex<LastOwner>,
    /// Index of the last copied record.
    index: AtomicU64,
    /// Sequence number of the last copied record in the log.
    sequence: AtomicU64,
    /// Why a commit waits, and since when. `None` if no commit waits.
    wait: Mutex<Option<(Instant, String)>>,
    /// When the replica sent its latest request for the log's end, or its latest append, that the log has
    /// answered.
    last_contact: Mutex<Option<Instant>>,
    /// Everything that was acknowledged before this time is copied. `None` if the replica has not yet reached
    /// the end of the log.
    complete_as_of: Mutex<Option<Instant>>,
    /// Epoch of the last owner that is known to have a settled record. Its take-over and everything before
    /// the take-over is then settled as well.
    settled_epoch: AtomicU64,
    /// The ownership of this process is over, although no record in the log says so.
    is_ownership_over: AtomicBool,
    /// The disk of the database is full.
    is_full: AtomicBool,
    /// Calls that wait for the log return an error soon.
    is_stopping: AtomicBool,
}

/// The last owner that a replica has read of.
#[derive(Debug, Clone)]
struct LastOwner {
    epoch: Epoch,
    /// Node of the owner, and when this process read its take-over. `None` if this process has read no
    /// take-over.
    take_over: Option<(String, Instant)>,
}

/// Progress of a replica in the log.
struct ReplicaState {
    chain: Chain,
    /// Last record that this process wrote as the owner. `None` if this process does not own the range.
    /// While it is the last record of the chain, no other node has written since.
    own_last: Option<Position>,
    /// The database has failed, so its contents are unknown.
    database_failed: bool,
    /// The log may have lost entries that this replica has read. The replica verifies the log before the next
    /// append.
    is_doubtful: bool,
    /// When the log was asked for its end, and the end that it reported. `None` if that end was reached.
    catch_up_target: Option<(Instant, Sequence)>,
    /// Void entries up to this sequence number raise no doubt, because the log was verified after they were
    /// read.
    verified_through: Sequence,
    /// Since when the log has shown that its tail is lost.
    lost_since: Option<Instant>,
    /// When the log was last verified to have the last copied record.
    verified_at: Option<Instant>,
    /// Position that was last reported to the owner, and when.
    last_report: Option<(Position, Instant)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: ReplicaStore> Replica<D> {
    /// Opens the replica of a node over the records that `database` has copied so far. Verifies that the log
    /// still has the last of these records, or has lost it together with everything after it.
    ///
    /// # Errors
    /// If the log does not answer, or has another record in the place of the last copied record.
    pub(crate) fn open(
        limits: ReplicaLimits,
        (range, id): (RangeId, LogId),
        node: String,
        log: Arc<dyn SharedLog>,
        database: Arc<D>,
    ) -> Result<Self, ReplicaError> {
        let SequencedPosition { position, sequence } = database.last_copied();
        let chain = Chain::after(id, position, Sequence(sequence));
        let this = Self {
            range,
            node,
            replicas: None,
            id,
            log,
            database,
            state: Mutex::new(ReplicaState {
                chain,
                own_last: None,
                database_failed: false,
                is_doubtful: false,
                catch_up_target: None,
                verified_through: Sequence(0),
                lost_since: None,
                verified_at: None,
                last_report: None,
            }),
            limits,
            incarnation: doppel_model::random_number(),
            last_owner: Mutex::new(LastOwner { epoch: Epoch(position.epoch), take_over: None }),
            index: AtomicU64::new(position.index),
            sequence: AtomicU64::new(sequence),
            wait: Mutex::default(),
            last_contact: Mutex::default(),
            complete_as_of: Mutex::default(),
            settled_epoch: AtomicU64::new(0),
            is_ownership_over: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
        };
        {
            let mut state = lock(&this.state);
            match this.verify(&mut state) {
                Err(ReplicaError::LostTail { .. }) => state.is_doubtful = true,
                other => other?,
            }
        }
        Ok(this)
    }

    /// Names the nodes that are configured to have a replica of the range. Only their reports settle commits.
    pub(crate) fn with_replicas(self, replicas: &[String]) -> Self {
        Self { replicas: Some(replicas.to_vec()), ..self }
    }

    /// The range.
    pub(crate) fn range(&self) -> RangeId {
        self.range
    }

    /// The database with the rows of all copied records.
    pub(crate) fn database(&self) -> &Arc<D> {
        &self.database
    }

    /// The epoch of the last copied record, and the node that owns the range since. The node is `None` if
    /// this process has not read its take-over.
    pub(crate) fn owner(&self) -> (Epoch, Option<String>) {
        let LastOwner { epoch, take_over } = lock(&self.last_owner).clone();
        (epoch, take_over.map(|(owner, _)| owner))
    }

    /// Time since this process read the last take-over. `None` if this process has read no take-over.
    pub(crate) fn time_since_take_over(&self) -> Option<Duration> {
        lock(&self.last_owner).take_over.as_ref().map(|(_, since)| since.elapsed())
    }

    /// Index of the last copied record.
    pub(crate) fn index(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }

    /// Sequence number of the last copied record in the log; 0 before the first. The record is on the disk of
    /// this node.
    pub(crate) fn sequence(&self) -> Sequence {
        Sequence(self.sequence.load(Ordering::Relaxed))
    }

    /// Asks the log which entries it contains.
    ///
    /// # Errors
    /// If the log does not answer.
    pub(crate) fn extent(&self) -> Result<Extent, LogError> {
        self.log.extent()
    }

    /// Removes the entries of the log up to `through`, which must be the last entry of a record.
    ///
    /// # Errors
    /// If the log does not answer.
    pub(crate) fn trim(&self, through: Sequence) -> Result<(), LogError> {
        self.log.trim(through)
    }

    /// The reason why a commit waits. `None` if no commit waits.
    pub(crate) fn wait_reason(&self) -> Option<String> {
        self.wait_reason_after(Duration::ZERO)
    }

    /// Like [`wait_reason`](Self::wait_reason), but `None` if the commit has waited for less than `least`.
    pub(crate) fn wait_reason_after(&self, least: Duration) -> Option<String> {
        let wait = lock(&self.wait);
        wait.as_ref().filter(|(since, _)| since.elapsed() >= least).map(|(_, why)| why.clone())
    }

    /// Records why a commit waits. The start of the wait stays the same.
    fn note_wait_reason(&self, why: String) {
        let mut wait = lock(&self.wait);
        let since = wait.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        *wait = Some((since, why));
    }

    /// Whether the log has answered a request that was sent no longer than `within` ago.
    pub(crate) fn has_contact(&self, within: Duration) -> bool {
        lock(&self.last_contact).is_some_and(|contact| contact.elapsed() <= within)
    }

    /// Whether the ownership of this process is over, although no record in the log says so.
    pub(crate) fn is_ownership_over(&self) -> bool {
        self.is_ownership_over.load(Ordering::Relaxed)
    }

    /// Ends the ownership of this process, if it has one. Its waiting commits fail soon.
    pub(crate) fn end_ownership(&self) {
        self.is_ownership_over.store(true, Ordering::Relaxed);
    }

    /// Stops the replica. Calls that wait for the log fail soon, and all later calls fail.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    /// Copies new records, as many as one read returns. Returns whether there were new entries.
    ///
    /// # Errors
    /// If the log does not answer, was trimmed too far, or contradicts the copied records, or if the database
    /// fails.
    pub(crate) fn follow(&self) -> Result<bool, ReplicaError> {
        self.follow_on(&mut lock(&self.state))
    }

    fn follow_on(&self, state: &mut ReplicaState) -> Result<bool, ReplicaError> {
        let seen = state.chain.last_read();
        let mut goes_on = !state.is_doubtful && self.read_more(state)?;
        // A log that has become shorter than what was read returns nothing new for a long time, so verify it
        // now and then.
        let is_old = |at: Instant| at.elapsed() >= self.limits.tail_loss_grace;
        if state.is_doubtful || !goes_on && state.verified_at.is_none_or(is_old) {
            self.verify_or_put_back(state)?;
            while self.read_more(state)? && state.chain.last_read() <= seen {}
            goes_on = state.chain.last_read() > seen;
        }
        self.report(state);
        Ok(goes_on)
    }

    /// Appends a take-over record, which makes this node the owner of the range. Returns the new epoch.
    ///
    /// # Errors
    /// If another node takes over first, the log does not answer, or the database fails.
    pub(crate) fn take_over(&self) -> Result<Epoch, ReplicaError> {
        let mut state = lock(&self.state);
        state.own_last = None;
        loop {
            self.ensure_intact(&mut state)?;
            while self.read_more(&mut state)? {}
            let begun = state.chain.last();
            let epoch = begun.epoch + 1;
            let body = RecordBody::TakeOver { owner: self.node.clone(), incarnation: self.incarnation };
            let encoded = encode(self.id, (begun, epoch), &body, self.limits.part_bytes);
            let encoded = encoded.map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
            for entry in &encoded.parts {
                self.append(&mut state, entry)??;
            }
            let last = state.chain.last();
            if last == encoded.position {
                state.own_last = Some(last);
                self.is_ownership_over.store(false, Ordering::Relaxed);
                return Ok(Epoch(epoch));
            }
            if last.epoch > begun.epoch {
                let owner = self.owner().1.unwrap_or_default();
                return Err(ReplicaError::LostRace { range: self.range, owner });
            }
        }
    }

    /// Makes a commit as the owner of `epoch`. When the call returns, the commit counts, is in the database,
    /// and is settled. The call waits while the log does not answer, or while no standby reports a commit
    /// that a standby must have.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] if another node has taken over, or this process stops.
    fn commit(&self, epoch: Epoch, writes: Vec<Write>) -> Result<(), StoreError> {
        let committed = self.commit_rows(&mut lock(&self.state), epoch, writes);
        let settled = committed.and_then(|position| self.await_settled(epoch, position));
        // The commit no longer waits, whether it succeeded or failed.
        *lock(&self.wait) = None;
        settled
    }

    fn commit_rows(
        &self,
        state: &mut ReplicaState,
        epoch: Epoch,
        writes: Vec<Write>,
    ) -> Result<Position, StoreError> {
        let mut commit = self.start_commit(state, epoch, writes)?;
        let mut is_logged = false;
        while let Some(error) = self.advance_commit(state, &mut commit)? {
            if !std::mem::replace(&mut is_logged, true) {
                tracing::warn!(%error, range = self.range.0, "a commit waits for the log");
            }
            self.note_wait_reason(error.to_string());
            self.ensure_running()?;
            if self.is_ownership_over() {
                return Err(StoreError::Deposed(self.range));
            }
            std::thread::sleep(RETRY_PAUSE);
        }
        Ok(commit.position())
    }
}
