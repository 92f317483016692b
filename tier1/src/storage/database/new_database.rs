//! A database that is created in one go: first signatures, then all rows, and at the end the checkpoint.
//!
//! The database has no log. Nobody gets an answer before [`finish`](NewDatabase::finish), and without
//! `finish` the directory must be removed. Several threads write rows, each in the order of its keys, which
//! is fastest for sled.
//!
//! Invariant: after `finish` the database is on disk, in the state of a database that has moved all its rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam::channel::{Receiver, Sender, bounded};
use doppel_model::signature::Signature;
use doppel_protocol::LogPosition;

use super::checkpoint::Checkpoint;
use super::mover::new_log;
use super::open::{SIGNATURES, directory};
use crate::storage::files::sync_directory;
use crate::storage::log::{LogId, SequencedPosition};
use crate::storage::signatures::{SEGMENT_BYTES, SignatureId, SignatureStore};
use crate::storage::store::{Sled, Store, StoreError};

/// Number of bytes of signatures that are buffered before a write.
const BUFFER_BYTES: usize = 1 << 20;

/// Number of bytes of signatures between two early syncs. The system then writes while the program reads
/// inputs.
const SYNC_BYTES: usize = 32 << 20;

/// A database that is being created.
pub(crate) struct NewDatabase {
    dir: PathBuf,
    /// The log that the first start will begin.
    log: LogId,
    rows: Sled,
    signatures: Arc<SignatureStore>,
    /// Bytes of signatures that are not yet written, and written bytes for which no sync was requested.
    unwritten: usize,
    unsynced: usize,
    syncer: Syncer,
}

/// The thread that syncs signatures early. The operating system reports a failed sync only once, so the
/// thread keeps the error.
struct Syncer {
    wanted: Sender<()>,
    thread: JoinHandle<Result<(), StoreError>>,
}

impl NewDatabase {
    /// Creates a database in `dir`.
    ///
    /// # Errors
    /// Fails if there already is a database, or if it cannot be created.
    pub(crate) fn create(dir: &Path) -> Result<Self, StoreError> {
        let rows = Sled::open_to_fill(dir)?;
        if Checkpoint::read(&rows)?.is_some() {
            return Err(StoreError::Engine(format!("{} already contains a database", dir.display())));
        }
        let files = directory(dir, SIGNATURES)?;
        let signatures = Arc::new(SignatureStore::open(Box::new(files), &[], 0, None, SEGMENT_BYTES)?);
        let syncer = Syncer::start(Arc::clone(&signatures))?;
        let (dir, log) = (dir.to_owned(), new_log());
        Ok(Self { dir, log, rows, signatures, unwritten: 0, unsynced: 0, syncer })
    }

    /// Returns the position before the first record of the log. The database has all rows up to there.
    pub(crate) fn log_position(&self) -> LogPosition {
        LogPosition { log: self.log.0, epoch: 0, index: 0, hash: 0 }
    }

    /// Returns the directory of the database.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds a signature that the database does not have yet.
    pub(crate) fn add(&mut self, signature: &Signature) -> Result<SignatureId, StoreError> {
        let bytes = signature.as_bytes();
        let id = self.signatures.append(bytes)?;
        self.unwritten += bytes.len();
        if self.unwritten >= BUFFER_BYTES {
            self.write()?;
        }
        Ok(id)
    }

    /// Writes the buffered signatures, so that all signatures can be read.
    pub(crate) fn write(&mut self) -> Result<(), StoreError> {
        self.unsynced += std::mem::take(&mut self.unwritten);
        self.signatures.write(false)?;
        if self.unsynced >= SYNC_BYTES && self.syncer.wanted.try_send(()).is_ok() {
            self.unsynced = 0;
        }
        Ok(())
    }

    /// Returns a signature that was written before.
    pub(crate) fn signature(&self, id: SignatureId) -> Result<Arc<Signature>, StoreError> {
        let bytes = self.signatures.read(id)?;
        let signature = Signature::from_bytes(&bytes);
        let damaged = |error| {
            StoreError::damaged_file(
                &self.dir,
                format!("a signature that was just written is damaged: {error}"),
            )
        };
        signature.map(Arc::new).map_err(damaged)
    }

    /// Writes a row. The row of a signature has its id.
    pub(crate) fn put(&self, key: Vec<u8>, row: Vec<u8>) -> Result<(), StoreError> {
        self.rows.put(key, row)
    }

    /// Completes the database. No row names `unused` bytes of the signatures. The database is on disk on
    /// return. Returns its signatures, which can still be read.
    pub(crate) fn finish(self, unused: u64) -> Result<Arc<SignatureStore>, StoreError> {
        let Self { dir, log, rows, signatures, syncer, .. } = self;
        syncer.stop()?;
        signatures.write(true)?;
        signatures.note_unused(unused);
        rows.flush()?;
        let checkpoint = Checkpoint {
            log,
            reached: SequencedPosition::default(),
            signatures: signatures.checkpoints(),
            compacted_bytes: signatures.compacted_bytes(),
            erasing: false,
        };
        rows.commit(vec![checkpoint.write()?])?;
        rows.flush()?;
        drop(rows);
        // Without a `snap.*` file, sled scans its whole file when it opens the database, and then writes one.
        // Opening the database here spares the first server the scan. An interruption may have removed the
        // database, and opening it would create it again.
        if Sled::is_in(&dir) {
            match Sled::open_to_fill(&dir) {
                Ok(rows) => rows.flush()?,
                // A thread of sled still holds the file, or the disk is full. The first server scans the file.
                Err(StoreError::InUse | StoreError::DiskFull) => {}
                Err(error) => return Err(error),
            }
        }
        sync_directory(&dir)?;
        Ok(signatures)
    }
}

impl Syncer {
    fn start(signatures: Arc<SignatureStore>) -> Result<Self, StoreError> {
        let (wanted, requests): (_, Receiver<()>) = bounded(1);
        let sync = move || requests.into_iter().try_for_each(|()| signatures.sync_written());
        let thread = std::thread::Builder::new().name("tier1-sync".to_owned()).spawn(sync);
        let thread = thread.map_err(|error| StoreError::Engine(format!("cannot start a thread: {error}")))?;
        Ok(Self { wanted, thread })
    }

    fn stop(self) -> Result<(), StoreError> {
        drop(self.wanted);
        let panicked = |_| StoreError::Engine("the thread that syncs signatures ended in a panic".to_owned());
        self.thread.join().map_err(panicked)?
    }
}

impl std::fmt::Debug for NewDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewDatabase").field("dir", &self.dir).finish_non_exhaustive()
    }
}
