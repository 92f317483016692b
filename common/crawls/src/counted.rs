//! A file that knows how far it was read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// A file that counts what was read of it.
pub(super) struct Counted {
    file: File,
    read: u64,
}

impl Counted {
    /// A file that nothing was read of.
    pub(super) fn new(file: File) -> Self {
        Self { file, read: 0 }
    }

    /// The offset in the file of the next byte read.
    pub(super) fn position(&self) -> u64 {
        self.read
    }
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(out)?;
        self.read += bytes as u64;
        Ok(bytes)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.read = self.file.seek(to)?;
        Ok(self.read)
    }
}
