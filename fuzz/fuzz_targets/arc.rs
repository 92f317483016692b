//! Any bytes as an ARC file, plain or compressed by their first bytes: the reader ends, counts what it skips once, and what it calls a page
//! is one.
#![no_main]

mod crawl_file;

use doppel_crawls::InputFormat;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(found) = crawl_file::read("crawl.arc", bytes, Some(InputFormat::Arc)) else { return };
    // Every record takes bytes, of which a gzip file has at most a thousand for each of its own.
    assert!(found.items <= 1_100 * bytes.len() + 1, "{} items of {} bytes", found.items, bytes.len());
});
