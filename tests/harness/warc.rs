//! Builds WARC files record by record, each record in a gzip member of its own.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A response record with this URL, HTTP head and body.
pub fn response(url: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let mut block = format!("{head}\r\n\r\n").into_bytes();
    block.extend_from_slice(body);
    let mut record = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-01T00:00:00Z\r\n\
         WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    record.extend_from_slice(&block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

/// A response record with status 200 and HTML.
pub fn page(url: &str, html: &[u8]) -> Vec<u8> {
    response(url, "HTTP/1.1 200 OK\r\nContent-Type: text/html", html)
}

/// Compresses bytes into one gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A gzip stream with one member of `bytes` zero bytes, rounded up to steps of 64 MiB. It ends without a
/// trailer.
pub fn endless_zeros(bytes: u64) -> Vec<u8> {
    const STEP: usize = 64 << 20;
    let mut deflate = flate2::Compress::new(Compression::best(), false);
    let mut step = Vec::with_capacity(1 << 20);
    // A full flush ends at a byte boundary and resets the window, so that the step can be repeated.
    deflate.compress_vec(&vec![0; STEP], &mut step, flate2::FlushCompress::Full).unwrap();
    assert_eq!(deflate.total_in(), STEP as u64);
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255];
    for _ in 0..bytes.div_ceil(STEP as u64) {
        gzip.extend_from_slice(&step);
    }
    gzip
}
