//! Any bytes as an ARC file, plain or compressed by their first bytes: the reader ends, counts what it skips once, and what it calls a page
//! is one.
#![no_main]

use std::sync::LazyLock;

use doppel_crawls::{InputFormat, InputOptions, Item, Limits};
use doppel_model::{PageUrl, Timestamp};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let path = DIRECTORY.path().join("crawl.arc");
    std::fs::write(&path, bytes).expect("a file");
    let limits = Limits {
        record_bytes_max: 4 << 10,
        page_bytes_max: 2 << 10,
        expansion_free_bytes: 1 << 20,
        zstd_window_max: 1 << 20,
        ..Limits::at(Timestamp::from_millis(0))
    };
    let options = InputOptions { format: Some(InputFormat::Arc), ..limits.into() };
    let Ok(mut input) = doppel_crawls::open(&path, options) else { return };
    let (mut items, mut skipped) = (0, 0);
    for item in input.by_ref() {
        items += 1;
        match item {
            Item::Page(page) => {
                assert_eq!(PageUrl::parse(page.url.as_str()).as_ref(), Ok(&page.url));
                assert!(page.fetched_at.is_none_or(|date| date.day() <= 1));
            }
            Item::Bad(error) => skipped += error.skipped,
            Item::Fields(_) | Item::Skipped(_) => {}
        }
    }
    assert_eq!(input.skipped_bytes(), skipped);
    // Every record takes bytes, of which a gzip file has at most a thousand for each of its own.
    assert!(items <= 1_100 * bytes.len() + 1, "{items} items of {} bytes", bytes.len());
});
