//! Errors of reading a crawl, with the position of each error in the input.
//!
//! Every reader reports a file, record or line that it cannot read as an [`InputError`]. A [`Location`] or
//! [`InputPosition`] says where, and a [`Reason`] says why. A valid record that gives no page is not an
//! error; [`SkipReason`](crate::SkipReason) lists the reasons.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::zstd_header::ZSTD_WINDOW_BYTES_MAX;
use doppel_charset::NoText;
use doppel_contract::page::{ItemError, ItemReason};
use doppel_model::{TimeError, Timestamp, UrlError};

/// A file, record or line that could not be read, with its position and the reason.
#[derive(Debug, thiserror::Error)]
pub struct InputError {
    /// Path of the file or directory.
    pub path: Arc<Path>,
    /// Position in the file.
    pub position: InputPosition,
    /// Why the file, record or line could not be read.
    pub reason: Reason,
    /// Number of unpacked bytes, from the beginning of this record on, that the reader skipped to find the
    /// next record. Zero unless the end of the record is unknown.
    pub skipped: u64,
    /// The faulty line as it is in the file, without its line feed. `None` unless the fault is in a line of
    /// text that was read whole.
    pub line: Option<Box<[u8]>>,
}

/// A file with a position in it. Displays as `pages.jsonl, line 7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'p> {
    /// Path of the file or directory.
    pub path: &'p Path,
    /// Position in the file.
    pub position: InputPosition,
}

/// A position in an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum InputPosition {
    /// The file as a whole.
    File,
    /// The record at this byte offset of the stored file. In a compressed file, the first record of the
    /// compressed member that begins at this offset.
    Record(u64),
    /// This line, counted from 1.
    Line(u64),
    /// This row of a table, counted from 1.
    Row(u64),
    /// A later record of a compressed member: the record at this byte offset of the unpacked data. In a WACZ
    /// file, the offset counts the unpacked data of all its WARC files, one after the other.
    Unpacked(u64),
}

