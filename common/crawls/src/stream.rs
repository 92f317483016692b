//! The decompressed bytes of a file, with the boundaries of gzip members and zstd frames visible.
//!
//! The compression is detected by the first bytes of the file, not by its name. A plain file, one of bzip2 and one of xz
//! are treated as one member. The work is bounded by [`Limits::expansion_ratio_max`]: all decompressed bytes count,
//! also those of a part that is read again. Stored bytes count only once, except those of a record that is
//! [read once more](Stream::reread) because another record refers to it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::SpooledTempFile;

use super::Limits;
use super::counted::Counted;
use super::error::Reason;
use super::gzip::Gzip;
use super::solid::{self, Bzip2, Xz};
use super::zstd_frames::{self, ZstdFrames};

/// The size of the decompression buffer, in bytes.
const WINDOW: usize = 64 << 10;
/// How much of what is tapped is in memory, in bytes.
const TAPPED_IN_MEMORY: usize = 4 << 20;
/// The size of the read buffer, in bytes.
const READ: usize = 128 << 10;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

enum Codec {
    Plain(Counted),
    Gzip(Box<Gzip>),
    Zstd(Box<ZstdFrames>),
    Bzip2(Box<Bzip2>),
    Xz(Box<Xz>),
}

/// An open file of any compression. A file of members is positioned before its first one;
/// [`next_member`](Self::next_member) enters it.
pub(super) struct Stream {
    codec: Codec,
    limits: Limits,
    /// Unpacked bytes; more than [`WINDOW`] of them only where bytes were put back.
    window: Vec<u8>,
    start: usize,
    end: usize,
    /// The number of stored bytes used so far, and the number of bytes they decompressed to.
    stored: u64,
    unpacked: u64,
    /// The number of unpacked bytes consumed, of all members, and those of them in front of the current member.
    consumed: u64,
    consumed_before: u64,
    /// The file offset up to which `stored` counts the bytes of the file.
    counted_to: u64,
    /// Whether no byte of the current member has been consumed.
    at_member_start: bool,
    /// Whether the window holds the last bytes of the current member.
    member_ended: bool,
    /// What is consumed, where that is wanted.
    tap: Option<Tap>,
    /// Bytes behind others that are lost, and whether they are the last ones of the member.
    behind_gap: Option<(Vec<u8>, bool)>,
}

/// A place in the content of a file.
pub(super) struct Spot {
    /// The offset of the member.
    member: u64,
    /// The number of unpacked bytes of the member in front of the place, and of all members.
    skipped: u64,
    consumed: u64,
}

/// Bytes that were consumed; many of them are in a temporary file.
struct Tap {
    bytes: SpooledTempFile,
    failed: Option<io::Error>,
}

impl Stream {
    /// Opens a file, or the reading end of a named pipe.
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, Reason> {
        Self::new(Counted::open(path).map_err(Reason::Io)?, limits)
    }

    /// Reads something that can be read from any place, such as a part of a file.
    pub(super) fn seekable(from: impl Read + Seek + Send + 'static, limits: &Limits) -> Result<Self, Reason> {
        Self::new(Counted::seekable(from), limits)
    }

    /// Reads a file from where it is.
    pub(super) fn of_file(file: File, limits: &Limits) -> Result<Self, Reason> {
        Self::new(Counted::of_file(file).map_err(Reason::Io)?, limits)
    }

    /// Reads something once, such as a pipe.
    pub(super) fn once(from: impl Read + Send + 'static, limits: &Limits) -> Result<Self, Reason> {
        Self::new(Counted::once(from), limits)
    }

    fn new(mut file: Counted, limits: &Limits) -> Result<Self, Reason> {
        let mut magic = Vec::with_capacity(8);
        (&mut file).take(8).read_to_end(&mut magic).map_err(Reason::Io)?;
        file.give_back(&magic);
        let buffered = |file| BufReader::with_capacity(READ, file);
        let codec = match &*magic {
            [0x1f, 0x8b, ..] => Codec::Gzip(Box::new(Gzip::new(buffered(file)))),
            magic if zstd_frames::begins_here(magic) => {
                Codec::Zstd(Box::new(ZstdFrames::new(buffered(file), limits.zstd_window_max)?))
            }
            magic if solid::is_bzip2(magic) => Codec::Bzip2(Box::new(Bzip2::new(buffered(file)))),
            magic if magic.starts_with(&solid::XZ) => Codec::Xz(Box::new(Xz::new(buffered(file)))),
            _ => Codec::Plain(file),
        };
        // A file of members is positioned before its first one.
        let member_ended = matches!(codec, Codec::Gzip(_) | Codec::Zstd(_));
        Ok(Self {
            codec,
            limits: *limits,
            window: vec![0; WINDOW],
            start: 0,
            end: 0,
            stored: 0,
            unpacked: 0,
            consumed: 0,
            consumed_before: 0,
            counted_to: 0,
            at_member_start: true,
            member_ended,
            tap: None,
            behind_gap: None,
        })
    }

