//! The database of a range: its log, its rows, and its signatures.
//!
//! A commit is a record of the log, which is on disk before the commit returns. Its rows stay in memory until
//! they are *moved* to the store of rows, many commits at a time and in the order of their keys. So a row
//! that is overwritten soon is never stored there. The row of a signature has the id under which
//! [`SignatureStore`] keeps the bytes. Readers of such a row get the bytes.
//!
//! | module | responsibility |
//! |---|---|
//! | `memtable` | rows in memory |
//! | `checkpoint` | how much of the log the store of rows has |
//! | `mover` | moving rows, then trimming the log |
//! | `compaction` | removing unused signatures when there are many |
//! | `batch_gate` | delaying a batch of the mover while a commit reads |
//! | `erasure` | removing unused signatures from the files after a purge |
//! | `open` | a start, which reads the log after the checkpoint |
//! | `read` | reading rows, in pieces |
//! | `handle` | closing and reopening the database in place after the disk was full |
//! | `changes` | what has changed since a record |
//! | `new_database` | a database that is created in one go, for [`bulk`](crate::bulk) |
//! | `replica` | a database that follows a shared log, for [`replica`](crate::replica) |
//!
//! Invariants:
//! - The store of rows contains only changes that are in the log, and names only signatures that are on disk.
//! - A reader that gets one row of a commit gets all of them. Reading a range of rows in pieces is an
//!   exception.
//! - Memory is bounded: a commit waits while too many rows are in memory.

mod batch_gate;
mod changes;
mod checkpoint;
mod compaction;
mod erasure;
mod handle;
mod memtable;
mod mover;
mod new_database;
mod open;
mod read;
mod replica;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod simulated;
#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::rows::key::RowKind;
use crate::rows::record;
use crate::storage::log::{AppendOutcome, FileLog, Log as _, Payload, Position, SequencedPosition};
use crate::storage::signatures::{SignatureId, SignatureStore};
use crate::storage::store::{RowCache, Store, StoreError, Write};
pub(crate) use batch_gate::BatchPause;
pub(crate) use changes::{LogConsumer, WriteVisitor};
use handle::{DatabaseHandle, OpenDatabase};
use memtable::Memtable;
pub(crate) use new_database::NewDatabase;
use read::Uncached;

/// The database of a range on disk. Dropping it ends its threads.
pub struct Database {
    handle: Arc<DatabaseHandle>,
}

/// State that the threads of a database share.
struct Inner {
    dir: PathBuf,
    /// The store of rows.
    rows: Arc<dyn Store>,
    /// Cache of rows that were read from the store.
    row_cache: RowCache,
    signatures: SignatureStore,
    /// Locked while a commit is made.
    commits: Mutex<CommitState>,
    memtable: RwLock<Memtable>,
    /// Locked while rows are moved.
    moving: Mutex<mover::MoveState>,
    batch_gate: Arc<batch_gate::BatchGate>,
    /// Records of the log that others need and trimming must keep.
    log_retention: Arc<changes::LogRetention>,
    erasure: Mutex<erasure::Erasure>,
    /// Whether the database is being closed. Long work must not start or continue.
    stopping: AtomicBool,
}

/// State of the end of the log.
struct CommitState {
    /// `None` if the database does not survive the process.
    log: Option<FileLog>,
    epoch: u64,
    last: Position,
    /// Whether the log has copies of a shared log's records. Then the database makes no commits of its own.
    is_replica: bool,
    /// Whether a commit has failed, so that its part on disk is uncertain. Every further write is refused
    /// then.
    failed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a key is the key of a signature.
fn is_signature(key: &[u8]) -> bool {
    RowKind::Signature.is_of(key)
}

fn signature_id_of(key: &[u8], row: &[u8]) -> Result<SignatureId, StoreError> {
    SignatureId::from_bytes(row).ok_or_else(|| record::damaged(key, "it has no id of a signature"))
}

impl CommitState {
    /// Returns whether the log says that this ownership has begun.
    fn has_begun(&self) -> bool {
        self.last.epoch == self.epoch
    }

