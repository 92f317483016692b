//! [`FilePart`]: a file stored inside another file, such as a WARC file in a WACZ archive.
//!
//! Readers of several parts share one file descriptor and each keep their own position, so they do not
//! disturb each other.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::bufread::DeflateDecoder;

use super::error::Reason;
use super::limits::Limits;
use super::stream::Stream;

/// A byte range of a file that is a file of its own.
pub struct FilePart {
    file: Arc<File>,
    range: Range<u64>,
    /// Whether the bytes are deflated. A deflated part can be read only from its beginning.
    is_deflated: bool,
}

impl FilePart {
    /// Creates the part of `file` in a byte range.
    #[must_use]
    pub fn new(file: &Arc<File>, range: Range<u64>, is_deflated: bool) -> Self {
        Self { file: Arc::clone(file), range, is_deflated }
    }

    /// Opens the part as a stream.
    pub fn open(&self, limits: &Limits) -> Result<Stream, Reason> {
        let part = PartReader { file: Arc::clone(&self.file), range: self.range.clone(), at: 0 };
        if !self.is_deflated {
            return Stream::seekable(part, limits);
        }
        let stored = self.range.end - self.range.start;
        let left =
            stored.saturating_mul(limits.expansion_ratio_max).saturating_add(limits.expansion_free_bytes);
        Stream::unseekable(Inflated { from: DeflateDecoder::new(BufReader::new(part)), left }, limits)
    }

    /// Whether the bytes of the part are deflated.
    pub fn is_deflated(&self) -> bool {
        self.is_deflated
    }

    /// Converts `in_part`, an offset within the part, to an offset in the file. For a deflated part, returns
    /// the file offset at which the part begins.
    pub fn offset(&self, in_part: u64) -> u64 {
        self.range.start + if self.is_deflated { 0 } else { in_part }
    }
}

/// Reads a byte range of a file with its own position. Other readers of the file do not move it.
struct PartReader {
    file: Arc<File>,
    range: Range<u64>,
    /// Position relative to the beginning of the part.
    at: u64,
}

impl Read for PartReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = (self.range.end - self.range.start).saturating_sub(self.at);
        let wanted = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut out[..wanted], self.range.start + self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for PartReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}

/// Inflates a deflated part up to a limit.
struct Inflated<R> {
    from: R,
    /// Number of bytes that may still be unpacked.
    left: u64,
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(out)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other("unpacks to an implausible size; the rest of the file is left out")
        })?;
        Ok(read)
    }
}
