//! Reads pages from archives of crawls: WARC, including WET, and ARC.
//!
//! The reader accepts WARC 1.0 and 1.1 (ISO 28500:2017), and the drafts 0.17 and 0.18 before them
//! (ClueWeb09). The WET files of Common Crawl are WARC files. ARC is the predecessor of WARC.
//!
//! The type of a record decides what the reader does with it:
//!
//! - A `response` or `resource` record is a page.
//! - A `conversion` to plain text, as in WET files, is a page.
//! - A `revisit` is a page with the content of the record to which it refers, if that record comes earlier in
//!   the same file. If the caller folds the versions of each URL, the reader skips a revisit that found its
//!   page unchanged.
//! - All other records describe the crawl, not a page.
//!
//! The submodules split the work. `record` finds the records and `head` parses their heads. `http` extracts
//! the page from a response, and `codings` undoes the encodings of its body. `original` finds the originals
//! of revisits, and `revisit` gives a revisit the content of its original. A bad record becomes an error
//! item. The reader ends the file early only if it can read nothing behind the damage.

mod arc;
pub(crate) mod arc_line;
mod archive_format;
mod chunked;
mod codings;
mod head;
mod http;
mod original;
pub(crate) mod record;
mod record_end;
mod revisit;
mod unpack;
pub(crate) mod version_line;

use std::path::Path;
use std::sync::Arc;

use doppel_contract::page::is_language;
use doppel_model::{PageUrl, UrlError};
use doppel_streams::{FilePart, HeadError, InputError, InputPosition, Limits, Reason, SkipReason, Stream};

use super::wacz::page_dates::PageDates;
use super::{FetchedPage, InputOptions, Item};
pub(crate) use archive_format::ArchiveFormat;
use head::{Field, Kind};
use http::{Block, ExtractedBody, NotAPage};
use original::{FileLocation, Originals};
use record::{Record, RecordReader};
use revisit::resolve_revisit;

/// The two paths of a file.
#[derive(Clone, Copy)]
pub(crate) struct FilePaths<'a> {
    /// The path at which the file is stored.
    pub(crate) stored: &'a Arc<Path>,
    /// The path by which messages call the file.
    pub(crate) shown: &'a Arc<Path>,
}

/// Reader of the pages of a WARC or ARC file.
pub(super) struct Pages {
    path: Arc<Path>,
    records: RecordReader,
    originals: Originals,
    limits: Limits,
    /// Number of pages returned so far.
    pages: u64,
    /// Distance in pages from the last page back to its original. `None` if its record stores the content.
    refers_back: Option<u64>,
    /// Dates for pages whose records have none.
    dates: Option<Arc<PageDates>>,
    /// Unpacked size of the files before this one, in bytes, if several files are read as one.
    unpacked_before: u64,
    skipped_bytes: u64,
    ignored_dates: u64,
    cut_off: u64,
}

impl Pages {
    /// Creates a reader of the file at `paths`, whose bytes `stream` delivers.
    pub(super) fn new(
        format: ArchiveFormat,
        paths: FilePaths<'_>,
        stream: Stream,
        options: &InputOptions,
    ) -> Self {
        Self::with_location(
            format,
            paths.shown,
            FileLocation::Path(Arc::clone(paths.stored)),
            stream,
            options,
        )
    }

    /// Creates a reader of a WARC file stored inside the file `shown`. Positions of its records refer to that
    /// file.
    pub(super) fn from_part(
        shown: &Arc<Path>,
        part: FilePart,
        options: &InputOptions,
    ) -> Result<Self, Reason> {
        let stream = part.open(&options.limits)?;
        Ok(Self::with_location(ArchiveFormat::Warc, shown, FileLocation::Part(part), stream, options))
    }

    fn with_location(
        format: ArchiveFormat,
        shown: &Arc<Path>,
        location: FileLocation,
        stream: Stream,
        options: &InputOptions,
    ) -> Self {
        let InputOptions { limits, judges_records, .. } = *options;
        Self {
            path: Arc::clone(shown),
            records: RecordReader::new(format, stream, limits),
            originals: Originals::new(format, location, limits, judges_records),
            limits,
            pages: 0,
            refers_back: None,
            dates: None,
            unpacked_before: 0,
            skipped_bytes: 0,
            ignored_dates: 0,
            cut_off: 0,
        }
    }

