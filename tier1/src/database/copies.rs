//! A database whose log has copies of the records of a shared log, each with the position that it has there.

use std::borrow::Cow;

use doppel_protocol::LogPosition;
use doppel_protocol::range_owner::LogPlace;

use super::open::{LOG, directory};
use super::position::Applied;
use super::{Database, Inner, failed_before, id_of, is_signature, lock};
use crate::files::sync_directory;
use crate::log::{Copied, Local, Log as _, LogId, Payload, Position, Reached, Record};
use crate::store::StoreError;

impl Database {
    /// The last record that was copied, and its place in the shared log; 0 before the first.
    pub(crate) fn copied(&self) -> Reached {
        self.live().map_or(Reached::default(), |live| live.inner.copied())
    }

    /// The last record that was copied, as other nodes are told; none where nothing is copied.
    pub(crate) fn copied_place(&self) -> Option<LogPlace> {
        let live = self.live().ok()?;
        let commits = lock(&live.inner.commits);
        let log = commits.log.as_ref().filter(|_| commits.is_replica)?;
        let Position { epoch, index, hash } = commits.last;
        let record = LogPosition { log: log.id().0, epoch, index, hash };
        Some(LogPlace { record, sequence: log.sequence() })
    }

    /// Has a database that was filled with rows, [opened](Self::open_share) without a log, go on as the replica of what
    /// another log has behind a record. It is on disk on return.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn become_replica(self, log: LogId, reached: Reached) -> Result<(), StoreError> {
        self.live()?.inner.become_replica(log, reached)
    }

    /// Gives the records that were copied from places behind `end`, as they were there, each with the one before. Why they are
    /// not all here any more, where that is so.
    ///
    /// # Errors
    /// When the log cannot be read, and those of `each`.
    pub(crate) fn copied_behind<E: From<StoreError>>(
        &self,
        end: u64,
        each: &mut dyn FnMut(Reached, Copied<'static>) -> Result<(), E>,
    ) -> Result<Option<&'static str>, E> {
        self.live()?.inner.copied_behind(end, each)
    }

    /// Copies a record, which is on disk on return. Its rows have the bytes of signatures. Those that are not used after a purge
    /// leave the files within some minutes.
    ///
    /// # Errors
    /// When it does not continue the last one, or cannot be written. Nothing more is written after an error.
    pub(crate) fn copy(&self, copied: Copied<'_>) -> Result<(), StoreError> {
        let live = self.live()?;
        live.mover.make_room(&live.inner)?;
        if live.inner.copy(copied)? {
            live.mover.wake();
        }
        Ok(())
    }
}

impl Inner {
    pub(super) fn copied(&self) -> Reached {
        lock(&self.commits).reached()
    }

    fn copied_behind<E: From<StoreError>>(
        &self,
        end: u64,
        each: &mut dyn FnMut(Reached, Copied<'static>) -> Result<(), E>,
    ) -> Result<Option<&'static str>, E> {
        const TRIMMED: Option<&str> = Some("this node does not keep its copies for so long");
        let records = lock(&self.commits).log.as_ref().map(|log| log.copies_behind(end)).transpose()?;
        let Some(records) = records.flatten() else { return Ok(TRIMMED) };
        let (mut before, mut failed, mut gone) = (None::<Reached>, None, None);
        let is_whole = records.read(&mut |Record { position, previous, origin, payload }| {
            let sequence = origin.map_or(0, |origin| origin.sequence);
            let last = before.replace(Reached { position, sequence });
            if sequence <= end {
                return Ok(());
            }
            let stop = || StoreError::Engine("the rest is not wanted".to_owned());
            let last = match last {
                Some(last) => last,
                None if position.index == 1 => Reached::default(),
                None => {
                    gone = TRIMMED;
                    return Err(stop());
                }
            };
            let Some(payload) = self.whole(payload) else {
                gone = Some("a signature is not kept any more that is in it");
                return Err(stop());
            };
            each(last, Copied { position, previous, sequence, payload }).map_err(|error| {
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

    /// What a record says, with the bytes of its signatures; none where one is not there any more.
    fn whole(&self, payload: Payload<'static>) -> Option<Payload<'static>> {
        let Payload::Rows(rows) = payload else { return Some(payload) };
        let mut rows = rows.into_owned();
        for (key, row) in rows.iter_mut().filter(|(key, _)| is_signature(key)) {
            if let Some(row) = row {
                *row = self.signatures.read(id_of(key, row).ok()?).ok()?;
            }
        }
        Some(Payload::Rows(Cow::Owned(rows)))
    }

    fn become_replica(&self, log: LogId, reached: Reached) -> Result<(), StoreError> {
        self.move_all()?;
        Local::begin(Box::new(directory(&self.dir, LOG)?), log, reached)?;
        sync_directory(&self.dir)?;
        let mut moving = lock(&self.moving);
        let (signatures, compacted_bytes) = (self.signatures.noted(), self.signatures.compacted_bytes());
        let applied = Applied { log, reached, signatures, compacted_bytes, ..moving.applied.clone() };
        self.note(&mut moving, applied)
    }

    /// True when it is time to move rows.
    pub(super) fn copy(&self, copied: Copied<'_>) -> Result<bool, StoreError> {
        // It is noted before the record is on disk, and without what is held for a commit.
        let _purge = match &copied.payload {
            Payload::Rows(rows) => self.begin_copied_purge(rows)?,
            Payload::TakeOver(_) => None,
        };
        let mut commits = lock(&self.commits);
        if std::mem::replace(&mut commits.failed, true) {
            return Err(failed_before());
        }
        let Copied { position, previous, sequence, payload } = copied;
        let payload = match payload {
            Payload::Rows(rows) => {
                let mut rows = rows.into_owned();
                self.name_signatures(&mut rows)?;
                self.signatures.write(true)?;
                Payload::Rows(Cow::Owned(rows))
            }
            other @ Payload::TakeOver(_) => other,
        };
        let copied = Copied { position, previous, sequence, payload };
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
        let mut unmoved = self.unmoved_mut();
        unmoved.insert(rows.into_owned(), Reached { position, sequence });
        Ok(unmoved.is_large())
    }
}
