//! The records behind a position, read while the log goes on: by the files as they were at one moment.

use std::path::PathBuf;
use std::sync::Arc;

use super::local::{Local, name};
use super::replay::{Chain, Each};
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
        let open = |(first, length): &(u64, u64)| {
            let file = self.directory.open(&name(*first));
            let file =
                file.map_err(|error| StoreError::of_file("read the log", self.directory.path(), &error))?;
            Ok((*first, *length, file))
        };
        let files = self.files.range(begin..).map(open).collect::<Result<_, StoreError>>()?;
        let (directory, end) = (self.directory.path().to_owned(), self.last());
        Ok(Some(Since { directory, id, from, end, files }))
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
