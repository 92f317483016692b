//! Finds the next compressed member of a file behind damage.
//!
//! The search looks for the magic number of a member and lets the caller verify each hit. It examines every
//! byte at most once and holds one window of the file in memory.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::counting_reader::{CountingReader, position};
use super::error::Reason;

/// Size of the window that the search examines at a time, in bytes.
pub(crate) const SEARCH_WINDOW_BYTES: usize = 256 << 10;

/// Maximum number of unpacked bytes by which the content of a member is recognised.
pub(crate) const PREFIX_BYTES: usize = 1 << 10;

/// What identifies the beginning of a member.
pub(crate) struct MemberPattern<'m> {
    /// The magic number at the beginning of a member.
    pub(crate) magic: &'m [u8],
    /// Number of bytes that suffice to recognise a member. Must be less than [`SEARCH_WINDOW_BYTES`].
    pub(crate) recognition_bytes: usize,
}

/// Skips padding between members: zeros, which tapes and block devices add, and line ends, which some tools
/// append. Returns false at the end of the file.
pub(crate) fn skip_padding(file: &mut impl BufRead) -> Result<bool, Reason> {
    loop {
        let bytes = file.fill_buf().map_err(Reason::Io)?;
        let (length, padding) =
            (bytes.len(), bytes.iter().take_while(|b| matches!(b, 0 | b'\r' | b'\n')).count());
        file.consume(padding);
        if padding < length || length == 0 {
            return Ok(length > 0);
        }
    }
}

/// Moves `file` to the first offset at or after `from` where `is_member` accepts the bytes. Returns false if
/// there is no such offset; the file is at its end then. A pipe cannot go back, so the search in a pipe
/// begins at the current position.
///
/// The search examines every byte at most once.
pub(crate) fn find(
    file: &mut BufReader<CountingReader>,
    from: u64,
    pattern: &MemberPattern<'_>,
    mut is_member: impl FnMut(&[u8]) -> bool,
) -> Result<bool, Reason> {
    if file.get_ref().is_seekable() {
        file.seek(SeekFrom::Start(from)).map_err(Reason::Io)?;
    }
    let mut from = position(file);
    let mut bytes = Vec::with_capacity(SEARCH_WINDOW_BYTES);
    loop {
        let wanted = (SEARCH_WINDOW_BYTES - bytes.len()) as u64;
        file.take(wanted).read_to_end(&mut bytes).map_err(Reason::Io)?;
        let last = bytes.len() < SEARCH_WINDOW_BYTES;
        // The next round examines a member that begins too close to the end of this window.
        let searched = if last { bytes.len() } else { SEARCH_WINDOW_BYTES - pattern.recognition_bytes };
        let mut hits = memchr::memmem::find_iter(&bytes, pattern.magic).take_while(|at| *at < searched);
        if let Some(at) = hits.find(|at| is_member(&bytes[*at..])) {
            go_back(file, from + at as u64, &bytes[at..])?;
            return Ok(true);
        }
        if last {
            return Ok(false);
        }
        bytes.drain(..searched);
        from += searched as u64;
    }
}

/// Moves back to `offset`, after `bytes` were read from there.
fn go_back(file: &mut BufReader<CountingReader>, offset: u64, bytes: &[u8]) -> Result<(), Reason> {
    if file.get_ref().is_seekable() {
        return file.seek(SeekFrom::Start(offset)).map(drop).map_err(Reason::Io);
    }
    let buffered = file.buffer().to_vec();
    file.consume(buffered.len());
    file.get_mut().give_back(&buffered);
    file.get_mut().give_back(bytes);
    Ok(())
}
