//! Any bytes as a WARC file, plain or compressed by their first bytes: the reader ends, counts what it skips, and what it calls a page is
//! one. Bytes that are not compressed are read as one gzip member, too: the same pages are found in it.
#![no_main]

mod crawl_file;

use std::io::Write;

use doppel_model::PageUrl;
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

/// The pages of a file, and how many bytes were skipped. `None` where it was refused, or left out because it unpacks to too much.
fn read(name: &str, bytes: &[u8]) -> Option<(Vec<PageUrl>, u64)> {
    let found = crawl_file::read(name, bytes, None).filter(|found| !found.is_over)?;
    // Every record takes bytes, of which a gzip file has at most a thousand for each of its own.
    assert!(found.items <= 1_100 * bytes.len() + 1, "{} items of {} bytes", found.items, bytes.len());
    Some((found.pages, found.skipped))
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
