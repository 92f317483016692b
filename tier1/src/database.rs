//! The database of a range: its log, its rows, its signatures.
//!
//! A commit is a record of the log, which is on disk before the commit returns. Its rows are kept in memory until they
//! are moved to the store of rows, many commits at a time and in order of keys: a row that is overwritten meanwhile
//! never gets there. Rows of signatures hold the id under which [`Signatures`] has the bytes; whoever reads such a row
//! gets the bytes.
//!
//! | module | what |
//! |---|---|
//! | `unmoved` | the rows in memory |
//! | `position` | how much of the log the store of rows has |
//! | `mover` | moves rows, and trims log and signatures after |
//! | `turns` | has it wait for a commit that reads |
//! | `erasure` | has what a purge makes unused leave the files |
//! | `open` | a start: the log is read from there on |
//! | `read` | rows, in pieces |
//! | `place` | where it is open, and opened anew after the disk was full |
//! | `changes` | what has changed since a record |
//! | `new` | a database that is made at once, for [`bulk`](crate::bulk) |
//! | `copies` | a database that follows a shared log, for [`replica`](crate::replica) |
//!
//! Invariants:
//! - neither the store of rows nor a row names what is not in the log and among the signatures on disk;
//! - a reader that has seen one row of a commit sees all of them (a range of rows is read in pieces);
//! - what is in memory is bounded: a commit waits while there is too much of it.

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
use crate::log::{Appended, Local, Log as _, Payload, Position, Reached};
use crate::record;
use crate::signatures::{SignatureId, Signatures};
use crate::store::{Recent, Store, StoreError, Write};
pub(crate) use changes::{EachWritten, Reader};
pub(crate) use new::NewDatabase;
use place::{Live, Place};
use read::Uncached;
pub(crate) use turns::Undisturbed;
use unmoved::Unmoved;

/// A range's database on disk. Its threads end with it.
pub struct Database {
    place: Arc<Place>,
}

/// What the threads share.
struct Inner {
    dir: PathBuf,
    /// The store of rows.
    rows: Arc<dyn Store>,
    /// What was lately read of it.
    recent: Recent,
    signatures: Signatures,
    /// Held while a commit is made.
    commits: Mutex<Commits>,
    unmoved: RwLock<Unmoved>,
    /// Held while rows are moved.
    moving: Mutex<mover::Moving>,
    turns: Arc<turns::Turns>,
    /// Records of the log after these are of use to others, too.
    kept_after: Arc<changes::KeptAfter>,
    erasure: Mutex<erasure::Erasure>,
    /// Nothing that takes long is begun, or gone on with.
    stopping: AtomicBool,
}

/// The end of the log.
struct Commits {
    /// None where nothing is to survive.
    log: Option<Local>,
    epoch: u64,
    last: Position,
    /// The log has copies of a shared log's records: nothing else is written to it.
    is_replica: bool,
    /// A commit failed: what is on disk of it is not known. Nothing is written any more.
    failed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a key is that of a signature.
fn is_signature(key: &[u8]) -> bool {
    Kind::Signature.is_of(key)
}

fn id_of(key: &[u8], row: &[u8]) -> Result<SignatureId, StoreError> {
    SignatureId::from_bytes(row).ok_or_else(|| record::damaged(key, "no id of a signature"))
}

impl Commits {
    /// Whether this owner has said that it begins.
    fn has_begun(&self) -> bool {
        self.last.epoch == self.epoch
    }

    /// The last record, and where it is in the shared log.
    fn reached(&self) -> Reached {
        let sequence = self.log.as_ref().map_or(0, Local::sequence);
        Reached { position: self.last, sequence }
    }

    /// A new owner says so before its first commit.
    fn begin(&mut self) -> Result<(), StoreError> {
        if self.has_begun() { Ok(()) } else { self.append(&Payload::TakeOver(Cow::Borrowed(&[]))) }
    }

    /// Appends to the log, where there is one.
    fn append(&mut self, payload: &Payload<'_>) -> Result<(), StoreError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        match log.append(self.last, self.epoch, payload)? {
            Appended::Done(position) => {
                self.last = position;
                Ok(())
            }
            Appended::Refused(last) => Err(StoreError::Engine(format!(
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

    /// Makes a commit: true when it is time to move rows.
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

    /// Takes the signatures of a commit in, and puts their ids in the place of their bytes.
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
        let log = lock(&self.commits).log.as_ref().map_or(0, Local::bytes);
        self.rows.bytes_on_disk() + self.signatures.bytes() + log
    }
}

/// The signatures of a database, as long as this is kept.
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
    type Target = Signatures;

    fn deref(&self) -> &Signatures {
        &self.0.inner.signatures
    }
}

impl Database {
    fn live(&self) -> Result<Arc<Live>, StoreError> {
        self.place.live()
    }

    /// Opens it anew from its files, as a start does, after a disk was full. It has everything that was acknowledged, and
    /// nothing of a commit that failed; until then every commit fails.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when somebody reads in it for too long, and those of a start. The call may be repeated.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        self.place.reopen()
    }

    /// Has it be closed, and say that its disk is full.
    #[cfg(test)]
    pub(crate) fn close_as_full(&self) {
        self.place.close_as_full();
    }

    /// Whether it is one that survives, and no copy of a shared log, so that it can be opened anew.
    pub(crate) fn can_reopen(&self) -> bool {
        self.live().is_ok_and(|live| {
            let commits = lock(&live.inner.commits);
            commits.log.is_some() && !commits.is_replica
        })
    }

    /// Why no more is written, where that is so already though no commit says it.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.live()?.mover.check()
    }

    /// Has no rows moved while what comes back is there: reads do not wait for batches. None while the database is not open.
    pub(crate) fn undisturbed(&self) -> Option<Undisturbed> {
        Some(self.live().ok()?.inner.turns.read())
    }

    /// The same rows, read without keeping them for the next reader.
    pub(crate) fn uncached(&self) -> Arc<dyn Store> {
        Arc::new(Uncached(Arc::clone(&self.place)))
    }

    /// Moves what is in memory, so that the next start has no log to read. Nothing is lost without it.
    pub(crate) fn rest(&self) -> Result<(), StoreError> {
        // What is thrown away with the process is not moved at its end.
        let live = self.live()?;
        if lock(&live.inner.commits).log.is_some() { live.inner.move_all() } else { Ok(()) }
    }

    /// Number of the present ownership.
    pub(crate) fn epoch(&self) -> u64 {
        self.live().map_or(0, |live| lock(&live.inner.commits).epoch)
    }

    /// Says in the log that a new owner begins. Otherwise the first commit says so, and an owner without one leaves no
    /// trace.
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

    /// The id of the signature in a row.
    pub(crate) fn signature_id(&self, key: &[u8]) -> Result<Option<SignatureId>, StoreError> {
        self.live()?.inner.row(key, false)?.map(|row| id_of(key, &row)).transpose()
    }

    /// Reads one signature into `buffer`, in place of what that holds.
    pub(crate) fn read_signature(&self, id: SignatureId, buffer: &mut Vec<u8>) -> Result<(), StoreError> {
        self.live()?.inner.signatures.read_into(id, buffer)
    }

    /// All signatures, by id, for somebody who reads for as long as they want.
    ///
    /// # Errors
    /// When the database is closed because the disk is full.
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
