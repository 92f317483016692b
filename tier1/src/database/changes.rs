//! Which pages have changed since a record of the log: what an index has to be told that knows everything up to then.

use std::sync::atomic::Ordering;

use doppel_model::PageId;
use doppel_protocol::LogPosition;

use super::{Database, Inner, lock};
use crate::key::{self, Kind};
use crate::log::{LogId, Payload, Position, Record};
use crate::store::StoreError;

impl Database {
    /// The last record; none where no log is kept.
    pub(crate) fn log_position(&self) -> Option<LogPosition> {
        self.inner.log_position()
    }

    /// Records after this one are kept while there is room; with none, no longer than the rows need them.
    pub(crate) fn keep_log(&self, after: Option<u64>) {
        self.inner.keep_log(after);
    }

    /// The pages whose rows were written after a record, each once; none where the log does not tell.
    ///
    /// # Errors
    /// When a file of the log cannot be opened.
    pub(crate) fn changed_since(&self, since: LogPosition) -> Result<Option<Vec<PageId>>, StoreError> {
        self.inner.changed_since(since)
    }
}

impl Inner {
    pub(super) fn log_position(&self) -> Option<LogPosition> {
        let commits = lock(&self.commits);
        let log = commits.log.as_ref()?;
        let Position { epoch, index, hash } = commits.last;
        Some(LogPosition { log: log.id().0, epoch, index, hash })
    }

    pub(super) fn keep_log(&self, after: Option<u64>) {
        self.kept_after.store(after.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn changed_since(&self, since: LogPosition) -> Result<Option<Vec<PageId>>, StoreError> {
        let LogPosition { log, epoch, index, hash } = since;
        let records = {
            let commits = lock(&self.commits);
            let Some(local) = commits.log.as_ref() else { return Ok(None) };
            local.since(LogId(log), Position { epoch, index, hash })?
        };
        let Some(records) = records else { return Ok(None) };
        let mut pages = Vec::new();
        let is_whole = records.read(&mut |Record { payload, .. }| {
            let Payload::Rows(rows) = payload else { return Ok(()) };
            let of_pages = rows.iter().filter(|(key, _)| Kind::Page.is_of(key));
            pages.extend(of_pages.filter_map(|(key, _)| key::last_page(key)));
            Ok(())
        });
        pages.sort_unstable();
        pages.dedup();
        Ok(is_whole.then_some(pages))
    }
}
