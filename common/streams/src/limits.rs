//! Bounds that protect the reader from hostile or damaged input: sizes, expansion, memory and dates.
//!
//! Every reader of this crate takes a copy of [`Limits`]. Input beyond a limit never aborts the process; the
//! reader reports it as an error.

use super::error::Reason;
use doppel_contract::page::{AHEAD_MAX_MS, LINE_BYTES_MAX, PAGE_BYTES_MAX};
use doppel_model::Timestamp;

/// Limits of a crawl reader. The reader reports input beyond a limit as an error.
/// [`originals_max`](Self::originals_max) and [`ids_max`](Self::ids_max) only limit what the reader
/// remembers.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Current time of the run. The reader rejects dates more than 24 hours after it.
    pub now: Timestamp,
    /// The largest payload of a WARC record, in bytes.
    pub record_bytes_max: usize,
    /// The largest page, in bytes, after content encodings are undone.
    pub page_bytes_max: usize,
    /// The longest line of JSON or row of a table, in bytes.
    pub line_bytes_max: usize,
    /// Number of unpacked bytes that is always allowed for a file.
    pub expansion_free_bytes: u64,
    /// Unpacked bytes allowed per stored byte read, in addition to `expansion_free_bytes`. Deflate can reach
    /// 1,032; web pages reach about 20.
    pub expansion_ratio_max: u64,
    /// The largest window that a zstd frame may request, in bytes. The decoder of each open file allocates
    /// the window that the frame requests. Values above
    /// [`ZSTD_WINDOW_BYTES_MAX`](crate::ZSTD_WINDOW_BYTES_MAX) have no effect.
    pub zstd_window_max: u64,
    /// The largest batch of an Arrow file, in bytes. The limit applies to the stored size and to the unpacked
    /// size.
    pub columns_bytes_max: usize,
    /// The largest page of a Parquet column, in bytes. The limit applies to the stored size and to the
    /// unpacked size. The reader unpacks a whole page at once.
    pub column_page_bytes_max: usize,
    /// Maximum number of payload digests and record ids that a WARC reader remembers to resolve revisits, and
    /// maximum number of URLs that it remembers. Each takes up to 70 bytes.
    pub originals_max: usize,
    /// Maximum number of ids that the reader remembers for one file, to find repeated ids of records without
    /// a URL. An id takes up to 18 bytes in memory for its 64-bit hash, and 27 bytes while the table grows.
    /// After the limit, the reader finds only repetitions of remembered ids.
    pub ids_max: usize,
}

impl Limits {
    /// Returns the default limits, with `now` as the current time.
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
            // Capacity of a hash table with 2^25 slots, which takes 268 MB.
            ids_max: 7 << 22,
        }
    }

    /// Checks that `stored` bytes may unpack to `unpacked` bytes.
    pub fn check_expansion(&self, stored: u64, unpacked: u64) -> Result<(), Reason> {
        let allowed =
            stored.saturating_mul(self.expansion_ratio_max).saturating_add(self.expansion_free_bytes);
        if unpacked <= allowed {
            return Ok(());
        }
        Err(Reason::Expansion { free_mib: self.expansion_free_bytes >> 20, ratio: self.expansion_ratio_max })
    }

    /// Checks the size of a page, given in bytes.
    pub fn check_page(&self, bytes: usize) -> Result<(), Reason> {
        too_large("a page", bytes as u64, self.page_bytes_max)
    }

    /// Checks that a date is not too far in the future, and returns it.
    pub fn check_date(&self, date: Timestamp) -> Result<Timestamp, Reason> {
        if date > self.now.plus_millis(AHEAD_MAX_MS) { Err(Reason::Ahead(date)) } else { Ok(date) }
    }
}

/// Checks that `bytes` is at most `max`. `what` names the object in the error message.
pub fn too_large(what: &'static str, bytes: u64, max: usize) -> Result<(), Reason> {
    let max = max as u64;
    if bytes > max { Err(Reason::TooLarge { what, bytes, max }) } else { Ok(()) }
}
