//! Detects the format of a file: by the user's choice, else by the file name, else by the first bytes.
//!
//! The module only inspects the first [`INSPECTED_BYTES`] bytes and consumes none of them. It refuses inputs
//! that resemble a supported format but are not readable, such as JSON arrays and UTF-16, with a hint how to
//! convert them.

pub(crate) mod column_magic;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use doppel_streams::{Reason, Stream};
use serde::de::IgnoredAny;

use super::names::{extension, is_html, without_compression_ending};
use super::warc::{arc_line, version_line};

/// Number of bytes at the beginning of a file that are inspected.
pub(super) const INSPECTED_BYTES: usize = 8 << 10;

/// The UTF-8 byte order mark, which some editors put at the beginning of a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of a ZIP file, such as WACZ.
const ZIP: &[u8] = b"PK\x03\x04";

/// The first bytes of Feather version 1, which is not an Arrow file.
const FEATHER_1: &[u8] = b"FEA1";

/// The byte order marks of UTF-16, little-endian and big-endian.
const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// A format that the user can set for an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFormat {
    /// WARC, including the WET files of Common Crawl.
    Warc,
    /// ARC, the predecessor of WARC.
    Arc,
    /// WACZ, an archive of WARC files.
    Wacz,
    /// JSON lines: one JSON object per line.
    Jsonl,
    /// A table with a row of names, separated by commas, semicolons or tabs.
    Csv,
    /// A table with a row of names, separated by tabs.
    Tsv,
    /// A Parquet file of any schema.
    Parquet,
    /// Arrow IPC, as a file or as a stream.
    Arrow,
}

impl InputFormat {
    /// All formats that a user can set.
    pub const ALL: [Self; 8] =
        [Self::Warc, Self::Arc, Self::Wacz, Self::Jsonl, Self::Csv, Self::Tsv, Self::Parquet, Self::Arrow];

    /// Name of the format on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warc => "warc",
            Self::Arc => "arc",
            Self::Wacz => "wacz",
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

impl fmt::Display for InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error of parsing an unknown format name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("one of warc, arc, wacz, jsonl, csv, tsv, parquet and arrow is expected")]
pub struct UnknownFormat;

impl FromStr for InputFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// A supported format, in the detail that readers need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Warc,
    Arc,
    Wacz,
    Lines,
    /// A table with this separator. If `None`, the first row shows the separator.
    Delimited(Option<u8>),
    Parquet,
    ArrowFile,
    ArrowStream,
    Page(PageKind),
}

/// The kind of a file that is a single page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageKind {
    Html,
    Xhtml,
    /// Text or Markdown.
    Text,
    /// A file without an extension. The reader treats it as text if its content is text.
    Unnamed,
}

impl PageKind {
    /// Determines the kind by the file name. `None` if the extension is not that of a page.
    pub(super) fn from_name(path: &Path) -> Option<Self> {
        match extension(path).as_str() {
            "xhtml" | "xht" => Some(Self::Xhtml),
            _ if is_html(path) => Some(Self::Html),
            "txt" | "text" | "md" | "markdown" | "rst" | "adoc" => Some(Self::Text),
            _ => path.extension().is_none().then_some(Self::Unnamed),
        }
    }
}

