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
mod limits;
mod lines;
mod members;
mod names;
mod opening;
mod page_dates;
mod part;
mod raw_lines;
pub mod record;
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
pub use limits::Limits;
pub use names::{crawl_ending, is_html};
pub use zstd_header::ZSTD_WINDOW_BYTES_MAX;

pub use opening::{open, open_as, open_copy, open_pipe};

use doppel_model::{PageUrl, RawContent, Timestamp};
use doppel_protocol::page::{PageBody, PageItem};
use record::{Field, FieldMap, FieldNames, IdChoices, IdRows, Ignored, NamedBy, Records, RepeatedId};

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
    /// Whether records are judged each on its own. A revisit of a WARC then has the content of the record that it refers to, also where
    /// that is an earlier capture of the same URL; otherwise such a revisit leaves its page as it is and is skipped.
    pub judges_records: bool,
    /// What separates the cells of a table; found by the file where this is none.
    pub separator: Option<u8>,
    /// What names the records of files whose id is guessed.
    pub ids: IdChoices,
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

/// The pages of one file or directory, in order.
///
/// The iterator ends after an error behind which nothing more can be read; [`broke_off`](Self::broke_off) then
/// returns true.
pub struct Input {
    source: Source,
    /// The first item, where it was read ahead.
    first: Option<Item>,
    modified: Timestamp,
    bytes_total: u64,
}

enum Source {
    Warc(Box<warc::Pages>),
    Wacz(Box<wacz::Wacz>),
    Lines(Box<lines::Lines>),
    Delimited(Box<delimited::Delimited>),
    Columns(Box<columns::Rows>),
    Files(Box<directory::Files>),
}

impl Input {
    /// The modification time of the file or directory, but not later than now; that is what it is for a pipe.
    #[must_use]
    pub fn modified(&self) -> Timestamp {
        self.modified
    }

    /// Has another modification time, of something that was opened as a pipe. It is not later than now.
    #[must_use]
    pub fn modified_at(mut self, modified: Timestamp) -> Self {
        self.modified = self.modified.min(modified);
        self
    }

    /// How many of [`bytes_total`](Self::bytes_total) have been read, for a progress bar.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.bytes_read(),
            Source::Wacz(files) => files.bytes_read(),
            Source::Lines(lines) => lines.bytes_read(),
            Source::Delimited(rows) => rows.bytes_read(),
            Source::Columns(rows) => rows.bytes_read(),
            Source::Files(files) => files.bytes_read(),
        }
    }

    /// Whether reading ended early: there was damage or an I/O failure, and nothing behind it could be read.
    /// Errors after which the reader continued do not count.
    #[must_use]
    pub fn broke_off(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.broke_off(),
            Source::Wacz(files) => files.broke_off(),
            Source::Lines(lines) => lines.broke_off(),
            Source::Delimited(rows) => rows.broke_off(),
            Source::Columns(rows) => rows.broke_off(),
            Source::Files(files) => files.broke_off(),
        }
    }

    /// Where in the file the last item was. The files of a directory are each a whole file.
    #[must_use]
    pub fn place(&self) -> Place {
        match &self.source {
            Source::Warc(pages) => pages.place(),
            Source::Wacz(files) => files.place(),
            Source::Lines(lines) => lines.place(),
            Source::Delimited(rows) => rows.place(),
            Source::Columns(rows) => rows.place(),
            Source::Files(_) => Place::File,
        }
    }

    /// What the last page is called in its own file, such as the id of a record of a WARC.
    #[must_use]
    pub fn record_id(&self) -> Option<&str> {
        match &self.source {
            Source::Warc(pages) => pages.record_id(),
            Source::Wacz(files) => files.current().and_then(warc::Pages::record_id),
            _ => self.records().and_then(Records::own_id),
        }
    }

    /// Whether the last page stores no content of its own and refers to that of another record.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.is_reference(),
            Source::Wacz(files) => files.current().is_some_and(warc::Pages::is_reference),
            _ => false,
        }
    }

    /// Whether a record can have annotations beside it: pages that are files of their own and records of ARC have no place for
    /// them.
    #[must_use]
    pub fn takes_annotations(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.form() == warc::Form::Warc,
            Source::Files(_) => false,
            _ => true,
        }
    }

    /// The records of a file of records, once its first ones were looked at.
    fn records(&self) -> Option<&Records> {
        match &self.source {
            Source::Lines(lines) => lines.records(),
            Source::Delimited(rows) => rows.records(),
            Source::Columns(rows) => rows.records(),
            Source::Warc(_) | Source::Wacz(_) | Source::Files(_) => None,
        }
    }

    /// Values of guessed fields, and dates of WARC and ARC, that could not be used and were ignored so far, by field.
    #[must_use]
    pub fn ignored(&self) -> Ignored {
        let dates = |ignored: u64| (ignored > 0).then_some((Field::Date, ignored)).into_iter().collect();
        match &self.source {
            Source::Warc(pages) => dates(pages.ignored_dates()),
            Source::Wacz(files) => dates(files.ignored_dates()),
            _ => self.records().map(|records| records.ignored().clone()).unwrap_or_default(),
        }
    }

    /// How many unpacked bytes of a WARC or ARC file were skipped so far because they are of no record whose end is known: broken
    /// records up to the next one, and what is between records.
    #[must_use]
    pub fn skipped_bytes(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.skipped_bytes(),
            Source::Wacz(files) => files.skipped_bytes(),
            _ => 0,
        }
    }

    /// How many pages of a WARC file so far had a body whose encoding ends early, so that only the beginning of the page was
    /// read.
    #[must_use]
    pub fn cut_off_bodies(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.cut_off(),
            Source::Wacz(files) => files.cut_off(),
            _ => 0,
        }
    }

    /// How many ids of records were not remembered so far, because there were too many: records that repeat one of these are not
    /// found.
    #[must_use]
    pub fn unremembered_ids(&self) -> u64 {
        self.records().map_or(0, Records::unremembered_ids)
    }

    /// How many texts had lone surrogates so far, for which U+FFFD was read.
    #[must_use]
    pub fn mended_texts(&self) -> u64 {
        self.records().map_or(0, Records::mended_texts)
    }

    /// What names the records that have no URL, where their id is guessed and had to be looked at.
    #[must_use]
    pub fn named_by(&self) -> Option<NamedBy> {
        self.records().and_then(Records::named_by)
    }

    /// The guessed id that is none, where that is known only since the file has begun: its first records have URLs.
    #[must_use]
    pub fn repeated_late(&self) -> Option<&RepeatedId> {
        self.records().and_then(Records::repeated_late)
    }

    /// The stored size in bytes of the file, or of all files of the directory; 0 for a pipe.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

impl Iterator for Input {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.first.take().or_else(|| self.source.next())
    }
}

impl Source {
    fn next(&mut self) -> Option<Item> {
        match self {
            Self::Warc(pages) => pages.next(),
            Self::Wacz(files) => files.next(),
            Self::Lines(lines) => lines.next(),
            Self::Delimited(rows) => rows.next(),
            Self::Columns(rows) => rows.next(),
            Self::Files(files) => files.next(),
        }
    }

    /// What is read for its ids alone.
    fn into_id_rows(self) -> Result<Box<dyn IdRows>, Reason> {
        match self {
            Self::Lines(lines) => Ok(lines),
            Self::Delimited(rows) => Ok(rows),
            Self::Columns(rows) => Ok(rows),
            Self::Warc(_) | Self::Wacz(_) | Self::Files(_) => Err(Reason::Format),
        }
    }
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
