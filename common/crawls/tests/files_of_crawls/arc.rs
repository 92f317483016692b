//! Tests with ARC files, and with WARC files of the drafts before version 1.0.

use super::framing::{PACKS, outcome};
use super::*;

const ABOUT: &str = "1 0 test\nURL IP-address Archive-date Content-type Archive-length\n";
const ABOUT_2: &str = "2 0 test\nURL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename Archive-length\n";

pub(crate) fn about(block: &str) -> Vec<u8> {
    format!("filedesc://a.arc 0.0.0.0 20000121183500 text/plain {}\n{block}\n", block.len()).into_bytes()
}

fn record(url: &str, date: &str, middle: &str, block: &str) -> Vec<u8> {
    format!("{url} 10.0.0.1 {date} {middle} {}\n{block}\n", block.len()).into_bytes()
}

pub(crate) fn page(url: &str, html: &str) -> Vec<u8> {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}");
    record(url, "20000121183500", "text/html", &block)
}

fn response(url: &str, block: &str) -> Vec<u8> {
    record(url, "20000121183500", "text/html", block)
}

#[test]
fn a_damaged_head_costs_its_own_record() {
    let records: Vec<_> = (0..6).map(|n| page(&format!("http://a.org/{n}"), &format!("<p>{n}"))).collect();
    let damaged = |from: &str, to: &str| {
        let head = String::from_utf8(records[3].clone()).unwrap();
        assert!(head.contains(from));
        let records = [&records[..3], &[head.replacen(from, to, 1).into_bytes()], &records[4..]].concat();
        [vec![about(ABOUT)], records].concat()
    };
    for (from, to) in [
        ("20000121183500", "200001XX183500"),
        ("20000121183500", "-"),
        ("http://a.org/3", "http:a"),
        (" 20000121183500", ""),
    ] {
        for (how, pack) in PACKS {
            let found = outcome("a.arc", &pack(&damaged(from, to)));
            assert_eq!(
                (found.pages.len(), found.bad, found.broke_off),
                (5, 1, false),
                "{how}, {from} as {to}: {found:?}"
            );
        }
    }
}

#[test]
fn arc_files_are_read_as_pages() {
    let file = [
        about(ABOUT),
        page("http://a.org/1", "<p>one\n\nmore"),
        page("http://a.org/with a space", "<p>two"),
        response("dns:a.org", "20000121183500\na.org. 7200 IN A 10.0.0.1\n"),
        response("ftp://a.org/file", "a file"),
        response("http://a.org/gone", "HTTP/1.0 404 Not Found\r\n\r\n"),
        response("http://a.org/to", "HTTP/1.0 302 Found\r\nLocation: /1\r\n\r\n"),
        record(
            "http://a.org/i.png",
            "20000121183500",
            "image/png",
            "HTTP/1.0 200 OK\r\nContent-Type: image/png\r\n\r\n\x01",
        ),
        response("http://a.org/old", "<html>of HTTP/0.9"),
        response("/relative", "HTTP/1.0 200 OK\r\n\r\n"),
        page("http://a.org/2", "<p>last"),
    ];
    let expected = [
        "http://a.org/1 html <p>one\n\nmore",
        "http://a.org/with a space html <p>two",
        "skip: not http, https or file",
        "skip: not http, https or file",
        "http://a.org/gone dead",
        "http://a.org/to to http://a.org/1",
        "skip: neither HTML nor text",
        "http://a.org/old html <html>of HTTP/0.9",
    ];
    for (how, pack) in PACKS {
        for name in ["a.arc", "a.arc.gz", "unnamed"] {
            let found = rendered(&items(name, &pack(&file)));
            assert_eq!(found[..8], expected, "{how}");
            assert!(
                found[8].starts_with("bad: ") && found[8].contains("not an absolute URL"),
                "{how}: {found:?}"
            );
            assert_eq!(found[9..], ["http://a.org/2 html <p>last"], "{how}");
        }
    }
    let Item::Page(first) = items("a.arc", &file.concat()).swap_remove(0) else { panic!() };
    assert_eq!(first.fetched_at, Some("2000-01-21T18:35:00Z".parse().unwrap()));
}

