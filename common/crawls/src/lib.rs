//! Reads crawls on disk as a stream of pages, in crawl order. Inputs are WARC, WET, ARC and WACZ files; JSON lines, CSV, TSV,
//! Parquet and Arrow of any schema; and directories or single files of HTML, text and Markdown. Text formats may be compressed.
//!
//! Input is untrusted: sizes, nesting and expansion are bounded. A bad record or line becomes an error item in
//! the stream, and the stream continues after it where possible. Only one record is in memory at a time.
//!
//! ```
//! use doppel_crawls::{Item, Limits};
//! use doppel_model::Timestamp;
//!
//! let dir = tempfile::tempdir().unwrap();
//! let path = dir.path().join("crawl.jsonl");
//! std::fs::write(&path, "{\"url\": \"https://a.org/\", \"text\": \"Hello\"}\n{\"url\": 7}\n").unwrap();
//!
//! let limits = Limits::at(Timestamp::from_millis(1_700_000_000_000));
//! let items: Vec<Item> = doppel_crawls::open(&path, limits).unwrap().collect();
//! assert!(matches!(&items[0], Item::Page(page) if page.url.as_str() == "https://a.org/"));
//! assert!(matches!(&items[1], Item::Bad(error) if error.to_string().ends_with("a string at column 9")));
//! ```
#![forbid(unsafe_code)]

mod arc_line;
mod charset;
mod clock;
mod columns;
pub mod copy;
mod counted;
mod delimited;
mod directory;
mod error;
mod format;
mod gzip;
mod input;
mod limits;
mod lines;
mod members;
mod names;
mod opening;
mod page_dates;
mod part;
mod raw_lines;
pub mod record;
mod skip;
mod solid;
mod stream;
mod teed;
mod wacz;
mod warc;
mod warc_version;
mod zstd_frames;
mod zstd_header;

use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

pub use clock::CrawlClock;
pub use delimited::is_separator;
pub use error::{FieldError, FieldProblem, HeadError, InputError, Location, Place, Reason, Skip};
pub use format::{InputFormat, UnknownFormat};
pub use input::Input;
pub(crate) use input::Source;
pub use limits::Limits;
pub use names::{crawl_ending, is_html};
pub use zstd_header::ZSTD_WINDOW_BYTES_MAX;

pub use opening::{open, open_as, open_copy, open_pipe};

use doppel_model::{PageUrl, RawContent, Timestamp};
use doppel_protocol::page::{PageBody, PageItem};
use record::{FieldMap, FieldNames, IdChoices};

/// One fetch of one page, as recorded in a crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// The page.
    pub url: PageUrl,
    /// When it was fetched; [`CrawlClock`] supplies a missing date.
    pub fetched_at: Option<Timestamp>,
    /// What was fetched.
    pub body: FetchedBody,
    /// Any measure of popularity, finite and not negative.
    pub popularity: Option<f64>,
    /// Language tag.
    pub language: Option<String>,
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchedBody {
    /// An HTML document as served, after content encodings are undone.
    Html {
        /// The document.
        bytes: Vec<u8>,
        /// The charset that the response declared. The document may declare another one.
        charset: Option<String>,
    },
    /// A document whose media type or file name is that of XHTML.
    Xhtml {
        /// The document, as above.
        bytes: Vec<u8>,
        /// The charset that the response declared.
        charset: Option<String>,
    },
    /// Plain text or Markdown.
    Text(String),
    /// A redirect to another page.
    Redirect(PageUrl),
    /// The page is gone.
    Dead,
}

impl FetchedBody {
    /// What there is to be read; none of a redirect or a page that is gone.
    #[must_use]
    pub fn raw_content(&self) -> Option<RawContent<'_>> {
        match self {
            Self::Html { bytes, charset } => Some(RawContent::Html { bytes, charset: charset.as_deref() }),
            Self::Xhtml { bytes, charset } => Some(RawContent::Xhtml { bytes, charset: charset.as_deref() }),
            Self::Text(text) => Some(RawContent::Text(text)),
            Self::Redirect(_) | Self::Dead => None,
        }
    }

    /// Whether there is something to be read.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.raw_content().is_some()
    }

    /// Which of two versions of a page with one date comes later, as far as their kinds tell: a death comes after a content, and a content
    /// after a redirect.
    #[must_use]
    pub fn order_of_one_date(&self) -> impl Ord + use<> {
        match self {
            Self::Redirect(_) => 0_u8,
            Self::Html { .. } | Self::Xhtml { .. } | Self::Text(_) => 1,
            Self::Dead => 2,
        }
    }
}

/// A page of the public form. JSON is Unicode, whatever charset the HTML names.
impl From<PageItem> for Fetched {
    fn from(item: PageItem) -> Self {
        let PageItem { url, body, fetched_at, popularity, language } = item;
        let body = match body {
            PageBody::Html(html) => {
                FetchedBody::Html { bytes: html.into_bytes(), charset: Some("utf-8".to_owned()) }
            }
            PageBody::Text(text) => FetchedBody::Text(text),
            PageBody::Redirect(target) => FetchedBody::Redirect(target),
            PageBody::Dead => FetchedBody::Dead,
        };
        Self { url, fetched_at, body, popularity, language }
    }
}

/// How an input is read.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Its bounds.
    pub limits: Limits,
    /// Its format; found by its name or content where this is none.
    pub format: Option<InputFormat>,
    /// Which fields of records hold what; the others are guessed.
    pub fields: FieldNames,
    /// Whether records are judged each on its own. Otherwise a revisit of a WARC that finds its page unchanged is skipped.
    pub judges_records: bool,
    /// What separates the cells of a table; found by the file where this is none.
    pub separator: Option<u8>,
    /// What names the records of files whose id is guessed.
    pub ids: IdChoices,
    /// Whether all columns of Parquet and Arrow files are decoded, also those that no field is read from. A row can be copied only if
    /// all its columns can be decoded.
    pub all_columns: bool,
}

impl From<Limits> for InputOptions {
    /// All fields are guessed, and the URL of a record is that of its page.
    fn from(limits: Limits) -> Self {
        Self {
            limits,
            format: None,
            fields: FieldNames::default(),
            judges_records: false,
            separator: None,
            ids: IdChoices::default(),
            all_columns: false,
        }
    }
}

/// One item of an input.
#[derive(Debug)]
pub enum Item {
    /// Where the fields of the following records are, in front of the first of a file. A file that is read in Doppel's own form has
    /// none.
    Fields(Arc<FieldMap>),
    /// A page.
    Page(Fetched),
    /// A valid record or file that is not a page.
    Skipped(Skip),
    /// A file, record or line that could not be read.
    Bad(InputError),
}

/// The modification time of a file; 1970 if the system does not provide one.
fn modified(metadata: &fs::Metadata) -> Timestamp {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let millis = match modified.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Timestamp::from_millis(millis)
}