    pub(super) fn packing(&self) -> Packing {
        match self.codec {
            Codec::Plain(_) => Packing::Plain,
            Codec::Gzip(_) => Packing::Gzip,
            Codec::Zstd(_) => Packing::Zstd,
            Codec::Bzip2(_) => Packing::Bzip2,
            Codec::Xz(_) => Packing::Xz,
        }
    }

    pub(super) fn is_compressed(&self) -> bool {
        self.packing() != Packing::Plain
    }

    /// The number of stored bytes read.
    pub(super) fn bytes_read(&self) -> u64 {
        match &self.codec {
            Codec::Plain(file) => file.position(),
            Codec::Gzip(gzip) => gzip.bytes_read(),
            Codec::Zstd(zstd) => zstd.bytes_read(),
            Codec::Bzip2(bzip2) => bzip2.bytes_read(),
            Codec::Xz(xz) => xz.bytes_read(),
        }
    }

    /// The file offset of the next byte, or of the compressed member that contains it.
    pub(super) fn offset(&self) -> u64 {
        match &self.codec {
            Codec::Plain(file) => file.position() - (self.end - self.start) as u64,
            Codec::Gzip(gzip) => gzip.member(),
            Codec::Zstd(zstd) => zstd.frame(),
            Codec::Bzip2(_) | Codec::Xz(_) => 0,
        }
    }

    /// An offset for [`seek`](Self::seek) with which reading can continue from here, if there is one. There is none in a
    /// pipe.
    pub(super) fn mark(&self) -> Option<u64> {
        let seekable = match &self.codec {
            Codec::Plain(file) => file.is_seekable(),
            Codec::Gzip(gzip) => gzip.is_seekable() && self.at_member_start,
            Codec::Zstd(zstd) => zstd.is_seekable() && self.at_member_start,
            Codec::Bzip2(_) | Codec::Xz(_) => false,
        };
        seekable.then(|| self.offset())
    }

    /// Goes to an offset that [`mark`](Self::mark) returned.
    pub(super) fn seek(&mut self, mark: u64) -> Result<(), Reason> {
        match &mut self.codec {
            Codec::Plain(file) => file.seek(SeekFrom::Start(mark)).map(drop).map_err(Reason::Io)?,
            Codec::Gzip(gzip) => gzip.seek(mark).map(drop)?,
            Codec::Zstd(zstd) => zstd.seek(mark).map(drop)?,
            Codec::Bzip2(_) | Codec::Xz(_) => return Err(Reason::Io(io::ErrorKind::NotSeekable.into())),
        }
        self.enter_member();
        Ok(())
    }

    /// The number of unpacked bytes consumed so far, of all members.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// A place to which the stream can [return](Self::return_to), however far from the beginning of a member it is. There is none in
    /// a pipe, nor in a file of bzip2 or xz.
    pub(super) fn spot(&self) -> Option<Spot> {
        let (seekable, skipped) = match &self.codec {
            Codec::Plain(file) => (file.is_seekable(), 0),
            Codec::Gzip(gzip) => (gzip.is_seekable(), self.consumed - self.consumed_before),
            Codec::Zstd(zstd) => (zstd.is_seekable(), self.consumed - self.consumed_before),
            Codec::Bzip2(_) | Codec::Xz(_) => (false, 0),
        };
        seekable.then(|| Spot { member: self.offset(), skipped, consumed: self.consumed })
    }