/// Some writers give the record that describes the file a wrong length.
#[test]
fn a_wrong_length_of_the_description_costs_no_page() {
    let pages = [page("http://a.org/1", "<p>one"), page("http://a.org/2", "<p>two")];
    for length in ["0", "3", "64", "66", "77", "150", "5000", "4294967296", "x", ""] {
        let about = format!("filedesc://a.arc 0.0.0.0 20000121183500 text/plain {length}\n{ABOUT}\n\n");
        let file = [about.into_bytes(), pages[0].clone(), pages[1].clone()];
        for (how, pack) in PACKS {
            let found = outcome("a.arc", &pack(&file));
            let all = ["http://a.org/1 html <p>one", "http://a.org/2 html <p>two"];
            assert_eq!(
                (&*found.pages, found.bad, found.skipped),
                (&all.map(str::to_owned)[..], 0, 0),
                "{how} {length}"
            );
        }
    }
}

#[test]
fn records_of_version_2_with_ten_fields_are_read() {
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>two";
    let file = [
        about(ABOUT_2),
        record("http://a.org/1", "20000121183500", "text/html 200 - - 128 a.arc", block),
        record("http://a.org/2", "20000121", "text/html 200 1f2e http://a.org/3 20000101 a.arc", block),
    ];
    for (how, pack) in PACKS {
        let found = rendered(&items("a.arc", &pack(&file)));
        assert_eq!(found, ["http://a.org/1 html <p>two", "http://a.org/2 html <p>two"], "{how}");
    }
}

#[test]
fn a_wrong_length_costs_one_arc_record_in_every_compression() {
    let texts = ["<p>one", "<p>two\r\n\r\nmore\nhttp://x/ of it", &"three ".repeat(20_000), "<p>four"];
    let records: Vec<_> =
        texts.iter().enumerate().map(|(n, text)| page(&format!("http://a.org/{n}"), text)).collect();
    let all: Vec<_> = records
        .iter()
        .flat_map(|record| outcome("a.arc", &[about(ABOUT), record.clone()].concat()).pages)
        .collect();
    assert_eq!(all.len(), 4);
    for (how, pack) in PACKS {
        for at in [0, 1, 2] {
            for length in [
                "0",
                "1",
                "30",
                "52",
                "300",
                "5000",
                "150000",
                "4294967296",
                "18446744073709551615",
                "-1",
                "x",
            ] {
                let text = String::from_utf8(records[at].clone()).unwrap();
                let (line, block) = text.split_once('\n').unwrap();
                let (line, _) = line.rsplit_once(' ').unwrap();
                let mut damaged = [vec![about(ABOUT)], records.clone()].concat();
                damaged[at + 1] = format!("{line} {length}\n{block}").into_bytes();
                let found = outcome("a.arc", &pack(&damaged));
                let expected = [&all[..at], &all[at + 1..]].concat();
                let what = format!("{how}, record {at} with length {length}");
                found.assert_lost_one(&expected, &damaged[at + 1], &what);
            }
        }
    }
}

#[test]
fn invalid_dates_are_ignored_and_counted() {
    let dated = |name: &str, content: Vec<u8>| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let mut input = doppel_crawls::open(&path, LIMITS).unwrap();
        let Some(Item::Page(page)) = input.next() else { panic!("the first item of {name} is not a page") };
        let ignored = input.ignored().into_values().sum::<u64>();
        (page.fetched_at.map(|date| date.to_string()), ignored)
    };
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>";
    for (date, expected) in [
        ("20000121183500", Some("2000-01-21T18:35:00Z")),
        ("200001211835", Some("2000-01-21T18:35:00Z")),
        ("20000121", Some("2000-01-21T00:00:00Z")),
        ("20000199183500", None),
        ("00000000000000", None),
        ("2000012118350", None),
    ] {
        let file = [about(ABOUT), record("http://a.org/", date, "text/html", block)].concat();
        assert_eq!(
            dated("a.arc", file),
            (expected.map(str::to_owned), u64::from(expected.is_none())),
            "{date}"
        );
    }
    for (date, expected) in [
        ("2009-03-05T08:43:19-0800", Some("2009-03-05T16:43:19Z")),
        ("2009-03-65T08:43:19-0800", None),
        ("2009-03-65", None),
        ("yesterday", None),
        ("20090305", None),
        ("0000-00-00T00:00:00Z", None),
    ] {
        for version in ["WARC/0.18", "WARC/1.0"] {
            let file = format!(
                "{version}\nWARC-Type: response\nWARC-Date: {date}\nWARC-Target-URI: http://a.org/\n\
                 Content-Type: application/http; msgtype=response\nContent-Length: {}\n\n{block}\n\n",
                block.len()
            );
            let is = dated("a.warc", file.into_bytes());
            assert_eq!(is, (expected.map(str::to_owned), u64::from(expected.is_none())), "{version} {date}");
        }
    }
}

