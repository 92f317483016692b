//! A file that counts how many of its bytes have been read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// A file that counts how many of its bytes have been read.
pub(super) struct Counted {
    file: File,
    read: u64,
}

impl Counted {
    /// Wraps a file of which nothing has been read.
    pub(super) fn new(file: File) -> Self {
        Self { file, read: 0 }
    }

    /// The file offset of the next byte.
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