    /// Sets the dates for pages whose records have none.
    pub(super) fn with_dates(self, dates: Arc<PageDates>) -> Self {
        Self { dates: Some(dates), ..self }
    }

    /// Sets the unpacked size of the files that are read before this one, in bytes.
    pub(super) fn with_unpacked_before(self, unpacked_before: u64) -> Self {
        Self { unpacked_before, ..self }
    }

    /// Opens the file again from its beginning, with a reader that also returns the bytes of each record.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(super) fn reopen_records(&self) -> Result<RecordReader, Reason> {
        Ok(RecordReader::new_tapped(
            self.format(),
            self.originals.location().open(&self.limits)?,
            self.limits,
        ))
    }

    /// Archive format of the file.
    pub(super) fn format(&self) -> ArchiveFormat {
        self.records.format()
    }

    /// Id of the last record.
    pub(super) fn record_id(&self) -> Option<&str> {
        self.records.record().get(Field::RecordId).ok().flatten()
    }

    /// Distance in pages from the last page back to its original. `None` if its record stores the content.
    pub(super) fn refers_back(&self) -> Option<u64> {
        self.refers_back
    }

    /// Number of unpacked bytes skipped so far because they belong to no record with a known end.
    pub(super) fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// Number of invalid dates of pages ignored so far.
    pub(super) fn ignored_dates(&self) -> u64 {
        self.ignored_dates
    }

    /// Number of pages so far whose body ended early. The reader used the beginning of each.
    pub(super) fn cut_off(&self) -> u64 {
        self.cut_off
    }

    /// Position of the record that was returned last.
    pub(super) fn input_position(&self) -> InputPosition {
        let (location, records) = (self.originals.location(), &self.records);
        let unpacked = records.offset_unpacked(location.is_deflated());
        location.position(records.offset(), unpacked.map(|unpacked| self.unpacked_before + unpacked))
    }

    /// Number of unpacked bytes read from this file and the files before it.
    pub(super) fn unpacked(&self) -> u64 {
        self.unpacked_before + self.records.unpacked()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.records.bytes_read()
    }

    pub(super) fn broke_off(&self) -> bool {
        self.records.broke_off()
    }

    /// Head of the last record, as it is in the file.
    pub(super) fn head(&self) -> &[u8] {
        self.records.record().head_bytes
    }

    /// Reads the next record. `None` at the end. The inner value is the item that the record gives, or `None`
    /// for a record that is not about a page, such as a request.
    pub(super) fn next_record(&mut self) -> Option<Option<Item>> {
        match self.records.advance() {
            Ok(false) => return None,
            Ok(true) => {}
            Err(reason) => {
                let skipped = self.records.skipped();
                self.skipped_bytes += skipped;
                return Some(Some(self.bad(reason, skipped)));
            }
        }
        let Self { records, originals, limits, pages, .. } = self;
        let page = match page_of_record(records.record(), originals, *pages, limits) {
            Ok(page) => page,
            Err(NotAPage::Skip(skip)) => return Some(Some(Item::Skipped(skip))),
            Err(NotAPage::Bad(reason)) => return Some(Some(self.bad(reason, 0))),
        };
        Some(page.map(|ParsedPage { mut page, date, is_cut_off, original }| {
            self.refers_back = original.map(|original| self.pages - original);
            self.pages += 1;
            self.cut_off += u64::from(is_cut_off);
            self.ignored_dates += u64::from(date == DateUse::Ignored);
            let dates = self.dates.as_deref();
            page.fetched_at = page.fetched_at.or_else(|| dates.and_then(|dates| dates.of(&page.url)));
            Item::Page(page)
        }))
    }

    fn bad(&self, reason: Reason, skipped: u64) -> Item {
        Item::Bad(InputError { skipped, ..InputError::new(&self.path, self.input_position(), reason) })
    }
}