/// A record in the form of the ClueWeb09 collection.
fn draft(version: &str, url: &str, html: &str) -> Vec<u8> {
    let block = format!("HTTP/1.1 200 OK\nContent-Type: text/html\n\n{html}");
    format!(
        "{version}\nWARC-Type: response\nWARC-Target-URI: {url}\nWARC-Warcinfo-ID: x\nWARC-Date: 2009-03-65T08:43:19-0800\n\
         WARC-Record-ID: <urn:uuid:1>\nWARC-TREC-ID: clueweb09-en0000-00-00000\n\
         Content-Type: application/http;msgtype=response\nWARC-Identified-Payload-Type: \nContent-Length: {}\n\n{block}\n\n",
        block.len()
    )
    .into_bytes()
}

#[test]
fn drafts_of_warc_are_read() {
    let about = "WARC/0.18\nWARC-Type: warcinfo\nWARC-Date: 2009-03-65T08:43:19-0800\nContent-Type: application/warc-fields\n\
                 Content-Length: 13\n\nsoftware: x\n\n\n";
    let file = [
        about.as_bytes().to_vec(),
        draft("WARC/0.18", "http://a.org/1", "<p>one"),
        draft("WARC/0.17", "http://a.org/2", "<p>two"),
        draft("WARC/0.18", "http://a.org/3\nof/it", "<p>three"),
        draft("WARC/0.18", "http://a.org/4\n\n", "<p>four"),
        draft("WARC/0.18", "http://a.org/5", "<p>five"),
    ];
    let expected = [
        "http://a.org/1 html <p>one",
        "http://a.org/2 html <p>two",
        "http://a.org/3of/it html <p>three",
        "http://a.org/4 html <p>four",
        "http://a.org/5 html <p>five",
    ];
    for (how, pack) in PACKS {
        for name in ["a.warc", "unnamed"] {
            assert_eq!(rendered(&items(name, &pack(&file))), expected, "{how}");
        }
        let mut damaged = file.clone();
        damaged[2] = String::from_utf8(file[2].clone())
            .unwrap()
            .replace("Content-Length: ", "Content-Length: 7")
            .into_bytes();
        let found = outcome("a.warc", &pack(&damaged));
        assert_eq!(found.pages, [&expected[..1], &expected[2..]].concat(), "{how}");
        assert_eq!(found.bad, 1, "{how}");
    }
}

#[test]
fn other_versions_are_refused_with_their_name() {
    let directory = tempfile::tempdir().unwrap();
    for (begin, version) in [
        ("WARC/0.16\r\n", "WARC/0.16"),
        ("WARC/0.9\n", "WARC/0.9"),
        ("WARC/2.0\r\n", "WARC/2.0"),
        ("WARC/10.25 ", "WARC/10.25"),
        ("warc/0.10 1234 response http://a/ 20060101000000 text/html", "warc/0.10"),
    ] {
        for name in ["it.warc", "it.warc.gz", "it"] {
            let text = format!("{begin}WARC-Type: response\r\nContent-Length: 0\r\n\r\n\r\n\r\n").repeat(3);
            if name == "it" && !begin.starts_with("WARC") {
                continue;
            }
            let content = if name.ends_with("gz") { gzip(text.as_bytes()) } else { text.into_bytes() };
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            let expected =
                format!("it: {version} is not read; WARC/0.17, WARC/0.18, WARC/1.0 and WARC/1.1 are");
            assert_eq!(refusal(&path), expected);
        }
    }
}

#[test]
fn a_file_with_the_name_of_another_archiver_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it");
    let arc = path.with_extension("arc");
    for content in [&b"ArC\x01 of FreeArc"[..], b"some text", b"<html>"] {
        fs::write(&arc, content).unwrap();
        assert!(doppel_crawls::open(&arc, LIMITS).is_err());
    }
    // A file that does not begin with a description is recognised by its name.
    let page = page("http://a.org/", "<p>");
    check("a.arc", &page, &["http://a.org/ html <p>"]);
}
