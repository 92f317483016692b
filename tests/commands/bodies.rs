//! HTTP bodies in the encodings that servers and crawlers leave, and pages that are submitted as raw bodies.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use serde_json::{Value, json};

use crate::harness::pages::text;
use crate::harness::{OwnServer, lines_of, run, run_ok};

const TYPE: &str = "Content-Type: text/html; charset=utf-8\r\n";

/// A response record with these HTTP header fields.
fn record(url: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let http = [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-01T08:00:00Z\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        http.len()
    );
    [head.as_bytes(), &http, b"\r\n\r\n"].concat()
}

fn warc(home: &Path, records: &[Vec<u8>]) -> String {
    let path = home.join("crawl.warc");
    fs::write(&path, records.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn chunked(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat()
}

#[test]
fn a_page_is_the_same_in_any_encoding() {
    let home = tempfile::tempdir().unwrap();
    let html = format!("<!doctype html><title>t</title><p>{}</p>", text(1, 300).join(" "));
    let half = html.len() / 2;
    let members = [gzip(&html.as_bytes()[..half]), gzip(&html.as_bytes()[half..])].concat();
    let packed = gzip(html.as_bytes());
    let bodies = [
        ("", html.clone().into_bytes()),
        ("Content-Encoding: gzip\r\n", members),
        ("Content-Encoding: gzip\r\n", zlib(html.as_bytes())),
        ("Content-Encoding: deflate\r\n", deflate(html.as_bytes())),
        ("Content-Encoding: gzip, gzip\r\n", gzip(&packed)),
        ("Transfer-Encoding: gzip, chunked\r\n", chunked(&packed)),
        ("", packed.clone()),
        ("Content-Encoding: gzip\r\n", packed[..packed.len() - 8].to_vec()),
    ];
    let records: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(n, (fields, body))| record(&format!("http://a.example/{n}"), &format!("{TYPE}{fields}"), body))
        .collect();
    let path = warc(home.path(), &records);
    let lines = lines_of(&run_ok(["dedup", "--out", "-", &path]));
    assert_eq!(lines.len(), bodies.len());
    for line in &lines[1..] {
        assert_eq!(line["status"], json!("duplicate"), "{line}");
        assert_eq!(line["similarity"], json!(1.0), "{line}");
    }
    let summary: Value = serde_json::from_slice(&run(["dedup", "--json", &path]).stdout).unwrap();
    assert_eq!(summary["input"]["cut_off_bodies"], 1, "the last body has no trailer");
}

#[test]
fn a_body_that_cannot_be_decoded_is_a_bad_record() {
    let home = tempfile::tempdir().unwrap();
    let html = format!("<p>{}", text(1, 300).join(" "));
    let mut broken = gzip(html.as_bytes());
    let end = broken.len();
    broken[end - 6] ^= 1;
    let path = warc(
        home.path(),
        &[
            record("http://a.example/", TYPE, html.as_bytes()),
            record("http://b.example/", &format!("{TYPE}Content-Encoding: gzip\r\n"), &broken),
            record("http://c.example/", TYPE, &deflate(html.as_bytes())),
            record(
                "http://d.example/",
                &format!("{TYPE}Content-Encoding: compress\r\n"),
                &[0x1f, 0x9d, 0x90, 1, 2, 3],
            ),
        ],
    );
    let summary: Value = serde_json::from_slice(&run(["dedup", "--json", &path]).stdout).unwrap();
    let expected = json!({
        "broken HTTP response": 1,
        "binary or compressed data, not text": 1,
        "unsupported content encoding": 1,
    });
    assert_eq!(summary["input"]["records"], json!(1));
    assert_eq!(summary["input"]["bad"], expected);
}

#[test]
fn the_charset_of_plain_text_is_detected_as_that_of_html() {
    let home = tempfile::tempdir().unwrap();
    let text =
        "Харбор открывается в шесть утра и закрывается в восемь вечера. Лодки стоят у северного причала. "
            .repeat(3);
    let old: Vec<u8> = text
        .chars()
        .map(|c| match u32::from(c) {
            ascii @ ..0x80 => ascii as u8,
            letter => (letter - 0x410 + 0xc0) as u8,
        })
        .collect();
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let records = [
        record("http://a.example/", "Content-Type: text/plain\r\n", text.as_bytes()),
        record("http://b.example/", "Content-Type: text/plain\r\n", &old),
        record("http://c.example/", "Content-Type: text/html\r\n", &old),
        record("http://d.example/", "Content-Type: text/plain\r\n", &utf_16),
        record("http://e.example/", "Content-Type: text/plain; charset=none\r\n", &old),
    ];
    let lines = lines_of(&run_ok(["dedup", "--out", "-", &warc(home.path(), &records)]));
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["winner", "duplicate", "duplicate", "duplicate", "duplicate"]);
}

#[test]
fn a_page_is_submitted_as_its_raw_html() {
    let server = OwnServer::start(&[]);
    let text = text(1, 100).join(" ");
    server
        .push_all(&[json!({"url": "http://a.example/", "text": text, "fetched_at": "2024-01-01T00:00:00Z"})]);
    let html = format!("<title>\n</title><p>{text}</p>\r\n");
    let query = "/v1/pages?url=http://b.example/%3Fq&fetched_at=2024-02-01T00:00:00Z";
    let answer: Value = server.post(query, "text/html", html.clone()).json().unwrap();
    assert_eq!(answer["url"], "http://b.example/?q");
    let query = "/v1/pages?url=http://c.example/&fetched_at=2024-02-01T00:00:00Z";
    assert_eq!(server.post_encoded(query, "text/html", "gzip", gzip(html.as_bytes())).status(), 200);
    server.flush();
    for url in ["http://b.example/?q", "http://c.example/"] {
        let status = server.status(url);
        assert_eq!(status["status"], json!("duplicate"));
        assert_eq!(status["duplicate_of"], json!("http://a.example/"));
    }
    assert_eq!(server.post("/v1/pages", "text/html", html).status(), 400);
}
