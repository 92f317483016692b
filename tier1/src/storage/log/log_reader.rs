//! Reading the records after a position while commits append to the log. A reader uses the files as they were
//! when it was created.

use std::path::PathBuf;
use std::sync::Arc;

use super::file_log::{FileLog, LogFile, name};
use super::replay::{ChainCheck, RecordVisitor, record_at};
use super::{Log as _, LogId, Position};
use crate::storage::files::File;
use crate::storage::store::StoreError;

/// Reads the records after a position from open files. The log may delete the files meanwhile.
pub(crate) struct LogReader {
    directory: PathBuf,
    id: LogId,
    from: Position,
    end: Position,
    /// Files with the records, opened.
    files: Vec<(LogFile, Arc<dyn File>)>,
}

impl FileLog {
    /// Returns a reader for the records after `from`, up to the present last one. Returns `None` if this log
    /// has another id or does not have all of these records.
    ///
    /// # Errors
    /// Fails if a file cannot be opened.
    pub(crate) fn records_after(&self, id: LogId, from: Position) -> Result<Option<LogReader>, StoreError> {
        if id != self.id || from.index > self.last().index {
            return Ok(None);
        }
        let Some(begin) = self.files.iter().rposition(|file| file.first <= from.index + 1) else {
            return Ok(None);
        };
        self.files_from(begin, from).map(Some)
    }

    /// Returns a reader for all records whose originals come after `sequence` in the shared log, and for some
    /// records before them. Returns `None` if the log does not have all of these records.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub(crate) fn copies_after(&self, sequence: u64) -> Result<Option<LogReader>, StoreError> {
        let failed = |error| StoreError::of_file("read the log", self.directory.path(), &error);
        for (at, LogFile { first, length }) in self.files.iter().enumerate().rev() {
            let is_early = *first == 1 || {
                let file = self.directory.open(&name(*first)).map_err(failed)?;
                let record = record_at(&file, 0, *length, self.id).map_err(failed)?;
                let origin = record.ok().and_then(|(record, _)| record.origin);
                origin.is_some_and(|origin| origin.sequence <= sequence)
            };
            if is_early {
                // The reader starts with the first record of this file. The hash of the record before it is
                // unknown.
                let from = Position { index: first.saturating_sub(2), ..Position::default() };
                return self.files_from(at, from).map(Some);
            }
        }
        Ok(None)
    }

    fn files_from(&self, begin: usize, from: Position) -> Result<LogReader, StoreError> {
        let open = |log_file: &LogFile| {
            let file = self.directory.open(&name(log_file.first));
            let file =
                file.map_err(|error| StoreError::of_file("read the log", self.directory.path(), &error))?;
            Ok((*log_file, file))
        };
        let files = self.files.range(begin..).map(open).collect::<Result<_, StoreError>>()?;
        let (directory, end) = (self.directory.path().to_owned(), self.last());
        Ok(LogReader { directory, id: self.id, from, end, files })
    }
}

impl LogReader {
    /// Passes the records to `each` in order. Returns `false` if a record cannot be read, or if the records
    /// do not continue `from`. In the second case `from` belongs to another history.
    pub(crate) fn read(&self, each: &mut RecordVisitor<'_>) -> bool {
        let mut chain = ChainCheck { id: self.id, from: self.from, last: None, sequence: 0, each };
        for (LogFile { first, length }, file) in &self.files {
            if let Err(error) = chain.read(file, *first, *length, false) {
                let error = error.of(&self.directory, *first);
                tracing::warn!(%error, "cannot read all changes from the log");
                return false;
            }
        }
        chain.last.unwrap_or(self.from) == self.end
    }
}
