//! Any bytes as a WARC file, plain or compressed by their first bytes: the reader ends, counts what it skips, and what it calls a page is
//! one. Bytes that are not compressed are read as one gzip member, too: the same pages are found in it.
#![no_main]

use std::io::Write;
use std::sync::LazyLock;

use doppel_crawls::{Item, Limits, Reason};
use doppel_model::{PageUrl, Timestamp};
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

/// The pages of a file, and how many bytes were skipped. `None` where it was refused, or left out because it unpacks to too much.
fn read(name: &str, bytes: &[u8]) -> Option<(Vec<PageUrl>, u64)> {
    let path = DIRECTORY.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    let limits = Limits {
        record_bytes_max: 4 << 10,
        page_bytes_max: 2 << 10,
        expansion_free_bytes: 1 << 20,
        zstd_window_max: 1 << 20,
        ..Limits::at(Timestamp::from_millis(0))
    };
    let mut input = doppel_crawls::open(&path, limits).ok()?;
    let (mut items, mut pages, mut skipped) = (0, Vec::new(), 0);
    for item in input.by_ref() {
        items += 1;
        match item {
            Item::Page(page) => {
                assert_eq!(PageUrl::parse(page.url.as_str()).as_ref(), Ok(&page.url));
                assert!(page.fetched_at.is_none_or(|date| date.day() <= 1));
                pages.push(page.url);
            }
            Item::Bad(error) if matches!(error.reason, Reason::Expansion { .. }) => return None,
            Item::Bad(error) => skipped += error.skipped,
            Item::Fields(_) | Item::Skipped(_) => {}
        }
    }
    assert_eq!(input.skipped_bytes(), skipped);
    // Every record takes bytes, of which a gzip file has at most a thousand for each of its own.
    assert!(items <= 1_100 * bytes.len() + 1, "{items} items of {} bytes", bytes.len());
    Some((pages, skipped))
}

fuzz_target!(|bytes: &[u8]| {
    let plain = read("crawl.warc", bytes);
    // A revisit is resolved in a file whose records can be reached again.
    if !bytes.starts_with(b"WARC/") || bytes.windows(7).any(|word| word == b"revisit") {
        return;
    }
    let mut member = GzEncoder::new(Vec::new(), Compression::fast());
    member.write_all(bytes).expect("memory");
    let member = read("crawl.warc.gz", &member.finish().expect("memory"));
    if let (Some(plain), Some(member)) = (plain, member) {
        assert_eq!(plain, member);
    }
});
