//! Reads crawls from files, directories and pipes as a stream of pages, in crawl order.
//!
//! The inputs are WARC, WET, ARC and WACZ files, and JSON lines, CSV, TSV, Parquet and Arrow files of any
//! schema. HTML, text and Markdown files are pages, alone or in directories. Text formats may be compressed.
//! [`open`] detects the format of a path and returns an [`Input`], an iterator of [`Item`]s. The module
//! [`mod@copy`] copies records of an input, and [`record`] turns records of any schema into pages. Without the
//! feature `columns`, Parquet and Arrow files are recognised and refused.
//!
//! Input is untrusted, so [`Limits`] bounds sizes, nesting and expansion. A bad record or line becomes an
//! error item, and the stream continues after it if possible. Only one record is in memory at a time. The
//! crate never judges pages; it does not know what its caller does with them.
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

mod charset;
mod clock;
#[cfg(feature = "columns")]
mod columns;
#[cfg(not(feature = "columns"))]
#[path = "columns/without.rs"]
mod columns;
pub mod copy;
mod delimited;
mod directory;
mod format;
mod input;
mod lines;
mod names;
mod opening;
pub mod record;
mod wacz;
mod warc;

use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

pub use clock::CrawlClock;
pub use delimited::is_separator;
pub use doppel_streams::{
    FieldError, FieldProblem, HeadError, InputError, InputPosition, Limits, Location, Reason, SkipReason,
    ZSTD_WINDOW_BYTES_MAX,
};
pub use format::{InputFormat, UnknownFormat};
pub use input::Input;
pub(crate) use input::Source;
pub use names::{crawl_ending, is_html};

pub use opening::{open, open_as, open_copy, open_pipe};

use doppel_contract::page::{PageBody, PageItem};
use doppel_model::{PageUrl, RawContent, Timestamp};
use record::{FieldMap, FieldNames, IdChoices};

/// One fetch of one page, as the crawl records it.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchedPage {
    /// URL of the fetched page.
    pub url: PageUrl,
    /// Time of the fetch. If the crawl records no time, [`CrawlClock`] supplies one.
    pub fetched_at: Option<Timestamp>,
    /// Result of the fetch.
    pub body: FetchedBody,
    /// Any measure of the popularity of the page: finite and not negative.
    pub popularity: Option<f64>,
    /// Language tag of the page, if the crawl records one.
    pub language: Option<String>,
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchedBody {
    /// An HTML document as the server sent it, after content encodings are undone.
    Html {
        /// Bytes of the document.
        bytes: Vec<u8>,
        /// The charset that the response declared. The document may declare another one.
        charset: Option<String>,
    },
    /// An XHTML document, recognised by its media type or file name.
    Xhtml {
        /// Bytes of the document, after content encodings are undone.
        bytes: Vec<u8>,
        /// The charset that the response declared.
        charset: Option<String>,
    },
    /// A document of plain text or Markdown.
    Text(String),
    /// A redirect to another page.
    Redirect(PageUrl),
    /// The page no longer exists.
    Dead,
}

impl FetchedBody {
    /// The content of the page for extraction. `None` for a redirect or a dead page.
    #[must_use]
    pub fn raw_content(&self) -> Option<RawContent<'_>> {
        match self {
            Self::Html { bytes, charset } => Some(RawContent::Html { bytes, charset: charset.as_deref() }),
            Self::Xhtml { bytes, charset } => Some(RawContent::Xhtml { bytes, charset: charset.as_deref() }),
            Self::Text(text) => Some(RawContent::Text(text)),
            Self::Redirect(_) | Self::Dead => None,
        }
    }

    /// Whether the fetch has content: HTML, XHTML or text.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.raw_content().is_some()
    }

    /// Rank that orders two versions of a page with the same date. A redirect comes first, then a content,
    /// then a death.
    #[must_use]
    pub fn order_of_one_date(&self) -> impl Ord + use<> {
        match self {
            Self::Redirect(_) => 0_u8,
            Self::Html { .. } | Self::Xhtml { .. } | Self::Text(_) => 1,
            Self::Dead => 2,
        }
    }
}

/// Converts a page from the JSON form of the HTTP API. JSON is Unicode, so the charset is UTF-8 whatever the
/// HTML names.
impl From<PageItem> for FetchedPage {
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

/// Options for reading an input.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Bounds on sizes, dates and memory.
    pub limits: Limits,
    /// Format of the input. If `None`, the reader detects the format from the file name or the first bytes.
    pub format: Option<InputFormat>,
    /// Names of the record fields that the user has set. The reader guesses the other fields.
    pub fields: FieldNames,
    /// Whether the caller judges each record on its own instead of folding the versions of a URL. If false,
    /// the reader skips a WARC revisit that found its page unchanged.
    pub judges_records: bool,
    /// Separator of the cells of a CSV or TSV file. If `None`, the reader detects it from the file.
    pub separator: Option<u8>,
    /// Choices between id and row number as the name of records, for files whose id field is guessed.
    pub ids: IdChoices,
    /// Whether to decode all columns of Parquet and Arrow files, including columns that no field uses.
    /// Copying a row requires all its columns.
    pub all_columns: bool,
}

impl From<Limits> for InputOptions {
    /// Options in which every field is guessed and every version of a URL is folded into one page.
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
    /// Mapping from record fields to page fields, sent before the first record of a file. A file in the JSON
    /// form of Doppel's HTTP API has no such item.
    Fields(Arc<FieldMap>),
    /// A page that was read.
    Page(FetchedPage),
    /// A valid record or file that gives no page, and the reason.
    Skipped(SkipReason),
    /// A file, record or line that could not be read, and the error.
    Bad(InputError),
}

/// Modification time of a file. If the system does not provide one, the start of 1970.
fn modified(metadata: &fs::Metadata) -> Timestamp {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let millis = match modified.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Timestamp::from_millis(millis)
}
