//! Reads dates from the lists of pages of a WACZ file.

use std::fs::File;
use std::sync::Arc;

use doppel_model::{PageUrl, Timestamp};
use doppel_streams::{FilePart, Limits, RawLines};
use serde::Deserialize;

use super::directory::Entry;
use super::page_dates::PageDates;

/// The longest line of a list that is read, in bytes. Lists may contain the texts of pages.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A line of a list. Other fields are ignored.
#[derive(Deserialize)]
struct PageLine {
    url: Option<String>,
    ts: Option<String>,
}

/// Returns the dates in the lists of a WACZ file, and the number of invalid dates. Reads each list as far as
/// possible, because a damaged list must not cost a page.
pub(super) fn dates(file: &Arc<File>, lists: &[Entry], limits: &Limits) -> (PageDates, u64) {
    let (mut dates, mut ignored) = (PageDates::default(), 0);
    let limits = Limits { line_bytes_max: LINE_BYTES_MAX, ..*limits };
    for list in lists {
        let Ok(stream) = FilePart::new(file, list.range.clone(), list.is_deflated).open(&limits) else {
            continue;
        };
        let mut lines = RawLines::new(stream, limits);
        while let Some((_, line)) = lines.next(|_| true) {
            let line = line.ok().and_then(|line| serde_json::from_slice::<PageLine>(line).ok());
            let Some(PageLine { url: Some(url), ts: Some(date) }) = line else { continue };
            let date = date.parse::<Timestamp>().or_else(|_| Timestamp::parse_without_zone(&date));
            match date.ok().and_then(|date| limits.check_date(date).ok()) {
                Some(date) => PageUrl::parse(&url).into_iter().for_each(|url| dates.note(&url, date)),
                None => ignored += 1,
            }
        }
    }
    (dates, ignored)
}
