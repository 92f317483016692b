//! A crawl file of any bytes, read to its end, with what is true of each: what it calls a page is one, and skipped bytes are counted once.

use std::sync::LazyLock;

use doppel_crawls::{InputFormat, InputOptions, Item, Limits, Reason};
use doppel_model::{PageUrl, Timestamp};
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

/// What a file gave.
pub struct Found {
    /// Pages, bad records and all else.
    pub items: usize,
    pub pages: Vec<PageUrl>,
    pub skipped: u64,
    /// Whether reading ended because too much would be unpacked.
    pub is_over: bool,
}

/// Reads a file of this name and content in a format, or in the one that the content shows. `None` where it is refused.
pub fn read(name: &str, bytes: &[u8], format: Option<InputFormat>) -> Option<Found> {
    let path = DIRECTORY.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    let limits = Limits {
        record_bytes_max: 4 << 10,
        page_bytes_max: 2 << 10,
        expansion_free_bytes: 1 << 20,
        zstd_window_max: 1 << 20,
        ..Limits::at(Timestamp::from_millis(0))
    };
    let mut input = doppel_crawls::open(&path, InputOptions { format, ..limits.into() }).ok()?;
    let mut found = Found { items: 0, pages: Vec::new(), skipped: 0, is_over: false };
    for item in input.by_ref() {
        found.items += 1;
        match item {
            Item::Page(page) => {
                assert_eq!(PageUrl::parse(page.url.as_str()).as_ref(), Ok(&page.url));
                assert!(page.fetched_at.is_none_or(|date| date.day() <= 1));
                found.pages.push(page.url);
            }
            Item::Bad(error) => {
                found.is_over |= matches!(error.reason, Reason::Expansion { .. });
                found.skipped += error.skipped;
            }
            Item::Fields(_) | Item::Skipped(_) => {}
        }
    }
    assert_eq!(input.skipped_bytes(), found.skipped);
    Some(found)
}
