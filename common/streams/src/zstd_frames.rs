//! Reads zstd files frame by frame (RFC 8878), and finds the next frame after damage.
//!
//! WARC writers compress each record into its own frame, as with gzip. A WARC file may begin with a
//! dictionary for all its frames, stored in a skippable frame
//! (<https://iipc.github.io/warc-specifications/specifications/warc-zstd/>). The reader checks the window of
//! every frame before it starts to decode, so that memory stays bounded.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use zstd::stream::raw::{DParameter, Decoder, Operation};

use super::counting_reader::{CountingReader, position};
use super::error::Reason;
use super::members::{self, MemberPattern, PREFIX_BYTES};
use super::zstd_header::{self, ZSTD_WINDOW_BYTES_MAX};

/// The first bytes of a frame.
pub(crate) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The first bytes of a dictionary.
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The first bytes of a skippable frame that holds a dictionary.
const DICTIONARY_FRAME: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

/// The largest dictionary, in bytes. The limit applies to its stored size and to its unpacked size. Writers
/// make dictionaries of about a megabyte.
const DICTIONARY_BYTES_MAX: usize = 16 << 20;

/// Number of bytes that suffice to recognise a frame: its header and a block.
const RECOGNITION_BYTES: usize = 18 + 3 + (128 << 10);

/// Whether `bytes` begin like a zstd file: with a frame or a skippable frame.
pub(crate) fn is_zstd(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) || is_skippable(bytes)
}

fn is_skippable(magic: &[u8]) -> bool {
    matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// A zstd file with a read position in one of its frames.
pub(crate) struct ZstdFrames {
    file: BufReader<CountingReader>,
    decoder: Decoder<'static>,
    /// File offset of the current frame.
    frame: u64,
    /// Whether the current frame has been read to its end.
    ended: bool,
    /// The largest window that a frame may request, in bytes.
    window_max: u64,
}

impl ZstdFrames {
    /// Creates a reader that is positioned before the first frame of `file`, after an optional dictionary. A
    /// frame may request a window of at most `window_max` bytes.
    pub(crate) fn new(mut file: BufReader<CountingReader>, window_max: u64) -> Result<Self, Reason> {
        let dictionary = dictionary(&mut file)?;
        let mut decoder = Decoder::with_dictionary(&dictionary).map_err(corrupt)?;
        // The decoder accepts every supported window. `next_frame` enforces the limit, because it can name
        // the requested size.
        let log = ZSTD_WINDOW_BYTES_MAX.ilog2();
        decoder.set_parameter(DParameter::WindowLogMax(log)).map_err(corrupt)?;
        let frame = position(&file);
        Ok(Self { file, decoder, frame, ended: true, window_max: window_max.min(ZSTD_WINDOW_BYTES_MAX) })
    }

    /// File offset of the current frame.
    pub(crate) fn frame(&self) -> u64 {
        self.frame
    }

    /// Number of compressed bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        position(&self.file)
    }

    /// Whether [`seek`](Self::seek) works, that is, whether the source is not a pipe.
    pub(crate) fn is_seekable(&self) -> bool {
        self.file.get_ref().is_seekable()
    }

    /// Enters the frame at `offset`. Returns false at the end of the file.
    pub(crate) fn seek(&mut self, offset: u64) -> Result<bool, Reason> {
        self.file.seek(SeekFrom::Start(offset)).map_err(Reason::Io)?;
        self.ended = true;
        self.next_frame()
    }

    /// Enters the next frame that is not skippable. The caller must have read the current frame to its end.
    /// Returns false at the end of the file.
    pub(crate) fn next_frame(&mut self) -> Result<bool, Reason> {
        if !self.ended {
            return Err(Reason::Truncated);
        }
        loop {
            if !members::skip_padding(&mut self.file)? {
                return Ok(false);
            }
            (self.frame, self.ended) = (self.bytes_read(), false);
            let mut magic = [0; 4];
            self.file.read_exact(&mut magic).map_err(ended_early)?;
            if is_skippable(&magic) {
                let length = skippable_length(&mut self.file)?;
                let skipped = io::copy(&mut (&mut self.file).take(length), &mut io::sink());
                if skipped.map_err(Reason::Io)? < length {
                    return Err(Reason::Truncated);
                }
                self.ended = true;
                continue;
            }
            if magic != MAGIC {
                return Err(Reason::Corrupt("no zstd header where a frame should begin".to_owned()));
            }
            let mut header = [0; zstd_header::HEADER_MAX];
            self.file.read_exact(&mut header[..1]).map_err(ended_early)?;
            let length = zstd_header::length(header[0]);
            let header = &mut header[..length];
            self.file.read_exact(&mut header[1..]).map_err(ended_early)?;
            let requested = zstd_header::window(header).unwrap_or(u64::MAX);
            if requested > self.window_max {
                return Err(Reason::ZstdWindow { asked: requested, max: self.window_max });
            }
            self.decoder.reinit().map_err(corrupt)?;
            let begun = self.decoder.run_on_buffers(&magic, &mut []);
            begun.and_then(|_| self.decoder.run_on_buffers(header, &mut [])).map_err(corrupt)?;
            return Ok(true);
        }
    }

    /// Unpacks into `out` and returns the number of bytes. Returns 0 at the end of the frame, after verifying
    /// its checksum if it has one.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Reason> {
        while !self.ended {
            let packed = self.file.fill_buf().map_err(Reason::Io)?;
            let at_end = packed.is_empty();
            let status = self.decoder.run_on_buffers(packed, out).map_err(corrupt)?;
            self.file.consume(status.bytes_read);
            self.ended = status.remaining == 0;
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if at_end && !self.ended {
                return Err(Reason::Truncated);
            }
        }
        Ok(0)
    }

    /// After an error in the current frame, enters the next frame whose unpacked content satisfies `begins`.
    /// The function receives up to [`PREFIX_BYTES`] bytes. Returns false if there is no such frame. The
    /// search begins inside the current frame, or, in a pipe, where the decoder failed.
    pub(crate) fn find_frame(&mut self, begins: impl Fn(&[u8]) -> bool) -> Result<bool, Reason> {
        let from = if self.ended { self.bytes_read() } else { self.frame + 1 };
        self.ended = true;
        let pattern = MemberPattern { magic: &MAGIC, recognition_bytes: RECOGNITION_BYTES };
        let Self { file, decoder, window_max, .. } = self;
        let fits = |frame: &[u8]| {
            let window = zstd_header::window(frame.get(MAGIC.len()..)?)?;
            (window <= *window_max).then_some(())
        };
        if members::find(file, from, &pattern, |bytes| {
            fits(bytes).is_some() && unpacks_to(decoder, bytes, &begins)
        })? {
            return self.next_frame();
        }
        Ok(false)
    }
}

