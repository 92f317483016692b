//! Any bytes as a WACZ file, as they are and as a WARC file, stored and deflated, in a sound one: the reader ends, and what it calls a page is
//! one.
#![no_main]

mod crawl_file;

use std::io::Write;

use doppel_crawls::InputFormat;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use libfuzzer_sys::fuzz_target;
use rawzip::{CompressionMethod, ZipArchiveWriter};

fn read(bytes: &[u8]) {
    let Some(found) = crawl_file::read("crawl.wacz", bytes, Some(InputFormat::Wacz)) else { return };
    // A deflated gzip file expands twice.
    assert!(found.items <= 1_100 * 1_100 * bytes.len() + 1, "{} items of {} bytes", found.items, bytes.len());
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
