//! A temporary file without a name. The operating system deletes the file when the process closes the file or
//! ends.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::budget::Budget;
use crate::error::OverlapError;

/// A temporary file that grows at its end and can be read at any offset.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: File,
    bytes: u64,
    budget: Budget,
}

impl TemporaryFile {
    /// Creates an empty file in the directory of the budget.
    pub(crate) fn new(budget: &Budget) -> Result<Self, OverlapError> {
        let made = tempfile::tempfile_in(budget.dir()).map_err(|source| failure(budget, source));
        Ok(Self { file: made?, bytes: 0, budget: budget.clone() })
    }

    /// Length of the file in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Appends `bytes` to the file. Fails if all temporary files together would exceed the disk budget.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), OverlapError> {
        self.budget.take_disk(bytes.len() as u64)?;
        let written = self.file.write_all_at(bytes, self.bytes);
        // Count the bytes even if the write failed, because dropping the file returns them to the budget.
        self.bytes += bytes.len() as u64;
        written.map_err(|source| failure(&self.budget, source))
    }

    /// Fills `into` with the bytes from offset `from` on. Fails if the file has too few bytes.
    pub(crate) fn read(&self, into: &mut [u8], from: u64) -> Result<(), OverlapError> {
        self.file.read_exact_at(into, from).map_err(|source| failure(&self.budget, source))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        self.budget.give_disk(self.bytes);
    }
}

fn failure(budget: &Budget, source: std::io::Error) -> OverlapError {
    OverlapError::File { dir: budget.dir().to_owned(), source }
}
