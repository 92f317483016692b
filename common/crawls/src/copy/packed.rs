//! Writes a file in the compression of another one.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};

use crate::stream::Packing;

/// The presets that the usual programs have where none is given.
const XZ_PRESET: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// A file that is being written. The bytes of equal contents are equal: there are no time stamps.
pub(super) enum Packed<W: Write> {
    Plain(W),
    Gzip(Box<GzEncoder<W>>),
    Zstd(Box<zstd::Encoder<'static, W>>),
    Bzip2(Box<BzEncoder<W>>),
    Xz(Box<XzWriter<W>>),
}

impl<W: Write> Packed<W> {
    pub(super) fn new(packing: Packing, out: W) -> io::Result<Self> {
        Ok(match packing {
            Packing::Plain => Self::Plain(out),
            Packing::Gzip => Self::Gzip(Box::new(GzEncoder::new(out, flate2::Compression::default()))),
            Packing::Zstd => Self::Zstd(Box::new(zstd::Encoder::new(out, ZSTD_LEVEL)?)),
            Packing::Bzip2 => Self::Bzip2(Box::new(BzEncoder::new(out, bzip2::Compression::default()))),
            Packing::Xz => Self::Xz(Box::new(XzWriter::new(out, XzOptions::with_preset(XZ_PRESET))?)),
        })
    }

    /// Ends the file, or the member of it.
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

impl<W: Write> Write for Packed<W> {
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
