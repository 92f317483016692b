//! Errors of reading a crawl from disk, and the reasons for which records are skipped.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use super::skip::Skip;
use super::zstd_header::ZSTD_WINDOW_BYTES_MAX;
use doppel_charset::NoText;
use doppel_model::{TimeError, Timestamp, UrlError};
use doppel_protocol::page::{ItemError, ItemReason};

/// A file, record or line that could not be read, and why.
#[derive(Debug, thiserror::Error)]
pub struct InputError {
    /// The file or directory.
    pub path: Arc<Path>,
    /// The place in the file.
    pub place: Place,
    /// The error.
    pub reason: Reason,
    /// The number of unpacked bytes that were skipped to go on behind it, where it is a record whose end is not known.
    pub skipped: u64,
    /// The line at fault as it was, without its line feed, where the fault is in a line of text that was read whole.
    pub line: Option<Box<[u8]>>,
}

/// Where something is in an input. Written as `pages.jsonl, line 7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'p> {
    /// The file or directory.
    pub path: &'p Path,
    /// The place in the file.
    pub place: Place,
}

/// A place in an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Place {
    /// The file as a whole.
    File,
    /// The record at this byte offset of the stored file. In a compressed file, the first record of the compressed
    /// member that begins at this offset.
    Record(u64),
    /// This line, counted from 1.
    Line(u64),
    /// This row of a table, counted from 1.
    Row(u64),
    /// Another record of a compressed member: the one at this byte of what the file unpacks to, or the WARC files of a WACZ file one after
    /// the other.
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
    /// A compressed Parquet, Arrow or WACZ file.
    #[error("a Parquet, Arrow or WACZ file inside another compression cannot be read; unpack it")]
    PackedColumns,
    /// A WACZ file, or a file in one, that cannot be read.
    #[error("cannot be read: {0}")]
    Wacz(String),
    /// A page of HTML or text on standard input or in a pipe, where it has no name.
    #[error(
        "a page of HTML or text has no name here; JSON lines, WARC, Parquet and Arrow can be read, and CSV and TSV with --format"
    )]
    PageInPipe,
    /// A JSON array. It is not supported because it cannot be read line by line.
    #[error(
        "a JSON array; the format is JSON lines, one object a line: `jq -c '.[]' FILE > lines.jsonl` converts it"
    )]
    JsonArray,
    /// JSON objects that are over several lines each.
    #[error(
        "JSON objects over several lines; the format is JSON lines, one object a line: `jq -c . FILE > lines.jsonl` converts them"
    )]
    JsonOverLines,
    /// Records as lines of UTF-16.
    #[error("lines in UTF-16, where UTF-8 is read; `iconv -f UTF-16 -t UTF-8` converts them")]
    Utf16,
    /// A row is behind damage of its file.
    #[error("it is behind the damage, so it was not read")]
    BehindDamage,
    /// The data end in the middle of a record, line or compressed member.
    #[error("the data end in the middle of it")]
    Truncated,
    /// Compressed data that cannot be decompressed.
    #[error("corrupt compressed data: {0}")]
    Corrupt(String),
    /// A zstd frame that asks for more memory than is allowed.
    #[error("{}", of_window(*asked, *max))]
    ZstdWindow {
        /// The window that the frame asks for, in bytes.
        asked: u64,
        /// The largest that is allowed.
        max: u64,
    },
    /// Compressed data that expand to an implausible size. The rest of the file is not read.
    #[error("unpacks to over {free_mib} MiB and {ratio} times its size; the rest of the file is left out")]
    Expansion {
        /// The expanded size that is always allowed, in MiB.
        free_mib: u64,
        /// Allowed expanded bytes per stored byte, in addition to that.
        ratio: u64,
    },
    /// An invalid record head.
    #[error("{0}")]
    Head(#[from] HeadError),
    /// A record does not end where its length says.
    #[error("the record does not end where its length says")]
    Length,
    /// A record, line or page above its size limit.
    #[error("{what} of {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes, or a lower bound of it.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// An invalid page URL.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// An invalid date.
    #[error("the date is {0}")]
    Date(#[from] TimeError),
    /// A date too far in the future.
    #[error("the date {0} is more than 24 hours ahead")]
    Ahead(Timestamp),
    /// The HTTP response head is missing or invalid.
    #[error("no HTTP response head: {0}")]
    Http(String),
    /// A Content-Encoding or Transfer-Encoding that cannot be undone.
    #[error("the body is not valid {0}")]
    Encoding(&'static str),
    /// A Content-Encoding or Transfer-Encoding of another name, whose body is no text.
    #[error("the body is encoded as {0:?}, which cannot be read")]
    Coding(String),
    /// More codings of a body than are undone.
    #[error("the body has more than {0} encodings")]
    Codings(usize),
    /// Content that is binary or compressed data.
    #[error("{0}")]
    NoText(#[from] NoText),
    /// Text behind the closing quote of a cell.
    #[error("text behind the closing quote of a cell that begins in line {line}{}", if *escaped { "; a quote in a cell is doubled, not escaped by a backslash" } else { "" })]
    BehindQuote {
        /// The line of the opening quote, counted from 1.
        line: u64,
        /// Whether a backslash stands in front of the closing quote.
        escaped: bool,
    },
    /// A cell in quotes that is over too many lines.
    #[error("the quote that begins in line {line} is not closed within {lines} lines and {bytes} bytes")]
    LongQuote {
        /// The line of the opening quote, counted from 1.
        line: u64,
        /// How many lines a cell may be over.
        lines: u64,
        /// How many bytes a row may have.
        bytes: usize,
    },
    /// A quote that is open at the end of the file.
    #[error("the quote that begins in line {line} is never closed")]
    OpenQuote {
        /// The line of the opening quote, counted from 1.
        line: u64,
    },
    /// A table with comments in front of its names.
    #[error(
        "a table that begins with a comment, which CSV does not have; `grep -v '^#' FILE > table.csv` leaves out lines that begin with #"
    )]
    Comments,
    /// A row of a table that does not have a cell for each name.
    #[error("{cells} cells under {names} names")]
    Cells {
        /// The cells of the row.
        cells: usize,
        /// The names in the first row.
        names: usize,
    },
    /// A file of columns that cannot be decoded.
    #[error("no valid Parquet or Arrow data: {0}")]
    Columns(String),
    /// Records that are to be annotated, and are.
    #[error("it has fields that begin with doppel_ already; leave --annotate away")]
    Annotated,
    /// Pages that are files of their own, which have no place for annotations.
    #[error("a page that is a file of its own cannot be annotated; leave --annotate away")]
    NoAnnotations,
    /// Records of ARC, which have no place for annotations.
    #[error("a record of ARC has no place for annotations; leave --annotate away")]
    NoAnnotationsInArc,
    /// A column of Parquet whose values would not be written as they were read.
    #[error(
        "the column {column:?} is {is}, which cannot be written as it is read; leave the file out, or --kept and --removed away"
    )]
    Unwritable {
        /// The path of the column.
        column: String,
        /// Its type.
        is: &'static str,
    },
    /// A JSON line that is not a valid page item.
    #[error("{0}")]
    Item(#[from] ItemError),
    /// A record with a field that is not what it has to be.
    #[error("{0}")]
    Field(FieldError),
}

