//! [`PageDates`]: dates of pages that a crawl lists outside its records, in bounded memory.
//!
//! A WACZ file lists dates in `pages/*.jsonl`. A WARC record without a date gets its date from there.

use std::collections::HashMap;

use doppel_model::{PageUrl, Timestamp, stable_hash128};

/// Maximum number of remembered dates. Each takes up to 60 bytes.
const DATES_MAX: usize = 1 << 19;

/// Dates of pages by the hash of their URL.
#[derive(Debug, Default)]
pub(crate) struct PageDates(HashMap<u128, Timestamp>);

impl PageDates {
    /// Remembers the date of a page. If a URL occurs again, the first date stays. Beyond the limit, new dates
    /// are dropped.
    pub(crate) fn note(&mut self, url: &PageUrl, date: Timestamp) {
        if self.0.len() < DATES_MAX {
            self.0.entry(key(url)).or_insert(date);
        }
    }

    /// Returns the date of a page, if it is remembered.
    pub(crate) fn of(&self, url: &PageUrl) -> Option<Timestamp> {
        self.0.get(&key(url)).copied()
    }
}

fn key(url: &PageUrl) -> u128 {
    stable_hash128(url.as_str().as_bytes())
}
