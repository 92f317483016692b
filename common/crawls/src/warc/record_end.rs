//! Judges whether a record ends where its length says, by the bytes that follow its block.
//!
//! A wrong length would otherwise swallow the next record or cut off a page. The module only judges; the
//! reader of records recovers.

use super::archive_format::{AfterRecord, ArchiveFormat};

/// Whether a record really ends behind `block`. `line_ends` line ends follow the block, and `after_record`
/// follows these.
pub(super) fn is_length_plausible(
    format: ArchiveFormat,
    block: &[u8],
    line_ends: usize,
    after_record: AfterRecord,
) -> bool {
    match after_record {
        // The rest of an ARC head line looks like a head line.
        AfterRecord::Head if format == ArchiveFormat::Arc && line_ends == 0 && !block.ends_with(b"\n") => {
            false
        }
        // Some writers omit the line ends between records. If the line ends are missing and the block
        // contains the head of another record, the block ends at a record boundary only by chance.
        AfterRecord::End | AfterRecord::Head => {
            line_ends >= format.separator_line_ends() || !format.has_head_in(block)
        }
        // Other data than a record may follow a complete record. A record with a length that is too small may
        // end at a blank line of its page.
        AfterRecord::Other => {
            let lacks = missing_http_body_bytes(block);
            match format {
                ArchiveFormat::Warc => {
                    line_ends >= 4 && lacks.is_none_or(|bytes| bytes <= 0) && !format.has_head_in(block)
                }
                ArchiveFormat::Arc => line_ends >= 1 && lacks == Some(0),
            }
        }
    }
}

/// Number of bytes that the body of an HTTP response lacks according to its own Content-Length. Zero or
/// negative if the body is complete. `None` if the block is not an HTTP response or states no length.
fn missing_http_body_bytes(block: &[u8]) -> Option<i64> {
    if !block.starts_with(b"HTTP/") {
        return None;
    }
    let ends = [&b"\r\n\r\n"[..], b"\n\n"].map(|end| Some(memchr::memmem::find(block, end)? + end.len()));
    // A response without the end of its head lacks its whole body.
    let Some(head) = ends.into_iter().flatten().min() else { return Some(i64::MAX) };
    let lines = block[..head].split(|b| *b == b'\n');
    let length = lines.filter_map(|line| {
        let name = line.get(..15).filter(|name| name.eq_ignore_ascii_case(b"Content-Length:"))?;
        str::from_utf8(line[name.len()..].trim_ascii()).ok()?.parse::<i64>().ok()
    });
    Some({ length }.next_back()?.saturating_sub(i64::try_from(block.len() - head).ok()?))
}
