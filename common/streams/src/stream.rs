//! [`Stream`]: the unpacked bytes of a file, with the boundaries of its gzip members and zstd frames.
//!
//! A *member* is a gzip member or a zstd frame. WARC writers usually compress each record into its own
//! member, so readers use member boundaries to recover from damage. Plain, bzip2 and xz files count as one
//! member.
//!
//! [`Limits::expansion_ratio_max`] bounds the work. The stream counts every unpacked byte, even when it
//! unpacks a part again. It counts a stored byte once, except after [`Stream::reread`].

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::SpooledTempFile;

use super::counting_reader::CountingReader;
use super::error::Reason;
use super::gzip::Gzip;
use super::limits::Limits;
use super::packing::Packing;
use super::solid::{self, Bzip2, Xz};
use super::zstd_frames::{self, ZstdFrames};

/// The usual size of the window of unpacked bytes, in bytes.
const WINDOW_BYTES: usize = 64 << 10;
/// Maximum number of tapped bytes in memory. A larger copy moves to a temporary file.
const TAP_MEMORY_BYTES: usize = 4 << 20;
/// The size of the read buffer for stored bytes, in bytes.
const READ_BUFFER_BYTES: usize = 128 << 10;

enum Codec {
    Plain(CountingReader),
    Gzip(Box<Gzip>),
    Zstd(Box<ZstdFrames>),
    Bzip2(Box<Bzip2>),
    Xz(Box<Xz>),
}

/// An open file or pipe of any compression. A stream of gzip or zstd starts before its first member, and
/// [`next_member`](Self::next_member) enters it.
pub struct Stream {
    codec: Codec,
    limits: Limits,
    /// Unpacked bytes, of which `start..end` are not consumed. May exceed [`WINDOW_BYTES`] after a put-back.
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of stored bytes used so far.
    stored: u64,
    /// Number of bytes into which the stored bytes unpacked. Bytes that are unpacked again count again.
    unpacked: u64,
    /// Number of unpacked bytes consumed from all members.
    consumed: u64,
    /// Number of unpacked bytes consumed from the members before the current one.
    consumed_before: u64,
    /// The file offset up to which `stored` includes the bytes of the file.
    stored_up_to: u64,
    /// Whether no byte of the current member has been consumed.
    at_member_start: bool,
    /// Whether the current member is unpacked to its end. The window may still hold some of its bytes.
    member_ended: bool,
    /// Copy of the consumed bytes, if a caller requested one with [`tap`](Self::tap).
    tap: Option<Tap>,
    /// Bytes that follow a gap of lost bytes, and whether they are the last bytes of the member.
    after_gap: Option<(Vec<u8>, bool)>,
}

/// A position in the unpacked data of a file, to which [`Stream::return_to`] can return.
pub struct ReturnPoint {
    /// File offset of the position's member, or of the position itself in an uncompressed file.
    member: u64,
    /// Number of unpacked bytes before the position within the member. 0 in an uncompressed file.
    skipped: u64,
    /// Number of unpacked bytes before the position in all members.
    consumed: u64,
}

/// A copy of consumed bytes, which moves to a temporary file when it grows.
struct Tap {
    bytes: SpooledTempFile,
    failed: Option<io::Error>,
}

