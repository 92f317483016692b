//! The records behind a position, or a place of the shared log, read while the log goes on: by the files as they were at one
//! moment.

use std::path::PathBuf;
use std::sync::Arc;

use super::local::{Local, name};
use super::replay::{Chain, Each, record_at};
use super::{Log as _, LogId, Position};
use crate::files::File;
use crate::store::StoreError;

/// The files that have the records behind a position. They may be trimmed meanwhile.
pub(crate) struct Since {
    directory: PathBuf,
    id: LogId,
    from: Position,
    end: Position,
    /// The first record of each, and its bytes.
    files: Vec<(u64, u64, Arc<dyn File>)>,
}

impl Local {
    /// The records behind `from` up to the last one; none where the log of that number does not reach back so far.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub(crate) fn since(&self, id: LogId, from: Position) -> Result<Option<Since>, StoreError> {
        if id != self.id || from.index > self.last().index {
            return Ok(None);
        }
        let Some(begin) = self.files.iter().rposition(|(first, _)| *first <= from.index + 1) else {
            return Ok(None);
        };
        self.files_from(begin, from).map(Some)
    }

    /// The records that are copies of what the shared log has behind a place, with some before them; none where the log does
    /// not reach back so far.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn copies_behind(&self, place: u64) -> Result<Option<Since>, StoreError> {
        let failed = |error| StoreError::of_file("read the log", self.directory.path(), &error);
        for (at, (first, length)) in self.files.iter().enumerate().rev() {
            let is_early = *first == 1 || {
                let file = self.directory.open(&name(*first)).map_err(failed)?;
                let record = record_at(&file, 0, *length, self.id).map_err(failed)?;
                let origin = record.ok().and_then(|(record, _)| record.origin);
                origin.is_some_and(|origin| origin.sequence <= place)
            };
            if is_early {
                // All of its records are wanted, and what is before its first is not known.
                let from = Position { index: first.saturating_sub(2), ..Position::default() };
                return self.files_from(at, from).map(Some);
            }
        }
        Ok(None)
    }

    fn files_from(&self, begin: usize, from: Position) -> Result<Since, StoreError> {
        let open = |(first, length): &(u64, u64)| {
            let file = self.directory.open(&name(*first));
            let file =
                file.map_err(|error| StoreError::of_file("read the log", self.directory.path(), &error))?;
            Ok((*first, *length, file))
        };
        let files = self.files.range(begin..).map(open).collect::<Result<_, StoreError>>()?;
        let (directory, end) = (self.directory.path().to_owned(), self.last());
        Ok(Since { directory, id: self.id, from, end, files })
    }
}

impl Since {
    /// Gives the records in order; false where they do not continue `from`, which is of another history then, or cannot
    /// all be read.
    pub(crate) fn read(&self, each: &mut Each<'_>) -> bool {
        let mut chain = Chain { id: self.id, from: self.from, last: None, sequence: 0, each };
        for (first, length, file) in &self.files {
            if let Err(error) = chain.read(file, *first, *length, false) {
                let error = error.of(&self.directory, *first);
                tracing::warn!(%error, "what has changed cannot be read from the log");
                return false;
            }
        }
        chain.last.unwrap_or(self.from) == self.end
    }
}
