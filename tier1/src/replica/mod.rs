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
//! | `owned` | the rows of the owner |
//! | `told` | what is told of the log, without asking it |
//! | `error` | why a replica cannot go on |
//!
//! Invariants:
//! - the database never holds what does not count in the shared log, so a deposed owner has nothing to take back;
//! - one append is under way at a time, in the place behind the last entry that was read;
//! - whoever takes over has read the log to its end, and has every record of it.

mod chain;
mod entry;
mod error;
mod owned;
#[cfg(test)]
mod tests;
mod told;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use doppel_model::{Epoch, RangeId, stable_hash64};
use doppel_shared_log::{AppendError, Entry, LogError, Sequence, SharedLog, append_surely};

use crate::database::Database;
use crate::log::{Copied, LogId, Payload, Position};
use crate::store::{StoreError, Write};
use chain::{Chain, Folded};
use entry::{PART_BYTES, Said, encode};
pub use error::ReplicaError;
pub(crate) use owned::OwnedRows;

/// Bytes of entries that are read at a time.
const READ_BYTES: usize = 4 << 20;

/// How long an append is made again before it is looked whether it is still wanted.
const APPEND: Duration = Duration::from_secs(2);

/// The pause after a log has refused to take more, or is not there.
const TROUBLE: Duration = Duration::from_millis(500);

/// The number of a range's shared log in a cluster, which its replicas' logs have, too.
pub(crate) fn log_id(cluster: &str, range: RangeId) -> LogId {
    LogId(stable_hash64(format!("{cluster}/{}", range.0).as_bytes()))
}