impl Stream {
    /// Opens a file, or the reading end of a named pipe.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, Reason> {
        Self::new(CountingReader::open(path).map_err(Reason::Io)?, limits)
    }

    /// Creates a stream over a seekable reader, such as a part of a file.
    pub fn seekable(from: impl Read + Seek + Send + 'static, limits: &Limits) -> Result<Self, Reason> {
        Self::new(CountingReader::seekable(from), limits)
    }

    /// Creates a stream over an open file, which the caller must have positioned at its beginning.
    pub fn from_file(file: File, limits: &Limits) -> Result<Self, Reason> {
        Self::new(CountingReader::from_file(file).map_err(Reason::Io)?, limits)
    }

    /// Creates a stream over a reader that cannot seek, such as a pipe.
    pub fn unseekable(from: impl Read + Send + 'static, limits: &Limits) -> Result<Self, Reason> {
        Self::new(CountingReader::unseekable(from), limits)
    }

    fn new(mut file: CountingReader, limits: &Limits) -> Result<Self, Reason> {
        let mut magic = Vec::with_capacity(8);
        (&mut file).take(8).read_to_end(&mut magic).map_err(Reason::Io)?;
        file.give_back(&magic);
        let buffered = |file| BufReader::with_capacity(READ_BUFFER_BYTES, file);
        let codec = match &*magic {
            [0x1f, 0x8b, ..] => Codec::Gzip(Box::new(Gzip::new(buffered(file)))),
            magic if zstd_frames::is_zstd(magic) => {
                Codec::Zstd(Box::new(ZstdFrames::new(buffered(file), limits.zstd_window_max)?))
            }
            magic if solid::is_bzip2(magic) => Codec::Bzip2(Box::new(Bzip2::new(buffered(file)))),
            magic if magic.starts_with(&solid::XZ_MAGIC) => Codec::Xz(Box::new(Xz::new(buffered(file)))),
            _ => Codec::Plain(file),
        };
        let member_ended = matches!(codec, Codec::Gzip(_) | Codec::Zstd(_));
        Ok(Self {
            codec,
            limits: *limits,
            window: vec![0; WINDOW_BYTES],
            start: 0,
            end: 0,
            stored: 0,
            unpacked: 0,
            consumed: 0,
            consumed_before: 0,
            stored_up_to: 0,
            at_member_start: true,
            member_ended,
            tap: None,
            after_gap: None,
        })
    }

    /// The compression that was detected in the first bytes.
    #[must_use]
    pub fn packing(&self) -> Packing {
        match self.codec {
            Codec::Plain(_) => Packing::Plain,
            Codec::Gzip(_) => Packing::Gzip,
            Codec::Zstd(_) => Packing::Zstd,
            Codec::Bzip2(_) => Packing::Bzip2,
            Codec::Xz(_) => Packing::Xz,
        }
    }

    /// Whether the bytes of the file are compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.packing() != Packing::Plain
    }

    /// Number of stored bytes read.
    pub fn bytes_read(&self) -> u64 {
        match &self.codec {
            Codec::Plain(file) => file.position(),
            Codec::Gzip(gzip) => gzip.bytes_read(),
            Codec::Zstd(zstd) => zstd.bytes_read(),
            Codec::Bzip2(bzip2) => bzip2.bytes_read(),
            Codec::Xz(xz) => xz.bytes_read(),
        }
    }

    /// File offset of the next byte, or of the compressed member that contains it.
    pub fn offset(&self) -> u64 {
        match &self.codec {
            Codec::Plain(file) => file.position() - (self.end - self.start) as u64,
            Codec::Gzip(gzip) => gzip.member(),
            Codec::Zstd(zstd) => zstd.frame(),
            Codec::Bzip2(_) | Codec::Xz(_) => 0,
        }
    }

    /// Returns an offset from which [`seek`](Self::seek) can resume at the current position. `None` for a
    /// pipe, for bzip2 and xz files, and inside a gzip member or zstd frame.
    pub fn mark(&self) -> Option<u64> {
        let seekable = match &self.codec {
            Codec::Plain(file) => file.is_seekable(),
            Codec::Gzip(gzip) => gzip.is_seekable() && self.at_member_start,
            Codec::Zstd(zstd) => zstd.is_seekable() && self.at_member_start,
            Codec::Bzip2(_) | Codec::Xz(_) => false,
        };
        seekable.then(|| self.offset())
    }

    /// Seeks to an offset that [`mark`](Self::mark) returned.
    pub fn seek(&mut self, mark: u64) -> Result<(), Reason> {
        match &mut self.codec {
            Codec::Plain(file) => file.seek(SeekFrom::Start(mark)).map(drop).map_err(Reason::Io)?,
            Codec::Gzip(gzip) => gzip.seek(mark).map(drop)?,
            Codec::Zstd(zstd) => zstd.seek(mark).map(drop)?,
            Codec::Bzip2(_) | Codec::Xz(_) => return Err(Reason::Io(io::ErrorKind::NotSeekable.into())),
        }
        self.enter_member();
        Ok(())
    }

    /// Number of unpacked bytes consumed so far from all members.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Returns a position for [`return_to`](Self::return_to). `None` for a pipe and for bzip2 and xz files.
    pub fn return_point(&self) -> Option<ReturnPoint> {
        let (seekable, skipped) = match &self.codec {
            Codec::Plain(file) => (file.is_seekable(), 0),
            Codec::Gzip(gzip) => (gzip.is_seekable(), self.consumed - self.consumed_before),
            Codec::Zstd(zstd) => (zstd.is_seekable(), self.consumed - self.consumed_before),
            Codec::Bzip2(_) | Codec::Xz(_) => (false, 0),
        };
        seekable.then(|| ReturnPoint { member: self.offset(), skipped, consumed: self.consumed })
    }

    /// Returns to a position by unpacking its member again. The bytes that are unpacked again count towards
    /// [`Limits::expansion_ratio_max`].
    pub fn return_to(&mut self, return_point: &ReturnPoint) -> Result<(), Reason> {
        self.seek(return_point.member)?;
        self.consumed = return_point.consumed - return_point.skipped;
        self.consumed_before = self.consumed;
        let mut left = return_point.skipped;
        while left > 0 {
            let bytes = self.data()?.len();
            if bytes == 0 {
                return Err(Reason::Truncated);
            }
            let bytes = usize::try_from(left).map_or(bytes, |left| left.min(bytes));
            self.consume(bytes);
            left -= bytes as u64;
        }
        Ok(())
    }

    /// Puts back the last consumed bytes of the current member. These bytes count as unpacked again, which
    /// bounds the work for a file in which every record claims the bytes that follow it.
    pub fn put_back(&mut self, mut bytes: Vec<u8>) -> Result<(), Reason> {
        self.consumed -= bytes.len() as u64;
        self.unpacked += bytes.len() as u64;
        bytes.extend_from_slice(&self.window[self.start..self.end]);
        (self.start, self.end) = (0, bytes.len());
        bytes.resize(bytes.len().max(WINDOW_BYTES), 0);
        self.window = bytes;
        self.limits.check_expansion(self.stored, self.unpacked)
    }

    /// Puts back consumed bytes that precede lost bytes. The member then seems to end before the gap, and
    /// [`skip_gap`](Self::skip_gap) continues behind it.
    pub fn put_back_before_gap(&mut self, bytes: Vec<u8>) -> Result<(), Reason> {
        let behind = self.available().to_vec();
        self.after_gap = Some((behind, self.member_ended));
        self.start = self.end;
        self.member_ended = true;
        self.put_back(bytes)
    }

    /// Continues behind the gap of lost bytes. Returns false if there is no gap.
    pub fn skip_gap(&mut self) -> bool {
        let Some((mut bytes, ended)) = self.after_gap.take() else { return false };
        (self.start, self.end, self.member_ended) = (0, bytes.len(), ended);
        bytes.resize(bytes.len().max(WINDOW_BYTES), 0);
        self.window = bytes;
        true
    }

    /// Like [`seek`](Self::seek), but counts the stored bytes from `mark` on once more.
    pub fn reread(&mut self, mark: u64) -> Result<(), Reason> {
        self.stored_up_to = mark;
        self.seek(mark)
    }

    fn enter_member(&mut self) {
        (self.start, self.end) = (0, 0);
        (self.at_member_start, self.member_ended) = (true, false);
        self.consumed_before = self.consumed;
    }

    /// Returns the next bytes of the current member: at least one byte, or none at the end of the member.
    pub fn data(&mut self) -> Result<&[u8], Reason> {
        self.peek(1)?;
        Ok(&self.window[self.start..self.end])
    }

    /// Returns at least `wanted` bytes without consuming them. Returns fewer only at the end of the member.
    pub fn peek(&mut self, wanted: usize) -> Result<&[u8], Reason> {
        while self.end - self.start < wanted && !self.member_ended {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
                if self.window.len() > WINDOW_BYTES {
                    self.window = vec![0; WINDOW_BYTES];
                }
            } else if self.window.len() - self.start < wanted {
                self.window.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let free = &mut self.window[self.end..];
            let bytes = match &mut self.codec {
                Codec::Plain(file) => file.read_retrying(free).map_err(Reason::Io)?,
                Codec::Gzip(gzip) => gzip.read(free)?,
                Codec::Zstd(zstd) => zstd.read(free)?,
                Codec::Bzip2(bzip2) => bzip2.read(free)?,
                Codec::Xz(xz) => xz.read(free)?,
            };
            self.end += bytes;
            self.member_ended = bytes == 0;
            self.unpacked += bytes as u64;
            let read = self.bytes_read();
            self.stored += read.saturating_sub(self.stored_up_to);
            self.stored_up_to = self.stored_up_to.max(read);
            self.limits.check_expansion(self.stored, self.unpacked)?;
        }
        Ok(&self.window[self.start..self.end])
    }

    /// Like [`peek`](Self::peek), but returns the bytes before damage instead of the error, if there are any.
    pub fn peek_available(&mut self, wanted: usize) -> Result<&[u8], Reason> {
        if let Err(error) = self.peek(wanted)
            && self.start == self.end
        {
            return Err(error);
        }
        Ok(&self.window[self.start..self.end])
    }

    /// Returns the next bytes that are already in memory, without reading.
    pub fn available(&self) -> &[u8] {
        &self.window[self.start..self.end]
    }

    /// Consumes bytes that [`data`](Self::data) or [`peek`](Self::peek) returned.
    pub fn consume(&mut self, bytes: usize) {
        self.at_member_start &= bytes == 0;
        let end = (self.start + bytes).min(self.end);
        if let Some(Tap { bytes, failed: failed @ None }) = &mut self.tap {
            *failed = bytes.write_all(&self.window[self.start..end]).err();
        }
        self.consumed += (end - self.start) as u64;
        self.start = end;
    }

    /// Starts a copy of all bytes consumed from here on. Drops an earlier copy.
    pub fn tap(&mut self) {
        self.tap = Some(Tap { bytes: SpooledTempFile::new(TAP_MEMORY_BYTES), failed: None });
    }

    /// Takes the copy that [`tap`](Self::tap) started. Fails if there is no copy or it is incomplete.
    pub fn take_tapped(&mut self) -> Result<impl Read + Seek, Reason> {
        let Some(Tap { mut bytes, failed }) = self.tap.take() else { return Err(Reason::Truncated) };
        failed.map_or(Ok(()), Err).and_then(|()| bytes.rewind()).map_err(Reason::Io)?;
        Ok(bytes)
    }

    /// Appends the next `wanted` bytes to `out`, across members. Appends fewer only at the end of the file.
    pub fn read_up_to(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
        let mut left = wanted;
        while left > 0 {
            let data = self.data()?;
            if data.is_empty() && !self.next_member()? {
                return Ok(());
            }
            let data = self.available();
            let bytes = data.len().min(left);
            out.extend_from_slice(&data[..bytes]);
            self.consume(bytes);
            left -= bytes;
        }
        Ok(())
    }

    /// Enters the next member after the current member is consumed. Returns false at the end of the file.
    pub fn next_member(&mut self) -> Result<bool, Reason> {
        if self.skip_gap() {
            return Ok(true);
        }
        let found = match &mut self.codec {
            Codec::Gzip(gzip) => gzip.next_member()?,
            Codec::Zstd(zstd) => zstd.next_frame()?,
            Codec::Plain(_) | Codec::Bzip2(_) | Codec::Xz(_) => false,
        };
        if found {
            self.enter_member();
        }
        Ok(found)
    }

    /// After an error, enters the next member whose unpacked content satisfies `begins`. Returns false if the
    /// rest of the file has no such member.
    pub fn find_member(&mut self, begins: &dyn Fn(&[u8]) -> bool) -> Result<bool, Reason> {
        let found = match &mut self.codec {
            Codec::Gzip(gzip) => gzip.find_member(begins)?,
            Codec::Zstd(zstd) => zstd.find_frame(begins)?,
            Codec::Plain(_) | Codec::Bzip2(_) | Codec::Xz(_) => false,
        };
        if found {
            self.enter_member();
        }
        Ok(found)
    }
}
