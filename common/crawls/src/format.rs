//! Detects the format of a file by its name, or else by its first bytes.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use serde::de::IgnoredAny;

use super::columns;
use super::error::Reason;
use super::names::{extension, is_html, unpacked};
use super::stream::Stream;
use super::{arc_line, warc_version};

/// How many bytes at the beginning of a file are inspected.
pub(super) const LOOKED_AT: usize = 8 << 10;

/// The UTF-8 byte order mark, which some editors put at the beginning of a text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of a ZIP file, such as WACZ.
const ZIP: &[u8] = b"PK\x03\x04";

/// The first bytes of Feather version 1, which is no Arrow file.
const FEATHER_1: &[u8] = b"FEA1";

/// The byte order marks of UTF-16, little-endian and big-endian.
const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// A format that an input may be said to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputFormat {
    /// WARC, of which WET is a kind.
    Warc,
    /// ARC, the format before WARC.
    Arc,
    /// WACZ, an archive of WARC files.
    Wacz,
    /// JSON lines.
    Jsonl,
    /// A table with a row of names, separated by commas, semicolons or tabs.
    Csv,
    /// A table with a row of names, separated by tabs.
    Tsv,
    /// Parquet.
    Parquet,
    /// Arrow, as a file or as a stream.
    Arrow,
}

impl InputFormat {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Warc, Self::Arc, Self::Wacz, Self::Jsonl, Self::Csv, Self::Tsv, Self::Parquet, Self::Arrow];

    /// Its name.
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

/// A name of no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("one of warc, arc, wacz, jsonl, csv, tsv, parquet and arrow is expected")]
pub struct UnknownFormat;

impl FromStr for InputFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

/// A supported format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Warc,
    Arc,
    Wacz,
    Lines,
    /// A table with this separator, or with the one that its first row shows.
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
    /// A file without an extension; it is text if its content is.
    Unnamed,
}

impl PageKind {
    /// Determines the kind by the file name; `None` for unsupported names.
    pub(super) fn of(path: &Path) -> Option<Self> {
        match extension(path).as_str() {
            "xhtml" | "xht" => Some(Self::Xhtml),
            _ if is_html(path) => Some(Self::Html),
            "txt" | "text" | "md" | "markdown" | "rst" | "adoc" => Some(Self::Text),
            _ => path.extension().is_none().then_some(Self::Unnamed),
        }
    }
}

