//! A file that counts how many of its bytes have been read. It may be a pipe, or be read over a network.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A file that counts how many of its bytes have been read.
pub(super) struct Counted {
    from: Origin,
    read: u64,
    /// Bytes that come before those of the file, in reverse order.
    returned: Vec<u8>,
}

/// What can be read from any place.
trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// Where the bytes come from.
enum Origin {
    /// A regular file or a part of one, which can be read from any place.
    File(Box<dyn ReadSeek>),
    /// Something that is read once, from where it is.
    Once(Box<dyn Read + Send>),
}

impl Counted {
    /// Opens a file, or the reading end of a named pipe.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::of_file(File::open(path)?)
    }

    /// Reads a file that is open, or the reading end of a named pipe, from where it is.
    pub(super) fn of_file(file: File) -> io::Result<Self> {
        Ok(if file.metadata()?.is_file() { Self::seekable(file) } else { Self::once(file) })
    }

    /// Reads something that can be read from any place, from its beginning, where it is.
    pub(super) fn seekable(from: impl Read + Seek + Send + 'static) -> Self {
        Self { from: Origin::File(Box::new(from)), read: 0, returned: Vec::new() }
    }

    /// Reads something once, as one reads a pipe.
    pub(super) fn once(from: impl Read + Send + 'static) -> Self {
        Self { from: Origin::Once(Box::new(from)), read: 0, returned: Vec::new() }
    }

    /// The file offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.read
    }

    pub(super) fn is_seekable(&self) -> bool {
        matches!(self.from, Origin::File(_))
    }

    /// Like `read`, but an interrupted call is made again.
    pub(super) fn read_retrying(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
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
            match &mut self.from {
                Origin::File(file) => file.read(out)?,
                Origin::Once(from) => from.read(out)?,
            }
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
        let Origin::File(file) = &mut self.from else { return Err(io::ErrorKind::NotSeekable.into()) };
        self.returned.clear();
        self.read = file.seek(to)?;
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
