//! Reads gzip files member by member (RFC 1952), and finds the next member after damage.
//!
//! The decoder works on one member at a time because WARC writers put each record into a member of its own. The
//! offset of the member is where the record can be read again, and the end of the member is where a broken
//! record ends at the latest. The inflate state is reused from member to member.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::counted::{Counted, position};
use super::error::Reason;
use super::members::{self, BEGINNING, Signs};

/// The maximum length of a file name or comment in a header, in bytes, including its terminator.
const TEXT_MAX: u64 = 4 << 10;

/// The longest header of a member, in bytes: the fixed part, the extra field, both texts and the checksum.
const HEADER_MAX: usize = 10 + 2 + u16::MAX as usize + 2 * TEXT_MAX as usize + 2;

/// The number of bytes that may be needed to recognise a member: its header, and the code lengths and first symbols of
/// a deflate block.
const EDGE: usize = HEADER_MAX + (1 << 10) + BEGINNING;

/// The first three bytes of a member: the magic number and the deflate method.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

/// A gzip file with a read position in one of its members.
pub(super) struct Gzip {
    file: BufReader<Counted>,
    inflate: Decompress,
    crc: Crc,
    /// Offset of the current member.
    member: u64,
    /// Whether the current member has been read to its end.
    ended: bool,
    /// What comes behind the bytes that were given.
    next: Next,
}

/// What comes behind the bytes of a member that were given.
#[derive(Debug)]
enum Next {
    Data,
    /// The checksum and the length.
    Trailer,
    /// What no decoder can read.
    Damage(String),
}

impl Gzip {
    /// Creates a reader that is positioned before the first member of `file`.
    pub(super) fn new(file: BufReader<Counted>) -> Self {
        Self {
            file,
            inflate: Decompress::new(false),
            crc: Crc::new(),
            member: 0,
            ended: true,
            next: Next::Data,
        }
    }

    /// The offset of the current member.
    pub(super) fn member(&self) -> u64 {
        self.member
    }

    /// The number of compressed bytes read so far.
    pub(super) fn bytes_read(&self) -> u64 {
        position(&self.file)
    }

    /// Whether the member at an offset can be read again.
    pub(super) fn is_seekable(&self) -> bool {
        self.file.get_ref().is_seekable()
    }

    /// Begins the member at `offset`. Returns false at the end of the file.
    pub(super) fn seek(&mut self, offset: u64) -> Result<bool, Reason> {
        self.file.seek(SeekFrom::Start(offset)).map_err(Reason::Io)?;
        self.ended = true;
        self.next_member()
    }

    /// Begins the next member; the current one must have been read to its end. Returns false at the end of the
    /// file.
    pub(super) fn next_member(&mut self) -> Result<bool, Reason> {
        if !self.ended {
            return Err(Reason::Truncated);
        }
        if !members::skip_padding(&mut self.file)? {
            return Ok(false);
        }
        self.member = self.bytes_read();
        (self.ended, self.next) = (false, Next::Data);
        self.inflate.reset(false);
        self.crc.reset();
        read_header(&mut self.file)?;
        Ok(true)
    }

    /// Decompresses into `out` and returns the number of bytes. It returns 0 at the end of the member, after
    /// its checksum has been verified. Bytes in front of damage are given before the error is.
    pub(super) fn read(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        while !self.ended {
            match &self.next {
                Next::Data => {}
                Next::Trailer => {
                    // The data of a damaged member may run on into the next one and seem to end there, so the
                    // member has ended only if its checksum matches.
                    self.check_trailer()?;
                    self.ended = true;
                    break;
                }
                Next::Damage(what) => return Err(Reason::Corrupt(what.clone())),
            }
            let packed = self.file.fill_buf().map_err(Reason::Io)?;
            let at_end = packed.is_empty();
            let (stored, unpacked) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(packed, out, FlushDecompress::None);
            let consumed = usize::try_from(self.inflate.total_in() - stored).unwrap_or(usize::MAX);
            let produced = usize::try_from(self.inflate.total_out() - unpacked).unwrap_or(usize::MAX);
            // In a pipe the search for another member begins in the data that could not be read.
            self.file.consume(if status.is_ok() { consumed } else { 0 });
            self.crc.update(&out[..produced]);
            match status {
                Ok(Status::StreamEnd) => self.next = Next::Trailer,
                Ok(Status::Ok | Status::BufError) => {}
                Err(error) => {
                    self.next = Next::Damage(error.message().unwrap_or("no deflate data").to_owned());
                }
            }
            if produced > 0 {
                return Ok(produced);
            }
            if !matches!(self.next, Next::Data) {
                continue;
            }
            if at_end {
                return Err(Reason::Truncated);
            }
            if consumed == 0 {
                return Err(Reason::Corrupt("no progress".to_owned()));
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

    /// After an error in the current member, goes to the next member whose decompressed content `begins` as it should: the
    /// function is given up to [`BEGINNING`] bytes. Returns false if there is no such member.
    ///
    /// The search begins inside the current member: if that member was cut off, the next one begins before the
    /// place where the decoder failed. In a pipe it begins where the decoder failed. Every byte of a file is
    /// searched at most once, however many members are broken.
    pub(super) fn find_member(&mut self, begins: impl Fn(&[u8]) -> bool) -> Result<bool, Reason> {
        let from = if self.ended { self.bytes_read() } else { self.member + 1 };
        self.ended = true;
        let signs = Signs { magic: &MAGIC, edge: EDGE };
        let Self { file, inflate, .. } = self;
        if members::find(file, from, &signs, |bytes| unpacks_to(inflate, bytes, &begins))? {
            return self.next_member();
        }
        Ok(false)
    }
}

fn unpacks_to(inflate: &mut Decompress, mut member: &[u8], begins: impl Fn(&[u8]) -> bool) -> bool {
    if read_header(&mut member).is_err() {
        return false;
    }
    inflate.reset(false);
    // In small steps, because what is in front of damage counts.
    let (mut out, mut filled) = ([0; BEGINNING], 0);
    while filled < BEGINNING {
        let step = &mut out[filled..(filled + 16).min(BEGINNING)];
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

/// Reads the header of a member.
pub(super) fn read_header(file: &mut impl BufRead) -> Result<(), Reason> {
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
