//! Reads bzip2 and xz files, each as one continuous piece.
//!
//! The readers ignore where the compressed streams of a file begin and end. They therefore cannot seek, and
//! offer no recovery behind damage.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::MultiBzDecoder;
use lzma_rust2::{Action, Status, XzStream};

use super::counting_reader::{CountingReader, position};
use super::error::Reason;

/// The memory that an xz file may request, in KiB: twice what `xz -9` needs.
const XZ_MEMORY_KIB: u32 = 132 << 10;

/// The first bytes of an xz stream.
pub(crate) const XZ_MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// Whether `bytes` begin like a bzip2 file: the magic number, the block size, and the magic number of a block
/// or of the end of a stream.
pub(crate) fn is_bzip2(bytes: &[u8]) -> bool {
    matches!(bytes, [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
        if rest.starts_with(&[0x31, 0x41, 0x59]) || rest.starts_with(&[0x17, 0x72, 0x45]))
}

/// A bzip2 file with any number of streams.
pub(crate) struct Bzip2(MultiBzDecoder<BufReader<CountingReader>>);

impl Bzip2 {
    pub(crate) fn new(file: BufReader<CountingReader>) -> Self {
        Self(MultiBzDecoder::new(file))
    }

    /// Number of compressed bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        position(self.0.get_ref())
    }

    /// Unpacks into `out` and returns the number of bytes. Returns 0 at the end of the file.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        loop {
            match self.0.read(out) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(failure),
            }
        }
    }
}

/// An xz file with any number of streams.
pub(crate) struct Xz {
    file: BufReader<CountingReader>,
    decoder: XzStream,
    ended: bool,
}

impl Xz {
    pub(crate) fn new(file: BufReader<CountingReader>) -> Self {
        Self { file, decoder: XzStream::new_mem_limit(true, XZ_MEMORY_KIB), ended: false }
    }

    /// Number of compressed bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        position(&self.file)
    }

    /// Unpacks into `out` and returns the number of bytes. Returns 0 at the end of the file.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        while !self.ended {
            let packed = self.file.fill_buf().map_err(Reason::Io)?;
            let at_end = packed.is_empty();
            let action = if at_end { Action::Finish } else { Action::Run };
            let done = self.decoder.process(packed, out, action).map_err(failure)?;
            self.file.consume(done.bytes_consumed);
            self.ended = done.status == Status::StreamEnd;
            if done.bytes_produced > 0 {
                return Ok(done.bytes_produced);
            }
            if at_end && !self.ended {
                return Err(Reason::Truncated);
            }
        }
        Ok(0)
    }
}

fn failure(error: io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Reason::Truncated,
        io::ErrorKind::OutOfMemory => {
            Reason::Corrupt(format!("it asks for more than {} MiB of memory", XZ_MEMORY_KIB >> 10))
        }
        io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::Other
        | io::ErrorKind::Unsupported => Reason::Corrupt(error.to_string()),
        _ => Reason::Io(error),
    }
}

#[cfg(test)]
mod tests;
