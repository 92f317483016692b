//! Reads pages from WARC 1.0 and 1.1 (ISO 28500:2017), and from the WET files of Common Crawl, which are WARC.
//!
//! `response` and `resource` records are pages. A `conversion` to plain text (the WET form of a crawl) is a
//! page, too. A `revisit` is a page if it refers to the content of another URL whose record is in the same
//! file. Other records describe the crawl, not a page.

mod chunked;
mod codings;
mod head;
mod http;
mod original;
pub(crate) mod record;
mod unpack;

use std::path::Path;
use std::sync::Arc;

use super::error::{HeadError, InputError, Place, Skip};
use super::limits::Limits;
use super::stream::Stream;
use super::{Fetched, Item};
use doppel_model::{PageUrl, UrlError};
use doppel_protocol::page::is_language;
use head::{Field, Kind};
use http::{Answer, Block, Refusal};
use original::Originals;
use record::{Record, Records};

/// The pages of a WARC file.
pub(super) struct Pages {
    path: Arc<Path>,
    records: Records,
    originals: Originals,
    limits: Limits,
    cut_off: u64,
}

impl Pages {
    /// Those of a file that is called `shown` and is at a path.
    pub(super) fn new((shown, path): (&Arc<Path>, &Arc<Path>), stream: Stream, limits: Limits) -> Self {
        let originals = Originals::new(Arc::clone(path), limits);
        Self { path: Arc::clone(shown), records: Records::new(stream, limits), originals, limits, cut_off: 0 }
    }

    /// How many pages so far had a body that ends early, of which the beginning was read.
    pub(super) fn cut_off(&self) -> u64 {
        self.cut_off
    }

    /// The record that was read last.
    pub(super) fn place(&self) -> Place {
        Place::Record(self.records.offset())
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
        let refusal = match self.records.advance() {
            Ok(false) => return None,
            Ok(true) => {
                match page(self.records.record(), &mut self.originals, &mut self.cut_off, &self.limits) {
                    Ok(page) => return Some(page.map(Item::Page)),
                    Err(refusal) => refusal,
                }
            }
            Err(reason) => Refusal::Bad(reason),
        };
        Some(Some(match refusal {
            Refusal::Skip(skip) => Item::Skipped(skip),
            Refusal::Bad(reason) => Item::Bad(InputError::new(&self.path, self.place(), reason)),
        }))
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

/// The page in a record, if the record is about a page. A page whose body ends early is added to `cut_off`.
fn page(
    record: Record<'_>,
    originals: &mut Originals,
    cut_off: &mut u64,
    limits: &Limits,
) -> Result<Option<Fetched>, Refusal> {
    match record.head.kind {
        Kind::Aside => return Ok(None),
        Kind::Unknown => return Err(Skip::RecordKind.into()),
        Kind::Response | Kind::Resource | Kind::Revisit | Kind::Conversion => {}
    }
    let url = match PageUrl::parse(record.head.target(record.head_bytes)?) {
        Err(UrlError::Scheme(_)) => return Err(Skip::Scheme.into()),
        parsed => parsed?,
    };
    if record.get(Field::SegmentNumber)?.is_some() {
        return Err(Skip::Segment.into());
    }
    let Answer { body, is_cut_off } = if record.head.kind == Kind::Revisit {
        revisited(&url, record, originals, limits)?
    } else {
        let answer = content(&url, record, limits)?;
        if answer.body.has_content() {
            originals.remember(record)?;
        }
        answer
    };
    let fetched_at = match record.get(Field::Date)? {
        Some(date) => Some(limits.check_date(head::parse_date(date)?)?),
        None => None,
    };
    *cut_off += u64::from(is_cut_off);
    Ok(Some(Fetched { url, fetched_at, body, popularity: None, language: language(record) }))
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
        Kind::Conversion if content_type.is_none_or(|media| !is_plain_text(media)) => {
            Err(Skip::ContentType.into())
        }
        _ => http::document(content_type, block, limits),
    }
}

fn is_plain_text(media: &[u8]) -> bool {
    media.trim_ascii_start().to_ascii_lowercase().starts_with(b"text/plain")
}

/// What a revisit says about the page `url`.
///
/// A revisit that found the page unchanged is skipped, so the page keeps its content. If the content is that of
/// another URL, it is read from that URL's record, provided that record came earlier in this file.
fn revisited(
    url: &PageUrl,
    record: Record<'_>,
    originals: &mut Originals,
    limits: &Limits,
) -> Result<Answer, Refusal> {
    let profile = record.get(Field::Profile)?.unwrap_or_default();
    if profile.ends_with("/server-not-modified") {
        return Err(Skip::Unchanged.into());
    }
    if !profile.ends_with("/identical-payload-digest") {
        return Err(Skip::RevisitProfile.into());
    }
    // The HTTP head in a revisit belongs to the revisit itself: with an empty body it can be a redirect or a
    // 404.
    if http::status(record.block).is_some_and(|status| status != 200) {
        return http::page(url, record.block(), limits);
    }
    let is_of_it = |target: &str| PageUrl::parse(target).as_ref() == Ok(url);
    let refers_to = record.head.refers_to(record.head_bytes)?;
    if refers_to.is_some_and(is_of_it) {
        return Err(Skip::Unchanged.into());
    }
    match originals.find(record)? {
        // It may be an older one of this URL, which had another content in between.
        Some(original) => content(url, original, limits),
        // Where no other URL is named, the original is most likely an earlier record of this one, in another file.
        None if refers_to.is_none() => Err(Skip::Unchanged.into()),
        None => Err(Skip::OriginalUnknown.into()),
    }
}

impl<'a> Record<'a> {
    fn get(&self, field: Field) -> Result<Option<&'a str>, HeadError> {
        self.head.get(self.head_bytes, field)
    }

    fn block(&self) -> Block<'a> {
        Block { bytes: self.block, length: self.head.length }
    }
}
