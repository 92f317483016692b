//! [`CountingReader`]: a reader that counts the bytes read and can take bytes back.
//!
//! The source is a seekable file, or a pipe or network stream that is read once. The decompressors read
//! through it, so that progress and file offsets are known for every source.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A reader that counts the bytes read and can take bytes back.
pub(crate) struct CountingReader {
    from: Origin,
    read: u64,
    /// Bytes to deliver before the next bytes of the source, in reverse order.
    returned: Vec<u8>,
}

/// A reader that can seek.
trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// The source of the bytes.
enum Origin {
    /// A regular file or a part of one, which can seek.
    Seekable(Box<dyn ReadSeek>),
    /// A source that can be read only once, from its current position.
    Unseekable(Box<dyn Read + Send>),
}

impl CountingReader {
    /// Opens a file, or the reading end of a named pipe.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::from_file(File::open(path)?)
    }

    /// Creates a reader over an open file or the reading end of a named pipe. The caller must have positioned
    /// a regular file at its beginning, because the reader counts file offsets from there.
    pub(crate) fn from_file(file: File) -> io::Result<Self> {
        Ok(if file.metadata()?.is_file() { Self::seekable(file) } else { Self::unseekable(file) })
    }

    /// Creates a reader over a seekable source. The caller must have positioned the source at its beginning.
    pub(crate) fn seekable(from: impl Read + Seek + Send + 'static) -> Self {
        Self { from: Origin::Seekable(Box::new(from)), read: 0, returned: Vec::new() }
    }

    /// Creates a reader over a source that cannot seek, such as a pipe.
    pub(crate) fn unseekable(from: impl Read + Send + 'static) -> Self {
        Self { from: Origin::Unseekable(Box::new(from)), read: 0, returned: Vec::new() }
    }

    /// File offset of the next byte that this reader delivers.
    pub(crate) fn position(&self) -> u64 {
        self.read
    }

    pub(crate) fn is_seekable(&self) -> bool {
        matches!(self.from, Origin::Seekable(_))
    }

    /// Like `read`, but repeats an interrupted call.
    pub(crate) fn read_retrying(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Takes back `bytes`, which must be the last bytes that were read. The next reads return them again.
    pub(crate) fn give_back(&mut self, bytes: &[u8]) {
        self.read = self.read.saturating_sub(bytes.len() as u64);
        self.returned.extend(bytes.iter().rev());
    }
}

/// Returns the file offset of the next byte that `file` returns. This byte may already be in the buffer of
/// `file`.
pub(crate) fn position(file: &BufReader<CountingReader>) -> u64 {
    file.get_ref().position() - file.buffer().len() as u64
}

impl Read for CountingReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = if self.returned.is_empty() {
            match &mut self.from {
                Origin::Seekable(file) => file.read(out)?,
                Origin::Unseekable(from) => from.read(out)?,
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

impl Seek for CountingReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let Origin::Seekable(file) = &mut self.from else { return Err(io::ErrorKind::NotSeekable.into()) };
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
    fn bytes_that_are_given_back_are_read_again() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abcdef").unwrap();
        file.rewind().unwrap();
        let mut counted = CountingReader::unseekable(file);
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
