//! Reads pages from WARC 1.0 and 1.1 (ISO 28500:2017), from the drafts 0.17 and 0.18 before these (ClueWeb09), from the WET files of
//! Common Crawl, which are WARC, and from ARC, the format before WARC.
//!
//! `response` and `resource` records are pages. A `conversion` to plain text (the WET form of a crawl) is a
//! page, too. A `revisit` is a page with the content of the record that it refers to, if that comes earlier in the same
//! file; if the versions of each URL are folded, a revisit that found its page unchanged is skipped. Other records describe the crawl, not a page.

mod arc;
mod chunked;
mod codings;
mod end;
mod form;
mod head;
mod http;
mod original;
pub(crate) mod record;
mod unpack;

use std::path::Path;
use std::sync::Arc;

use super::error::{HeadError, InputError, Place, Reason, Skip};
use super::limits::Limits;
use super::page_dates::PageDates;
use super::part::Part;
use super::stream::Stream;
use super::{Fetched, InputOptions, Item};
use doppel_model::{PageUrl, UrlError};
use doppel_protocol::page::is_language;
pub(crate) use form::Form;
use head::{Field, Kind};
use http::{Answer, Block, Refusal};
use original::{Known, Originals, Whereabouts};
use record::{Record, Records};

/// The pages of a WARC or ARC file.
pub(super) struct Pages {
    path: Arc<Path>,
    records: Records,
    originals: Originals,
    limits: Limits,
    /// Pages so far.
    pages: u64,
    /// Distance in pages from the last page back to its original. `None` if its record stores the content.
    refers_back: Option<u64>,
    dates: Option<Arc<PageDates>>,
    /// What the files in front of this one unpack to, in bytes, where several are read as one.
    unpacked_before: u64,
    skipped_bytes: u64,
    ignored_dates: u64,
    cut_off: u64,
}

impl Pages {
    /// Those of a file that is called `shown` and is at a path.
    pub(super) fn new(
        form: Form,
        (shown, path): (&Arc<Path>, &Arc<Path>),
        stream: Stream,
        options: &InputOptions,
    ) -> Self {
        Self::at(form, (shown, Whereabouts::Path(Arc::clone(path))), stream, options)
    }

    /// Those of a WARC file that is a part of the file `shown`. Places are those in that file.
    pub(super) fn of_part(shown: &Arc<Path>, part: Part, options: &InputOptions) -> Result<Self, Reason> {
        let stream = part.open(&options.limits)?;
        Ok(Self::at(Form::Warc, (shown, Whereabouts::Part(part)), stream, options))
    }