impl Iterator for Pages {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.next_record()? {
                return Some(item);
            }
        }
    }
}

/// A page, with facts about its record.
struct ParsedPage {
    page: FetchedPage,
    date: DateUse,
    /// Whether the body of the page ends early.
    is_cut_off: bool,
    /// Number of the original page of a revisit. `None` if the record stores the content.
    original: Option<u64>,
}

/// What the reader did with the date of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DateUse {
    /// The page got the date, or the record has none.
    Used,
    /// The date was invalid and was ignored.
    Ignored,
}

/// Reads a record as a page. `None` if the record is not about a page. `number` pages come before it in the
/// file.
fn page_of_record(
    record: Record<'_>,
    originals: &mut Originals,
    number: u64,
    limits: &Limits,
) -> Result<Option<ParsedPage>, NotAPage> {
    match record.head.kind {
        Kind::Auxiliary => return Ok(None),
        Kind::Unknown => return Err(SkipReason::RecordKind.into()),
        Kind::Response | Kind::Resource | Kind::Revisit | Kind::Conversion | Kind::ArcResponse => {}
    }
    let url = match PageUrl::parse(&record.head.target(record.head_bytes)?) {
        Err(UrlError::Scheme(_)) => return Err(SkipReason::Scheme.into()),
        parsed => parsed?,
    };
    if record.get(Field::SegmentNumber)?.is_some() {
        return Err(SkipReason::Segment.into());
    }
    let (ExtractedBody { body, is_cut_off }, original) = if record.head.kind == Kind::Revisit {
        resolve_revisit(&url, record, originals, limits)?
    } else {
        (extract(&url, record, limits)?, None)
    };
    let (fetched_at, date) = match record.head.date(record.head_bytes)? {
        Some(Ok(date)) => (Some(limits.check_date(date)?), DateUse::Used),
        Some(Err(_)) => (None, DateUse::Ignored),
        None => (None, DateUse::Used),
    };
    let content = match original {
        Some(original) => original.content,
        None if record.head.kind != Kind::Revisit && body.has_content() => originals.remember(record, number),
        None => number,
    };
    originals.remember_last_content(&url, content);
    let original = original.map(|original| original.number);
    let page = FetchedPage { url, fetched_at, body, popularity: None, language: language(record) };
    Ok(Some(ParsedPage { page, date, is_cut_off, original }))
}

/// Most frequent language of the page according to the crawler. An invalid language is ignored, because it
/// does not make the record bad.
fn language(record: Record<'_>) -> Option<String> {
    let languages = record.get(Field::Language).ok().flatten().unwrap_or_default();
    let most = languages.split(',').next().unwrap_or_default().trim();
    is_language(most).then(|| most.to_owned())
}

/// Extracts what a record says about the page `url`.
fn extract(url: &PageUrl, record: Record<'_>, limits: &Limits) -> Result<ExtractedBody, NotAPage> {
    let block = record.block();
    let content_type = record.get(Field::ContentType)?.map(str::as_bytes);
    match record.head.kind {
        Kind::Response => match content_type {
            Some(http) if http.trim_ascii().to_ascii_lowercase().starts_with(b"application/http") => {
                http::page(url, block, limits)
            }
            None => http::page(url, block, limits),
            Some(_) => Err(SkipReason::ContentType.into()),
        },
        Kind::ArcResponse if record.block.starts_with(b"HTTP") => http::page(url, block, limits),
        Kind::Conversion if content_type.is_none_or(|media| !is_plain_text(media)) => {
            Err(SkipReason::ContentType.into())
        }
        _ => http::document(content_type, block, limits),
    }
}

fn is_plain_text(media: &[u8]) -> bool {
    media.trim_ascii_start().to_ascii_lowercase().starts_with(b"text/plain")
}

impl<'a> Record<'a> {
    fn get(&self, field: Field) -> Result<Option<&'a str>, HeadError> {
        self.head.get(self.head_bytes, field)
    }

    fn block(&self) -> Block<'a> {
        Block { bytes: self.block, length: self.head.length }
    }
}
