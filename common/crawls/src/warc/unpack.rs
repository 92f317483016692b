//! Decompresses one layer of an HTTP body: gzip, zlib, raw deflate, brotli, or zstd.
//!
//! A body is in memory as a whole, and what it unpacks to is bounded by the caller.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc, HuffmanCode};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::error::Reason;
use crate::gzip::read_header;

/// The largest window of a zstd body: 8 MiB, as RFC 9659 requires.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The least room that a decoder is given for what it writes.
const ROOM: usize = 4 << 10;

/// A compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// RFC 1952, of any number of members.
    Gzip,
    /// RFC 1950.
    Zlib,
    /// RFC 1951.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878, of any number of frames.
    Zstd,
}

/// What became of a packed body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpacked {
    pub(super) bytes: Vec<u8>,
    pub(super) end: End,
}

/// How decompression ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At the end of the packed data, and of the body but for line ends and zeros.
    Whole,
    /// At the end of the packed data, behind which the body has something else.
    Followed,
    /// At the end of the body, before the packed data has ended.
    CutOff,
    /// Where the body is no such data.
    Invalid,
    /// Where more was unpacked than may be.
    TooLarge,
}

impl Packing {
    /// The packing that the first bytes of a body show without doubt.
    pub(super) fn by_magic(body: &[u8]) -> Option<Self> {
        match body {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            // A frame, or one that is to be skipped, in front of others.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name in messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib | Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Unpacks a body to at most `max` bytes.
    pub(super) fn unpack(self, body: &[u8], max: usize) -> Unpacked {
        let mut bytes = Vec::with_capacity(body.len().saturating_mul(4).min(max));
        let end = match self {
            Self::Gzip => gunzip(body, &mut bytes, max),
            Self::Zlib if !has_zlib_header(body) => End::Invalid,
            Self::Zlib => inflated(&mut Decompress::new(true), body, &mut bytes, max).0,
            Self::Deflate => inflated(&mut Decompress::new(false), body, &mut bytes, max).0,
            Self::Brotli => unbrotli(body, &mut bytes, max),
            Self::Zstd => unzstd(body, &mut bytes, max).unwrap_or(End::Invalid),
        };
        if bytes.len() > max {
            return Unpacked { bytes, end: End::TooLarge };
        }
        bytes.shrink_to_fit();
        Unpacked { bytes, end }
    }
}

/// Whether a body begins with a zlib header.
fn has_zlib_header(body: &[u8]) -> bool {
    matches!(*body, [cmf, flags, ..]
        if cmf & 15 == 8 && cmf >> 4 < 8 && (u16::from(cmf) << 8 | u16::from(flags)).is_multiple_of(31))
}

/// The end of packed data with `rest` behind them.
fn end_before(rest: &[u8]) -> End {
    if rest.iter().all(|byte| matches!(byte, 0 | b'\r' | b'\n')) { End::Whole } else { End::Followed }
}

/// Gives a decoder room behind the bytes that are there. No room is left once there is one byte more than `max`.
fn make_room(out: &mut Vec<u8>, max: usize) -> bool {
    if out.len() == out.capacity() {
        let room = out.len().max(ROOM).min((max + 1).saturating_sub(out.len()));
        out.reserve_exact(room);
        return room > 0;
    }
    true
}

/// Inflates a stream to its end. Returns how it ended, and how many bytes of the stream were read.
fn inflated(stream: &mut Decompress, packed: &[u8], out: &mut Vec<u8>, max: usize) -> (End, usize) {
    let mut read = 0;
    loop {
        if out.len() > max || !make_room(out, max) {
            return (End::TooLarge, read);
        }
        let (before, length) = (stream.total_in(), out.len());
        let status = stream.decompress_vec(&packed[read..], out, FlushDecompress::None);
        let consumed = usize::try_from(stream.total_in() - before).unwrap_or(usize::MAX);
        read += consumed;
        match status {
            Err(_) => return (End::Invalid, read),
            Ok(Status::StreamEnd) => return (end_before(&packed[read..]), read),
            Ok(_) if consumed == 0 && out.len() == length => return (End::CutOff, read),
            Ok(_) => {}
        }
    }
}

/// Unpacks all members. What follows the last one and does not begin like another is left out, as gzip does it.
fn gunzip(body: &[u8], out: &mut Vec<u8>, max: usize) -> End {
    let mut rest = body;
    let mut stream = Decompress::new(false);
    while Packing::by_magic(rest) == Some(Packing::Gzip) {
        match read_header(&mut rest) {
            Ok(()) => {}
            Err(Reason::Truncated) => return End::CutOff,
            Err(_) => return End::Invalid,
        }
        stream.reset(false);
        let begin = out.len();
        let (end, read) = inflated(&mut stream, rest, out, max);
        if !matches!(end, End::Whole | End::Followed) {
            return end;
        }
        let Some((trailer, behind)) = rest[read..].split_first_chunk() else { return End::CutOff };
        let mut crc = Crc::new();
        crc.update(&out[begin..]);
        let found = u64::from(crc.sum()) | (stream.total_out() & 0xffff_ffff) << 32;
        if found != u64::from_le_bytes(*trailer) {
            return End::Invalid;
        }
        rest = behind;
    }
    end_before(rest)
}

fn unbrotli(body: &[u8], out: &mut Vec<u8>, max: usize) -> End {
    // Large windows are not for HTTP, and take up to 1 GiB.
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
            return End::TooLarge;
        }
        match result {
            BrotliResult::ResultSuccess => return end_before(&body[read..]),
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return End::CutOff,
            BrotliResult::ResultFailure => return End::Invalid,
        }
    }
}

/// Unpacks all frames. What follows the last one and does not begin like another is left out.
fn unzstd(body: &[u8], out: &mut Vec<u8>, max: usize) -> std::io::Result<End> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX))?;
    let mut rest = body;
    while Packing::by_magic(rest) == Some(Packing::Zstd) {
        decoder.reinit()?;
        loop {
            if out.len() > max || !make_room(out, max) {
                return Ok(End::TooLarge);
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
                return Ok(End::CutOff);
            }
        }
    }
    Ok(end_before(rest))
}

#[cfg(test)]
#[path = "unpack_tests.rs"]
pub(super) mod tests;
