//! The bounds of what an input may hold.

use super::error::Reason;
use doppel_model::Timestamp;
use doppel_protocol::page::{AHEAD_MAX_MS, LINE_BYTES_MAX, PAGE_BYTES_MAX};

/// What is taken of a crawl; beyond it there is an error item.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The moment that dates may be at most 24 hours ahead of.
    pub now: Timestamp,
    /// The largest payload of a WARC record, in bytes.
    pub record_bytes_max: usize,
    /// The largest page after content encodings are undone, in bytes.
    pub page_bytes_max: usize,
    /// The longest JSON line, in bytes.
    pub line_bytes_max: usize,
    /// A file may unpack to this many bytes, and beyond it to ...
    pub expansion_free_bytes: u64,
    /// ... this many times the bytes that were read of it. Deflate can reach 1,032, web pages
    /// reach 20.
    pub expansion_ratio_max: u64,
    /// How many payload digests of a WARC file are remembered for its revisits; 40 bytes each.
    pub originals_max: usize,
}

impl Limits {
    /// The default limits, at the moment `now`.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self {
            now,
            record_bytes_max: 32 << 20,
            page_bytes_max: PAGE_BYTES_MAX,
            line_bytes_max: LINE_BYTES_MAX,
            expansion_free_bytes: 1 << 30,
            expansion_ratio_max: 250,
            originals_max: 1 << 18,
        }
    }

    /// Whether `unpacked` bytes from `stored` ones are plausible.
    pub(super) fn check_expansion(&self, stored: u64, unpacked: u64) -> Result<(), Reason> {
        let allowed =
            stored.saturating_mul(self.expansion_ratio_max).saturating_add(self.expansion_free_bytes);
        if unpacked <= allowed {
            return Ok(());
        }
        Err(Reason::Expansion { free_mib: self.expansion_free_bytes >> 20, ratio: self.expansion_ratio_max })
    }

    /// Whether a page of so many bytes is taken.
    pub(super) fn check_page(&self, bytes: usize) -> Result<(), Reason> {
        too_large("a page", bytes as u64, self.page_bytes_max)
    }

    /// Whether a date is not too far ahead.
    pub(super) fn check_date(&self, date: Timestamp) -> Result<Timestamp, Reason> {
        if date > self.now.plus_millis(AHEAD_MAX_MS) { Err(Reason::Ahead(date)) } else { Ok(date) }
    }
}

/// Whether `bytes` is within `max`.
pub(super) fn too_large(what: &'static str, bytes: u64, max: usize) -> Result<(), Reason> {
    let max = max as u64;
    if bytes > max { Err(Reason::TooLarge { what, bytes, max }) } else { Ok(()) }
}