/// Why a file, record or line could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// An error of the operating system.
    #[error("{0}")]
    Io(io::Error),
    /// Neither a regular file nor a directory.
    #[error("neither a file nor a directory")]
    FileKind,
    /// Neither the name nor the content identifies a supported format.
    #[error(
        "unknown format: neither WARC, ARC, WACZ, JSON lines, Parquet, Arrow, HTML nor text by its content, nor CSV or TSV by its name"
    )]
    Format,
    /// A Parquet, Arrow or WACZ file inside another compression.
    #[error("a Parquet, Arrow or WACZ file inside another compression cannot be read; unpack it")]
    PackedColumns,
    /// A Parquet or Arrow file, read by a program that was built without the feature `columns`.
    #[error(
        "this program was built without support for Parquet and Arrow files; build it without --no-default-features"
    )]
    WithoutColumns,
    /// A WACZ file, or a file in a WACZ file, that cannot be read.
    #[error("cannot be read: {0}")]
    Wacz(String),
    /// A page of HTML or text on standard input or in a pipe. Such a page is named by its file, and a pipe
    /// has no file name.
    #[error(
        "a page of HTML or text has no name here; pass JSON lines, WARC, Parquet or Arrow, or CSV or TSV with --format"
    )]
    PageInPipe,
    /// A JSON array, which is not supported because it cannot be read line by line.
    #[error(
        "a JSON array; the format is JSON lines, one object a line: `jq -c '.[]' FILE > lines.jsonl` converts it"
    )]
    JsonArray,
    /// JSON objects that each span several lines.
    #[error(
        "JSON objects over several lines; the format is JSON lines, one object a line: `jq -c . FILE > lines.jsonl` converts them"
    )]
    JsonOverLines,
    /// Lines of text in UTF-16.
    #[error("lines in UTF-16, where UTF-8 is read; `iconv -f UTF-16 -t UTF-8` converts them")]
    Utf16,
    /// A row that lies behind damage in its file.
    #[error("it is behind the damage, so it was not read")]
    BehindDamage,
    /// The data end in the middle of a record, line or compressed member.
    #[error("the data end in the middle of it")]
    Truncated,
    /// Compressed data that the decoder rejects.
    #[error("corrupt compressed data: {0}")]
    Corrupt(String),
    /// A zstd frame that requests a larger window than is allowed.
    #[error("{}", window_message(*asked, *max))]
    ZstdWindow {
        /// The window that the frame requests, in bytes.
        asked: u64,
        /// The largest allowed window, in bytes.
        max: u64,
    },
    /// Compressed data that unpack to an implausible size. The reader leaves out the rest of the file.
    #[error("unpacks to over {free_mib} MiB and {ratio} times its size; the rest of the file is left out")]
    Expansion {
        /// The unpacked size that is always allowed, in MiB.
        free_mib: u64,
        /// Allowed unpacked bytes per stored byte, in addition to `free_mib`.
        ratio: u64,
    },
    /// An invalid head of a WARC or ARC record.
    #[error("{0}")]
    Head(#[from] HeadError),
    /// A WARC or ARC record that does not end where its length says.
    #[error("the record does not end where its length says")]
    Length,
    /// A record, line or page above its size limit.
    #[error("{what} of {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// Name of the data above the limit, such as `a record`.
        what: &'static str,
        /// Size of the data in bytes, or a lower bound of the size. For a row of cells, the number of cells.
        bytes: u64,
        /// The limit in bytes, or for a row of cells, the maximum number of cells.
        max: u64,
    },
    /// A URL that is not a valid page URL.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// A date that cannot be parsed.
    #[error("the date is {0}")]
    Date(#[from] TimeError),
    /// A date more than 24 hours after the current time.
    #[error("the date {0} is more than 24 hours ahead")]
    Ahead(Timestamp),
    /// A missing or invalid HTTP response head.
    #[error("no HTTP response head: {0}")]
    Http(String),
    /// A body that cannot be decoded, although Doppel supports its Content-Encoding or Transfer-Encoding. The
    /// payload names the encoding.
    #[error("the body is not valid {0}")]
    Encoding(&'static str),
    /// A body that is not text and has an unknown Content-Encoding or Transfer-Encoding, which the payload
    /// names.
    #[error("the body is encoded as {0:?}, which cannot be read")]
    Coding(String),
    /// A body with more encodings than the reader undoes. The payload is the maximum number.
    #[error("the body has more than {0} encodings")]
    Codings(usize),
    /// Content that is binary or compressed data instead of text.
    #[error("{0}")]
    NoText(#[from] NoText),
    /// Text behind the closing quote of a quoted cell.
    #[error("text behind the closing quote of a cell that begins in line {line}{}", if *escaped { "; a quote in a cell is doubled, not escaped by a backslash" } else { "" })]
    BehindQuote {
        /// The line of the opening quote, counted from 1.
        line: u64,
        /// Whether a backslash precedes the closing quote.
        escaped: bool,
    },
    /// A quoted cell that spans too many lines.
    #[error("the quote that begins in line {line} is not closed within {lines} lines and {bytes} bytes")]
    LongQuote {
        /// The line of the opening quote, counted from 1.
        line: u64,
        /// Maximum number of lines that a cell may span.
        lines: u64,
        /// Maximum length of a row of the table, in bytes.
        bytes: usize,
    },
    /// A quoted cell that is still open at the end of the file.
    #[error("the quote that begins in line {line} is never closed")]
    OpenQuote {
        /// The line of the opening quote, counted from 1.
        line: u64,
    },
    /// A table with comments before its header row.
    #[error(
        "a table that begins with a comment, which CSV does not have; `grep -v '^#' FILE > table.csv` leaves out lines that begin with #"
    )]
    Comments,
    /// A row of a table whose number of cells differs from the number of column names.
    #[error("{cells} cells under {names} names")]
    Cells {
        /// Number of cells in the row.
        cells: usize,
        /// Number of names in the header row.
        names: usize,
    },
    /// A Parquet or Arrow file that cannot be decoded.
    #[error("no valid Parquet or Arrow data: {0}")]
    Columns(String),
    /// A record that a copy would annotate, but that already has annotations.
    #[error("it already has fields that begin with doppel_; run the command without --annotate")]
    Annotated,
    /// Files that are one page each, which have no room for annotations.
    #[error("a file that is one page cannot be annotated; run the command without --annotate")]
    NoAnnotations,
    /// ARC records, which have no room for annotations.
    #[error("a record of ARC has no place for annotations; run the command without --annotate")]
    NoAnnotationsInArc,
    /// A Parquet column whose values a copy could not write as they were read.
    #[error(
        "the column {column:?} is {is}, which cannot be written back unchanged; leave the file out, or run the command without --kept and --removed"
    )]
    Unwritable {
        /// Path of the column in the schema.
        column: String,
        /// Description of the type of the column.
        is: &'static str,
    },
    /// A JSON line that is not a valid page item.
    #[error("{0}")]
    Item(#[from] ItemError),
    /// A record with an invalid field.
    #[error("{0}")]
    Field(FieldError),
}

/// An invalid field of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?}: {problem}")]
pub struct FieldError {
    /// Path of the field in the record.
    pub path: String,
    /// Why the field is invalid.
    pub problem: FieldProblem,
}