/// The format of a file, which is as it was `said` to be if it was.
pub(super) fn of(name: &Path, said: Option<InputFormat>, stream: &mut Stream) -> Result<Format, Reason> {
    let compressed = stream.is_compressed();
    // An error here is ignored if the name determines the format: the reader meets it again and reports it as
    // an item.
    let beginning = beginning(stream);
    let begins = |is: &dyn Fn(&[u8]) -> bool| beginning.as_ref().is_ok_and(|bytes| is(bytes));
    let name = unpacked(name);
    let by_name = match (said, extension(&name).as_str()) {
        (Some(InputFormat::Warc), _) | (None, "warc" | "wet") => Some(Format::Warc),
        (Some(InputFormat::Arc), _) => Some(Format::Arc),
        (Some(InputFormat::Wacz), _) | (None, "wacz") => Some(Format::Wacz),
        // Archives of another program have this name, too.
        (None, "arc") if begins(&|bytes| bytes.is_empty() || arc_line::is_arc(bytes)) => Some(Format::Arc),
        (Some(InputFormat::Jsonl), _) | (None, "jsonl" | "ndjson" | "json") => Some(Format::Lines),
        (Some(InputFormat::Csv), _) | (None, "csv") => Some(Format::Delimited(None)),
        (Some(InputFormat::Tsv), _) | (None, "tsv") => Some(Format::Delimited(Some(b'\t'))),
        (Some(InputFormat::Parquet), _) | (None, "parquet") => Some(Format::Parquet),
        (Some(InputFormat::Arrow), _) | (None, "arrow" | "arrows" | "feather") => {
            Some(if begins(&columns::is_arrow_file) { Format::ArrowFile } else { Format::ArrowStream })
        }
        _ => None,
    };
    match by_name {
        // These are read from their end, and have compression of their own.
        Some(Format::Parquet | Format::ArrowFile | Format::Wacz) if compressed => {
            return Err(Reason::PackedColumns);
        }
        Some(Format::ArrowStream) if begins(&|bytes| bytes.starts_with(FEATHER_1)) => {
            let reason = "Feather version 1 is not read; write Arrow (Feather version 2) or Parquet";
            return Err(Reason::Columns(reason.to_owned()));
        }
        Some(Format::Lines | Format::Delimited(_)) if begins(&is_utf16) => return Err(Reason::Utf16),
        Some(Format::Lines) if begins(&|bytes| first_byte(bytes) == Some(b'[')) => {
            return Err(Reason::JsonArray);
        }
        Some(Format::Warc) => {
            beginning.map_or(Ok(()), warc_version::check_first)?;
            return Ok(Format::Warc);
        }
        Some(Format::Lines) if begins(&is_over_lines) => return Err(Reason::JsonOverLines),
        Some(format) => return Ok(format),
        None => {}
    }
    match PageKind::of(&name) {
        Some(kind @ (PageKind::Html | PageKind::Xhtml | PageKind::Text)) if !compressed => {
            return Ok(Format::Page(kind));
        }
        _ => {}
    }
    let beginning = beginning?;
    match first_byte(beginning) {
        _ if warc_version::version(beginning).is_some() => {
            warc_version::check_first(beginning).map(|()| Format::Warc)
        }
        _ if arc_line::is_arc(beginning) => Ok(Format::Arc),
        _ if beginning.starts_with(ZIP) && !compressed => Ok(Format::Wacz),
        _ if extension(&name) == "arc" => Err(Reason::Format),
        _ if columns::is_arrow_stream(beginning) => Ok(Format::ArrowStream),
        _ if columns::is_parquet(beginning) && !compressed => Ok(Format::Parquet),
        _ if columns::is_arrow_file(beginning) && !compressed => Ok(Format::ArrowFile),
        _ if columns::is_parquet(beginning) || columns::is_arrow_file(beginning) => {
            Err(Reason::PackedColumns)
        }
        Some(b'{') if is_over_lines(beginning) => Err(Reason::JsonOverLines),
        Some(b'{') => Ok(Format::Lines),
        _ if compressed => Err(Reason::Format),
        Some(b'<') => Ok(Format::Page(PageKind::Html)),
        Some(_) if is_text(beginning) => Ok(Format::Page(PageKind::Text)),
        _ => Err(Reason::Format),
    }
}

fn beginning(stream: &mut Stream) -> Result<&[u8], Reason> {
    stream.next_member()?;
    stream.peek(LOOKED_AT)
}

fn is_utf16(beginning: &[u8]) -> bool {
    UTF_16_MARKS.iter().any(|mark| beginning.starts_with(mark))
}

/// Whether JSON begins with an object that is over several lines: its first line is none, and the lines behind it go on with it. So a torn line is
/// none, as the next one does not.
fn is_over_lines(beginning: &[u8]) -> bool {
    let json = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning).trim_ascii_start();
    let Some(end) = memchr::memchr2(b'\n', b'\r', json) else { return false };
    let is_part = |json: &[u8]| serde_json::from_slice::<IgnoredAny>(json).is_err_and(|error| error.is_eof());
    let first = || serde_json::Deserializer::from_slice(json).into_iter::<IgnoredAny>().next();
    let goes_on = json[end..].trim_ascii_start();
    is_part(&json[..end])
        && !goes_on.is_empty()
        && first().is_some_and(|first| first.map_or_else(|error| error.is_eof(), |_| true))
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
