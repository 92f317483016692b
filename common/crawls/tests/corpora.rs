//! Tests that read the developer corpora completely and compare the pages with the lists that belong to the
//! corpora. A test passes without a comparison if the corpora are absent.
#![allow(clippy::unwrap_used)]

#[path = "../../text/tests/crawl/mod.rs"]
mod crawl;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use doppel_crawls::{FetchedBody, FetchedPage, Item, Limits};
use doppel_model::Timestamp;
use flate2::read::MultiGzDecoder;

/// All pages of a file. Panics if a record is bad or skipped.
fn pages(path: &Path) -> Vec<FetchedPage> {
    let now: Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
    let mut input = doppel_crawls::open(path, Limits::at(now)).unwrap();
    let pages = input
        .by_ref()
        .map(|item| match item {
            Item::Page(page) => page,
            other => panic!("{}: {other:?}", path.display()),
        })
        .collect();
    assert_eq!(input.bytes_read(), input.bytes_total(), "{}", path.display());
    pages
}

/// The URL of every line of a list, and whether the page is dead, sorted.
fn listed(lines: impl BufRead) -> Vec<(String, bool)> {
    let mut listed: Vec<_> = lines
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            (line["url"].as_str().unwrap().to_owned(), line["status"] == 404)
        })
        .collect();
    listed.sort_unstable();
    listed
}

/// The pages of the first `rounds` rounds of a crawl.
fn rounds(directory: &Path, rounds: usize) -> Vec<FetchedPage> {
    (0..rounds).flat_map(|round| pages(&directory.join(format!("round-{round:02}.warc.gz")))).collect()
}

#[track_caller]
fn check_against_list(pages: &[FetchedPage], list: &[(String, bool)]) {
    let mut read: Vec<_> = pages.iter().map(|p| (p.url.to_string(), p.body == FetchedBody::Dead)).collect();
    read.sort_unstable();
    assert_eq!(read.len(), list.len());
    for (read, listed) in read.iter().zip(list) {
        assert_eq!(read, listed);
    }
    assert!(pages.iter().all(|page| page.fetched_at.is_some()));
}

/// The URL and the body of every response, read by a simple reader that assumes a well-formed file.
fn split_responses(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    let split = |bytes: &[u8]| memchr::memmem::find(bytes, b"\r\n\r\n").unwrap() + 4;
    let mut responses = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let (head, after) = rest.split_at(split(rest));
        let head = std::str::from_utf8(head).unwrap();
        let field = |name| head.lines().find_map(|line| line.strip_prefix(name));
        let (block, after) = after.split_at(field("Content-Length: ").unwrap().parse().unwrap());
        if let Some(url) = field("WARC-Target-URI: ") {
            responses.push((url.to_owned(), block[split(block)..].to_vec()));
        }
        rest = after.strip_prefix(b"\r\n\r\n").unwrap();
    }
    responses
}

#[test]
fn the_bodies_of_pages_are_those_that_a_simple_reader_reads() {
    let Some(data) = crawl::data() else { return };
    for file in [
        "quick/round-00.warc.gz",
        "quick/round-02.warc.gz",
        "trace/round-01.warc.gz",
        "labelled/refetch.train.warc.gz",
        "labelled/trecdup-web.train.warc.gz",
    ] {
        let path = data.join(file);
        let pages = pages(&path).into_iter().map(|page| match page.body {
            FetchedBody::Html { bytes, .. } | FetchedBody::Xhtml { bytes, .. } => {
                (page.url.to_string(), Some(bytes))
            }
            FetchedBody::Text(text) => (page.url.to_string(), Some(text.into_bytes())),
            FetchedBody::Redirect(_) | FetchedBody::Dead => (page.url.to_string(), None),
        });
        let expected = split_responses(&path);
        assert_eq!(pages.len(), expected.len(), "{file}");
        for ((url, body), expected) in pages.zip(expected) {
            assert_eq!(url, expected.0);
            assert!(body.is_none_or(|body| body == expected.1), "{url}");
        }
    }
}

#[test]
fn the_pages_of_the_corpus_quick_are_those_of_its_list() {
    let Some(data) = crawl::data().map(|data| data.join("quick")) else { return };
    let pages = rounds(&data, 3);
    assert_eq!(pages.len(), 646 + 113 + 147);
    check_against_list(&pages, &listed(BufReader::new(File::open(data.join("quick.jsonl")).unwrap())));
}

#[test]
fn the_pages_of_the_corpus_trace_are_those_of_its_list() {
    let Some(data) = crawl::data().map(|data| data.join("trace")) else { return };
    let pages = rounds(&data, 10);
    assert_eq!(pages.len(), 21_640);
    assert_eq!(pages.iter().filter(|page| page.body == FetchedBody::Dead).count(), 230);
    let list = MultiGzDecoder::new(File::open(data.join("trace.jsonl.gz")).unwrap());
    check_against_list(&pages, &listed(BufReader::new(list)));
    // The crawl has one round per week.
    let weeks = pages.iter().map(|page| page.fetched_at.unwrap().day() / 7);
    let by_week = weeks.fold(BTreeMap::<i64, usize>::new(), |mut by_week, week| {
        *by_week.entry(week).or_default() += 1;
        by_week
    });
    let by_week: Vec<_> = by_week.into_values().collect();
    assert_eq!(by_week, [243, 1629, 1698, 1943, 2034, 2296, 2707, 2725, 3183, 3182]);
}

#[test]
fn the_corpus_mid_has_the_expected_pages_and_the_pages_of_its_list_of_redirects() {
    let Some(data) = crawl::data().map(|data| data.join("mid")) else { return };
    let mut html_bytes = 0;
    let mut urls = Vec::new();
    for file in ["mid-00.warc.gz", "mid-01.warc.gz"] {
        for page in pages(&data.join(file)) {
            let FetchedBody::Html { bytes, charset: None } = &page.body else {
                panic!("{}: {:?}", page.url, page.body)
            };
            assert!(bytes.len() <= 96 << 10, "{}", page.url);
            html_bytes += bytes.len();
            urls.push(page.url);
        }
    }
    assert_eq!(urls.len(), 16_675);
    assert!((200_000_000..300_000_000).contains(&html_bytes), "{html_bytes}");
    urls.sort_unstable();
    let stubs = listed(BufReader::new(File::open(data.join("mid.redirects.jsonl")).unwrap()));
    assert_eq!(stubs.len(), 2_307);
    for (url, _) in stubs {
        assert!(urls.binary_search_by(|page| page.as_str().cmp(&url)).is_ok(), "{url} is not in the corpus");
    }
}

#[test]
fn the_labelled_corpora_have_the_expected_numbers_and_kinds_of_pages() {
    let Some(data) = crawl::data().map(|data| data.join("labelled")) else { return };
    for (name, documents, html) in [
        ("trecdup-web", 126, false),
        ("trecdup-gov2", 134, false),
        ("shortanswers", 40, false),
        ("refetch", 91, true),
    ] {
        let pages = pages(&data.join(format!("{name}.train.warc.gz")));
        assert_eq!(pages.len(), documents, "{name}");
        let as_expected = pages.iter().all(|page| match &page.body {
            FetchedBody::Html { bytes, .. } => html && !bytes.is_empty(),
            FetchedBody::Text(text) => !html && !text.is_empty(),
            _ => false,
        });
        assert!(as_expected, "{name}");
    }
}