/// What is wrong with a field of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?}: {problem}")]
pub struct FieldError {
    /// The path of the field.
    pub path: String,
    /// What is wrong.
    pub problem: FieldProblem,
}

/// What can be wrong with a field of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    /// The record does not have it.
    #[error("missing")]
    Missing,
    /// A value of another type.
    #[error("is {is}, and has to be {has_to_be}")]
    Type {
        /// What it is.
        is: &'static str,
        /// What it has to be.
        has_to_be: &'static str,
    },
    /// A list in the place of text.
    #[error(
        "is a list, and has to be text; {option} {path}[] takes the texts in it, and {path}[].NAME a field of the objects in it"
    )]
    List {
        /// The path of the list.
        path: String,
        /// The option that names a field of this kind.
        option: &'static str,
    },
    /// An id that is a number beyond 64 bits.
    #[error("is a number of more than 64 bits, of which not all digits can be read; write it as text")]
    LargeId,
    /// No date.
    #[error(
        "no date: neither RFC 3339, nor a date or date-time without zone, nor seconds or milliseconds since 1970 as a number from 100,000,000"
    )]
    Date,
    /// No language tag.
    #[error("no language tag")]
    Language,
    /// No measure of popularity.
    #[error("has to be a finite number that is not negative")]
    Popularity,
    /// A second field that says what the record is.
    #[error("given beside {0}; a page has exactly one of html, text, redirect_to and dead: true")]
    SecondBody(String),
    /// No page URL.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// The record's URL redirects to itself.
    #[error("redirects to itself")]
    RedirectToItself,
    /// An earlier record of the file has the same id.
    #[error("an earlier record of the file has the id {0:?}")]
    RepeatedId(String),
}

/// Why the head of a WARC record is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// Something other than a record begins here.
    #[error("no WARC record; it begins with {0:?}")]
    Version(String),
    /// A record of a version of WARC that is not read.
    #[error("{0} is not read; WARC/0.17, WARC/0.18, WARC/1.0 and WARC/1.1 are")]
    OtherVersion(String),
    /// Something other than a record of ARC begins here.
    #[error("no ARC record; it begins with {0:?}")]
    Arc(String),
    /// Longer than the limit, which is in bytes.
    #[error("the record head is longer than {0} bytes")]
    TooLong(usize),
    /// A line without a colon.
    #[error("a line of the record head is no field: {0:?}")]
    Line(String),
    /// A required field is missing.
    #[error("the record has no {0}")]
    Missing(&'static str),
    /// A field is given twice, with different values.
    #[error("the record has two {0}")]
    Twice(&'static str),
    /// A field has an invalid value.
    #[error("bad {0}: {1:?}")]
    Bad(&'static str, String),
}

/// What a zstd frame asks for, and the two ways round.
fn of_window(asked: u64, max: u64) -> String {
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
    /// Damage of a file of columns. The lines in which a decoder describes it become one.
    pub(crate) fn columns(described: impl fmt::Display) -> Self {
        let described = described.to_string();
        let lines: Vec<_> = described.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Self::Columns(lines.join("; "))
    }

    /// Whether what is wrong may be right later: a date that is ahead.
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
    /// An error without a line.
    #[must_use]
    pub fn new(path: &Arc<Path>, place: Place, reason: Reason) -> Self {
        Self { path: Arc::clone(path), place, reason, skipped: 0, line: None }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Location { path: &self.path, place: self.place }, self.reason)?;
        if self.skipped > 0 {
            write!(f, "; {} bytes were skipped", self.skipped)?;
        }
        Ok(())
    }
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.place {
            Place::File => Ok(()),
            Place::Record(offset) => write!(f, ", record at byte {offset}"),
            Place::Unpacked(offset) => write!(f, ", record at byte {offset} of the unpacked data"),
            Place::Line(line) => write!(f, ", line {line}"),
            Place::Row(row) => write!(f, ", row {row}"),
        }
    }
}
