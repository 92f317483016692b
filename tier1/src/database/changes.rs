//! What has changed since a record of the log: what those have to be told that know everything up to then.

use std::sync::atomic::{AtomicU64, Ordering};

use doppel_model::PageId;
use doppel_protocol::LogPosition;

use super::{Database, Inner, lock};
use crate::key::{self, Kind};
use crate::log::{LogId, Payload, Position, Record};
use crate::store::StoreError;

/// Who begins from a snapshot, and reads the log from there on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reader {
    /// The index, which tier 2 has.
    Index,
    /// The status table.
    Statuses,
    /// The shared log, which may lose its tail.
    SharedLog,
}

/// Takes a key and what was written; none when the row was removed.
pub(crate) type EachWritten<'e> = dyn FnMut(&[u8], Option<&[u8]>) + 'e;

/// The records after which each needs the log. Before anybody has said so, all of it is needed, where there may be such a
/// reader: the index and the status table read where the range is owned, which a replica begins later.
pub(super) struct KeptAfter([AtomicU64; 3]);

impl KeptAfter {
    pub(super) fn new(is_replica: bool) -> Self {
        let (all, none) = (0, u64::MAX);
        let after = if is_replica { [none, none, all] } else { [all, all, none] };
        Self(after.map(AtomicU64::new))
    }

    fn put(&self, reader: Reader, after: Option<u64>) {
        self.0[reader as usize].store(after.unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Whoever ends an ownership says so first, and puts afterwards that nobody reads. So one of the two sees the other's.
    fn put_if<E>(
        &self,
        reader: Reader,
        after: Option<u64>,
        owns: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (place, after) = (&self.0[reader as usize], after.unwrap_or(u64::MAX));
        let before = place.swap(after, Ordering::AcqRel);
        owns().inspect_err(|_| {
            // Another value was put after it, and holds.
            let _ = place.compare_exchange(after, before, Ordering::AcqRel, Ordering::Relaxed);
        })
    }

    /// The first of them.
    pub(super) fn least(&self) -> u64 {
        let after = self.0.iter().map(|after| after.load(Ordering::Relaxed));
        after.min().unwrap_or(u64::MAX)
    }
}

impl Database {
    /// The last record; none where no log is kept.
    pub(crate) fn log_position(&self) -> Option<LogPosition> {
        self.live().ok()?.inner.log_position()
    }

    /// Records after this one are kept for a reader while there is room; with none, no longer than the rows need them.
    pub(crate) fn keep_log(&self, reader: Reader, after: Option<u64>) {
        self.place.kept_after.put(reader, after);
    }

    /// The same for an owner. What it says too late, when it is that no more, is as if it had not been said.
    pub(crate) fn keep_log_if<E>(
        &self,
        reader: Reader,
        after: Option<u64>,
        owns: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.place.kept_after.put_if(reader, after, owns)
    }

    /// The record after which a reader has the log kept.
    #[cfg(test)]
    pub(crate) fn is_kept_after(&self, reader: Reader) -> Option<u64> {
        Some(self.place.kept_after.0[reader as usize].load(Ordering::Relaxed))
            .filter(|after| *after < u64::MAX)
    }

    /// Calls `each` for the rows that were written after a record, in order. False
    /// where the log does not tell them all.
    ///
    /// # Errors
    /// When a file of the log cannot be opened.
    pub(crate) fn written_since(
        &self,
        since: LogPosition,
        each: &mut EachWritten<'_>,
    ) -> Result<bool, StoreError> {
        self.live()?.inner.written_since(since, each)
    }

    /// The pages whose rows were written after a record, each once; none where the log does not tell.
    ///
    /// # Errors
    /// When a file of the log cannot be opened.
    pub(crate) fn changed_since(&self, since: LogPosition) -> Result<Option<Vec<PageId>>, StoreError> {
        self.live()?.inner.changed_since(since)
    }
}

impl Inner {
    pub(super) fn log_position(&self) -> Option<LogPosition> {
        let commits = lock(&self.commits);
        let log = commits.log.as_ref()?;
        let Position { epoch, index, hash } = commits.last;
        Some(LogPosition { log: log.id().0, epoch, index, hash })
    }

    #[cfg(test)]
    pub(super) fn keep_log(&self, reader: Reader, after: Option<u64>) {
        self.kept_after.put(reader, after);
    }

    pub(super) fn written_since(
        &self,
        since: LogPosition,
        each: &mut EachWritten<'_>,
    ) -> Result<bool, StoreError> {
        let LogPosition { log, epoch, index, hash } = since;
        let records = {
            let commits = lock(&self.commits);
            let Some(local) = commits.log.as_ref() else { return Ok(false) };
            local.since(LogId(log), Position { epoch, index, hash })?
        };
        let Some(records) = records else { return Ok(false) };
        Ok(records.read(&mut |Record { payload, .. }| {
            if let Payload::Rows(rows) = payload {
                rows.iter().for_each(|(key, row)| each(key, row.as_deref()));
            }
            Ok(())
        }))
    }

    pub(super) fn changed_since(&self, since: LogPosition) -> Result<Option<Vec<PageId>>, StoreError> {
        let mut pages = Vec::new();
        let is_whole = self.written_since(since, &mut |key, _| {
            if Kind::Page.is_of(key) {
                pages.extend(key::last_page(key));
            }
        })?;
        pages.sort_unstable();
        pages.dedup();
        Ok(is_whole.then_some(pages))
    }
}
