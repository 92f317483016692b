//! Opening a database. The checkpoint says how much of the log the store of rows has, and the start reads the
//! rest of the log.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use doppel_protocol::RangeMap;

use super::changes::LogRetention;
use super::checkpoint::Checkpoint;
use super::erasure::Erasure;
use super::handle::DatabaseHandle;
use super::memtable::Memtable;
use super::mover::{MoveState, new_log};
use super::{CommitState, Database, Inner, is_signature, lock, signature_id_of};
use crate::storage::files::{Directory, OnDisk, sync_directory};
use crate::storage::log::{FileLog, Log, LogId, Payload, Record, SequencedPosition};
use crate::storage::range_files::directories;
use crate::storage::signatures::{ReplacedFiles, SEGMENT_BYTES, SignatureId, SignatureStore};
use crate::storage::store::{RowCache, Sled, Store, StoreError};

/// Names of the directories below the directory of a range.
pub(super) const LOG: &str = "log";
pub(super) const SIGNATURES: &str = "signatures";

/// Everything that a database consists of.
pub(super) struct DatabaseParts {
    pub(super) rows: Arc<dyn Store>,
    pub(super) row_cache: RowCache,
    /// The shared log that this database follows, if any.
    pub(super) copies: Option<LogId>,
    /// `None` if the database does not survive the process.
    pub(super) log: Option<Box<dyn Directory>>,
    pub(super) signatures: Box<dyn Directory>,
    pub(super) segment_bytes: u32,
}

/// Opens a directory for files of the database in `dir`, and creates it if it does not exist.
pub(super) fn directory(dir: &Path, name: &str) -> Result<OnDisk, StoreError> {
    let path = dir.join(name);
    OnDisk::new(path.clone()).map_err(|error| StoreError::of_file("make a directory", &path, &error))
}

impl Database {
    /// Opens or creates the database in `dir`. If `durable` is `false`, nothing survives before it is
    /// [flushed](Store::flush). That is only for collections that are deleted with the process, or created in
    /// one go.
    ///
    /// # Errors
    /// Fails if another process uses the directory, or if its files are damaged.
    pub fn open(dir: &Path, durable: bool) -> Result<Self, StoreError> {
        Self::open_share(dir, durable, 1)
    }

    /// Like [`open`](Self::open), for one of `databases` in this process that share the memory for caches.
    ///
    /// # Errors
    /// Like [`open`](Self::open).
    pub fn open_share(dir: &Path, durable: bool, databases: u16) -> Result<Self, StoreError> {
        Self::open_as(dir, durable, None, databases)
    }

    /// Like [`open_share`](Self::open_share), for a replica of a shared log.
    ///
    /// # Errors
    /// Like [`open`](Self::open). Also fails if the database follows another log.
    pub(crate) fn open_replica(dir: &Path, log: LogId, databases: u16) -> Result<Self, StoreError> {
        Self::open_as(dir, true, Some(log), databases)
    }

    fn open_as(dir: &Path, durable: bool, copies: Option<LogId>, databases: u16) -> Result<Self, StoreError> {
        let dir = dir.to_owned();
        let open = move || Inner::open_in(&dir, durable, copies, databases);
        Ok(Self { handle: Arc::new(DatabaseHandle::open(Box::new(open))?) })
    }

    /// Returns whether `dir` contains a database.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        Sled::is_in(dir)
    }

    /// Opens an existing database. As at every start, this may finish what an earlier process left unfinished
    /// in its files; no row changes.
    ///
    /// # Errors
    /// Fails if there is no database, if another process uses it, or if its files are damaged.
    pub fn open_existing(dir: &Path) -> Result<Self, StoreError> {
        if !Self::is_in(dir) {
            return Err(StoreError::Missing(dir.to_owned()));
        }
        let database = Self::open(dir, true)?;
        // A tool that only reads should not wait for an erasure.
        lock(&database.current()?.inner.erasure).leave_to_next_start();
        Ok(database)
    }

    /// Opens the existing database of each range in `dir`.
    ///
    /// # Errors
    /// Fails if a database is missing, in use by another process, or damaged.
    pub fn open_ranges(dir: &Path, map: RangeMap) -> Result<Vec<Self>, StoreError> {
        directories(dir, map).iter().map(|(_, dir)| Self::open_existing(dir)).collect()
    }
}