    /// Returns to a place. The work counts again: [`Limits::expansion_ratio_max`] bounds it.
    pub(super) fn return_to(&mut self, spot: &Spot) -> Result<(), Reason> {
        self.seek(spot.member)?;
        self.consumed = spot.consumed - spot.skipped;
        self.consumed_before = self.consumed;
        let mut left = spot.skipped;
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

    /// Puts back the bytes that were consumed last, all of them of the current member. They count as unpacked again, so that the
    /// work for a file whose records all claim what follows them is bounded.
    pub(super) fn put_back(&mut self, mut bytes: Vec<u8>) -> Result<(), Reason> {
        self.consumed -= bytes.len() as u64;
        self.unpacked += bytes.len() as u64;
        bytes.extend_from_slice(&self.window[self.start..self.end]);
        (self.start, self.end) = (0, bytes.len());
        bytes.resize(bytes.len().max(WINDOW), 0);
        self.window = bytes;
        self.limits.check_expansion(self.stored, self.unpacked)
    }

    /// Puts back bytes of the current member behind which others were consumed that are lost. The member seems to end before
    /// these, and what follows is reached by [`pass_gap`](Self::pass_gap).
    pub(super) fn put_back_before_gap(&mut self, bytes: Vec<u8>) -> Result<(), Reason> {
        let behind = self.available().to_vec();
        self.behind_gap = Some((behind, self.member_ended));
        self.start = self.end;
        self.member_ended = true;
        self.put_back(bytes)
    }

    /// Goes to the bytes behind the ones that are lost, if there are some.
    pub(super) fn pass_gap(&mut self) -> bool {
        let Some((mut bytes, ended)) = self.behind_gap.take() else { return false };
        (self.start, self.end, self.member_ended) = (0, bytes.len(), ended);
        bytes.resize(bytes.len().max(WINDOW), 0);
        self.window = bytes;
        true
    }

    /// Like [`seek`](Self::seek), but what is read from there counts as stored once more.
    pub(super) fn reread(&mut self, mark: u64) -> Result<(), Reason> {
        self.counted_to = mark;
        self.seek(mark)
    }

    fn enter_member(&mut self) {
        (self.start, self.end) = (0, 0);
        (self.at_member_start, self.member_ended) = (true, false);
        self.consumed_before = self.consumed;
    }

    /// The available next bytes of the current member. Empty at the end of the member.
    pub(super) fn data(&mut self) -> Result<&[u8], Reason> {
        self.peek(1)?;
        Ok(&self.window[self.start..self.end])
    }

    /// At least `wanted` bytes, without consuming them. Fewer only at the end of the member.
    pub(super) fn peek(&mut self, wanted: usize) -> Result<&[u8], Reason> {
        while self.end - self.start < wanted && !self.member_ended {
            if self.start == self.end {
                (self.start, self.end) = (0, 0);
                if self.window.len() > WINDOW {
                    self.window = vec![0; WINDOW];
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
            self.stored += read.saturating_sub(self.counted_to);
            self.counted_to = self.counted_to.max(read);
            self.limits.check_expansion(self.stored, self.unpacked)?;
        }
        Ok(&self.window[self.start..self.end])
    }

    /// Like [`peek`](Self::peek), but damage behind bytes that are there is no error yet: these are returned.
    pub(super) fn peek_available(&mut self, wanted: usize) -> Result<&[u8], Reason> {
        if let Err(error) = self.peek(wanted)
            && self.start == self.end
        {
            return Err(error);
        }
        Ok(&self.window[self.start..self.end])
    }

    /// The next bytes that are in memory.
    pub(super) fn available(&self) -> &[u8] {
        &self.window[self.start..self.end]
    }

    /// Consumes bytes that [`data`](Self::data) or [`peek`](Self::peek) returned.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.at_member_start &= bytes == 0;
        let end = (self.start + bytes).min(self.end);
        if let Some(Tap { bytes, failed: failed @ None }) = &mut self.tap {
            *failed = bytes.write_all(&self.window[self.start..end]).err();
        }
        self.consumed += (end - self.start) as u64;
        self.start = end;
    }

    /// Has all that is consumed from here on be [`tapped`](Self::tapped), and forgets what was before.
    pub(super) fn tap(&mut self) {
        self.tap = Some(Tap { bytes: SpooledTempFile::new(TAPPED_IN_MEMORY), failed: None });
    }

    /// What was consumed since [`tap`](Self::tap), from its first byte on.
    pub(super) fn tapped(&mut self) -> Result<impl Read + Seek, Reason> {
        let Some(Tap { mut bytes, failed }) = self.tap.take() else { return Err(Reason::Truncated) };
        failed.map_or(Ok(()), Err).and_then(|()| bytes.rewind()).map_err(Reason::Io)?;
        Ok(bytes)
    }

    /// Appends the next `wanted` bytes, of any number of members. Fewer only at the end of the file.
    pub(super) fn read_up_to(&mut self, wanted: usize, out: &mut Vec<u8>) -> Result<(), Reason> {
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

    /// Goes to the next member after the current one is consumed. Returns false at the end of the file.
    pub(super) fn next_member(&mut self) -> Result<bool, Reason> {
        if self.pass_gap() {
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

    /// After an error, goes to the next member whose content `begins` as it should. Returns false if there is none.
    pub(super) fn find_member(&mut self, begins: &dyn Fn(&[u8]) -> bool) -> Result<bool, Reason> {
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
