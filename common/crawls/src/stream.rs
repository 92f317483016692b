//! The decompressed bytes of a file, with the boundaries of gzip members visible.
//!
//! The compression is detected by the first bytes of the file, not by its name. A plain file or a zstd file is
//! treated as one member. The work is bounded by [`Limits::expansion_ratio_max`]: all decompressed bytes count,
//! also those of a part that is read again. Stored bytes count only once, except those of a record that is
//! [read once more](Stream::reread) because another record refers to it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::Limits;
use super::counted::Counted;
use super::error::Reason;
use super::gzip::Gzip;

/// The size of the decompression buffer, in bytes.
const WINDOW: usize = 64 << 10;

/// The size of the read buffer, in bytes.
const READ: usize = 128 << 10;

enum Codec {
    Plain(Counted),
    Gzip(Box<Gzip>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Counted>>>),
}

/// An open file of any compression. A gzip file is positioned before its first member;
/// [`next_member`](Self::next_member) enters it.
pub(super) struct Stream {
    codec: Codec,
    limits: Limits,
    window: Box<[u8]>,
    start: usize,
    end: usize,
    /// The number of stored bytes used so far, and the number of bytes they decompressed to.
    stored: u64,
    unpacked: u64,
    /// The file offset up to which `stored` counts the bytes of the file.
    counted_to: u64,
    /// Whether no byte of the current member has been consumed.
    at_member_start: bool,
    /// Whether the window holds the last bytes of the current member.
    member_ended: bool,
}

impl Stream {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, Reason> {
        let mut file = File::open(path).map_err(Reason::Io)?;
        let mut magic = Vec::with_capacity(4);
        (&mut file).take(4).read_to_end(&mut magic).map_err(Reason::Io)?;
        file.rewind().map_err(Reason::Io)?;
        let file = Counted::new(file);
        let codec = match *magic {
            [0x1f, 0x8b, ..] => Codec::Gzip(Box::new(Gzip::new(BufReader::with_capacity(READ, file)))),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                let file = BufReader::with_capacity(READ, file);
                Codec::Zstd(Box::new(zstd::Decoder::with_buffer(file).map_err(Reason::Io)?))
            }
            _ => Codec::Plain(file),
        };
        // A gzip file is positioned before its first member.
        let member_ended = matches!(codec, Codec::Gzip(_));
        Ok(Self {
            codec,
            limits: *limits,
            window: vec![0; WINDOW].into_boxed_slice(),
            start: 0,
            end: 0,
            stored: 0,
            unpacked: 0,
            counted_to: 0,
            at_member_start: true,
            member_ended,
        })
    }

    pub(super) fn is_compressed(&self) -> bool {
        !matches!(self.codec, Codec::Plain(_))
    }

    /// The number of stored bytes read.
    pub(super) fn bytes_read(&self) -> u64 {
        match &self.codec {
            Codec::Plain(file) => file.position(),
            Codec::Gzip(gzip) => gzip.bytes_read(),
            Codec::Zstd(zstd) => zstd.get_ref().get_ref().position(),
        }
    }

    /// The file offset of the next byte, or of the compressed member that contains it.
    pub(super) fn offset(&self) -> u64 {
        match &self.codec {
            Codec::Plain(file) => file.position() - (self.end - self.start) as u64,
            Codec::Gzip(gzip) => gzip.member(),
            Codec::Zstd(_) => 0,
        }
    }

    /// An offset for [`seek`](Self::seek) with which reading can continue from here, if there is one.
    pub(super) fn mark(&self) -> Option<u64> {
        let seekable = match &self.codec {
            Codec::Plain(_) => true,
            Codec::Gzip(_) => self.at_member_start,
            Codec::Zstd(_) => false,
        };
        seekable.then(|| self.offset())
    }

    /// Goes to an offset that [`mark`](Self::mark) returned.
    pub(super) fn seek(&mut self, mark: u64) -> Result<(), Reason> {
        match &mut self.codec {
            Codec::Plain(file) => file.seek(SeekFrom::Start(mark)).map(drop).map_err(Reason::Io)?,
            Codec::Gzip(gzip) => gzip.seek(mark).map(drop)?,
            Codec::Zstd(_) => return Err(Reason::Io(io::ErrorKind::NotSeekable.into())),
        }
        self.enter_member();
        Ok(())
    }

    /// Like [`seek`](Self::seek), but what is read from there counts as stored once more.
    pub(super) fn reread(&mut self, mark: u64) -> Result<(), Reason> {
        self.counted_to = mark;
        self.seek(mark)
    }

    fn enter_member(&mut self) {
        (self.start, self.end) = (0, 0);
        (self.at_member_start, self.member_ended) = (true, false);
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
            } else if self.window.len() - self.start < wanted {
                self.window.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let free = &mut self.window[self.end..];
            let bytes = match &mut self.codec {
                Codec::Plain(file) => read_retrying(file, free).map_err(Reason::Io)?,
                Codec::Gzip(gzip) => gzip.read(free)?,
                Codec::Zstd(zstd) => read_retrying(zstd, free).map_err(zstd_failure)?,
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

    /// Consumes bytes that [`data`](Self::data) or [`peek`](Self::peek) returned.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.at_member_start &= bytes == 0;
        self.start = (self.start + bytes).min(self.end);
    }

    /// Goes to the next member after the current one is consumed. Returns false at the end of the file.
    pub(super) fn next_member(&mut self) -> Result<bool, Reason> {
        let Codec::Gzip(gzip) = &mut self.codec else { return Ok(false) };
        let found = gzip.next_member()?;
        if found {
            self.enter_member();
        }
        Ok(found)
    }

    /// After an error, goes to the next member whose content begins with `prefix`. Returns false if there is
    /// none.
    pub(super) fn find_member(&mut self, prefix: &[u8]) -> Result<bool, Reason> {
        let Codec::Gzip(gzip) = &mut self.codec else { return Ok(false) };
        let found = gzip.find_member(prefix)?;
        if found {
            self.enter_member();
        }
        Ok(found)
    }
}

fn read_retrying(from: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(out) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn zstd_failure(error: io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Reason::Truncated,
        io::ErrorKind::Other => Reason::Corrupt(error.to_string()),
        _ => Reason::Io(error),
    }
}
