//! Undoes `Transfer-Encoding: chunked` (RFC 9112, section 7.1).

use std::borrow::Cow;

use crate::error::Reason;

/// The longest line with the size of a chunk and its extensions, in bytes.
const SIZE_LINE_MAX: usize = 4 << 10;

/// What is read of a coded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decoded<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Whether the coded body ends before its end is marked.
    pub(super) is_cut_off: bool,
}

/// Joins the chunks of a body. Extensions of chunks and fields after the last chunk are left out. The incomplete last
/// chunk of a body that is cut off is used as far as it goes.
///
/// # Errors
/// When something else stands where a chunk has to begin.
pub(super) fn unchunked(body: &[u8]) -> Result<Decoded<'static>, Reason> {
    let mut joined = Vec::with_capacity(body.len());
    let mut rest = body;
    let is_cut_off = loop {
        let (size, data) = match chunk(rest) {
            None => break true,
            Some(Ok((0, _))) => break false,
            Some(Ok(found)) => found,
            Some(Err(error)) => return Err(error),
        };
        joined.extend_from_slice(&data[..size.min(data.len())]);
        let Some(after) = data.get(size..) else { break true };
        rest = after.strip_prefix(b"\r\n").or_else(|| after.strip_prefix(b"\n")).unwrap_or(after);
    };
    Ok(Decoded { bytes: joined.into(), is_cut_off })
}

/// Whether the body is really chunked. Some writers of records undo the chunking.
pub(super) fn begins_with_chunk(body: &[u8]) -> bool {
    let Some(Ok((size, data))) = chunk(body) else { return false };
    let ends_line = |after: &[u8]| matches!(after, [] | [b'\r' | b'\n', ..]);
    // A text may begin with a line that looks like a size. Lines of a text mostly end with a line feed alone.
    let is_short = body[..body.len() - data.len()].ends_with(b"\r\n");
    data.get(size..).map_or(is_short, ends_line)
}

/// The size of the chunk at the beginning of `bytes`, and the bytes after the size line. `None` if the bytes
/// end within the size line.
fn chunk(bytes: &[u8]) -> Option<Result<(usize, &[u8]), Reason>> {
    let line_end = memchr::memchr(b'\n', &bytes[..bytes.len().min(SIZE_LINE_MAX)]);
    let line = line_end.map_or(bytes, |end| &bytes[..end]);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, behind) = line.split_at(digits);
    let size = std::str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let is_size = matches!(behind.trim_ascii_start(), [] | [b';', ..]);
    match (size, line_end) {
        (Some(size), Some(end)) if is_size => {
            Some(Ok((usize::try_from(size).unwrap_or(usize::MAX), &bytes[end + 1..])))
        }
        (_, None) if bytes.len() < SIZE_LINE_MAX && (line.is_empty() || size.is_some() && is_size) => None,
        _ => Some(Err(Reason::Encoding("chunked"))),
    }
}
