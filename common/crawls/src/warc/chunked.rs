//! Undoes `Transfer-Encoding: chunked` (RFC 9112, section 7.1).

use doppel_streams::Reason;
use std::borrow::Cow;

/// The longest line with the size of a chunk and its extensions, in bytes.
const SIZE_LINE_MAX: usize = 4 << 10;

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DecodedBody<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// Whether the coded body ends before its end mark.
    pub(super) is_cut_off: bool,
}

/// Joins the chunks of a body. Leaves out chunk extensions and trailer fields. If the body is cut off, uses
/// the incomplete last chunk as far as it goes.
///
/// # Errors
/// If a chunk does not begin with a valid size line.
pub(super) fn decode_chunked(body: &[u8]) -> Result<DecodedBody<'static>, Reason> {
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
    Ok(DecodedBody { bytes: joined.into(), is_cut_off })
}

/// Whether a body really begins with a chunk. Some writers of records undo the chunking but keep the field
/// that names it.
pub(super) fn is_chunked(body: &[u8]) -> bool {
    let Some(Ok((size, data))) = chunk(body) else { return false };
    let ends_line = |after: &[u8]| matches!(after, [] | [b'\r' | b'\n', ..]);
    // A text may begin with a line that looks like a size. Most lines of text end with a line feed alone.
    let is_short = body[..body.len() - data.len()].ends_with(b"\r\n");
    data.get(size..).map_or(is_short, ends_line)
}

/// Size of the chunk at the beginning of `bytes`, and the bytes after the size line. `None` if the bytes end
/// within the size line.
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
