//! The lists of pages of a WACZ file, of which the dates are used.

use std::fs::File;
use std::sync::Arc;

use doppel_model::{PageUrl, Timestamp};
use serde::Deserialize;

use super::directory::Entry;
use crate::limits::Limits;
use crate::page_dates::PageDates;
use crate::part::Part;
use crate::raw_lines::RawLines;

/// The longest line of a list that is read, in bytes; lists may have the texts of pages.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A line of a list. Other fields mean nothing here.
#[derive(Deserialize)]
struct Line {
    url: Option<String>,
    ts: Option<String>,
}

/// The dates of the lists of a WACZ file, and how many of them are none. A list is read as far as possible: no page is lost with one that
/// is damaged.
pub(super) fn dates(file: &Arc<File>, lists: &[Entry], limits: &Limits) -> (PageDates, u64) {
    let (mut dates, mut ignored) = (PageDates::default(), 0);
    let limits = Limits { line_bytes_max: LINE_BYTES_MAX, ..*limits };
    for list in lists {
        let Ok(stream) = Part::new(file, list.range.clone(), list.is_deflated).open(&limits) else {
            continue;
        };
        let mut lines = RawLines::new(stream, limits);
        while let Some((_, line)) = lines.next(|_| true) {
            let line = line.ok().and_then(|line| serde_json::from_slice::<Line>(line).ok());
            let Some(Line { url: Some(url), ts: Some(date) }) = line else { continue };
            let date = date.parse::<Timestamp>().or_else(|_| Timestamp::parse_without_zone(&date));
            match date.ok().and_then(|date| limits.check_date(date).ok()) {
                Some(date) => PageUrl::parse(&url).into_iter().for_each(|url| dates.note(&url, date)),
                None => ignored += 1,
            }
        }
    }
    (dates, ignored)
}
