//! Bounds on the input.

use super::error::Reason;
use doppel_model::Timestamp;
use doppel_protocol::page::{AHEAD_MAX_MS, LINE_BYTES_MAX, PAGE_BYTES_MAX};

/// The limits of a crawl reader. Input beyond a limit gives an error item.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The current time. Dates may be at most 24 hours after it.
    pub now: Timestamp,
    /// The largest payload of a WARC record, in bytes.
    pub record_bytes_max: usize,
    /// The largest page, in bytes, after content encodings are undone.
    pub page_bytes_max: usize,
    /// The longest JSON line, in bytes.
    pub line_bytes_max: usize,
    /// The number of bytes that a file may expand to in any case.
    pub expansion_free_bytes: u64,
    /// Beyond that, the number of expanded bytes allowed per stored byte read. Deflate can reach 1,032; web
    /// pages reach about 20.
    pub expansion_ratio_max: u64,
    /// The largest window that a zstd frame may ask for, in bytes. The decoder of an open file takes as much memory. It cannot take
    /// more than [`ZSTD_WINDOW_BYTES_MAX`](crate::ZSTD_WINDOW_BYTES_MAX).
    pub zstd_window_max: u64,
    /// The largest batch of an Arrow file, in bytes, as it is stored and as it is unpacked.
    pub columns_bytes_max: usize,
    /// The largest page of a column of a Parquet file, in bytes, as it is stored and as it is unpacked. A page is unpacked as a whole.
    pub column_page_bytes_max: usize,
    /// How many payload digests and ids of records of a WARC file are remembered for its revisits, and how many URLs.
    /// Each takes up to 70 bytes.
    pub originals_max: usize,
    /// How many ids of a file's records without URL are remembered, to find repeated ones: a hash of 64 bits each, which takes
    /// up to 18 bytes in memory, and 27 while their table grows. Of the records behind them only those are found that repeat a remembered id.
    pub ids_max: usize,
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
            zstd_window_max: 128 << 20,
            columns_bytes_max: 1 << 30,
            column_page_bytes_max: 512 << 20,
            originals_max: 1 << 19,
            // As many as a table of 2^25 places takes, which is 268 MB.
            ids_max: 7 << 22,
        }
    }

    /// Checks that `stored` bytes may decompress to `unpacked` bytes.
    pub(super) fn check_expansion(&self, stored: u64, unpacked: u64) -> Result<(), Reason> {
        let allowed =
            stored.saturating_mul(self.expansion_ratio_max).saturating_add(self.expansion_free_bytes);
        if unpacked <= allowed {
            return Ok(());
        }
        Err(Reason::Expansion { free_mib: self.expansion_free_bytes >> 20, ratio: self.expansion_ratio_max })
    }

    /// Checks the size of a page, in bytes.
    pub(super) fn check_page(&self, bytes: usize) -> Result<(), Reason> {
        too_large("a page", bytes as u64, self.page_bytes_max)
    }

    /// Checks that a date is not too far in the future, and returns it.
    pub(super) fn check_date(&self, date: Timestamp) -> Result<Timestamp, Reason> {
        if date > self.now.plus_millis(AHEAD_MAX_MS) { Err(Reason::Ahead(date)) } else { Ok(date) }
    }
}

/// Checks that `bytes` is at most `max`.
pub(super) fn too_large(what: &'static str, bytes: u64, max: usize) -> Result<(), Reason> {
    let max = max as u64;
    if bytes > max { Err(Reason::TooLarge { what, bytes, max }) } else { Ok(()) }
}
