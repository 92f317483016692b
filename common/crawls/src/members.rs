//! Finds the next compressed member of a file behind damage, by the bytes that members begin with.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::counted::{Counted, position};
use super::error::Reason;

/// The number of bytes that are searched at a time.
pub(super) const SEARCH: usize = 256 << 10;

/// The number of decompressed bytes by which the content of a member is recognised, at most.
pub(super) const BEGINNING: usize = 1 << 10;

/// How members are recognised.
pub(super) struct Signs<'m> {
    /// The bytes that a member begins with.
    pub(super) magic: &'m [u8],
    /// The number of bytes that may be needed to recognise a member; less than [`SEARCH`].
    pub(super) edge: usize,
}

/// Skips what may follow a member that is no member: zeros, with which tapes and block devices pad, and line ends, which some
/// tools append. Returns false at the end of the file.
pub(super) fn skip_padding(file: &mut impl BufRead) -> Result<bool, Reason> {
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

/// Goes to the first place from `from` on where `is_member` holds for the bytes there. Returns false if there is
/// none; the file is at its end then. In a pipe, which cannot go back, the search begins where the file is.
///
/// Every byte is searched at most once.
pub(super) fn find(
    file: &mut BufReader<Counted>,
    from: u64,
    signs: &Signs<'_>,
    mut is_member: impl FnMut(&[u8]) -> bool,
) -> Result<bool, Reason> {
    if file.get_ref().is_seekable() {
        file.seek(SeekFrom::Start(from)).map_err(Reason::Io)?;
    }
    let mut from = position(file);
    let mut bytes = Vec::with_capacity(SEARCH);
    loop {
        let wanted = (SEARCH - bytes.len()) as u64;
        file.take(wanted).read_to_end(&mut bytes).map_err(Reason::Io)?;
        let last = bytes.len() < SEARCH;
        // A member that begins too close to the end of the window is left to the next round.
        let searched = if last { bytes.len() } else { SEARCH - signs.edge };
        let mut hits = memchr::memmem::find_iter(&bytes, signs.magic).take_while(|at| *at < searched);
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

/// Goes back to `offset`, from where `bytes` have been read.
fn go_back(file: &mut BufReader<Counted>, offset: u64, bytes: &[u8]) -> Result<(), Reason> {
    if file.get_ref().is_seekable() {
        return file.seek(SeekFrom::Start(offset)).map(drop).map_err(Reason::Io);
    }
    let buffered = file.buffer().to_vec();
    file.consume(buffered.len());
    file.get_mut().give_back(&buffered);
    file.get_mut().give_back(bytes);
    Ok(())
}
