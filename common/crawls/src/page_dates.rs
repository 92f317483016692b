//! Dates of pages that are known beside their records.

use std::collections::HashMap;

use doppel_model::{PageUrl, Timestamp, stable_hash128};

/// How many dates are remembered. Each takes up to 60 bytes.
const DATES_MAX: usize = 1 << 19;

/// The dates of pages by their URLs.
#[derive(Debug, Default)]
pub(super) struct PageDates(HashMap<u128, Timestamp>);

impl PageDates {
    /// Takes note of a date; the first of a URL counts. Past the limit dates are left out.
    pub(super) fn note(&mut self, url: &PageUrl, date: Timestamp) {
        if self.0.len() < DATES_MAX {
            self.0.entry(key(url)).or_insert(date);
        }
    }

    /// The date of a page.
    pub(super) fn of(&self, url: &PageUrl) -> Option<Timestamp> {
        self.0.get(&key(url)).copied()
    }
}

fn key(url: &PageUrl) -> u128 {
    stable_hash128(url.as_str().as_bytes())
}