impl Inner {
    fn open_in(dir: &Path, durable: bool, copies: Option<LogId>, databases: u16) -> Result<Self, StoreError> {
        let parts = DatabaseParts {
            copies,
            rows: Arc::new(Sled::open_share(dir, databases)?),
            row_cache: RowCache::new(databases),
            log: if durable { Some(Box::new(directory(dir, LOG)?)) } else { None },
            signatures: Box::new(directory(dir, SIGNATURES)?),
            segment_bytes: SEGMENT_BYTES,
        };
        // Sync the names of all created directories, up to the directory of the collection.
        for made in [Some(dir), dir.parent(), dir.parent().and_then(Path::parent)].into_iter().flatten() {
            if !made.as_os_str().is_empty() {
                sync_directory(made)?;
            }
        }
        let inner = Self::open(dir, parts)?;
        if let Some(log) = &mut lock(&inner.commits).log {
            log.share(databases);
        }
        Ok(inner)
    }

    pub(super) fn open(dir: &Path, parts: DatabaseParts) -> Result<Self, StoreError> {
        let DatabaseParts { rows, row_cache, copies, log, signatures, segment_bytes } = parts;
        let checkpoint = match Checkpoint::read(&*rows)? {
            Some(checkpoint) => checkpoint,
            None => {
                let begun = Checkpoint {
                    log: copies.unwrap_or_else(new_log),
                    reached: SequencedPosition::default(),
                    signatures: Vec::new(),
                    compacted_bytes: 0,
                    erasing: false,
                };
                rows.commit(vec![begun.write()?])?;
                rows.flush()?;
                begun
            }
        };
        if copies.is_some_and(|copies| copies != checkpoint.log) {
            let what = "it follows another log: it is of another cluster or range, or was created without a shared log";
            return Err(StoreError::damaged_file(dir, what.to_owned()));
        }
        let mut memtable = Memtable::default();
        let mut named: Option<SignatureId> = None;
        let log = log.map(|log| {
            FileLog::open(
                log,
                checkpoint.log,
                checkpoint.reached,
                &mut |Record { position, origin, payload, .. }| {
                    let Payload::Rows(writes) = payload else { return Ok(()) };
                    for (key, row) in writes.iter().filter(|(key, _)| is_signature(key)) {
                        named = named.max(row.as_deref().map(|row| signature_id_of(key, row)).transpose()?);
                    }
                    let sequence = origin.map_or(0, |origin| origin.sequence);
                    memtable.insert(writes.into_owned(), SequencedPosition { position, sequence });
                    Ok(())
                },
            )
        });
        let log = log.transpose()?;
        let last = log.as_ref().map_or(checkpoint.reached.position, Log::last);
        let signatures = SignatureStore::open(
            signatures,
            &checkpoint.signatures,
            checkpoint.compacted_bytes,
            named,
            segment_bytes,
        )?;
        let is_replica = copies.is_some();
        // In a replica the epoch comes from the shared log.
        let epoch = if is_replica { last.epoch } else { last.epoch + 1 };
        Ok(Self {
            dir: dir.to_owned(),
            rows,
            row_cache,
            signatures,
            commits: Mutex::new(CommitState { log, epoch, last, is_replica, failed: false }),
            memtable: RwLock::new(memtable),
            erasure: Mutex::new(Erasure::new(checkpoint.erasing, is_replica)),
            stopping: AtomicBool::new(false),
            moving: Mutex::new(MoveState { checkpoint, replaced: ReplacedFiles::default() }),
            batch_gate: Arc::default(),
            log_retention: Arc::new(LogRetention::new(is_replica)),
        })
    }
}
