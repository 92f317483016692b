//! A temporary file. It has no name, so nothing of it is left when it is closed, also by the end of the process.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::{Budget, OverlapError};

/// The file. Bytes are appended to it, and read anywhere.
#[derive(Debug)]
pub(crate) struct Spill {
    file: File,
    bytes: u64,
    budget: Budget,
}

impl Spill {
    /// An empty one.
    pub(crate) fn new(budget: &Budget) -> Result<Self, OverlapError> {
        let made = tempfile::tempfile_in(budget.dir()).map_err(|source| failure(budget, source));
        Ok(Self { file: made?, bytes: 0, budget: budget.clone() })
    }

    /// Bytes in it.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), OverlapError> {
        self.budget.take_disk(bytes.len() as u64)?;
        let written = self.file.write_all_at(bytes, self.bytes);
        // What was taken is given back with the file.
        self.bytes += bytes.len() as u64;
        written.map_err(|source| failure(&self.budget, source))
    }

    /// Reads as many bytes as there is room for.
    pub(crate) fn read(&self, into: &mut [u8], from: u64) -> Result<(), OverlapError> {
        self.file.read_exact_at(into, from).map_err(|source| failure(&self.budget, source))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.budget.give_disk(self.bytes);
    }
}

fn failure(budget: &Budget, source: std::io::Error) -> OverlapError {
    OverlapError::File { dir: budget.dir().to_owned(), source }
}