    fn at(
        form: Form,
        (shown, place): (&Arc<Path>, Whereabouts),
        stream: Stream,
        options: &InputOptions,
    ) -> Self {
        let InputOptions { limits, judges_records, .. } = *options;
        Self {
            path: Arc::clone(shown),
            records: Records::new(form, stream, limits),
            originals: Originals::new(form, place, limits, judges_records),
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

    /// With the dates of pages whose records have none.
    pub(super) fn with_dates(self, dates: Arc<PageDates>) -> Self {
        Self { dates: Some(dates), ..self }
    }

    /// Behind files that unpack to so many bytes.
    pub(super) fn behind(self, unpacked_before: u64) -> Self {
        Self { unpacked_before, ..self }
    }

    /// Opens the file once more, from its beginning, with the bytes of each record.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn records_again(&self) -> Result<Records, Reason> {
        Ok(Records::tapped(self.form(), self.originals.place().open(&self.limits)?, self.limits))
    }

    /// The form of the records.
    pub(super) fn form(&self) -> Form {
        self.records.form()
    }

    /// The id of the record that was read last.
    pub(super) fn record_id(&self) -> Option<&str> {
        self.records.record().get(Field::RecordId).ok().flatten()
    }

    /// Distance in pages from the last page back to its original. `None` if its record stores the content.
    pub(super) fn refers_back(&self) -> Option<u64> {
        self.refers_back
    }

    /// How many unpacked bytes were skipped so far because they are of no record whose end is known.
    pub(super) fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// How many dates of pages were ignored so far because they are none.
    pub(super) fn ignored_dates(&self) -> u64 {
        self.ignored_dates
    }

    /// How many pages so far had a body that ends early, of which the beginning was read.
    pub(super) fn cut_off(&self) -> u64 {
        self.cut_off
    }

    /// The record that was read last.
    pub(super) fn place(&self) -> Place {
        let (place, records) = (self.originals.place(), &self.records);
        let unpacked = records.offset_unpacked(place.is_deflated());
        place.place(records.offset(), unpacked.map(|unpacked| self.unpacked_before + unpacked))
    }

    /// The number of unpacked bytes read, and of those in front of them.
    pub(super) fn unpacked(&self) -> u64 {
        self.unpacked_before + self.records.unpacked()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.records.bytes_read()
    }

    pub(super) fn broke_off(&self) -> bool {
        self.records.broke_off()
    }

    /// The head of the record that was read last.
    pub(super) fn head(&self) -> &[u8] {
        self.records.record().head_bytes
    }

    /// The next record: the item that it is, and none where it is beside the pages, such as a request. `None` at the end.
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
        let page = match page(records.record(), originals, *pages, limits) {
            Ok(page) => page,
            Err(Refusal::Skip(skip)) => return Some(Some(Item::Skipped(skip))),
            Err(Refusal::Bad(reason)) => return Some(Some(self.bad(reason, 0))),
        };
        Some(page.map(|ReadPage { mut page, date, is_cut_off, original }| {
            self.refers_back = original.map(|original| self.pages - original);
            self.pages += 1;
            self.cut_off += u64::from(is_cut_off);
            self.ignored_dates += u64::from(date == GivenDate::Ignored);
            let known = self.dates.as_deref();
            page.fetched_at = page.fetched_at.or_else(|| known.and_then(|dates| dates.of(&page.url)));
            Item::Page(page)
        }))
    }

