//! A database that follows a shared log. Its log has copies of the shared log's records, at the same
//! positions.

use std::borrow::Cow;

use doppel_protocol::LogPosition;
use doppel_protocol::range_owner::LogPlace;

use super::checkpoint::Checkpoint;
use super::open::{LOG, directory};
use super::{Database, Inner, earlier_failure, is_signature, lock, signature_id_of};
use crate::storage::files::sync_directory;
use crate::storage::log::{
    FileLog, Log as _, LogId, Payload, Position, Record, SequencedPosition, SharedRecord,
};
use crate::storage::store::StoreError;

impl Database {
    /// Returns the position of the last copied record and its sequence in the shared log; 0 before the first
    /// copy.
    pub(crate) fn last_copied(&self) -> SequencedPosition {
        self.current().map_or(SequencedPosition::default(), |current| current.inner.last_copied())
    }

    /// Returns the place of the last copied record, in the form for other nodes. Returns `None` if the
    /// database copies nothing.
    pub(crate) fn last_copied_place(&self) -> Option<LogPlace> {
        let current = self.current().ok()?;
        let commits = lock(&current.inner.commits);
        let log = commits.log.as_ref().filter(|_| commits.is_replica)?;
        let Position { epoch, index, hash } = commits.last;
        let record = LogPosition { log: log.id().0, epoch, index, hash };
        Some(LogPlace { record, sequence: log.sequence() })
    }

    /// Turns a database that was filled with rows into a replica that continues after the given record of
    /// another log. The database was [opened](Self::open_share) without a log. The change is on disk on
    /// return.
    ///
    /// # Errors
    /// Fails if the files cannot be written.
    pub(crate) fn become_replica(self, log: LogId, reached: SequencedPosition) -> Result<(), StoreError> {
        self.current()?.inner.become_replica(log, reached)
    }

    /// Passes the records with a sequence above `end` to `each`, as they are in the shared log, each with the
    /// position of the record before it. Returns a reason if this node no longer has all of them.
    ///
    /// # Errors
    /// Fails if the log cannot be read, or if `each` fails.
    pub(crate) fn each_copied_after<E: From<StoreError>>(
        &self,
        end: u64,
        each: &mut dyn FnMut(SequencedPosition, SharedRecord<'static>) -> Result<(), E>,
    ) -> Result<Option<&'static str>, E> {
        self.current()?.inner.each_copied_after(end, each)
    }

    /// Copies a record of the shared log. The record is on disk on return. Its rows have the bytes of
    /// signatures. If the record purges a page, unused signatures leave the files within some minutes.
    ///
    /// # Errors
    /// Fails if the record does not continue the last one, or cannot be written. After an error every further
    /// write is refused.
    pub(crate) fn copy(&self, copied: SharedRecord<'_>) -> Result<(), StoreError> {
        let current = self.current()?;
        current.mover.make_room(&current.inner)?;
        if current.inner.copy(copied)? {
            current.mover.wake();
        }
        Ok(())
    }
}

impl Inner {
    pub(super) fn last_copied(&self) -> SequencedPosition {
        lock(&self.commits).sequenced_position()
    }

    fn each_copied_after<E: From<StoreError>>(
        &self,
        end: u64,
        each: &mut dyn FnMut(SequencedPosition, SharedRecord<'static>) -> Result<(), E>,
    ) -> Result<Option<&'static str>, E> {
        const TRIMMED: Option<&str> = Some("this node has deleted its older copies");
        let records = lock(&self.commits).log.as_ref().map(|log| log.copies_after(end)).transpose()?;
        let Some(records) = records.flatten() else { return Ok(TRIMMED) };
        let (mut before, mut failed, mut gone) = (None::<SequencedPosition>, None, None);
        let is_whole = records.read(&mut |Record { position, previous, origin, payload }| {
            let sequence = origin.map_or(0, |origin| origin.sequence);
            let last = before.replace(SequencedPosition { position, sequence });
            if sequence <= end {
                return Ok(());
            }
            let stop = || StoreError::Engine("the caller wants no more records".to_owned());
            let last = match last {
                Some(last) => last,
                None if position.index == 1 => SequencedPosition::default(),
                None => {
                    gone = TRIMMED;
                    return Err(stop());
                }
            };
            let Some(payload) = self.with_signature_bytes(payload) else {
                gone = Some("this node no longer has a signature of a record");
                return Err(stop());
            };
            each(last, SharedRecord { position, previous, sequence, payload }).map_err(|error| {
                failed = Some(error);
                stop()
            })
        });
        match failed {
            Some(error) => Err(error),
            None if is_whole || gone.is_some() => Ok(gone),
            None => Ok(TRIMMED),
        }
    }

    /// Returns the payload of a record with the bytes of its signatures; `None` if a signature is gone.
    fn with_signature_bytes(&self, payload: Payload<'static>) -> Option<Payload<'static>> {
        let Payload::Rows(rows) = payload else { return Some(payload) };
        let mut rows = rows.into_owned();
        for (key, row) in rows.iter_mut().filter(|(key, _)| is_signature(key)) {
            if let Some(row) = row {
                *row = self.signatures.read(signature_id_of(key, row).ok()?).ok()?;
            }
        }
        Some(Payload::Rows(Cow::Owned(rows)))
    }

    fn become_replica(&self, log: LogId, reached: SequencedPosition) -> Result<(), StoreError> {
        self.move_all()?;
        FileLog::begin(Box::new(directory(&self.dir, LOG)?), log, reached)?;
        sync_directory(&self.dir)?;
        let mut moving = lock(&self.moving);
        let (signatures, compacted_bytes) =
            (self.signatures.checkpoints(), self.signatures.compacted_bytes());
        let checkpoint =
            Checkpoint { log, reached, signatures, compacted_bytes, ..moving.checkpoint.clone() };
        self.store_checkpoint(&mut moving, checkpoint)
    }

    /// Copies a record. Returns whether it is time to move rows.
    pub(super) fn copy(&self, copied: SharedRecord<'_>) -> Result<bool, StoreError> {
        // Note the purge before the record is on disk, and before taking the lock for commits.
        let _purge = match &copied.payload {
            Payload::Rows(rows) => self.begin_copied_purge(rows)?,
            Payload::TakeOver(_) => None,
        };
        let mut commits = lock(&self.commits);
        if std::mem::replace(&mut commits.failed, true) {
            return Err(earlier_failure());
        }
        let SharedRecord { position, previous, sequence, payload } = copied;
        let payload = match payload {
            Payload::Rows(rows) => {
                let mut rows = rows.into_owned();
                self.name_signatures(&mut rows)?;
                self.signatures.write(true)?;
                Payload::Rows(Cow::Owned(rows))
            }
            other @ Payload::TakeOver(_) => other,
        };
        let copied = SharedRecord { position, previous, sequence, payload };
        let is_copied = match &mut commits.log {
            Some(log) => log.copy(&copied)?,
            None => false,
        };
        if !is_copied {
            let (last, index) = (commits.last.index, position.index);
            let what = format!("record {index} of the shared log does not continue record {last}");
            return Err(StoreError::damaged_file(&self.dir, what));
        }
        (commits.last, commits.epoch) = (position, position.epoch);
        commits.failed = false;
        let Payload::Rows(rows) = copied.payload else { return Ok(false) };
        let mut memtable = self.memtable_mut();
        memtable.insert(rows.into_owned(), SequencedPosition { position, sequence });
        Ok(memtable.is_large())
    }
}
