//! Crawls on disk as a stream of pages, in crawl order: WARC files, JSON lines, and directories or
//! single files of HTML, text and Markdown.
//!
//! Every input is hostile: sizes, nesting and expansion are bounded, one bad record or line is an
//! item of the stream among good ones, and the stream goes on after it where it can. One record is
//! in memory at a time.
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
mod counted;
mod directory;
mod error;
mod format;
mod gzip;
mod limits;
mod lines;
mod stream;
mod warc;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

pub use clock::CrawlClock;
pub use error::{InputError, Place, Reason, Skip};
pub use limits::Limits;
pub use warc::HeadError;

use doppel_model::{PageUrl, Timestamp};
use format::Format;

/// One fetch of one page, as it stands in a crawl.
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

/// What a fetch gave.
#[derive(Debug, Clone, PartialEq)]
pub enum FetchedBody {
    /// An HTML document as served, content encodings undone.
    Html {
        /// The document.
        bytes: Vec<u8>,
        /// The charset that came with it; the document may name its own.
        charset: Option<String>,
    },
    /// Plain text or Markdown.
    Text(String),
    /// A redirect to another page.
    Redirect(PageUrl),
    /// The page is gone.
    Dead,
}

/// One step of an input.
#[derive(Debug)]
pub enum Item {
    /// A page.
    Page(Fetched),
    /// A sound record or file that is no page.
    Skipped(Skip),
    /// A bad file, record or line.
    Bad(InputError),
}

/// The pages of one file or directory, in order.
///
/// After an error that leaves nothing more to read the iterator ends, and [`broke_off`](Self::broke_off)
/// tells.
pub struct Input {
    source: Source,
    modified: Timestamp,
    bytes_total: u64,
}

enum Source {
    Warc(Box<warc::Pages>),
    Lines(Box<lines::Lines>),
    Files(Box<directory::Files>),
}

/// Opens a file or directory, and tells its format by its name or else by its first bytes.
///
/// # Errors
/// When it cannot be opened or is in no format that is read.
pub fn open(path: &Path, limits: Limits) -> Result<Input, InputError> {
    let name: Arc<Path> = path.into();
    let fail = |reason| InputError { path: Arc::clone(&name), place: Place::File, reason };
    let metadata = fs::metadata(path).map_err(|e| fail(Reason::Io(e)))?;
    let modified = modified(&metadata).min(limits.now);
    if metadata.is_dir() {
        let files = Source::Files(Box::new(directory::Files::below(path, limits)));
        return Ok(Input { source: files, modified, bytes_total: directory::size(path) });
    }
    if !metadata.is_file() {
        return Err(fail(Reason::FileKind));
    }
    let source = match format::of(path, &limits).map_err(&fail)? {
        Format::Warc => Source::Warc(Box::new(warc::Pages::open(&name, limits).map_err(&fail)?)),
        Format::Lines => Source::Lines(Box::new(lines::Lines::open(&name, limits).map_err(&fail)?)),
        Format::Page(kind) => Source::Files(Box::new(directory::Files::single(path, kind, limits))),
    };
    Ok(Input { source, modified, bytes_total: metadata.len() })
}

impl Input {
    /// When the file or directory was last modified, and not later than now.
    #[must_use]
    pub fn modified(&self) -> Timestamp {
        self.modified
    }

    /// How many of [`bytes_total`](Self::bytes_total) have been read, for a progress bar.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        match &self.source {
            Source::Warc(pages) => pages.bytes_read(),
            Source::Lines(lines) => lines.bytes_read(),
            Source::Files(files) => files.bytes_read(),
        }
    }

    /// Whether reading has ended before the end: there was damage or a failure of the system, and
    /// nothing that could be read behind it. An error that the reader went on after is none of these.
    #[must_use]
    pub fn broke_off(&self) -> bool {
        match &self.source {
            Source::Warc(pages) => pages.broke_off(),
            Source::Lines(lines) => lines.broke_off(),
            Source::Files(files) => files.broke_off(),
        }
    }

    /// The bytes of the file, or of all files of the directory, as stored.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }
}

impl Iterator for Input {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        match &mut self.source {
            Source::Warc(pages) => pages.next(),
            Source::Lines(lines) => lines.next(),
            Source::Files(files) => files.next(),
        }
    }
}

/// The modification time of a file, 1970 where the system has none.
fn modified(metadata: &fs::Metadata) -> Timestamp {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let millis = match modified.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    Timestamp::from_millis(millis)
}
