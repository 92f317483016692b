//! A replica of a range: its database, and the shared log from which all replicas of the range have the same records.
//!
//! One of them owns the range, which is to say that it has said so in the log ([`Replica::take_over`]) and nobody after it.
//! [`OwnedRows`] are the rows of the owner: a commit is a record of the shared log before it is anything else. The others
//! [follow](Replica::follow): they copy each record that counts. A replica has no thread and decides nothing by a clock.
//!
//! | module | what |
//! |---|---|
//! | `entry` | a record of the shared log as bytes, in parts |
//! | `chain` | which entries count |
//! | `copies` | where it keeps what it has copied |
//! | `under_way` | a commit on its way into the log |
//! | `entries` | entries to the log, and from it |
//! | `limits` | what a replica keeps to |
//! | `owned` | the rows of the owner |
//! | `settled` | when a commit is settled |
//! | `standing` | whether the log has what was copied from it |
//! | `put_back` | what the log has lost is appended to it again |
//! | `transfer` | the rows of another replica, where the log does not reach back far enough |
//! | `told` | what is told of the log, without asking it |
//! | `complete` | since when everything that was acknowledged is here |
//! | `error` | why a replica cannot go on |
//! | `failure` | whether its database has failed |
//!
//! Invariants:
//! - the database never holds what does not count in the shared log, so a deposed owner has nothing to take back;
//! - one append is under way at a time, in the place behind the last entry that was read;
//! - whoever takes over has read the log to its end, and has every record of it, with those that it had lost and that are here.

mod chain;
mod commit;
mod entry;
mod error;
mod failure;
mod limits;
mod log_io;
mod owned_rows;
mod replica_store;
mod settled;
mod tail_loss;
#[cfg(test)]
mod tests;
mod transfer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId, stable_hash64};
use doppel_shared_log::{Extent, LogError, Sequence, SharedLog};

use crate::database::Database;
use crate::log::{LogId, Position, SequencedPosition};
use crate::store::{StoreError, Write};
use entry::encode;
pub use error::ReplicaError;
pub(crate) use limits::Limits;
pub(crate) use owned_rows::OwnedRows;
pub(crate) use tail_loss::{Found, find};
pub use transfer::TransferError;
pub(crate) use transfer::{Source, settle, transfer};
pub(crate) use {chain::Chain, chain::Folded, entry::Said, replica_store::Copies};
#[cfg(feature = "simulation")]
pub(crate) use {commit::UnderWay, entry::whole, replica_store::EachCopied};

/// Bytes of entries that are read at a time.
const READ_BYTES: usize = 4 << 20;

/// The pause after a log has refused to take more, or is not there.
const TROUBLE: Duration = Duration::from_millis(500);

/// The number of a range's shared log in a cluster, which its replicas' logs have, too.
pub(crate) fn log_id(cluster: &str, range: RangeId) -> LogId {
    LogId(stable_hash64(format!("{cluster}/{}", range.0).as_bytes()))
}

/// A replica of a range.
pub(crate) struct Replica<D = Database> {
    range: RangeId,
    /// The name of this node.
    node: String,
    /// The nodes that are to have the range; none where that is everybody who follows it. What others have settles nothing, for
    /// nobody asks them when the owner has died.
    replicas: Option<Vec<String>>,
    id: LogId,
    log: Arc<dyn SharedLog>,
    database: Arc<D>,
    state: Mutex<State>,
    limits: Limits,
    /// Drawn for each life of a replica.
    incarnation: u64,
    /// The last ownership. Known also while an append is under way.
    owner: Mutex<Ownership>,
    /// Index of the last record that was copied.
    index: AtomicU64,
    /// Where that is in the log.
    sequence: AtomicU64,
    /// Why a commit waits, and since when.
    trouble: Mutex<Option<(Instant, String)>>,
    /// When the log was last asked for its end, or for an append, that is here now.
    contact: Mutex<Option<Instant>>,
    /// Everything that was acknowledged before is here; none before the end of the log was reached.
    complete: Mutex<Option<Instant>>,
    /// The epoch of an owner all of whose beginning is settled.
    settled: AtomicU64,
    /// The ownership of this process is over for what the log has become, and not by a record in it.
    is_over: AtomicBool,
    /// The disk of the database is full.
    is_full: AtomicBool,
    /// Calls that wait for the log are given up.
    stopping: AtomicBool,
}

