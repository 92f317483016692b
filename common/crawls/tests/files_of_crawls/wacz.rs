//! Tests with WACZ files, which are ZIP files that contain WARC files.

use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::warc::{page, record};
use super::*;

/// A ZIP file with these files: name, content, and whether the content is deflated.
pub(crate) fn zip(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut out);
    for (name, content, is_deflated) in files {
        let method = if *is_deflated { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
        let (mut entry, config) = archive.new_file(name).compression_method(method).start().unwrap();
        let descriptor = if *is_deflated {
            let mut writer = config.wrap(flate2::write::DeflateEncoder::new(&mut entry, Compression::best()));
            writer.write_all(content).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            descriptor
        } else {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(content).unwrap();
            writer.finish().unwrap().1
        };
        entry.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    out
}

fn by_record(records: &[Vec<u8>]) -> Vec<u8> {
    records.iter().flat_map(|record| gzip(record)).collect()
}

const PAGES: &str = "{\"format\": \"json-pages-1.0\", \"id\": \"pages\", \"title\": \"All Pages\"}\n\
                     {\"id\": \"1\", \"url\": \"https://a.org/2\", \"title\": \"two\", \"ts\": \"2020-05-06T07:08:09Z\"}\n\
                     {\"id\": \"2\", \"url\": \"https://a.org/3\", \"ts\": \"2020-05-65\"}\n\
                     no json\n\
                     {\"url\": \"https://a.org/4\"}\n";

/// A record of a page without a date.
fn undated(url: &str) -> Vec<u8> {
    record(
        &format!("WARC-Type: resource\r\nWARC-Target-URI: {url}\r\nContent-Type: text/html\r\n"),
        b"<p>undated",
    )
}

#[test]
fn warc_files_of_a_wacz_are_read_in_the_order_of_their_names() {
    let first = by_record(&[
        page("https://a.org/1", "<p>one"),
        undated("https://a.org/2"),
        undated("https://a.org/3"),
    ]);
    let second = [page("https://a.org/5", "<p>five"), page("https://a.org/6", "<p>six")].concat();
    let third = by_record(&[page("https://a.org/7", "<p>seven")]);
    for is_deflated in [false, true] {
        let file = zip(&[
            ("datapackage.json", b"{}", true),
            ("archive/b.warc", &second, is_deflated),
            ("archive/a.warc.gz", &first, is_deflated),
            ("indexes/index.cdx.gz", &gzip(b"x"), false),
            ("pages/pages.jsonl", PAGES.as_bytes(), true),
            ("logs/crawl.warc.gz", &third, false),
            ("archive/sub/c.warc.gz", &third, false),
        ]);
        let expected = [
            "https://a.org/1 html <p>one",
            "https://a.org/2 html <p>undated",
            "https://a.org/3 html <p>undated",
            "https://a.org/5 html <p>five",
            "https://a.org/6 html <p>six",
            "https://a.org/7 html <p>seven",
        ];
        for name in ["a.wacz", "unnamed", "a.zip"] {
            check(name, &file, &expected);
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.wacz");
        fs::write(&path, &file).unwrap();
        let mut input = doppel_crawls::open(&path, LIMITS).unwrap();
        let mut dates = Vec::new();
        let mut places = std::collections::BTreeSet::new();
        while let Some(item) = input.next() {
            let Item::Page(page) = item else { panic!("{item:?}") };
            dates.push(page.fetched_at.map(|date| date.to_string()));
            places.insert(format!("{:?}", input.input_position()));
        }
        let dates: Vec<_> = dates.iter().map(Option::as_deref).collect();
        assert_eq!(dates[..3], [Some("2020-01-01T00:00:00Z"), Some("2020-05-06T07:08:09Z"), None]);
        assert_eq!(input.ignored().into_values().sum::<u64>(), 1, "one date in the page list is invalid");
        assert_eq!(places.len(), 6, "{places:?}");
        assert!(!input.broke_off());
    }
}

#[test]
fn revisits_are_resolved_in_a_stored_warc_file() {
    let digest = "WARC-Payload-Digest: sha1:ABC\r\n";
    let original = record(
        &format!(
            "WARC-Type: resource\r\nWARC-Target-URI: https://a.org/1\r\nContent-Type: text/html\r\n{digest}"
        ),
        b"<p>same",
    );
    let revisit = record(
        &format!(
            "WARC-Type: revisit\r\nWARC-Target-URI: https://a.org/2\r\n{digest}\
             WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
             WARC-Refers-To-Target-URI: https://a.org/1\r\n"
        ),
        b"",
    );
    let warc = by_record(&[original, revisit]);
    let file = zip(&[("datapackage.json", b"{}", true), ("archive/a.warc.gz", &warc, false)]);
    check("a.wacz", &file, &["https://a.org/1 html <p>same", "https://a.org/2 html <p>same"]);
}

#[test]
fn files_in_a_wacz_file_that_cannot_be_read_are_reported() {
    let good = by_record(&[page("https://a.org/1", "<p>one")]);
    let inner = zip(&[("archive/a.warc.gz", &good, false)]);
    let file = zip(&[
        ("archive/a.warc.gz", &good, false),
        ("archive/b.warc.gz", b"\x1f\x8b\x08", false),
        ("archive/c.arc", b"filedesc://c 0.0.0.0 20000101000000 text/plain 0\n\n", false),
        ("crawls/inner.wacz", &inner, false),
        ("archive/z.warc.gz", &good, false),
    ]);
    let found = rendered(&items("a.wacz", &file));
    assert_eq!(found[0], "https://a.org/1 html <p>one");
    assert_eq!(
        found[1],
        "bad: a.wacz, record at byte 138: the data end in the middle of it"
            .replace("138", &offset(&found[1]))
    );
    assert_eq!(
        found[2..],
        [
            "bad: c.arc: cannot be read: it is no WARC file",
            "https://a.org/1 html <p>one",
            "bad: inner.wacz: cannot be read: a WACZ file inside another one is not read; unpack it",
        ]
    );
    // A name that leads out of the archive is ignored.
    let file = zip(&[("archive/a.warc.gz", &good, false), ("x/__/archive/b.warc.gz", &good, false)]);
    let file: Vec<u8> = file.iter().map(|byte| if *byte == b'_' { b'.' } else { *byte }).collect();
    assert!(file.windows(10).any(|bytes| bytes == b"x/../archi"));
    check("a.wacz", &file, &["https://a.org/1 html <p>one"]);
}

fn offset(line: &str) -> String {
    line.split("at byte ").nth(1).unwrap().split(':').next().unwrap().to_owned()
}

#[test]
fn damaged_and_hostile_archives_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it.wacz");
    let good = by_record(&[page("https://a.org/1", "<p>one")]);
    let file = zip(&[("archive/a.warc.gz", &good, false)]);
    let refused = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        refusal(&path)
    };
    for cut in [0, 4, 30, file.len() / 2, file.len() - 1] {
        assert!(refused(&file[..cut]).starts_with("it: cannot be read: "), "{cut}");
    }
    let without = zip(&[("readme.txt", b"text", false)]);
    let expected = "it: cannot be read: a ZIP file without a WARC file in archive/, so it is no WACZ file";
    assert_eq!(refused(&without), expected);
    assert!(refused(&gzip(&file)).contains("inside another compression"));
    // A deflated file that unpacks to far more than is plausible.
    let bomb = zip(&[("archive/a.warc", &vec![0; 3 << 20], true)]);
    fs::write(&path, bomb).unwrap();
    let limits = Limits { expansion_free_bytes: 1 << 20, ..LIMITS };
    let items: Vec<_> = doppel_crawls::open(&path, limits).unwrap().collect();
    assert!(rendered(&items).iter().any(|line| line.contains("implausible size")), "{items:?}");
}
