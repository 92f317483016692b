//! Reads gzip files member by member (RFC 1952), and finds the next member after damage.
//!
//! WARC writers compress each record into its own member, so the decoder keeps member boundaries visible. The
//! offset of a member is the place from which its record can be read again. A broken record ends at the end
//! of its member at the latest. The decoder verifies the checksum of every member that it reads to the end.
//! It reuses the inflate state from member to member.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::counting_reader::{CountingReader, position};
use super::error::Reason;
use super::members::{self, MemberPattern, PREFIX_BYTES};

/// The maximum length of a file name or comment in a header, in bytes, including its terminator.
const TEXT_MAX: u64 = 4 << 10;

/// The longest header of a member, in bytes: the fixed part, the extra field, both texts and the checksum.
const HEADER_MAX: usize = 10 + 2 + u16::MAX as usize + 2 * TEXT_MAX as usize + 2;

/// Number of bytes that suffice to recognise a member: its header, and the code lengths and first symbols of
/// a deflate block.
const RECOGNITION_BYTES: usize = HEADER_MAX + (1 << 10) + PREFIX_BYTES;

/// The first three bytes of a member: the magic number and the deflate method.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A gzip file with a read position in one of its members.
pub(crate) struct Gzip {
    file: BufReader<CountingReader>,
    inflate: Decompress,
    crc: Crc,
    /// File offset of the current member.
    member: u64,
    /// Whether the current member has been read to its end.
    ended: bool,
    /// What follows the bytes that were delivered.
    phase: Phase,
}

/// What follows the bytes of a member that were delivered.
#[derive(Debug)]
enum Phase {
    Data,
    /// The trailer of the member: its checksum and length.
    Trailer,
    /// Data that the decoder cannot read, with its message.
    Damage(String),
}

impl Gzip {
    /// Creates a reader that is positioned before the first member of `file`.
    pub(crate) fn new(file: BufReader<CountingReader>) -> Self {
        Self {
            file,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            member: 0,
            ended: true,
            phase: Phase::Data,
        }
    }

    /// File offset of the current member.
    pub(crate) fn member(&self) -> u64 {
        self.member
    }

    /// Number of compressed bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        position(&self.file)
    }

    /// Whether [`seek`](Self::seek) works, that is, whether the source is not a pipe.
    pub(crate) fn is_seekable(&self) -> bool {
        self.file.get_ref().is_seekable()
    }

    /// Enters the member at `offset`. Returns false at the end of the file.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<bool, Reason> {
        self.file.seek(SeekFrom::Start(offset)).map_err(Reason::Io)?;
        self.ended = true;
        self.next_member()
    }

    /// Enters the next member. The caller must have read the current member to its end. Returns false at the
    /// end of the file.
    pub(crate) fn next_member(&mut self) -> Result<bool, Reason> {
        if !self.ended {
            return Err(Reason::Truncated);
        }
        if !members::skip_padding(&mut self.file)? {
            return Ok(false);
        }
        self.member = self.bytes_read();
        (self.ended, self.phase) = (false, Phase::Data);
        self.inflate.reset(false);
        self.crc.reset();
        read_gzip_header(&mut self.file)?;
        Ok(true)
    }

    /// Unpacks into `out` and returns the number of bytes. Returns 0 at the end of the member, after
    /// verifying its checksum. If the member is damaged, the bytes before the damage come first, and a later
    /// call returns the error.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        while !self.ended {
            match &self.phase {
                Phase::Data => {}
                Phase::Trailer => {
                    // The data of a damaged member may continue into the next member and seem to end there.
                    // The member has ended only if its checksum matches.
                    self.check_trailer()?;
                    self.ended = true;
                    break;
                }
                Phase::Damage(what) => return Err(Reason::Corrupt(what.clone())),
            }
            let packed = self.file.fill_buf().map_err(Reason::Io)?;
            let at_end = packed.is_empty();
            let (stored, unpacked) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(packed, out, FlushDecompress::None);
            let consumed = usize::try_from(self.inflate.total_in() - stored).unwrap_or(usize::MAX);
            let produced = usize::try_from(self.inflate.total_out() - unpacked).unwrap_or(usize::MAX);
            // Keep the unreadable bytes in the buffer. In a pipe, the search for another member begins with
            // them.
            self.file.consume(if status.is_ok() { consumed } else { 0 });
            self.crc.update(&out[..produced]);
            match status {
                Ok(Status::StreamEnd) => self.phase = Phase::Trailer,
                Ok(Status::Ok | Status::BufError) => {}
                Err(error) => {
                    self.phase = Phase::Damage(error.message().unwrap_or("invalid deflate data").to_owned());
                }
            }
            if produced > 0 {
                return Ok(produced);
            }
            if !matches!(self.phase, Phase::Data) {
                continue;
            }
            if at_end {
                return Err(Reason::Truncated);
            }
            if consumed == 0 {
                return Err(Reason::Corrupt("the decoder makes no progress".to_owned()));
            }
        }
        Ok(0)
    }

    fn check_trailer(&mut self) -> Result<(), Reason> {
        let mut trailer = [0; 8];
        self.file.read_exact(&mut trailer).map_err(ended_early)?;
        let expected = u64::from_le_bytes(trailer);
        let found = u64::from(self.crc.sum()) | (self.inflate.total_out() & 0xffff_ffff) << 32;
        if found == expected { Ok(()) } else { Err(Reason::Corrupt("wrong checksum or length".to_owned())) }
    }

    /// After an error in the current member, enters the next member whose unpacked content satisfies
    /// `begins`. The function receives up to [`PREFIX_BYTES`] bytes. Returns false if there is no such
    /// member.
    ///
    /// The search begins inside the current member. If that member was cut off, the next member begins before
    /// the position where the decoder failed. In a pipe, the search begins where the decoder failed. The
    /// search examines every byte of a file at most once, however many members are broken.
    pub(crate) fn find_member(&mut self, begins: impl Fn(&[u8]) -> bool) -> Result<bool, Reason> {
        let from = if self.ended { self.bytes_read() } else { self.member + 1 };
        self.ended = true;
        let pattern = MemberPattern { magic: &MAGIC, recognition_bytes: RECOGNITION_BYTES };
        let Self { file, inflate, .. } = self;
        if members::find(file, from, &pattern, |bytes| unpacks_to(inflate, bytes, &begins))? {
            return self.next_member();
        }
        Ok(false)
    }
}