/// Whether `frame` begins with a zstd frame whose unpacked content satisfies `begins`.
fn unpacks_to(decoder: &mut Decoder<'_>, frame: &[u8], begins: impl Fn(&[u8]) -> bool) -> bool {
    let mut out = [0; PREFIX_BYTES];
    let unpacked = decoder.reinit().and_then(|()| decoder.run_on_buffers(frame, &mut out));
    unpacked.is_ok_and(|status| begins(&out[..status.bytes_written]))
}

/// Reads the dictionary at the beginning of a file. Returns no bytes if there is none.
fn dictionary(file: &mut BufReader<CountingReader>) -> Result<Vec<u8>, Reason> {
    if !file.fill_buf().map_err(Reason::Io)?.starts_with(&DICTIONARY_FRAME) {
        return Ok(Vec::new());
    }
    file.consume(DICTIONARY_FRAME.len());
    let length = skippable_length(file)?;
    check_size(length)?;
    let mut stored = Vec::new();
    file.take(length).read_to_end(&mut stored).map_err(Reason::Io)?;
    if (stored.len() as u64) < length {
        return Err(Reason::Truncated);
    }
    if stored.starts_with(&MAGIC) {
        let mut unpacked = Vec::new();
        let decoder = zstd::Decoder::with_buffer(&*stored).map_err(corrupt)?;
        decoder.take(DICTIONARY_BYTES_MAX as u64 + 1).read_to_end(&mut unpacked).map_err(corrupt)?;
        check_size(unpacked.len() as u64)?;
        stored = unpacked;
    }
    // Other programs may use a skippable frame with this number for other data.
    Ok(if stored.starts_with(&DICTIONARY) { stored } else { Vec::new() })
}

fn check_size(bytes: u64) -> Result<(), Reason> {
    let max = DICTIONARY_BYTES_MAX as u64;
    if bytes > max { Err(Reason::TooLarge { what: "a zstd dictionary", bytes, max }) } else { Ok(()) }
}

fn skippable_length(file: &mut impl Read) -> Result<u64, Reason> {
    let mut length = [0; 4];
    file.read_exact(&mut length).map_err(ended_early)?;
    Ok(u64::from(u32::from_le_bytes(length)))
}

fn ended_early(error: io::Error) -> Reason {
    if error.kind() == io::ErrorKind::UnexpectedEof { Reason::Truncated } else { Reason::Io(error) }
}

// Takes the error by value because that is what `map_err` passes.
#[expect(clippy::needless_pass_by_value)]
fn corrupt(error: io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Reason::Truncated,
        _ => Reason::Corrupt(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
