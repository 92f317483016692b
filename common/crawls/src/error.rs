//! What goes wrong with a crawl on disk, and what is left out of it on purpose.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::warc::HeadError;
use doppel_model::{TimeError, Timestamp, UrlError};
use doppel_protocol::page::ItemError;

/// A file, record or line that could not be read: where, and why.
#[derive(Debug, thiserror::Error)]
pub struct InputError {
    /// The file or directory.
    pub path: Arc<Path>,
    /// The place in it.
    pub place: Place,
    /// What is wrong there.
    pub reason: Reason,
}

/// A place in an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    File,
    /// The record that begins at this byte of the file as stored; in a compressed file, the record
    /// in the compressed member that begins there.
    Record(u64),
    /// This line, counted from 1.
    Line(u64),
}

/// What is wrong with a file, record or line.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The operating system refused.
    #[error("{0}")]
    Io(io::Error),
    /// No regular file and no directory.
    #[error("neither a file nor a directory")]
    FileKind,
    /// Neither the name nor the content tells a format.
    #[error(
        "unknown format: neither WARC, JSON lines, HTML nor text (compressed files hold WARC or JSON lines)"
    )]
    Format,
    /// A JSON array, which is not read piece by piece.
    #[error("a JSON array; the format is JSON lines, one object a line")]
    JsonArray,
    /// The data end in the middle.
    #[error("the data end in the middle of it")]
    Truncated,
    /// Compressed data that do not unpack.
    #[error("corrupt compressed data: {0}")]
    Corrupt(String),
    /// Compressed data that unpack to implausibly many bytes; the rest of the file is not read.
    #[error("unpacks to over {free_mib} MiB and {ratio} times its size; the rest of the file is left out")]
    Expansion {
        /// What is free, in MiB.
        free_mib: u64,
        /// Bytes unpacked for each byte stored, beyond that.
        ratio: u64,
    },
    /// A broken record head.
    #[error("{0}")]
    Head(#[from] HeadError),
    /// A record that goes on after its end.
    #[error("the record does not end where its Content-Length says")]
    Length,
    /// A record, line or page over its limit.
    #[error("{what} of {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size, or the least that is known of it.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// No page URL.
    #[error("{0}")]
    Url(#[from] UrlError),
    /// No date.
    #[error("the date is {0}")]
    Date(#[from] TimeError),
    /// A date too far in the future.
    #[error("the date {0} is more than 24 hours ahead")]
    Ahead(Timestamp),
    /// No HTTP response head.
    #[error("no HTTP response head: {0}")]
    Http(String),
    /// A Content-Encoding or Transfer-Encoding that cannot be undone.
    #[error("the body is not valid {0}")]
    Encoding(&'static str),
    /// A JSON line that is no page.
    #[error("{0}")]
    Item(#[from] ItemError),
}

/// Why a record or file, sound in itself, is no page; these are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skip {
    /// An HTTP status that says nothing about the page.
    Status(u16),
    /// Neither HTML nor text.
    ContentType,
    /// A Content-Encoding that is not read, such as br.
    Encoding,
    /// A revisit that found the page unchanged.
    Unchanged,
    /// A revisit whose content is that of a record that is not in this file.
    OriginalUnknown,
    /// A revisit with a profile that is not known.
    RevisitProfile,
    /// A redirect without a target.
    NoLocation,
    /// A redirect to something that is no page.
    BadLocation,
    /// A redirect from a page to itself.
    RedirectToItself,
    /// A record about something that is not http, https or file, such as dns.
    Scheme,
    /// A part of a record that was cut in pieces.
    Segment,
    /// A WARC record of a kind that is not known.
    RecordKind,
    /// A file whose name is not that of HTML, text or Markdown.
    FileName,
    /// A file with a text's name or none whose content is no text.
    Binary,
    /// A file or directory whose name begins with a dot.
    Hidden,
    /// A symbolic link or a special file.
    Link,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.place {
            Place::File => {}
            Place::Record(offset) => write!(f, ", record at byte {offset}")?,
            Place::Line(line) => write!(f, ", line {line}")?,
        }
        write!(f, ": {}", self.reason)
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status(status) => return write!(f, "HTTP status {status}"),
            Self::ContentType => "neither HTML nor text",
            Self::Encoding => "unsupported content encoding",
            Self::Unchanged => "unchanged revisit",
            Self::OriginalUnknown => "revisit of a record that is not in the file",
            Self::RevisitProfile => "unknown revisit profile",
            Self::NoLocation => "redirect without a target",
            Self::BadLocation => "redirect to something that is no page",
            Self::RedirectToItself => "redirect to itself",
            Self::Scheme => "not http, https or file",
            Self::Segment => "part of a segmented record",
            Self::RecordKind => "unknown kind of record",
            Self::FileName => "file name of neither HTML nor text",
            Self::Binary => "binary, not text",
            Self::Hidden => "hidden",
            Self::Link => "symbolic link or special file",
        })
    }
}
