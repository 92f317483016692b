//! Decompresses one layer of an HTTP body: gzip, zlib, raw deflate, brotli, or zstd.
//!
//! The whole body is in memory. Invariant: a body never unpacks to more than the limit that the caller
//! passes, plus one buffer.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};
use doppel_streams::{Reason, read_gzip_header};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// The largest window of a zstd body: 8 MiB, as RFC 9659 requires.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Minimum free space in the output buffer when a decoder runs, in bytes.
const ROOM_MIN: usize = 4 << 10;

/// A compression of an HTTP body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyCompression {
    /// gzip, RFC 1952, with any number of members.
    Gzip,
    /// zlib, RFC 1950.
    Zlib,
    /// Raw deflate, RFC 1951.
    Deflate,
    /// Brotli, RFC 7932.
    Brotli,
    /// zstd, RFC 8878, with any number of frames.
    Zstd,
}

/// The result of unpacking a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnpackedBody {
    pub(super) bytes: Vec<u8>,
    pub(super) end: UnpackEnd,
}

/// How decompression ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnpackEnd {
    /// The packed data end with the body, except for line ends and zeros.
    Whole,
    /// The packed data end before the body. Other data follow them.
    Followed,
    /// The body ends before the packed data end.
    CutOff,
    /// The body is not valid data of this compression.
    Invalid,
    /// The body unpacks to more bytes than allowed.
    TooLarge,
}

