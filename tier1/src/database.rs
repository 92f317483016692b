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
//! | `mover` | moving rows, then trimming the log and compacting signatures |
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

mod changes;
mod copies;
mod erasure;
mod mover;
mod new;
mod open;
mod place;
mod position;
mod read;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod simulated;
#[cfg(test)]
pub(crate) mod tests;
mod turns;
mod unmoved;

use std::borrow::Cow;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::key::Kind;
use crate::log::{AppendOutcome, FileLog, Log as _, Payload, Position, Reached};
use crate::record;
use crate::signatures::{SignatureId, SignatureStore};
use crate::store::{RowCache, Store, StoreError, Write};
pub(crate) use changes::{EachWritten, Reader};
pub(crate) use new::NewDatabase;
use place::{Live, Place};
use read::Uncached;
pub(crate) use turns::Undisturbed;
use unmoved::Unmoved;

/// The database of a range on disk. Dropping it ends its threads.
pub struct Database {
    place: Arc<Place>,
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
    commits: Mutex<Commits>,
    unmoved: RwLock<Unmoved>,
    /// Locked while rows are moved.
    moving: Mutex<mover::Moving>,
    turns: Arc<turns::Turns>,
    /// Records of the log that others need and trimming must keep.
    kept_after: Arc<changes::KeptAfter>,
    erasure: Mutex<erasure::Erasure>,
    /// Whether the database is being closed. Long work must not start or continue.
    stopping: AtomicBool,
}

/// State of the end of the log.
struct Commits {
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
    Kind::Signature.is_of(key)
}

fn id_of(key: &[u8], row: &[u8]) -> Result<SignatureId, StoreError> {
    SignatureId::from_bytes(row).ok_or_else(|| record::damaged(key, "no id of a signature"))
}

impl Commits {
    /// Returns whether the log says that this ownership has begun.
    fn has_begun(&self) -> bool {
        self.last.epoch == self.epoch
    }

    /// Returns the position of the last record and its sequence in the shared log.
    fn reached(&self) -> Reached {
        let sequence = self.log.as_ref().map_or(0, FileLog::sequence);
        Reached { position: self.last, sequence }
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
                "the log is at record {}, and {} was expected",
                last.index, self.last.index
            ))),
        }
    }
}

fn failed_before() -> StoreError {
    StoreError::Engine("nothing is written after a commit that failed".to_owned())
}

impl Inner {
    fn unmoved(&self) -> std::sync::RwLockReadGuard<'_, Unmoved> {
        self.unmoved.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn unmoved_mut(&self) -> std::sync::RwLockWriteGuard<'_, Unmoved> {
        self.unmoved.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a commit. Returns whether it is time to move rows.
    fn commit(&self, writes: Vec<Write>) -> Result<bool, StoreError> {
        self.commit_as(&mut lock(&self.commits), writes)
    }

    fn commit_as(&self, commits: &mut Commits, mut writes: Vec<Write>) -> Result<bool, StoreError> {
        if commits.is_replica {
            return Err(StoreError::Engine("this database follows a shared log".to_owned()));
        }
        if std::mem::replace(&mut commits.failed, true) {
            return Err(failed_before());
        }
        self.name_signatures(&mut writes)?;
        self.signatures.write(commits.log.is_some())?;
        commits.begin()?;
        commits.append(&Payload::Rows(Cow::Borrowed(&writes)))?;
        let mut unmoved = self.unmoved_mut();
        unmoved.insert(writes, commits.reached());
        commits.failed = false;
        Ok(unmoved.is_large())
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
pub(crate) struct OpenSignatures(Arc<Live>);

impl OpenSignatures {
    fn of(live: Arc<Live>) -> Self {
        live.long_reads.fetch_add(1, Ordering::AcqRel);
        Self(live)
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
    fn live(&self) -> Result<Arc<Live>, StoreError> {
        self.place.live()
    }

    /// Closes the database and opens it again from its files, as a start does, after the disk was full. It
    /// then has every acknowledged commit, and nothing of a commit that failed. Until then every commit
    /// fails.
    ///
    /// # Errors
    /// Returns [`StoreError::Busy`] if somebody reads from it for too long. Otherwise fails as a start does.
    /// The caller may repeat the call.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        self.place.reopen()
    }

    /// Closes the database as if its disk were full.
    #[cfg(test)]
    pub(crate) fn close_as_full(&self) {
        self.place.close_as_full();
    }

    /// Returns whether the database can be reopened. It must have a log and must not follow a shared log.
    pub(crate) fn can_reopen(&self) -> bool {
        self.live().is_ok_and(|live| {
            let commits = lock(&live.inner.commits);
            commits.log.is_some() && !commits.is_replica
        })
    }

    /// Returns the failure that prevents further writes, even if no commit has met it yet.
    ///
    /// # Errors
    /// Fails if rows cannot be moved, or the database is closed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.live()?.mover.check()
    }

    /// Pauses the mover between two batches until the result is dropped, so that reads need not wait for a
    /// batch. Returns `None` while the database is closed.
    pub(crate) fn undisturbed(&self) -> Option<Undisturbed> {
        Some(self.live().ok()?.inner.turns.read())
    }

    /// Returns the rows of this database as a store that does not fill the row cache.
    pub(crate) fn uncached(&self) -> Arc<dyn Store> {
        Arc::new(Uncached(Arc::clone(&self.place)))
    }

    /// Moves all rows from memory to the store, so that the next start has no log to read. Skipping this
    /// loses nothing.
    pub(crate) fn rest(&self) -> Result<(), StoreError> {
        // A database that does not survive the process need not be moved.
        let live = self.live()?;
        if lock(&live.inner.commits).log.is_some() { live.inner.move_all() } else { Ok(()) }
    }

    /// Returns the epoch of the present ownership.
    pub(crate) fn epoch(&self) -> u64 {
        self.live().map_or(0, |live| lock(&live.inner.commits).epoch)
    }

    /// Writes the record of a take-over to the log. Without this call the first commit writes it, and an
    /// owner without a commit leaves no trace.
    pub(crate) fn take_over(&self) -> Result<(), StoreError> {
        let live = self.live()?;
        let mut commits = lock(&live.inner.commits);
        if std::mem::replace(&mut commits.failed, true) {
            return Err(failed_before());
        }
        commits.begin()?;
        commits.failed = false;
        Ok(())
    }

    /// Returns the id in the row of a signature.
    pub(crate) fn signature_id(&self, key: &[u8]) -> Result<Option<SignatureId>, StoreError> {
        self.live()?.inner.row(key, false)?.map(|row| id_of(key, &row)).transpose()
    }

    /// Reads a signature into `buffer`, replacing its content.
    pub(crate) fn read_signature(&self, id: SignatureId, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        self.live()?.inner.signatures.read_into(id, buffer)
    }

    /// Gives access to all signatures by id, for a reader that may take long.
    ///
    /// # Errors
    /// Fails if the database is closed because the disk is full.
    pub(crate) fn signatures(&self) -> Result<OpenSignatures, StoreError> {
        self.live().map(OpenSignatures::of)
    }
}

impl Store for Database {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.live()?.inner.get(key, true)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.place.range(from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let live = self.live()?;
        live.mover.make_room(&live.inner)?;
        if live.inner.commit(writes)? {
            live.mover.wake();
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.live()?.inner.move_all()
    }

    fn bytes_on_disk(&self) -> u64 {
        self.live().map_or(0, |live| live.inner.bytes_on_disk())
    }
}