    /// Returns the position of the last record and its sequence in the shared log.
    fn sequenced_position(&self) -> SequencedPosition {
        let sequence = self.log.as_ref().map_or(0, FileLog::sequence);
        SequencedPosition { position: self.last, sequence }
    }

    /// Writes the record of a take-over, unless this owner has already written a record.
    fn begin(&mut self) -> Result<(), StoreError> {
        if self.has_begun() { Ok(()) } else { self.append(&Payload::TakeOver(Cow::Borrowed(&[]))) }
    }

    /// Appends a record to the log, if the database has one.
    fn append(&mut self, payload: &Payload<'_>) -> Result<(), StoreError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        match log.append(self.last, self.epoch, payload)? {
            AppendOutcome::Appended(position) => {
                self.last = position;
                Ok(())
            }
            AppendOutcome::Refused(last) => Err(StoreError::Engine(format!(
                "the log ends with record {}, expected record {}",
                last.index, self.last.index
            ))),
        }
    }
}

fn earlier_failure() -> StoreError {
    StoreError::Engine("the database refuses writes because an earlier commit failed".to_owned())
}

impl Inner {
    fn memtable(&self) -> std::sync::RwLockReadGuard<'_, Memtable> {
        self.memtable.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn memtable_mut(&self) -> std::sync::RwLockWriteGuard<'_, Memtable> {
        self.memtable.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a commit. Returns whether it is time to move rows.
    fn commit(&self, writes: Vec<Write>) -> Result<bool, StoreError> {
        self.commit_as(&mut lock(&self.commits), writes)
    }

    fn commit_as(&self, commits: &mut CommitState, mut writes: Vec<Write>) -> Result<bool, StoreError> {
        if commits.is_replica {
            return Err(StoreError::Engine(
                "the database follows a shared log and takes no commits of its own".to_owned(),
            ));
        }
        if std::mem::replace(&mut commits.failed, true) {
            return Err(earlier_failure());
        }
        self.name_signatures(&mut writes)?;
        self.signatures.write(commits.log.is_some())?;
        commits.begin()?;
        commits.append(&Payload::Rows(Cow::Borrowed(&writes)))?;
        let mut memtable = self.memtable_mut();
        memtable.insert(writes, commits.sequenced_position());
        commits.failed = false;
        Ok(memtable.is_large())
    }

    /// Stores the signatures of a commit, and replaces their bytes in the rows by their ids.
    fn name_signatures(&self, writes: &mut [Write]) -> Result<(), StoreError> {
        for (key, value) in writes.iter_mut().filter(|(key, _)| is_signature(key)) {
            if let Some(bytes) = value {
                let id = self.signatures.add(bytes).map_err(|error| match error {
                    StoreError::Unencodable(reason) => {
                        StoreError::Unencodable(format!("{reason}, of {key:02x?}"))
                    }
                    other => other,
                })?;
                *bytes = id.to_bytes().to_vec();
            }
        }
        Ok(())
    }

    fn bytes_on_disk(&self) -> u64 {
        let log = lock(&self.commits).log.as_ref().map_or(0, FileLog::bytes);
        self.rows.bytes_on_disk() + self.signatures.bytes() + log
    }
}

/// Access to the signatures of a database. The database is not reopened while this exists.
pub(crate) struct OpenSignatures(Arc<OpenDatabase>);

impl OpenSignatures {
    fn of(current: Arc<OpenDatabase>) -> Self {
        current.long_reads.fetch_add(1, Ordering::AcqRel);
        Self(current)
    }
}