/// Detects the format of a file from the format that the user requested, its name and its first bytes.
///
/// # Errors
/// If the format is unknown or unreadable, or if the stream cannot be read.
pub(super) fn detect(
    name: &Path,
    requested: Option<InputFormat>,
    stream: &mut Stream,
) -> Result<Format, Reason> {
    let compressed = stream.is_compressed();
    // If the name determines the format, ignore an error here. The reader meets the error again and reports
    // it as an item.
    let first_bytes = peek_first_bytes(stream);
    let satisfies = |is: &dyn Fn(&[u8]) -> bool| first_bytes.as_ref().is_ok_and(|bytes| is(bytes));
    let name = without_compression_ending(name);
    let by_name = match (requested, extension(&name).as_str()) {
        (Some(InputFormat::Warc), _) | (None, "warc" | "wet") => Some(Format::Warc),
        (Some(InputFormat::Arc), _) => Some(Format::Arc),
        (Some(InputFormat::Wacz), _) | (None, "wacz") => Some(Format::Wacz),
        // The archives of another program have this extension too, so the content must match.
        (None, "arc") if satisfies(&|bytes| bytes.is_empty() || arc_line::is_arc(bytes)) => Some(Format::Arc),
        (Some(InputFormat::Jsonl), _) | (None, "jsonl" | "ndjson" | "json") => Some(Format::Lines),
        (Some(InputFormat::Csv), _) | (None, "csv") => Some(Format::Delimited(None)),
        (Some(InputFormat::Tsv), _) | (None, "tsv") => Some(Format::Delimited(Some(b'\t'))),
        (Some(InputFormat::Parquet), _) | (None, "parquet") => Some(Format::Parquet),
        (Some(InputFormat::Arrow), _) | (None, "arrow" | "arrows" | "feather") => {
            Some(if satisfies(&column_magic::is_arrow_file) {
                Format::ArrowFile
            } else {
                Format::ArrowStream
            })
        }
        _ => None,
    };
    match by_name {
        // Readers of these formats start at the end of the file. The formats have their own compression.
        Some(Format::Parquet | Format::ArrowFile | Format::Wacz) if compressed => {
            return Err(Reason::PackedColumns);
        }
        Some(Format::ArrowStream) if satisfies(&|bytes| bytes.starts_with(FEATHER_1)) => {
            let reason = "Feather version 1 is not read; write Arrow (Feather version 2) or Parquet";
            return Err(Reason::Columns(reason.to_owned()));
        }
        Some(Format::Lines | Format::Delimited(_)) if satisfies(&is_utf16) => return Err(Reason::Utf16),
        Some(Format::Lines) if satisfies(&|bytes| first_byte(bytes) == Some(b'[')) => {
            return Err(Reason::JsonArray);
        }
        Some(Format::Warc) => {
            first_bytes.map_or(Ok(()), version_line::check_first_record)?;
            return Ok(Format::Warc);
        }
        Some(Format::Lines) if satisfies(&is_object_over_lines) => return Err(Reason::JsonOverLines),
        Some(format) => return Ok(format),
        None => {}
    }
    match PageKind::from_name(&name) {
        Some(kind @ (PageKind::Html | PageKind::Xhtml | PageKind::Text)) if !compressed => {
            return Ok(Format::Page(kind));
        }
        _ => {}
    }
    let first_bytes = first_bytes?;
    match first_byte(first_bytes) {
        _ if version_line::version(first_bytes).is_some() => {
            version_line::check_first_record(first_bytes).map(|()| Format::Warc)
        }
        _ if arc_line::is_arc(first_bytes) => Ok(Format::Arc),
        _ if first_bytes.starts_with(ZIP) && !compressed => Ok(Format::Wacz),
        _ if extension(&name) == "arc" => Err(Reason::Format),
        _ if column_magic::is_arrow_stream(first_bytes) => Ok(Format::ArrowStream),
        _ if column_magic::is_parquet(first_bytes) && !compressed => Ok(Format::Parquet),
        _ if column_magic::is_arrow_file(first_bytes) && !compressed => Ok(Format::ArrowFile),
        _ if column_magic::is_parquet(first_bytes) || column_magic::is_arrow_file(first_bytes) => {
            Err(Reason::PackedColumns)
        }
        Some(b'{') if is_object_over_lines(first_bytes) => Err(Reason::JsonOverLines),
        Some(b'{') => Ok(Format::Lines),
        _ if compressed => Err(Reason::Format),
        Some(b'<') => Ok(Format::Page(PageKind::Html)),
        Some(_) if is_text(first_bytes) => Ok(Format::Page(PageKind::Text)),
        _ => Err(Reason::Format),
    }
}

fn peek_first_bytes(stream: &mut Stream) -> Result<&[u8], Reason> {
    stream.next_member()?;
    stream.peek(INSPECTED_BYTES)
}

fn is_utf16(first_bytes: &[u8]) -> bool {
    UTF_16_MARKS.iter().any(|mark| first_bytes.starts_with(mark))
}

/// Whether JSON begins with an object that spans several lines. The first line must be an incomplete object,
/// and the following lines must continue it. A torn line does not count, because the next line does not
/// continue it.
fn is_object_over_lines(first_bytes: &[u8]) -> bool {
    let json = first_bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first_bytes).trim_ascii_start();
    let Some(end) = memchr::memchr2(b'\n', b'\r', json) else { return false };
    let is_part = |json: &[u8]| serde_json::from_slice::<IgnoredAny>(json).is_err_and(|error| error.is_eof());
    let first = || serde_json::Deserializer::from_slice(json).into_iter::<IgnoredAny>().next();
    let goes_on = json[end..].trim_ascii_start();
    is_part(&json[..end])
        && !goes_on.is_empty()
        && first().is_some_and(|first| first.map_or_else(|error| error.is_eof(), |_| true))
}

fn first_byte(first_bytes: &[u8]) -> Option<u8> {
    let first_bytes = first_bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first_bytes);
    first_bytes.trim_ascii_start().first().copied()
}

/// Whether the first [`INSPECTED_BYTES`] bytes of a file are UTF-8 text without NUL.
pub(super) fn is_text(first_bytes: &[u8]) -> bool {
    let valid = match std::str::from_utf8(first_bytes) {
        Ok(_) => true,
        // The end of the inspected bytes may cut off the last character.
        Err(error) => error.error_len().is_none() && first_bytes.len() >= INSPECTED_BYTES,
    };
    valid && !first_bytes.contains(&0)
}