/// The last ownership that a replica has read of.
#[derive(Debug, Clone)]
struct Ownership {
    epoch: Epoch,
    /// The node, and when its take-over was read; none before this process has read one.
    taken: Option<(String, Instant)>,
}

/// How far the log is copied.
struct State {
    chain: Chain,
    /// The last record of this process, as long as it owns the range: nobody else may have written since.
    own: Option<Position>,
    /// The database has failed: what it has is not known any more.
    failed: bool,
    /// Whether the log still has what was copied from it is not known: it is looked before anything is appended.
    is_doubtful: bool,
    /// When the log was asked for its end, and what it said, as long as that is not reached.
    goal: Option<(Instant, Sequence)>,
    /// Entries up to this one that do not count raise no doubt: the last record that was copied is before them.
    verified: Sequence,
    /// Since when the log has shown that its end is lost.
    lost_since: Option<Instant>,
    /// When the log was last seen to have what was copied from it.
    verified_at: Option<Instant>,
    /// What was last reported to the owner, and when.
    reported: Option<(Position, Instant)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Copies> Replica<D> {
    /// The replica of a node, with what its database has copied so far. Ensures that this is what the log has there, or has
    /// lost.
    ///
    /// # Errors
    /// When the log does not answer, or has another record in the place of one that was copied.
    pub(crate) fn open(
        limits: Limits,
        (range, id): (RangeId, LogId),
        node: String,
        log: Arc<dyn SharedLog>,
        database: Arc<D>,
    ) -> Result<Self, ReplicaError> {
        let SequencedPosition { position, sequence } = database.last_copied();
        let chain = Chain::behind(id, position, Sequence(sequence));
        let this = Self {
            range,
            node,
            replicas: None,
            id,
            log,
            database,
            state: Mutex::new(State {
                chain,
                own: None,
                failed: false,
                is_doubtful: false,
                goal: None,
                verified: Sequence(0),
                lost_since: None,
                verified_at: None,
                reported: None,
            }),
            limits,
            incarnation: doppel_model::random_number(),
            owner: Mutex::new(Ownership { epoch: Epoch(position.epoch), taken: None }),
            index: AtomicU64::new(position.index),
            sequence: AtomicU64::new(sequence),
            trouble: Mutex::default(),
            contact: Mutex::default(),
            complete: Mutex::default(),
            settled: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
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

    /// The same, of a range that these nodes are to have.
    pub(crate) fn of(self, replicas: &[String]) -> Self {
        Self { replicas: Some(replicas.to_vec()), ..self }
    }

    /// The range.
    pub(crate) fn range(&self) -> RangeId {
        self.range
    }

    /// The rows, as far as they are copied.
    pub(crate) fn database(&self) -> &Arc<D> {
        &self.database
    }

    /// Number of the ownership as of the last record that was read, and the owner where this process has seen it take over.
    pub(crate) fn owner(&self) -> (Epoch, Option<String>) {
        let Ownership { epoch, taken } = lock(&self.owner).clone();
        (epoch, taken.map(|(owner, _)| owner))
    }

    /// The time since this process read of a take-over; none when it has not.
    pub(crate) fn owned_for(&self) -> Option<Duration> {
        lock(&self.owner).taken.as_ref().map(|(_, since)| since.elapsed())
    }

    /// The index of the last record that was copied.
    pub(crate) fn index(&self) -> u64 {
        self.index.load(Ordering::Relaxed)
    }

    /// Where that one is in the log; 0 before the first. It is on the disk of this node.
    pub(crate) fn sequence(&self) -> Sequence {
        Sequence(self.sequence.load(Ordering::Relaxed))
    }

    /// What the log has.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn extent(&self) -> Result<Extent, LogError> {
        self.log.extent()
    }

    /// Removes entries of the log up to one that is the end of a record.
    ///
    /// # Errors
    /// When the log does not answer.
    pub(crate) fn trim(&self, through: Sequence) -> Result<(), LogError> {
        self.log.trim(through)
    }

    /// Why a commit waits for the log; none when none does.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble_after(Duration::ZERO)
    }

    /// The same once it has waited for so long.
    pub(crate) fn trouble_after(&self, least: Duration) -> Option<String> {
        let trouble = lock(&self.trouble);
        trouble.as_ref().filter(|(since, _)| since.elapsed() >= least).map(|(_, why)| why.clone())
    }

    /// Takes note of why a commit waits.
    fn note_trouble(&self, why: String) {
        let mut trouble = lock(&self.trouble);
        let since = trouble.as_ref().map_or_else(Instant::now, |(since, _)| *since);
        *trouble = Some((since, why));
    }

    /// Whether the log has answered a request that was sent no longer ago than this.
    pub(crate) fn has_contact(&self, within: Duration) -> bool {
        lock(&self.contact).is_some_and(|contact| contact.elapsed() <= within)
    }

    /// Whether the ownership of this process is over, though no record in the log says so.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Ends the ownership of this process, if it has one: its commits that wait end soon.
    pub(crate) fn end_ownership(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Has calls that wait for the log end soon, and all later ones fail.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Copies what is new, as much as is read at a time. Whether there was anything.
    ///
    /// # Errors
    /// When the log does not answer or was trimmed too far, or the database fails.
    pub(crate) fn follow(&self) -> Result<bool, ReplicaError> {
        self.follow_on(&mut lock(&self.state))
    }

    fn follow_on(&self, state: &mut State) -> Result<bool, ReplicaError> {
        let seen = state.chain.seen();
        let mut goes_on = !state.is_doubtful && self.read_more(state)?;
        // The log may have become shorter than what was read, and then nothing new is to be read for long.
        let is_old = |at: Instant| at.elapsed() >= self.limits.lost;
        if state.is_doubtful || !goes_on && state.verified_at.is_none_or(is_old) {
            self.mend(state)?;
            while self.read_more(state)? && state.chain.seen() <= seen {}
            goes_on = state.chain.seen() > seen;
        }
        self.report(state);
        Ok(goes_on)
    }

    /// Says in the log that this node owns the range; its epoch.
    ///
    /// # Errors
    /// When another node was first, the log does not answer, or the database fails.
    pub(crate) fn take_over(&self) -> Result<Epoch, ReplicaError> {
        let mut state = lock(&self.state);
        state.own = None;
        loop {
            self.ensure(&mut state)?;
            while self.read_more(&mut state)? {}
            let begun = state.chain.last();
            let epoch = begun.epoch + 1;
            let said = Said::TakeOver { owner: self.node.clone(), incarnation: self.incarnation };
            let encoded = encode(self.id, (begun, epoch), &said, self.limits.part_bytes);
            let encoded = encoded.map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
            for entry in &encoded.parts {
                self.append(&mut state, entry)??;
            }
            let last = state.chain.last();
            if last == encoded.position {
                state.own = Some(last);
                self.is_over.store(false, Ordering::Relaxed);
                return Ok(Epoch(epoch));
            }
            if last.epoch > begun.epoch {
                let owner = self.owner().1.unwrap_or_default();
                return Err(ReplicaError::Outrun { range: self.range, owner });
            }
        }
    }

    /// Makes a commit as the owner of an epoch; on return it counts, the database has it, and it is settled.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when another node has taken over, or this process stops. Waits while the log does not answer, or
    /// no standby does that is to have it, too.
    fn commit(&self, epoch: Epoch, writes: Vec<Write>) -> Result<(), StoreError> {
        let committed = self.commit_rows(&mut lock(&self.state), epoch, writes);
        let settled = committed.and_then(|position| self.await_settled(epoch, position));
        // Nothing waits any more, however it has ended.
        *lock(&self.trouble) = None;
        settled
    }

    fn commit_rows(
        &self,
        state: &mut State,
        epoch: Epoch,
        writes: Vec<Write>,
    ) -> Result<Position, StoreError> {
        let mut commit = self.begin(state, epoch, writes)?;
        let mut is_said = false;
        while let Some(error) = self.go_on_with(state, &mut commit)? {
            if !std::mem::replace(&mut is_said, true) {
                tracing::warn!(%error, range = self.range.0, "a commit waits for the log");
            }
            self.note_trouble(error.to_string());
            self.go_on()?;
            if self.is_over() {
                return Err(StoreError::Deposed(self.range));
            }
            std::thread::sleep(TROUBLE);
        }
        Ok(commit.position())
    }
}