impl Drop for OpenSignatures {
    fn drop(&mut self) {
        self.0.long_reads.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Deref for OpenSignatures {
    type Target = SignatureStore;

    fn deref(&self) -> &SignatureStore {
        &self.0.inner.signatures
    }
}

impl Database {
    fn current(&self) -> Result<Arc<OpenDatabase>, StoreError> {
        self.handle.current()
    }

    /// Closes the database and opens it again from its files, as a start does, after the disk was full. It
    /// then has every acknowledged commit, and nothing of a commit that failed. Until then every commit
    /// fails.
    ///
    /// # Errors
    /// Returns [`StoreError::Busy`] if somebody reads from it for too long. Otherwise fails as a start does.
    /// The caller may repeat the call.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        self.handle.reopen()
    }

    /// Closes the database as if its disk were full.
    #[cfg(test)]
    pub(crate) fn close_as_full(&self) {
        self.handle.close_as_full();
    }

    /// Returns whether the database can be reopened. It must have a log and must not follow a shared log.
    pub(crate) fn can_reopen(&self) -> bool {
        self.current().is_ok_and(|current| {
            let commits = lock(&current.inner.commits);
            commits.log.is_some() && !commits.is_replica
        })
    }

    /// Returns the failure that prevents further writes, even if no commit has met it yet.
    ///
    /// # Errors
    /// Fails if rows cannot be moved, or the database is closed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.current()?.mover.check()
    }

    /// Pauses the mover between two batches until the result is dropped, so that reads need not wait for a
    /// batch. Returns `None` while the database is closed.
    pub(crate) fn pause_batches(&self) -> Option<BatchPause> {
        Some(self.current().ok()?.inner.batch_gate.pause())
    }

    /// Returns the rows of this database as a store that does not fill the row cache.
    pub(crate) fn uncached(&self) -> Arc<dyn Store> {
        Arc::new(Uncached(Arc::clone(&self.handle)))
    }

    /// Moves all rows from memory to the store, so that the next start has no log to read. Skipping this
    /// loses nothing.
    pub(crate) fn move_all_rows(&self) -> Result<(), StoreError> {
        // A database that does not survive the process need not be moved.
        let current = self.current()?;
        if lock(&current.inner.commits).log.is_some() { current.inner.move_all() } else { Ok(()) }
    }

    /// Returns the epoch of the present ownership.
    pub(crate) fn epoch(&self) -> u64 {
        self.current().map_or(0, |current| lock(&current.inner.commits).epoch)
    }

    /// Writes the record of a take-over to the log. Without this call the first commit writes it, and an
    /// owner without a commit leaves no trace.
    pub(crate) fn take_over(&self) -> Result<(), StoreError> {
        let current = self.current()?;
        let mut commits = lock(&current.inner.commits);
        if std::mem::replace(&mut commits.failed, true) {
            return Err(earlier_failure());
        }
        commits.begin()?;
        commits.failed = false;
        Ok(())
    }

    /// Returns the id in the row of a signature.
    pub(crate) fn signature_id(&self, key: &[u8]) -> Result<Option<SignatureId>, StoreError> {
        self.current()?.inner.row(key, false)?.map(|row| signature_id_of(key, &row)).transpose()
    }

    /// Reads a signature into `buffer`, replacing its content.
    pub(crate) fn read_signature(&self, id: SignatureId, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        self.current()?.inner.signatures.read_into(id, buffer)
    }

    /// Gives access to all signatures by id, for a reader that may take long.
    ///
    /// # Errors
    /// Fails if the database is closed because the disk is full.
    pub(crate) fn signatures(&self) -> Result<OpenSignatures, StoreError> {
        self.current().map(OpenSignatures::of)
    }
}

impl Store for Database {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.current()?.inner.get(key, true)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.handle.range(from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let current = self.current()?;
        current.mover.make_room(&current.inner)?;
        if current.inner.commit(writes)? {
            current.mover.wake();
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.current()?.inner.move_all()
    }

    fn bytes_on_disk(&self) -> u64 {
        self.current().map_or(0, |current| current.inner.bytes_on_disk())
    }
}
