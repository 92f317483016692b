//! Any bytes as a WACZ file, as they are and as a WARC file, stored and deflated, in a sound one: the reader ends, and what it calls a page is
//! one.
#![no_main]

use std::io::Write;
use std::sync::LazyLock;

use doppel_crawls::{InputFormat, InputOptions, Item, Limits};
use doppel_model::{PageUrl, Timestamp};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use libfuzzer_sys::fuzz_target;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a directory"));

fn read(bytes: &[u8]) {
    let path = DIRECTORY.path().join("crawl.wacz");
    std::fs::write(&path, bytes).expect("a file");
    let limits = Limits {
        record_bytes_max: 4 << 10,
        page_bytes_max: 2 << 10,
        expansion_free_bytes: 1 << 20,
        zstd_window_max: 1 << 20,
        ..Limits::at(Timestamp::from_millis(0))
    };
    let options = InputOptions { format: Some(InputFormat::Wacz), ..limits.into() };
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
    // A deflated gzip file expands twice.
    assert!(items <= 1_100 * 1_100 * bytes.len() + 1, "{items} items of {} bytes", bytes.len());
}

/// A WACZ file of a WARC file and a list of pages, which are these bytes.
fn wacz(content: &[u8], is_deflated: bool) -> Result<Vec<u8>, rawzip::Error> {
    let mut out = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut out);
    for name in ["archive/a.warc.gz", "pages/pages.jsonl"] {
        let method = if is_deflated { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
        let (mut entry, config) = archive.new_file(name).compression_method(method).start()?;
        let descriptor = if is_deflated {
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
            writer.write_all(content)?;
            let (encoder, descriptor) = writer.finish()?;
            encoder.finish()?;
            descriptor
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(content)?;
            writer.finish()?.1
        };
        entry.finish(descriptor)?;
    }
    archive.finish()?;
    Ok(out)
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    for is_deflated in [false, true] {
        read(&wacz(bytes, is_deflated).expect("memory"));
    }
});
