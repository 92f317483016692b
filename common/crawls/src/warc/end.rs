//! Whether a record ends where its length says, by what follows its block.

use super::form::{Follows, Form};

/// Whether a record whose block is followed by so many line ends, and then by what `follows`, ends where its length says.
pub(super) fn fits(form: Form, block: &[u8], line_ends: usize, follows: Follows) -> bool {
    match follows {
        // The rest of a line of ARC looks like a line.
        Follows::Head if form == Form::Arc && line_ends == 0 && !block.ends_with(b"\n") => false,
        // Some writers omit line ends between records. Where a block holds the head of a record and lacks them, it ends here by
        // chance.
        Follows::End | Follows::Head => line_ends >= form.separator() || !form.is_in(block),
        // Behind a whole record may be something that is no record. A record whose length is too small may end at a blank line of
        // its page.
        Follows::Other => {
            let lacks = missing_of_http_body(block);
            match form {
                Form::Warc => line_ends >= 4 && lacks.is_none_or(|bytes| bytes <= 0) && !form.is_in(block),
                Form::Arc => line_ends >= 1 && lacks == Some(0),
            }
        }
    }
}

/// How many bytes the body of an HTTP response lacks by its own Content-Length: none or fewer if it is whole. `None` if it says nothing
/// of its length.
fn missing_of_http_body(block: &[u8]) -> Option<i64> {
    if !block.starts_with(b"HTTP/") {
        return None;
    }
    let ends = [&b"\r\n\r\n"[..], b"\n\n"].map(|end| Some(memchr::memmem::find(block, end)? + end.len()));
    // Without the end of its head it lacks its whole body.
    let Some(head) = ends.into_iter().flatten().min() else { return Some(i64::MAX) };
    let lines = block[..head].split(|b| *b == b'\n');
    let length = lines.filter_map(|line| {
        let name = line.get(..15).filter(|name| name.eq_ignore_ascii_case(b"Content-Length:"))?;
        str::from_utf8(line[name.len()..].trim_ascii()).ok()?.parse::<i64>().ok()
    });
    Some({ length }.next_back()?.saturating_sub(i64::try_from(block.len() - head).ok()?))
}
