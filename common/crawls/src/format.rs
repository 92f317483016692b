//! Detects the format of a file by its name, or else by its first bytes.

use std::ffi::OsStr;
use std::path::Path;

use super::error::Reason;
use super::limits::Limits;
use super::stream::Stream;

/// How many bytes at the beginning of a file are inspected.
pub(super) const LOOKED_AT: usize = 8 << 10;

/// The UTF-8 byte order mark, which some editors put at the beginning of a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A supported format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Warc,
    Lines,
    Page(PageKind),
}

/// The kind of a file that is a single page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageKind {
    Html,
    /// Text or Markdown.
    Text,
    /// A file without an extension; it is text if its content is.
    Unnamed,
}

impl PageKind {
    /// Determines the kind by the file name; `None` for unsupported names.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match extension(path).as_str() {
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "txt" | "text" | "md" | "markdown" | "rst" | "adoc" => Some(Self::Text),
            _ => path.extension().is_none().then_some(Self::Unnamed),
        }
    }
}

/// The format of a file.
pub(super) fn of(path: &Path, limits: &Limits) -> Result<Format, Reason> {
    let mut stream = Stream::open(path, limits)?;
    let compressed = stream.is_compressed();
    // An error here is ignored if the name determines the format: the reader meets it again and reports it as
    // an item.
    let beginning = beginning(&mut stream);
    let packed_name = matches!(extension(path).as_str(), "gz" | "zst" | "bz2" | "xz");
    let name = if packed_name { path.with_extension("") } else { path.to_owned() };
    match extension(&name).as_str() {
        "warc" | "wet" => return Ok(Format::Warc),
        "jsonl" | "ndjson" | "json" => {
            let array = beginning.is_ok_and(|beginning| first_byte(beginning) == Some(b'['));
            return if array { Err(Reason::JsonArray) } else { Ok(Format::Lines) };
        }
        _ => {}
    }
    match PageKind::of(&name) {
        Some(kind @ (PageKind::Html | PageKind::Text)) if !compressed => return Ok(Format::Page(kind)),
        _ => {}
    }
    let beginning = beginning?;
    match first_byte(beginning) {
        _ if beginning.starts_with(b"WARC/1.") => Ok(Format::Warc),
        Some(b'{') => Ok(Format::Lines),
        _ if compressed => Err(Reason::Format),
        Some(b'<') => Ok(Format::Page(PageKind::Html)),
        Some(_) if is_text(beginning) => Ok(Format::Page(PageKind::Text)),
        _ => Err(Reason::Format),
    }
}

/// The extension of a file name, in lower case.
fn extension(name: &Path) -> String {
    name.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase()
}

fn beginning(stream: &mut Stream) -> Result<&[u8], Reason> {
    stream.next_member()?;
    stream.peek(LOOKED_AT)
}

fn first_byte(beginning: &[u8]) -> Option<u8> {
    let beginning = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
    beginning.trim_ascii_start().first().copied()
}

/// Whether the first [`LOOKED_AT`] bytes of a file are UTF-8 text without NUL.
pub(super) fn is_text(beginning: &[u8]) -> bool {
    let valid = match std::str::from_utf8(beginning) {
        Ok(_) => true,
        // The last character may be cut off.
        Err(error) => error.error_len().is_none() && beginning.len() >= LOOKED_AT,
    };
    valid && !beginning.contains(&0)
}
