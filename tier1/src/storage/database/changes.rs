//! Changes since a record of the log, for readers that know the state at that record. Trimming keeps the
//! records that these readers still need.

use std::sync::atomic::{AtomicU64, Ordering};

use doppel_model::PageId;
use doppel_protocol::LogPosition;

use super::{Database, Inner, lock};
use crate::rows::key::{self, RowKind};
use crate::storage::log::{LogId, Payload, Position, Record};
use crate::storage::store::StoreError;

/// A part of the program that starts from a snapshot and reads the log from there on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogConsumer {
    /// The index of tier 2.
    Index,
    /// The status table of this range.
    Statuses,
    /// The shared log, which may lose its tail and get it back from this log.
    SharedLog,
}

/// Receives a key and the new value; `None` if the row was deleted.
pub(crate) type WriteVisitor<'e> = dyn FnMut(&[u8], Option<&[u8]>) + 'e;

/// For each consumer, the index of the record after which it needs the log.
///
/// At first the whole log is kept for every consumer that may exist. The index and the status table only read
/// where the range is owned, and a replica becomes the owner later.
pub(super) struct LogRetention([AtomicU64; 3]);

impl LogRetention {
    pub(super) fn new(is_replica: bool) -> Self {
        let (all, none) = (0, u64::MAX);
        let after = if is_replica { [none, none, all] } else { [all, all, none] };
        Self(after.map(AtomicU64::new))
    }

    fn put(&self, consumer: LogConsumer, after: Option<u64>) {
        self.0[consumer as usize].store(after.unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Sets the index if `owns` succeeds, and otherwise restores the earlier value.
    ///
    /// The thread that ends an ownership first ends it, and then sets that no consumer reads. So either
    /// `owns` fails here, or the other thread overwrites the value.
    fn put_if<E>(
        &self,
        consumer: LogConsumer,
        after: Option<u64>,
        owns: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (index, after) = (&self.0[consumer as usize], after.unwrap_or(u64::MAX));
        let before = index.swap(after, Ordering::AcqRel);
        owns().inspect_err(|_| {
            // If another thread has set a value meanwhile, that value stays.
            let _ = index.compare_exchange(after, before, Ordering::AcqRel, Ordering::Relaxed);
        })
    }

    /// Returns the smallest index after which a consumer needs the records of the log.
    pub(super) fn min(&self) -> u64 {
        let after = self.0.iter().map(|after| after.load(Ordering::Relaxed));
        after.min().unwrap_or(u64::MAX)
    }
}

impl Database {
    /// Returns the position of the last record; `None` if the database has no log.
    pub(crate) fn log_position(&self) -> Option<LogPosition> {
        self.current().ok()?.inner.log_position()
    }

    /// Keeps the records after this one for a consumer while the log is not too large. With `None` the
    /// consumer needs no records.
    pub(crate) fn keep_log(&self, consumer: LogConsumer, after: Option<u64>) {
        self.handle.log_retention.put(consumer, after);
    }

    /// Like [`keep_log`](Self::keep_log), for an owner. Changes nothing if `owns` says that the ownership has
    /// ended.
    ///
    /// # Errors
    /// Returns the error of `owns`.
    pub(crate) fn keep_log_if<E>(
        &self,
        consumer: LogConsumer,
        after: Option<u64>,
        owns: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        self.handle.log_retention.put_if(consumer, after, owns)
    }

    /// Returns the index of the record after which the log is kept for a consumer.
    #[cfg(test)]
    pub(crate) fn kept_log_after(&self, consumer: LogConsumer) -> Option<u64> {
        Some(self.handle.log_retention.0[consumer as usize].load(Ordering::Relaxed))
            .filter(|after| *after < u64::MAX)
    }

    /// Calls `each` for the rows that were written after a record, in order. Returns `false` if the log does
    /// not have all of them.
    ///
    /// # Errors
    /// Fails if a file of the log cannot be opened.
    pub(crate) fn written_since(
        &self,
        since: LogPosition,
        each: &mut WriteVisitor<'_>,
    ) -> Result<bool, StoreError> {
        self.current()?.inner.written_since(since, each)
    }

    /// Returns the pages whose records were written after a record, each once. Returns `None` if the log does
    /// not have all changes.
    ///
    /// # Errors
    /// Fails if a file of the log cannot be opened.
    pub(crate) fn changed_since(&self, since: LogPosition) -> Result<Option<Vec<PageId>>, StoreError> {
        self.current()?.inner.changed_since(since)
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
    pub(super) fn keep_log(&self, consumer: LogConsumer, after: Option<u64>) {
        self.log_retention.put(consumer, after);
    }

    pub(super) fn written_since(
        &self,
        since: LogPosition,
        each: &mut WriteVisitor<'_>,
    ) -> Result<bool, StoreError> {
        let LogPosition { log, epoch, index, hash } = since;
        let records = {
            let commits = lock(&self.commits);
            let Some(file_log) = commits.log.as_ref() else { return Ok(false) };
            file_log.records_after(LogId(log), Position { epoch, index, hash })?
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
            if RowKind::Page.is_of(key) {
                pages.extend(key::last_page(key));
            }
        })?;
        pages.sort_unstable();
        pages.dedup();
        Ok(is_whole.then_some(pages))
    }
}