    fn bad(&self, reason: Reason, skipped: u64) -> Item {
        Item::Bad(InputError { skipped, ..InputError::new(&self.path, self.place(), reason) })
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

/// The page that a record is read as.
struct ReadPage {
    page: Fetched,
    date: GivenDate,
    /// Whether its body ends early.
    is_cut_off: bool,
    /// The number of its original. `None` if its record stores the content.
    original: Option<u64>,
}

/// What the date of a record was good for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivenDate {
    /// It is that of the page, or there is none.
    Used,
    /// It is no date.
    Ignored,
}

/// The page in a record, if the record is about a page. So many pages come before it in the file.
fn page(
    record: Record<'_>,
    originals: &mut Originals,
    number: u64,
    limits: &Limits,
) -> Result<Option<ReadPage>, Refusal> {
    match record.head.kind {
        Kind::Aside => return Ok(None),
        Kind::Unknown => return Err(Skip::RecordKind.into()),
        Kind::Response | Kind::Resource | Kind::Revisit | Kind::Conversion | Kind::Archived => {}
    }
    let url = match PageUrl::parse(&record.head.target(record.head_bytes)?) {
        Err(UrlError::Scheme(_)) => return Err(Skip::Scheme.into()),
        parsed => parsed?,
    };
    if record.get(Field::SegmentNumber)?.is_some() {
        return Err(Skip::Segment.into());
    }
    let (Answer { body, is_cut_off }, original) = if record.head.kind == Kind::Revisit {
        revisited(&url, record, originals, limits)?
    } else {
        (content(&url, record, limits)?, None)
    };
    let (fetched_at, date) = match record.head.date(record.head_bytes)? {
        Some(Ok(date)) => (Some(limits.check_date(date)?), GivenDate::Used),
        Some(Err(_)) => (None, GivenDate::Ignored),
        None => (None, GivenDate::Used),
    };
    let content = match original {
        Some(original) => original.content,
        None if record.head.kind != Kind::Revisit && body.has_content() => originals.remember(record, number),
        None => number,
    };
    originals.note_last(&url, content);
    let original = original.map(|original| original.number);
    let page = Fetched { url, fetched_at, body, popularity: None, language: language(record) };
    Ok(Some(ReadPage { page, date, is_cut_off, original }))
}

/// The language that a crawler found most of, if the record says so. What is no language makes no bad record.
fn language(record: Record<'_>) -> Option<String> {
    let languages = record.get(Field::Language).ok().flatten().unwrap_or_default();
    let most = languages.split(',').next().unwrap_or_default().trim();
    is_language(most).then(|| most.to_owned())
}

/// What a record says about the page `url`.
fn content(url: &PageUrl, record: Record<'_>, limits: &Limits) -> Result<Answer, Refusal> {
    let block = record.block();
    let content_type = record.get(Field::ContentType)?.map(str::as_bytes);
    match record.head.kind {
        Kind::Response => match content_type {
            Some(http) if http.trim_ascii().to_ascii_lowercase().starts_with(b"application/http") => {
                http::page(url, block, limits)
            }
            None => http::page(url, block, limits),
            Some(_) => Err(Skip::ContentType.into()),
        },
        Kind::Archived if record.block.starts_with(b"HTTP") => http::page(url, block, limits),
        Kind::Conversion if content_type.is_none_or(|media| !is_plain_text(media)) => {
            Err(Skip::ContentType.into())
        }
        _ => http::document(content_type, block, limits),
    }
}

fn is_plain_text(media: &[u8]) -> bool {
    media.trim_ascii_start().to_ascii_lowercase().starts_with(b"text/plain")
}

/// What a revisit says about the page `url`, and its original: the page whose content it has.
///
/// The content is read from the record that the revisit refers to, provided that record came earlier in this file. If the versions of each
/// URL are folded, a revisit is skipped where the last capture of its URL has that content.
fn revisited(
    url: &PageUrl,
    record: Record<'_>,
    originals: &mut Originals,
    limits: &Limits,
) -> Result<(Answer, Option<Known>), Refusal> {
    let profile = record.get(Field::Profile)?.unwrap_or_default();
    let fields: &[Field] = if profile.ends_with("/server-not-modified") {
        &[Field::RefersTo]
    } else if profile.ends_with("/identical-payload-digest") {
        // The HTTP head in a revisit belongs to the revisit itself: with an empty body it can be a redirect or a
        // 404.
        if http::status(record.block).is_some_and(|status| status != 200) {
            return Ok((http::page(url, record.block(), limits)?, None));
        }
        &[Field::RefersTo, Field::PayloadDigest]
    } else {
        return Err(Skip::RevisitProfile.into());
    };
    let last = originals.last_content(url);
    let Some(original) = originals.find(record, fields)? else {
        let is_of_it = |target: &str| PageUrl::parse(target).as_ref() == Ok(url);
        let refers_to = record.head.refers_to(record.head_bytes)?;
        // Where no other URL is named, the original is most likely the last capture of this one, in this file or in another.
        let names_none = fields.len() == 1 && record.get(Field::RefersTo)?.is_none();
        let is_of_before = (last.is_none() || names_none) && refers_to.is_none_or(is_of_it);
        let is_unchanged = is_of_before && !originals.judges_records();
        return Err(if is_unchanged { Skip::Unchanged } else { Skip::OriginalUnknown }.into());
    };
    if last == Some(original.content) {
        return Err(Skip::Unchanged.into());
    }
    let stored = originals.read(original)?.ok_or(Skip::OriginalUnknown)?;
    Ok((content(url, stored, limits)?, Some(original)))
}

impl<'a> Record<'a> {
    fn get(&self, field: Field) -> Result<Option<&'a str>, HeadError> {
        self.head.get(self.head_bytes, field)
    }

    fn block(&self) -> Block<'a> {
        Block { bytes: self.block, length: self.head.length }
    }
}