/// Whether `member` begins with a gzip member whose unpacked content satisfies `begins`.
fn unpacks_to(inflate: &mut Decompress, mut member: &[u8], begins: impl Fn(&[u8]) -> bool) -> bool {
    if read_gzip_header(&mut member).is_err() {
        return false;
    }
    inflate.reset(false);
    // Unpack in small steps, so that the bytes before damage are available to `begins`.
    let (mut out, mut filled) = ([0; PREFIX_BYTES], 0);
    while filled < PREFIX_BYTES {
        let step = &mut out[filled..(filled + 16).min(PREFIX_BYTES)];
        let (stored, unpacked) = (inflate.total_in(), inflate.total_out());
        if inflate.decompress(member, step, FlushDecompress::None).is_err() || inflate.total_out() == unpacked
        {
            break;
        }
        filled += usize::try_from(inflate.total_out() - unpacked).unwrap_or(0);
        member = &member[usize::try_from(inflate.total_in() - stored).unwrap_or(0)..];
    }
    begins(&out[..filled])
}

/// Reads and checks the header of a gzip member.
pub fn read_gzip_header(file: &mut impl BufRead) -> Result<(), Reason> {
    const HEADER_CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;

    let mut fixed = [0; 10];
    file.read_exact(&mut fixed).map_err(ended_early)?;
    let flags = fixed[3];
    if fixed[..3] != MAGIC || flags & RESERVED != 0 {
        return Err(Reason::Corrupt("no gzip header where a member should begin".to_owned()));
    }
    if flags & EXTRA != 0 {
        let mut length = [0; 2];
        file.read_exact(&mut length).map_err(ended_early)?;
        skip(file, u64::from(u16::from_le_bytes(length)))?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let mut limited = file.take(TEXT_MAX);
            if limited.skip_until(0).map_err(Reason::Io)? as u64 == TEXT_MAX {
                return Err(Reason::Corrupt("gzip header too long".to_owned()));
            }
        }
    }
    if flags & HEADER_CHECKSUM != 0 {
        skip(file, 2)?;
    }
    Ok(())
}

fn skip(file: &mut impl Read, bytes: u64) -> Result<(), Reason> {
    let skipped = io::copy(&mut file.take(bytes), &mut io::sink()).map_err(Reason::Io)?;
    if skipped < bytes { Err(Reason::Truncated) } else { Ok(()) }
}

fn ended_early(error: io::Error) -> Reason {
    if error.kind() == io::ErrorKind::UnexpectedEof { Reason::Truncated } else { Reason::Io(error) }
}

#[cfg(test)]
mod tests;
