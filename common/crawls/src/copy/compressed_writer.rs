//! Writes a file in a given compression, which for a copy is the compression of its input.
//!
//! Equal contents must give equal bytes, so the compressed files contain no time stamps.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use doppel_streams::Packing;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};

/// The default preset of the program `xz`.
const XZ_PRESET: u32 = 6;
/// The default level of the program `zstd`.
const ZSTD_LEVEL: i32 = 3;

/// A writer that compresses its bytes.
pub(super) enum CompressedWriter<W: Write> {
    Plain(W),
    Gzip(Box<GzEncoder<W>>),
    Zstd(Box<zstd::Encoder<'static, W>>),
    Bzip2(Box<BzEncoder<W>>),
    Xz(Box<XzWriter<W>>),
}

impl<W: Write> CompressedWriter<W> {
    pub(super) fn new(packing: Packing, out: W) -> io::Result<Self> {
        Ok(match packing {
            Packing::Plain => Self::Plain(out),
            Packing::Gzip => Self::Gzip(Box::new(GzEncoder::new(out, flate2::Compression::default()))),
            Packing::Zstd => Self::Zstd(Box::new(zstd::Encoder::new(out, ZSTD_LEVEL)?)),
            Packing::Bzip2 => Self::Bzip2(Box::new(BzEncoder::new(out, bzip2::Compression::default()))),
            Packing::Xz => Self::Xz(Box::new(XzWriter::new(out, XzOptions::with_preset(XZ_PRESET))?)),
        })
    }

    /// Ends the compressed file or member, and returns the underlying writer.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(out) => out.finish(),
            Self::Zstd(out) => out.finish(),
            Self::Bzip2(out) => out.finish(),
            Self::Xz(out) => out.finish(),
        }
    }
}

impl<W: Write> Write for CompressedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
            Self::Bzip2(out) => out.write(bytes),
            Self::Xz(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
            Self::Bzip2(out) => out.flush(),
            Self::Xz(out) => out.flush(),
        }
    }
}