impl BodyCompression {
    /// Returns the compression that the first bytes of a body prove. `None` for compressions without a magic
    /// number.
    pub(super) fn from_magic(body: &[u8]) -> Option<Self> {
        match body {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            // A frame, or a skippable frame before other frames.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Name of the compression in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib | Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Unpacks a body. If it exceeds `max` bytes, the result ends with [`UnpackEnd::TooLarge`].
    pub(super) fn unpack(self, body: &[u8], max: usize) -> UnpackedBody {
        let mut bytes = Vec::with_capacity(body.len().saturating_mul(4).min(max));
        let end = match self {
            Self::Gzip => gunzip(body, &mut bytes, max),
            Self::Zlib if !has_zlib_header(body) => UnpackEnd::Invalid,
            Self::Zlib => inflate_stream(&mut Decompress::new(true), body, &mut bytes, max).0,
            Self::Deflate => inflate_stream(&mut Decompress::new(false), body, &mut bytes, max).0,
            Self::Brotli => unbrotli(body, &mut bytes, max),
            Self::Zstd => unzstd(body, &mut bytes, max).unwrap_or(UnpackEnd::Invalid),
        };
        if bytes.len() > max {
            return UnpackedBody { bytes, end: UnpackEnd::TooLarge };
        }
        bytes.shrink_to_fit();
        UnpackedBody { bytes, end }
    }
}

/// Whether a body begins with a zlib header.
fn has_zlib_header(body: &[u8]) -> bool {
    matches!(*body, [cmf, flags, ..]
        if cmf & 15 == 8 && cmf >> 4 < 8 && (u16::from(cmf) << 8 | u16::from(flags)).is_multiple_of(31))
}

/// Returns how unpacking ended when `rest` follows the packed data.
fn end_with_rest(rest: &[u8]) -> UnpackEnd {
    if rest.iter().all(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        UnpackEnd::Whole
    } else {
        UnpackEnd::Followed
    }
}

/// Reserves output space for a decoder. Returns false if no space is left because the output already exceeds
/// `max` bytes.
fn make_room(out: &mut Vec<u8>, max: usize) -> bool {
    if out.len() == out.capacity() {
        let room = out.len().max(ROOM_MIN).min((max + 1).saturating_sub(out.len()));
        out.reserve_exact(room);
        return room > 0;
    }
    true
}

/// Inflates a stream to its end. Returns how it ended, and how many bytes of `packed` it consumed.
fn inflate_stream(
    stream: &mut Decompress,
    packed: &[u8],
    out: &mut Vec<u8>,
    max: usize,
) -> (UnpackEnd, usize) {
    let mut read = 0;
    loop {
        if out.len() > max || !make_room(out, max) {
            return (UnpackEnd::TooLarge, read);
        }
        let (before, length) = (stream.total_in(), out.len());
        let status = stream.decompress_vec(&packed[read..], out, FlushDecompress::None);
        let consumed = usize::try_from(stream.total_in() - before).unwrap_or(usize::MAX);
        read += consumed;
        match status {
            Err(_) => return (UnpackEnd::Invalid, read),
            Ok(Status::StreamEnd) => return (end_with_rest(&packed[read..]), read),
            Ok(_) if consumed == 0 && out.len() == length => return (UnpackEnd::CutOff, read),
            Ok(_) => {}
        }
    }
}

/// Unpacks all gzip members. Ignores data behind the last member that do not begin like another member, as
/// gzip does.
fn gunzip(body: &[u8], out: &mut Vec<u8>, max: usize) -> UnpackEnd {
    let mut rest = body;
    let mut stream = Decompress::new(false);
    while BodyCompression::from_magic(rest) == Some(BodyCompression::Gzip) {
        match read_gzip_header(&mut rest) {
            Ok(()) => {}
            Err(Reason::Truncated) => return UnpackEnd::CutOff,
            Err(_) => return UnpackEnd::Invalid,
        }
        stream.reset(false);
        let begin = out.len();
        let (end, read) = inflate_stream(&mut stream, rest, out, max);
        if !matches!(end, UnpackEnd::Whole | UnpackEnd::Followed) {
            return end;
        }
        let Some((trailer, behind)) = rest[read..].split_first_chunk() else { return UnpackEnd::CutOff };
        let mut crc = Crc::new();
        crc.update(&out[begin..]);
        let found = u64::from(crc.sum()) | (stream.total_out() & 0xffff_ffff) << 32;
        if found != u64::from_le_bytes(*trailer) {
            return UnpackEnd::Invalid;
        }
        rest = behind;
    }
    end_with_rest(rest)
}

fn unbrotli(body: &[u8], out: &mut Vec<u8>, max: usize) -> UnpackEnd {
    // Large windows are not allowed in HTTP. They take up to 1 GiB.
    let mut state = BrotliState::new_strict(
        HeapAlloc::<u8>::new(0),
        HeapAlloc::<u32>::new(0),
        HeapAlloc::new(HuffmanCode::default()),
    );
    let (mut left, mut read, mut total) = (body.len(), 0, 0);
    let mut piece = vec![0; (64 << 10).min(max + 1)];
    loop {
        let (mut room, mut written) = (piece.len(), 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut read,
            body,
            &mut room,
            &mut written,
            &mut piece,
            &mut total,
            &mut state,
        );
        out.extend_from_slice(&piece[..written.min((max + 1).saturating_sub(out.len()))]);
        if out.len() > max {
            return UnpackEnd::TooLarge;
        }
        match result {
            BrotliResult::ResultSuccess => return end_with_rest(&body[read..]),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return UnpackEnd::CutOff,
            BrotliResult::ResultFailure => return UnpackEnd::Invalid,
        }
    }
}

/// Unpacks all zstd frames. Ignores data behind the last frame that do not begin like another frame.
fn unzstd(body: &[u8], out: &mut Vec<u8>, max: usize) -> std::io::Result<UnpackEnd> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
    let mut rest = body;
    while BodyCompression::from_magic(rest) == Some(BodyCompression::Zstd) {
        decoder.reinit()?;
        loop {
            if out.len() > max || !make_room(out, max) {
                return Ok(UnpackEnd::TooLarge);
            }
            let length = out.len();
            let mut input = InBuffer::around(rest);
            let hint = decoder.run(&mut input, &mut OutBuffer::around_pos(out, length))?;
            let read = input.pos();
            rest = &rest[read..];
            if hint == 0 {
                break;
            }
            if read == 0 && out.len() == length {
                return Ok(UnpackEnd::CutOff);
            }
        }
    }
    Ok(end_with_rest(rest))
}

#[cfg(test)]
pub(super) mod tests;