/// Why a field of a record is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    /// The record lacks the field.
    #[error("missing")]
    Missing,
    /// The value has another type than the field requires.
    #[error("is {is}, and has to be {has_to_be}")]
    Type {
        /// Description of the type that the value has.
        is: &'static str,
        /// Description of the type that the field requires.
        has_to_be: &'static str,
    },
    /// The value is a list, and the field requires text.
    #[error(
        "is a list, and has to be text; {option} {path}[] takes the texts in it, and {path}[].NAME a field of the objects in it"
    )]
    List {
        /// Path of the list in the record.
        path: String,
        /// The command-line option that names a field of this kind.
        option: &'static str,
    },
    /// The id is a number of more than 64 bits.
    #[error("is a number of more than 64 bits, of which not all digits can be read; write it as text")]
    LargeId,
    /// The value is not a date.
    #[error(
        "no date: neither RFC 3339, nor a date or date-time without zone, nor seconds or milliseconds since 1970 as a number from 100,000,000"
    )]
    Date,
    /// The value is not a language tag.
    #[error("not a language tag")]
    Language,
    /// The value is not a measure of popularity.
    #[error("has to be a finite number that is not negative")]
    Popularity,
    /// A second field that states the content of the page. It conflicts with the field that the payload
    /// names.
    #[error("given beside {0}; a page has exactly one of html, text, redirect_to and dead: true")]
    SecondBody(String),
    /// The value is not a page URL.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// The record redirects its URL to the same URL.
    #[error("redirects to itself")]
    RedirectToItself,
    /// An earlier record of the file has the id of this record. The payload is the id.
    #[error("an earlier record of the file has the id {0:?}")]
    RepeatedId(String),
}

/// Why the head of a WARC or ARC record is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The bytes do not begin like a WARC record.
    #[error("no WARC record; it begins with {0:?}")]
    Version(String),
    /// The record has a version of WARC that Doppel does not read.
    #[error("{0} is not read; WARC/0.17, WARC/0.18, WARC/1.0 and WARC/1.1 are")]
    OtherVersion(String),
    /// The bytes do not begin like an ARC record.
    #[error("no ARC record; it begins with {0:?}")]
    Arc(String),
    /// The head is longer than the limit, which is in bytes.
    #[error("the record head is longer than {0} bytes")]
    TooLong(usize),
    /// A line of the head has no colon.
    #[error("a line of the record head is no field: {0:?}")]
    Line(String),
    /// The head lacks this required field.
    #[error("the record has no {0}")]
    Missing(&'static str),
    /// The head has this field twice, with different values.
    #[error("the record has two {0}")]
    Twice(&'static str),
    /// The named field has an invalid value.
    #[error("bad {0}: {1:?}")]
    Bad(&'static str, String),
}

/// Formats the message about a zstd window that is too large. The message advises to recompress the file. If
/// the decoder supports the window, the message also names the option that raises the limit.
fn window_message(asked: u64, max: u64) -> String {
    let mebibytes = |bytes: u64| format!("{}MiB", bytes.div_ceil(1 << 20));
    let (asks, allowed) = (mebibytes(asked), mebibytes(max));
    let raise = if asked <= ZSTD_WINDOW_BYTES_MAX {
        format!("pass --zstd-window-max {asks}, or ")
    } else {
        String::new()
    };
    format!(
        "a zstd frame asks for a window of {asks}, and at most {allowed} is allowed; {raise}recompress the file with a smaller window: \
         `zstd -d --long=31 < FILE | zstd > NEW`"
    )
}

impl Reason {
    /// Creates a [`Reason::Columns`] from the message of a decoder. Joins the lines of the message into one
    /// line.
    pub fn columns(described: impl fmt::Display) -> Self {
        let described = described.to_string();
        let lines: Vec<_> = described.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Self::Columns(lines.join("; "))
    }

    /// Whether the same input may become valid later. Only a date in the future does.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Ahead(_) => true,
            Self::Item(error) => matches!(error.reason, ItemReason::Ahead(_)),
            _ => false,
        }
    }
}

impl InputError {
    /// Creates an error without skipped bytes and without a faulty line.
    #[must_use]
    pub fn new(path: &Arc<Path>, position: InputPosition, reason: Reason) -> Self {
        Self { path: Arc::clone(path), position, reason, skipped: 0, line: None }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Location { path: &self.path, position: self.position }, self.reason)?;
        if self.skipped > 0 {
            write!(f, "; {} bytes were skipped", self.skipped)?;
        }
        Ok(())
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.position {
            InputPosition::File => Ok(()),
            InputPosition::Record(offset) => write!(f, ", record at byte {offset}"),
            InputPosition::Unpacked(offset) => write!(f, ", record at byte {offset} of the unpacked data"),
            InputPosition::Line(line) => write!(f, ", line {line}"),
            InputPosition::Row(row) => write!(f, ", row {row}"),
        }
    }
}
