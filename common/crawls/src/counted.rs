//! A file that counts how many of its bytes have been read. It may be a pipe.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A file that counts how many of its bytes have been read.
pub(super) struct Counted {
    file: File,
    read: u64,
    /// Whether the file is a regular one, which can be read from any place.
    seekable: bool,
    /// Bytes that come before those of the file, in reverse order.
    returned: Vec<u8>,
}

impl Counted {
    /// Opens a file, or the reading end of a named pipe.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let seekable = file.metadata()?.is_file();
        Ok(Self { file, read: 0, seekable, returned: Vec::new() })
    }

    /// Reads a file once, from where it is, as one reads a pipe.
    pub(super) fn once(file: File) -> Self {
        Self { file, read: 0, seekable: false, returned: Vec::new() }
    }

    /// The file offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.read
    }

    pub(super) fn is_seekable(&self) -> bool {
        self.seekable
    }

    /// Puts bytes back that were read last.
    pub(super) fn give_back(&mut self, bytes: &[u8]) {
        self.read = self.read.saturating_sub(bytes.len() as u64);
        self.returned.extend(bytes.iter().rev());
    }
}

/// The offset of the next byte behind a buffer.
pub(super) fn position(file: &BufReader<Counted>) -> u64 {
    file.get_ref().position() - file.buffer().len() as u64
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = if self.returned.is_empty() {
            self.file.read(out)?
        } else {
            let bytes = out.len().min(self.returned.len());
            let left = self.returned.len() - bytes;
            for (to, from) in out.iter_mut().zip(self.returned.drain(left..).rev()) {
                *to = from;
            }
            bytes
        };
        self.read += bytes as u64;
        Ok(bytes)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.returned.clear();
        self.read = self.file.seek(to)?;
        Ok(self.read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bytes_that_are_given_back_come_again() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abcdef").unwrap();
        file.rewind().unwrap();
        let mut counted = Counted::once(file);
        let mut four = [0; 4];
        counted.read_exact(&mut four).unwrap();
        counted.give_back(b"d");
        counted.give_back(b"bc");
        assert_eq!(counted.position(), 1);
        let mut all = String::new();
        assert_eq!(counted.read(&mut four[..2]).unwrap(), 2);
        assert_eq!(&four[..2], b"bc");
        counted.read_to_string(&mut all).unwrap();
        assert_eq!((all.as_str(), counted.position()), ("def", 6));
    }
}
