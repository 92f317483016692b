//! Tests of the public interface. A test writes an input to a file, opens it, and compares its items, each
//! rendered as one line of text.
#![allow(clippy::unwrap_used)]

mod arc;
mod damage;
mod files;
mod framing;
mod lines;
mod odd_records;
mod records;
mod wacz;
mod warc;

use std::fs;
use std::io::Write;
use std::path::Path;

use doppel_crawls::{FetchedBody, FetchedPage, InputOptions, Item, Limits, Reason};
use doppel_model::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;

/// 2023-11-14T22:13:20Z.
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

const LIMITS: Limits = Limits::at(NOW);

/// Reads the items of a file with this name and content.
fn items(name: &str, content: &[u8]) -> Vec<Item> {
    items_within(LIMITS, name, content)
}

fn items_within(options: impl Into<InputOptions>, name: &str, content: &[u8]) -> Vec<Item> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    let mut input = doppel_crawls::open(&path, options).unwrap();
    let items: Vec<_> = input.by_ref().collect();
    assert!(input.next().is_none());
    assert!(input.bytes_read() <= input.bytes_total());
    items
}

/// Renders the items as lines of text, without the numbers of skipped bytes.
fn rendered(items: &[Item]) -> Vec<String> {
    items
        .iter()
        .map(|item| match item {
            Item::Page(page) => render_page(page),
            Item::Skipped(skip) => format!("skip: {skip}"),
            Item::Fields(fields) => format!("fields: {fields}"),
            Item::Bad(error) => {
                let path = error.path.to_str().unwrap();
                let name = error.path.file_name().unwrap().to_str().unwrap();
                let skipped = format!("; {} bytes were skipped", error.skipped);
                format!("bad: {}", error.to_string().replace(path, name).replace(&skipped, ""))
            }
        })
        .collect()
}

fn render_page(page: &FetchedPage) -> String {
    let body = match &page.body {
        FetchedBody::Html { bytes, charset } => {
            let charset = charset.as_ref().map_or(String::new(), |charset| format!(" [{charset}]"));
            format!("html{charset} {}", String::from_utf8_lossy(bytes))
        }
        FetchedBody::Text(text) => format!("text {text}"),
        FetchedBody::Redirect(target) => format!("to {target}"),
        FetchedBody::Xhtml { bytes, .. } => format!("xhtml {}", String::from_utf8_lossy(bytes)),
        FetchedBody::Dead => "dead".to_owned(),
    };
    format!("{} {body}", page.url)
}

#[track_caller]
fn check(name: &str, content: &[u8], expected: &[&str]) {
    assert_eq!(rendered(&items(name, content)), expected);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(6);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The error of [`doppel_crawls::open`] for a path that cannot be opened. The path is replaced by `it`.
fn refusal(path: &Path) -> String {
    match doppel_crawls::open(path, LIMITS) {
        Ok(_) => panic!("{} opened", path.display()),
        Err(error) => error.to_string().replace(path.to_str().unwrap(), "it"),
    }
}

#[test]
fn inputs_and_items_are_send() {
    fn is_send<T: Send + 'static>() {}
    is_send::<doppel_crawls::Input>();
    is_send::<Item>();
}