/// A replica of a range.
pub(crate) struct Replica {
    range: RangeId,
    /// The name of this node.
    node: String,
    id: LogId,
    log: Arc<dyn SharedLog>,
    database: Arc<Database>,
    state: Mutex<State>,
    /// Drawn for each life of a replica.
    incarnation: u64,
    /// The last ownership. Known also while an append is under way.
    owner: Mutex<Ownership>,
    /// Index of the last record that was copied.
    index: AtomicU64,
    /// Why a commit waits.
    trouble: Mutex<Option<LogError>>,
    /// When the last request was sent that the log has answered.
    contact: Mutex<Option<Instant>>,
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replica {
    /// The replica of a node, with what its database has copied so far. Ensures that this is what the log has there.
    ///
    /// # Errors
    /// When the log does not answer, or does not have what was copied from it.
    pub(crate) fn open(
        (range, id): (RangeId, LogId),
        node: String,
        log: Arc<dyn SharedLog>,
        database: Arc<Database>,
    ) -> Result<Self, ReplicaError> {
        let (position, at) = database.copied();
        let chain = Chain::behind(id, position, Sequence(at));
        let this = Self {
            range,
            node,
            id,
            log,
            database,
            state: Mutex::new(State { chain, own: None, failed: false }),
            incarnation: doppel_model::random_number(),
            owner: Mutex::new(Ownership { epoch: Epoch(position.epoch), taken: None }),
            index: AtomicU64::new(position.index),
            trouble: Mutex::default(),
            contact: Mutex::default(),
            stopping: AtomicBool::new(false),
        };
        this.verify(&lock(&this.state))?;
        Ok(this)
    }

    /// Ensures that the log has what was copied from it: it may have lost its tail since, or have been made anew.
    fn verify(&self, state: &State) -> Result<(), ReplicaError> {
        let (range, at) = (self.range, state.chain.last_at());
        if at == Sequence(0) {
            return Ok(());
        }
        let (copied, end) = (state.chain.seen().0, self.log.end()?.0);
        if end < copied {
            return Err(ReplicaError::LostTail { range, copied, end });
        }
        match self.log.read(Sequence(at.0 - 1), 1) {
            Ok(entries) if entries.first().is_some_and(|entry| state.chain.is_last(&entry.bytes)) => Ok(()),
            // It was trimmed: what comes behind it is checked all the same, by its hash of this one.
            Err(LogError::Trimmed { .. }) => Ok(()),
            Ok(_) => Err(ReplicaError::Contradicts { range, at: at.0 }),
            Err(error) => Err(error.into()),
        }
    }

    /// The range.
    pub(crate) fn range(&self) -> RangeId {
        self.range
    }

    /// The rows, as far as they are copied.
    pub(crate) fn database(&self) -> &Arc<Database> {
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

    /// Why a commit waits for the log; none when none does.
    pub(crate) fn trouble(&self) -> Option<LogError> {
        lock(&self.trouble).clone()
    }

    /// Whether the database has failed, so that nothing more is copied: it has to be opened anew.
    pub(crate) fn has_failed(&self) -> bool {
        match self.state.try_lock() {
            Ok(state) => state.failed,
            Err(TryLockError::Poisoned(_)) => true,
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Whether the log has answered a request that was sent no longer ago than this.
    pub(crate) fn has_contact(&self, within: Duration) -> bool {
        lock(&self.contact).is_some_and(|contact| contact.elapsed() <= within)
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
        self.read_more(&mut lock(&self.state))
    }

    /// Looks whether the log has grown by others, unless an append is under way, which shows it, too.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn look(&self) -> Result<(), ReplicaError> {
        match self.state.try_lock() {
            Ok(mut state) => self.read_more(&mut state).map(drop),
            Err(TryLockError::Poisoned(poisoned)) => self.read_more(&mut poisoned.into_inner()).map(drop),
            Err(TryLockError::WouldBlock) => Ok(()),
        }
    }

    /// Says in the log that this node owns the range; its epoch.
    ///
    /// # Errors
    /// When another node was first, the log does not answer, or the database fails.
    pub(crate) fn take_over(&self) -> Result<Epoch, ReplicaError> {
        let mut state = lock(&self.state);
        loop {
            while self.read_more(&mut state)? {}
            self.verify(&state)?;
            let begun = state.chain.last();
            let epoch = begun.epoch + 1;
            let said = Said::TakeOver { owner: self.node.clone(), incarnation: self.incarnation };
            let encoded = encode(self.id, (begun, epoch), &said, PART_BYTES);
            let encoded = encoded.map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
            for entry in &encoded.parts {
                self.append(&mut state, entry)??;
            }
            let last = state.chain.last();
            if last == encoded.position {
                state.own = Some(last);
                return Ok(Epoch(epoch));
            }
            if last.epoch > begun.epoch {
                let owner = self.owner().1.unwrap_or_default();
                return Err(ReplicaError::Outrun { range: self.range, owner });
            }
        }
    }

    /// Makes a commit as the owner of an epoch; on return it counts, and the database has it.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when another node has taken over, or this process stops. Waits while the log does not answer.
    fn commit(&self, epoch: Epoch, writes: Vec<Write>) -> Result<(), StoreError> {
        let mut state = lock(&self.state);
        let begun = state.chain.last();
        if begun.epoch != epoch.0 || state.own != Some(begun) {
            return Err(StoreError::Deposed(self.range));
        }
        let encoded = encode(self.id, (begun, epoch.0), &Said::Rows(writes), PART_BYTES);
        let encoded = encoded.map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
        let mut is_said = false;
        for part in &encoded.parts {
            loop {
                let appended = self.append(&mut state, part).map_err(ReplicaError::into_store)?;
                if state.chain.last().epoch != epoch.0 {
                    return Err(StoreError::Deposed(self.range));
                }
                let Err(error) = appended else { break };
                if let LogError::TooLong { .. } = error {
                    return Err(StoreError::Unencodable(error.to_string()));
                }
                if !std::mem::replace(&mut is_said, true) {
                    tracing::warn!(%error, range = %self.range, "a commit waits for the log");
                }
                *lock(&self.trouble) = Some(error);
                self.go_on()?;
                std::thread::sleep(TROUBLE);
            }
        }
        if is_said {
            *lock(&self.trouble) = None;
        }
        if state.chain.last() == encoded.position {
            state.own = Some(encoded.position);
            return Ok(());
        }
        state.failed = true;
        Err(StoreError::Engine(format!(
            "record {} of range {} does not count",
            encoded.position.index, self.range
        )))
    }

    /// Appends an entry behind what was read, and takes it; what others have put there is taken first. The inner error is
    /// one of the log that may pass; the entry is nowhere then, or will be found there the next time.
    fn append(&self, state: &mut State, entry: &Bytes) -> Result<Result<(), LogError>, ReplicaError> {
        loop {
            self.go_on()?;
            let sent = Instant::now();
            let begun = state.chain.last();
            match append_surely(&*self.log, state.chain.seen(), entry, APPEND) {
                Ok(sequence) => {
                    self.note_contact(sent);
                    self.take(state, &Entry { sequence, bytes: entry.clone() })?;
                    return Ok(Ok(()));
                }
                Err(AppendError::Refused) => {
                    let read = loop {
                        match self.read_more(state) {
                            Ok(true) => {}
                            Ok(false) => break self.verify(state),
                            Err(error) => break Err(error),
                        }
                    };
                    match read {
                        Err(ReplicaError::Log(error)) => return Ok(Err(error)),
                        other => other?,
                    }
                    // Behind another record it would be void.
                    if state.chain.last() != begun {
                        return Ok(Ok(()));
                    }
                }
                Err(AppendError::Unknown(error) | AppendError::Failed(error)) => {
                    // The leader has said so.
                    if let LogError::Full { .. } = error {
                        self.note_contact(sent);
                    }
                    return Ok(Err(error));
                }
            }
        }
    }

    /// Reads and takes some of what is behind; false at the end.
    fn read_more(&self, state: &mut State) -> Result<bool, ReplicaError> {
        self.go_on()?;
        if state.failed {
            return Err(StoreError::Engine("nothing is copied after a failure".to_owned()).into());
        }
        let sent = Instant::now();
        let entries = self.log.read(state.chain.seen(), READ_BYTES)?;
        self.note_contact(sent);
        for entry in &entries {
            self.take(state, entry)?;
        }
        Ok(!entries.is_empty())
    }

    /// Takes an entry: copies it where it counts.
    fn take(&self, state: &mut State, entry: &Entry) -> Result<(), ReplicaError> {
        let folded = state.chain.take(entry);
        self.copy(state, folded)
    }

    fn copy(&self, state: &mut State, folded: Folded) -> Result<(), ReplicaError> {
        let Folded::Record(record) = folded else { return Ok(()) };
        let (payload, owner) = match record.said {
            Said::Rows(rows) => (Payload::Rows(Cow::Owned(rows)), None),
            Said::TakeOver { owner, .. } => (Payload::TakeOver, Some(owner)),
        };
        let (position, previous, sequence) = (record.position, record.previous, record.sequence.0);
        state.failed = true;
        self.database.copy(Copied { position, previous, sequence, payload })?;
        state.failed = false;
        self.index.store(position.index, Ordering::Relaxed);
        if let Some(owner) = owner {
            let taken = Some((owner, Instant::now()));
            *lock(&self.owner) = Ownership { epoch: Epoch(position.epoch), taken };
        }
        Ok(())
    }

    fn note_contact(&self, sent: Instant) {
        let mut contact = lock(&self.contact);
        *contact = (*contact).max(Some(sent));
    }

    fn go_on(&self) -> Result<(), StoreError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err(StoreError::Engine("the process stops".to_owned()));
        }
        Ok(())
    }
}
