//! Encodings of HTTP bodies: any head and body, and bodies that are encoded as the head says, whole and cut off.
#![no_main]

use std::io::Write;
use std::sync::OnceLock;

use doppel_crawls::{FetchedBody, Item, Limits};
use doppel_model::Timestamp;
use libfuzzer_sys::fuzz_target;

const PAGE_BYTES_MAX: usize = 64 << 10;

/// Packs a body in one of the encodings.
fn packed(kind: u8, body: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::fast();
    let mut out = Vec::new();
    match kind % 6 {
        0 => flate2::write::GzEncoder::new(&mut out, level).write_all(body).unwrap(),
        1 => flate2::write::ZlibEncoder::new(&mut out, level).write_all(body).unwrap(),
        2 => flate2::write::DeflateEncoder::new(&mut out, level).write_all(body).unwrap(),
        3 => brotli::CompressorWriter::new(&mut out, 4096, 1, 18).write_all(body).unwrap(),
        4 => out = zstd::encode_all(body, 1).unwrap(),
        _ => {
            for chunk in body.chunks(100) {
                out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
    out
}

/// Reads one response and checks the bounds of what comes out.
fn read(head: &[u8], body: &[u8]) -> Option<FetchedBody> {
    static FILE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let path = FILE.get_or_init(|| tempfile::tempdir().unwrap()).path().join("fuzz.warc");
    let http = [b"HTTP/1.1 200 OK\r\n", head, b"\r\n\r\n", body].concat();
    let record = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/\r\nContent-Length: {}\r\n\r\n",
        http.len()
    );
    std::fs::write(&path, [record.as_bytes(), &http, b"\r\n\r\n"].concat()).unwrap();
    let limits = Limits { page_bytes_max: PAGE_BYTES_MAX, ..Limits::at(Timestamp::from_millis(0)) };
    let mut pages = doppel_crawls::open(&path, limits).unwrap().filter_map(|item| match item {
        Item::Page(page) => Some(page.body),
        _ => None,
    });
    let body = pages.next()?;
    if let Some(content) = body.raw_content() {
        assert!(content.size() <= PAGE_BYTES_MAX);
        assert!(doppel_charset::check(content).is_ok(), "a page is text");
    }
    Some(body)
}

fuzz_target!(|data: (Vec<u8>, Vec<u8>, Vec<u8>, u16)| {
    let (head, body, kinds, cut) = data;
    read(&head, &body);
    let kinds = &kinds[..kinds.len().min(4)];
    let encoded = kinds.iter().fold(body.clone(), |body, kind| packed(*kind, &body));
    const NAMES: [&str; 6] = ["gzip", "deflate", "deflate", "br", "zstd", "chunked"];
    let names: Vec<&str> = kinds.iter().map(|kind| NAMES[usize::from(kind % 6)]).collect();
    let head = format!("Content-Type: text/html\r\nContent-Encoding: {}", names.join(", "));
    let found = read(head.as_bytes(), &encoded);
    // A text comes back as it was, whatever it is packed in.
    let is_text = body.len() > 40 && body.is_ascii() && body.iter().all(|byte| *byte >= b' ');
    if is_text && body.len() <= PAGE_BYTES_MAX / 2 && !body[0].is_ascii_hexdigit() {
        let Some(FetchedBody::Html { bytes, .. }) = &found else { panic!("{names:?}: no page") };
        assert!(*bytes == body, "{names:?}");
    }
    read(head.as_bytes(), &encoded[..encoded.len().min(usize::from(cut))]);
});
