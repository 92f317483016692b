//! Opening a database: the store of rows says how much of the log it has, and what is behind is read from the log.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use doppel_protocol::RangeMap;

use super::changes::KeptAfter;
use super::erasure::Erasure;
use super::mover::{Moving, new_log};
use super::place::Place;
use super::position::Applied;
use super::unmoved::Unmoved;
use super::{Commits, Database, Inner, id_of, is_signature, lock};
use crate::files::{Directory, OnDisk, sync_directory};
use crate::log::{Local, Log, LogId, Payload, Reached, Record};
use crate::range_files::directories;
use crate::signatures::{Replaced, SEGMENT_BYTES, SignatureId, Signatures};
use crate::store::{Recent, Sled, Store, StoreError};

/// Below the directory of a range.
pub(super) const LOG: &str = "log";
pub(super) const SIGNATURES: &str = "signatures";

/// What a database is made of.
pub(super) struct Parts {
    pub(super) rows: Arc<dyn Store>,
    pub(super) recent: Recent,
    /// The shared log of which the records are copies.
    pub(super) copies: Option<LogId>,
    /// None where nothing is to survive.
    pub(super) log: Option<Box<dyn Directory>>,
    pub(super) signatures: Box<dyn Directory>,
    pub(super) segment_bytes: u32,
}

/// A directory of files of the database in `dir`, made if it is not there.
pub(super) fn directory(dir: &Path, name: &str) -> Result<OnDisk, StoreError> {
    let path = dir.join(name);
    OnDisk::new(path.clone()).map_err(|error| StoreError::of_file("make a directory", &path, &error))
}

impl Database {
    /// Opens or creates the database in `dir`. With `durable` false, nothing survives before it is
    /// [flushed](Store::flush): only for collections that are thrown away with the process, or made at once.
    ///
    /// # Errors
    /// When the directory is in use by another process or is damaged.
    pub fn open(dir: &Path, durable: bool) -> Result<Self, StoreError> {
        Self::open_share(dir, durable, 1)
    }

    /// The same, where so many databases of a process share what memory there is for their caches.
    ///
    /// # Errors
    /// The same.
    pub fn open_share(dir: &Path, durable: bool, databases: u16) -> Result<Self, StoreError> {
        Self::open_as(dir, durable, None, databases)
    }

    /// The same for a replica of what a shared log has.
    ///
    /// # Errors
    /// The same, and when the database is that of another log.
    pub(crate) fn open_replica(dir: &Path, log: LogId, databases: u16) -> Result<Self, StoreError> {
        Self::open_as(dir, true, Some(log), databases)
    }

    fn open_as(dir: &Path, durable: bool, copies: Option<LogId>, databases: u16) -> Result<Self, StoreError> {
        let dir = dir.to_owned();
        let open = move || Inner::open_in(&dir, durable, copies, databases);
        Ok(Self { place: Arc::new(Place::open(Box::new(open))?) })
    }

    /// Whether there is a database in `dir`.
    #[must_use]
    pub fn is_in(dir: &Path) -> bool {
        Sled::is_in(dir)
    }

    /// Opens the database in `dir` if there is one. What an earlier process left undone in its files may be finished,
    /// as at every start; no row changes by it.
    ///
    /// # Errors
    /// When there is none, or it is in use by another process or damaged.
    pub fn open_existing(dir: &Path) -> Result<Self, StoreError> {
        if !Self::is_in(dir) {
            return Err(StoreError::Missing(dir.to_owned()));
        }
        let database = Self::open(dir, true)?;
        // Whoever only reads does not wait for files to be written anew.
        lock(&database.live()?.inner.erasure).wait();
        Ok(database)
    }

    /// Opens the database of each range in `dir`; all must be there.
    ///
    /// # Errors
    /// When one is missing, in use by another process or damaged.
    pub fn open_ranges(dir: &Path, map: RangeMap) -> Result<Vec<Self>, StoreError> {
        directories(dir, map).iter().map(|(_, dir)| Self::open_existing(dir)).collect()
    }
}

impl Inner {
    fn open_in(dir: &Path, durable: bool, copies: Option<LogId>, databases: u16) -> Result<Self, StoreError> {
        let parts = Parts {
            copies,
            rows: Arc::new(Sled::open_share(dir, databases)?),
            recent: Recent::new(databases),
            log: if durable { Some(Box::new(directory(dir, LOG)?)) } else { None },
            signatures: Box::new(directory(dir, SIGNATURES)?),
            segment_bytes: SEGMENT_BYTES,
        };
        // The names of all that was made just now, up to the directory of the collection.
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

    pub(super) fn open(dir: &Path, parts: Parts) -> Result<Self, StoreError> {
        let Parts { rows, recent, copies, log, signatures, segment_bytes } = parts;
        let applied = match Applied::read(&*rows)? {
            Some(applied) => applied,
            None => {
                let begun = Applied {
                    log: copies.unwrap_or_else(new_log),
                    reached: Reached::default(),
                    signatures: Vec::new(),
                    compacted_bytes: 0,
                    erasing: false,
                };
                rows.commit(vec![begun.write()?])?;
                rows.flush()?;
                begun
            }
        };
        if copies.is_some_and(|copies| copies != applied.log) {
            let what = "it follows another log: it is of another cluster or range, or was made without one";
            return Err(StoreError::damaged_file(dir, what.to_owned()));
        }
        let mut unmoved = Unmoved::default();
        let mut named: Option<SignatureId> = None;
        let log = log.map(|log| {
            Local::open(
                log,
                applied.log,
                applied.reached,
                &mut |Record { position, origin, payload, .. }| {
                    let Payload::Rows(writes) = payload else { return Ok(()) };
                    for (key, row) in writes.iter().filter(|(key, _)| is_signature(key)) {
                        named = named.max(row.as_deref().map(|row| id_of(key, row)).transpose()?);
                    }
                    let sequence = origin.map_or(0, |origin| origin.sequence);
                    unmoved.insert(writes.into_owned(), Reached { position, sequence });
                    Ok(())
                },
            )
        });
        let log = log.transpose()?;
        let last = log.as_ref().map_or(applied.reached.position, Log::last);
        let signatures = {
            let noted = (&*applied.signatures, applied.compacted_bytes);
            Signatures::open(signatures, noted, named, segment_bytes)?
        };
        let is_replica = copies.is_some();
        // The shared log says who begins.
        let epoch = if is_replica { last.epoch } else { last.epoch + 1 };
        Ok(Self {
            dir: dir.to_owned(),
            rows,
            recent,
            signatures,
            commits: Mutex::new(Commits { log, epoch, last, is_replica, failed: false }),
            unmoved: RwLock::new(unmoved),
            erasure: Mutex::new(Erasure::new(applied.erasing, is_replica)),
            stopping: AtomicBool::new(false),
            moving: Mutex::new(Moving { applied, replaced: Replaced::default() }),
            turns: Arc::default(),
            kept_after: Arc::new(KeptAfter::new(is_replica)),
        })
    }
}
