//! Tests with WARC records of every type, and with the compressions that WARC writers use.

use proptest::prelude::*;

use super::*;

/// A record with these fields and its length.
pub(crate) fn record(fields: &str, block: &[u8]) -> Vec<u8> {
    let head = format!("WARC/1.0\r\n{fields}Content-Length: {}\r\n\r\n", block.len());
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

pub(crate) fn response(url: &str, block: &str) -> Vec<u8> {
    response_with(url, "", block)
}

fn response_with(url: &str, fields: &str, block: &str) -> Vec<u8> {
    let fields = format!(
        "WARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\n\
         Content-Type: application/http; msgtype=response\r\n{fields}"
    );
    record(&fields, block.as_bytes())
}

/// A response record that contains an HTML page.
pub(crate) fn page(url: &str, html: &str) -> Vec<u8> {
    response(url, &format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{html}"))
}

/// The records have the form of Common Crawl's WET files.
#[test]
fn the_records_of_wet_files_are_pages_of_text() {
    let of = |url: &str, language: &str, text: &str| {
        record(
            &format!(
                "WARC-Type: conversion\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2023-05-18T01:58:10Z\r\n\
                 WARC-Record-ID: <urn:uuid:1>\r\nWARC-Refers-To: <urn:uuid:2>\r\n\
                 {language}Content-Type: text/plain\r\n"
            ),
            text.as_bytes(),
        )
    };
    let language = "WARC-Identified-Content-Language: ";
    let file = [
        record("WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n", b"Software-Info: x\r\n"),
        of("http://a.org/1", &format!("{language}zho,eng\r\n"), "标题\nText of the page"),
        of("http://a.org/2", "", "no language"),
        of("http://a.org/3", &format!("{language}not a language\r\n"), ""),
        of("http://a.org/4", &format!("{language}deu\r\n{language}fra\r\n eng\r\n"), "two"),
    ];
    let expected = [
        ("http://a.org/1", "标题\nText of the page", Some("zho")),
        ("http://a.org/2", "no language", None),
        ("http://a.org/3", "", None),
        ("http://a.org/4", "two", Some("deu")),
    ];
    let expected = expected.map(|(url, text, language)| FetchedPage {
        url: doppel_model::PageUrl::parse(url).unwrap(),
        fetched_at: Some("2023-05-18T01:58:10Z".parse().unwrap()),
        body: FetchedBody::Text(text.to_owned()),
        popularity: None,
        language: language.map(str::to_owned),
    });
    let gzipped = file.each_ref().map(|record| gzip(record)).concat();
    for (name, content) in
        [("a.wet", file.concat()), ("a.warc.wet.gz", gzipped), ("a.wet.xz", xz(&file.concat()))]
    {
        let items = items(name, &content);
        let pages: Vec<_> = items
            .iter()
            .filter_map(|item| if let Item::Page(page) = item { Some(page) } else { None })
            .collect();
        assert_eq!(pages, expected.iter().collect::<Vec<_>>(), "{name}");
        assert_eq!(items.len(), 4);
    }
}

#[test]
fn records_of_every_type_are_read_or_skipped_in_every_compression() {
    let url = "WARC-Target-URI: https://a.org/r\r\nWARC-Date: 2020-01-01\r\n";
    let of = |kind: &str, content_type: &str| {
        record(&format!("WARC-Type: {kind}\r\n{url}Content-Type: {content_type}\r\n"), b"<p>body")
    };
    let file = [
        record("WARC-Type: warcinfo\r\nContent-Type: application/warc-fields\r\n", b"software: x\r\n"),
        page("https://a.org/1", "<p>one"),
        of("request", "application/http; msgtype=request"),
        of("metadata", "application/warc-fields"),
        of("continuation", "text/html"),
        of("resource", "text/html; charset=utf-8"),
        of("resource", "image/png"),
        of("conversion", "text/plain"),
        of("conversion", "text/html"),
        of("preview", "text/html"),
        of("response", "text/dns"),
        page("<https://a.org/brackets>", ""),
        response("https://a.org/to", "HTTP/1.1 301 Moved\r\nLocation: /1\r\n\r\n"),
        response("https://a.org/gone", "HTTP/1.1 410 Gone\r\n\r\n"),
        response("https://a.org/busy", "HTTP/1.1 503 Busy\r\n\r\n"),
        response("dns:a.org", "20200101000000\n"),
        response_with("https://a.org/s", "WARC-Segment-Number: 1\r\n", "HTTP/1.1 200 OK\r\n\r\n<p>"),
        response("https://a.org/text", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nlast"),
    ];
    let expected = [
        "https://a.org/1 html <p>one",
        "https://a.org/r html [utf-8] <p>body",
        "skip: neither HTML nor text",
        "https://a.org/r text <p>body",
        "skip: neither HTML nor text",
        "skip: unknown kind of record",
        "skip: neither HTML nor text",
        "https://a.org/brackets html ",
        "https://a.org/to to https://a.org/1",
        "https://a.org/gone dead",
        "skip: HTTP status 503",
        "skip: not http, https or file",
        "skip: part of a segmented record",
        "https://a.org/text text last",
    ];
    check("a.warc", &file.concat(), &expected);
    check("a.warc.gz", &file.each_ref().map(|record| gzip(record)).concat(), &expected);
    check("a.warc.gz", &gzip(&file.concat()), &expected);
    check("no-name", &gzip(&file.concat()), &expected);
    check("a.warc.zst", &zstd(&file.concat()), &expected);
    check("a.warc.zst", &file.each_ref().map(|record| zstd(record)).concat(), &expected);
    check("a.warc.bz2", &bzip2(&file.concat()), &expected);
    check("no-name", &xz(&file.concat()), &expected);
    // Some writers omit the final line ends, and others pad the file.
    check("a.warc", file.concat().trim_ascii_end(), &expected);
    check("a.warc.gz", &[gzip(&file.concat()), vec![0; 1000]].concat(), &expected);
}

#[test]
fn a_date_of_a_record_is_read_and_one_too_far_in_the_future_makes_it_bad() {
    let dated = |date: &str| {
        let fields =
            format!("WARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nContent-Type: text/html\r\n{date}");
        items("a.warc", &record(&fields, b"")).pop().unwrap()
    };
    let date_of = |field: &str| match dated(field) {
        Item::Page(page) => page.fetched_at,
        other => panic!("{field:?}: {other:?}"),
    };
    assert_eq!(
        date_of("WARC-Date: 2020-01-01T00:00:00.25Z\r\n"),
        Some("2020-01-01T00:00:00.25Z".parse().unwrap())
    );
    assert_eq!(date_of(""), None);
    assert_eq!(date_of("WARC-Date: 2023-11-15T22:13:20Z\r\n"), Some(NOW.plus_millis(Timestamp::DAY_MS)));
    assert_eq!(date_of("WARC-Date: 20200101\r\n"), None, "a value in another form is ignored");
    let ahead = rendered(&[dated("WARC-Date: 2023-11-15T22:13:20.001Z\r\n")]);
    assert_eq!(
        ahead,
        ["bad: a.warc, record at byte 0: the date 2023-11-15T22:13:20.001Z is more than 24 hours ahead"]
    );
}

#[test]
fn a_bad_record_is_reported_and_the_records_around_it_are_read() {
    let good = page("https://a.org/good", "<p>");
    for (bad, expected) in [
        (page("/relative", ""), "not an absolute URL: relative URL without a base"),
        (page("http://a.org/\0", ""), "the URL has a control character at byte 13"),
        (page("http://", ""), "not an absolute URL: empty host"),
        (response("http://a.org/", "no HTTP"), "no HTTP response head: invalid HTTP version"),
        (response("http://a.org/", ""), "no HTTP response head: it does not end"),
        (record("WARC-Type: response\r\n", b""), "the record has no WARC-Target-URI"),
        (record("WARC-Type: response\r\nWARC-Target-URI: \r\n", b""), "the record has no WARC-Target-URI"),
        (record("", b""), "the record has no WARC-Type"),
        (b"WARC/1.0\r\nWARC-Type: response\r\n\r\n\r\n\r\n".to_vec(), "the record has no Content-Length"),
        (record("Content-Length: 7\r\nWARC-Type: response\r\n", b""), "the record has two Content-Length"),
        (
            b"WARC/1.0\r\nContent-Length: -1\r\nWARC-Type: response\r\n\r\n".to_vec(),
            "bad Content-Length: \"-1\"",
        ),
        (
            b"WARC/1.0\r\nWARC-Type response\r\n\r\n".to_vec(),
            "a line of the record head is no field: \"WARC-Type response\"",
        ),
        (
            b"WARC/2.0\r\nWARC-Type: response\r\n\r\n".to_vec(),
            "WARC/2.0 is not read; WARC/0.17, WARC/0.18, WARC/1.0 and WARC/1.1 are",
        ),
        (b"<html> in between\r\n\r\n".to_vec(), "no WARC record; it begins with \"<html> in between\""),
        (
            record(&format!("X: {}\r\n", "y".repeat(70_000)), b""),
            "the record head is longer than 65536 bytes",
        ),
    ] {
        let offset = good.len();
        let expected = format!("bad: a.warc, record at byte {offset}: {expected}");
        let expected = ["https://a.org/good html <p>", &*expected, "https://a.org/good html <p>"];
        check("a.warc", &[&*good, &bad, &good].concat(), &expected);

        let offset = gzip(&good).len();
        let expected = expected.map(|line| line.replace("a.warc", "a.warc.gz"));
        let expected =
            expected.map(|line| line.replace(&format!("byte {}:", good.len()), &format!("byte {offset}:")));
        let expected = expected.each_ref().map(String::as_str);
        check("a.warc.gz", &[gzip(&good), gzip(&bad), gzip(&good)].concat(), &expected);
        let one_member = rendered(&items("a.warc.gz", &gzip(&[&*good, &bad, &good].concat())));
        assert_eq!(one_member[0], expected[0]);
        assert_eq!(one_member[2..], expected[2..]);
    }
}

#[test]
fn a_record_with_a_wrong_length_is_bad_and_the_records_around_it_are_read() {
    let good = page("https://a.org/good", "<p>");
    let text = String::from_utf8(page("https://a.org/bad", "<p>some text\r\n\r\nin a page")).unwrap();
    let right = text.split("Content-Length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    for wrong in [0, 1, 50, 60, 200, 300, 5_000, u64::MAX] {
        let bad = text.replace(&format!("Content-Length: {right}"), &format!("Content-Length: {wrong}"));
        for packed in [false, true] {
            let pack = |bytes: &[u8]| if packed { gzip(bytes) } else { bytes.to_vec() };
            let file = [pack(&good), pack(bad.as_bytes()), pack(&good)].concat();
            let rendered = rendered(&items("a.warc", &file));
            let good = rendered.iter().filter(|line| **line == "https://a.org/good html <p>").count();
            let bad = rendered.iter().filter(|line| line.starts_with("bad: a.warc, record at byte ")).count();
            assert_eq!((good, bad, rendered.len()), (2, 1, 3), "{wrong}: {rendered:?}");
        }
    }
}

#[test]
fn records_and_pages_above_their_limits_are_bad_unless_they_are_no_text() {
    let good = page("https://a.org/good", "<p>");
    let page_of = |bytes: usize| page("https://a.org/large", &"x ".repeat(bytes / 2));
    let film = "HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n".to_owned() + &"x".repeat(33 << 20);
    let film = response("https://a.org/film", &film);
    for pack in [|bytes: &[u8]| bytes.to_vec(), gzip] {
        let file = [pack(&page_of(50 << 20)), pack(&page_of(17 << 20)), pack(&film), pack(&good)].concat();
        let rendered = rendered(&items("a.warc", &file));
        assert!(
            rendered[0].starts_with("bad: a.warc, record at byte 0: a record of 524288"),
            "{}",
            rendered[0]
        );
        assert!(
            rendered[1].ends_with("a page of 17825792 bytes; at most 16777216 are taken"),
            "{}",
            rendered[1]
        );
        assert_eq!(rendered[2..], ["skip: neither HTML nor text", "https://a.org/good html <p>"]);
    }
}

fn revisit(url: &str, fields: &str, http: &str) -> Vec<u8> {
    let fields = format!(
        "WARC-Type: revisit\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2020-01-02T00:00:00Z\r\n\
         WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n{fields}"
    );
    record(&fields, http.as_bytes())
}

#[test]
fn a_revisit_is_read_as_its_original_or_skipped() {
    let one = "WARC-Payload-Digest: sha1:ONE\r\n";
    let of = |url: &str| format!("{one}WARC-Refers-To-Target-URI: {url}\r\n");
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let file = [
        // The empty body of a 404 with the same digest must not be taken for this content.
        response_with("https://a.org/gone", one, "HTTP/1.1 404 Not Found\r\n\r\n"),
        response_with("https://a.org/d/1", one, &format!("{ok}<a href=2>")),
        revisit("https://a.org/d/1", one, ""),
        revisit("https://a.org/d/1", &of("https://a.org/d/1"), ok),
        revisit("https://a.org/d/1", &of("<https://a.org/d/1>"), ok),
        revisit("https://b.org/copy", &of("https://a.org/d/1"), ok),
        revisit("https://b.org/copy", &of("https://a.org/d/1"), ""),
        revisit("https://b.org/moved", &of("https://a.org/d/1"), "HTTP/1.1 302 Found\r\nLocation: x\r\n\r\n"),
        revisit("https://b.org/gone", &of("https://a.org/d/1"), "HTTP/1.1 404 Not Found\r\n\r\n"),
        revisit(
            "https://b.org/",
            "WARC-Payload-Digest: sha1:TWO\r\nWARC-Refers-To-Target-URI: https://c.org/\r\n",
            ok,
        ),
        revisit("https://b.org/", "WARC-Refers-To-Target-URI: https://c.org/\r\n", ok),
        // WARC 1.0 names only the id of the original, and some writers only the digest.
        response_with("https://a.org/by/id", "WARC-Record-ID: <urn:uuid:1>\r\n", &format!("{ok}<a href=3>")),
        revisit("https://b.org/id", "WARC-Refers-To: <urn:uuid:1>\r\n", ok),
        revisit("https://b.org/digest", one, ok),
        response_with("https://a.org/by/id", "WARC-Record-ID: <urn:uuid:3>\r\n", &format!("{ok}<a href=4>")),
        revisit("https://a.org/by/id", "WARC-Refers-To: <urn:uuid:1>\r\n", ok),
        revisit("https://b.org/other", "WARC-Refers-To: <urn:uuid:2>\r\n", ok),
        String::from_utf8(revisit("https://a.org/d/1", "", ""))
            .unwrap()
            .replace("identical-payload-digest", "server-not-modified")
            .into_bytes(),
        String::from_utf8(revisit("https://a.org/d/1", "", ""))
            .unwrap()
            .replace("identical-payload-digest", "other")
            .into_bytes(),
        page("https://a.org/last", ""),
    ];
    let unknown = "skip: revisit of a record that is not found in the file";
    let expected = [
        "https://a.org/gone dead",
        "https://a.org/d/1 html <a href=2>",
        "skip: unchanged revisit",
        "skip: unchanged revisit",
        "skip: unchanged revisit",
        "https://b.org/copy html <a href=2>",
        "skip: unchanged revisit",
        "https://b.org/moved to https://b.org/x",
        "https://b.org/gone dead",
        unknown,
        unknown,
        "https://a.org/by/id html <a href=3>",
        "https://b.org/id html <a href=3>",
        "https://b.org/digest html <a href=2>",
        "https://a.org/by/id html <a href=4>",
        // The page has its earlier content again.
        "https://a.org/by/id html <a href=3>",
        "skip: unchanged revisit",
        "skip: unchanged revisit",
        "skip: unknown revisit profile",
        "https://a.org/last html ",
    ];
    check("a.warc", &file.concat(), &expected);
    let packed = file.each_ref().map(|record| gzip(record)).concat();
    check("a.warc.gz", &packed, &expected);

    // A record in the middle of a member cannot be read again.
    let mut in_one = expected;
    [5, 6, 12, 13, 15].into_iter().for_each(|at| in_one[at] = unknown);
    check("a.warc.gz", &gzip(&file.concat()), &in_one);
    // If no original is remembered, a revisit that names no other URL counts as a revisit of its own page.
    let mut forgotten = in_one;
    [12, 13, 15].into_iter().for_each(|at| forgotten[at] = "skip: unchanged revisit");
    let forgetful = Limits { originals_max: 0, ..LIMITS };
    assert_eq!(rendered(&items_within(forgetful, "a.warc.gz", &packed)), forgotten);

    let copy = items("a.warc.gz", &packed).swap_remove(5);
    let Item::Page(copy) = copy else { panic!("{copy:?}") };
    assert_eq!(copy.fetched_at, Some("2020-01-02T00:00:00Z".parse().unwrap()));
}

/// Each revisit reads the record again, and the expansion limit counts it each time.
#[test]
fn a_record_is_read_again_for_each_revisit() {
    const REVISITS: usize = 300;
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let digest = "WARC-Payload-Digest: sha1:ONE\r\n";
    let fields = format!("{digest}WARC-Refers-To-Target-URI: https://a.org/\r\n");
    let copies: Vec<u8> =
        (0..REVISITS).flat_map(|n| gzip(&revisit(&format!("https://b.org/{n}"), &fields, ok))).collect();
    let limits = Limits { expansion_free_bytes: 1 << 20, expansion_ratio_max: 30, ..LIMITS };
    let words: String = (0..15_000).map(|n| format!("{} ", n * 7_919 % 10_007)).collect();
    for (content, plausible) in [(words, true), (" ".repeat(70_000), false)] {
        let original = gzip(&response_with("https://a.org/", digest, &format!("{ok}{content}")));
        let ratio = content.len() / original.len();
        assert_eq!(ratio < 30, plausible, "{ratio}");
        let items = items_within(limits, "a.warc.gz", &[&original[..], &copies].concat());
        assert_eq!(items.len(), REVISITS + 1);
        let pages = items.iter().filter(|item| matches!(item, Item::Page(_))).count();
        let bombs = items.iter().filter(
            |item| matches!(item, Item::Bad(error) if matches!(error.reason, Reason::Expansion { .. })),
        );
        assert_eq!(pages + bombs.count(), items.len());
        assert_eq!(pages == items.len(), plausible, "{pages} pages");
    }
}

/// Blocks made of pieces that look like boundaries between records.
fn block() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\r\n\r\n".to_owned()),
        Just("WARC/1.0\r\n".to_owned()),
        Just("Content-Length: 3\r\n".to_owned()),
        "[a-z<>]{0,5}",
        // Larger than the decompression window.
        (1..80_000_usize).prop_map(|n| "word ".repeat(n / 5)),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn records_whose_blocks_look_like_record_boundaries_are_read(
        blocks in prop::collection::vec((block(), 0..4_u8), 0..6),
    ) {
        let mut expected = Vec::new();
        let mut file = Vec::new();
        let mut member = Vec::new();
        let mut plain = Vec::new();
        for (number, (block, packing)) in blocks.iter().enumerate() {
            let url = format!("https://a.org/{number}");
            let record = match packing {
                0 => record("WARC-Type: request\r\n", block.as_bytes()),
                _ => page(&url, block),
            };
            if *packing > 0 {
                expected.push(format!("{url} html {block}"));
            }
            plain.extend_from_slice(&record);
            member.extend_from_slice(&record);
            // A gzip member contains one record or several.
            if *packing < 3 {
                file.extend(gzip(&member));
                member.clear();
            }
        }
        file.extend(gzip(&member));
        prop_assert_eq!(rendered(&items("a.warc.gz", &file)), &*expected);
        prop_assert_eq!(rendered(&items("a.warc", &plain)), &*expected);
    }
}

/// The file has the form of the Archive Team: a dictionary, then each record in a frame of its own.
#[test]
fn a_warc_file_with_a_zstd_dictionary_is_read() {
    let pages: Vec<_> =
        (0..400).map(|n| page(&format!("https://a.org/{n}"), &format!("<p>page {n}"))).collect();
    let dictionary = zstd::dict::from_samples(&pages, 8 << 10).unwrap();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(9, &dictionary).unwrap();
    let frames: Vec<_> = pages.iter().map(|page| compressor.compress(page).unwrap()).collect();
    for stored in [dictionary.clone(), zstd::encode_all(&*dictionary, 9).unwrap()] {
        let length = u32::try_from(stored.len()).unwrap().to_le_bytes();
        let file = [&[0x5d, 0x2a, 0x4d, 0x18], &length[..], &stored, &frames.concat()].concat();
        assert!(file.len() < pages.concat().len() / 3);
        for name in ["a.warc.zst", "unnamed"] {
            let found = rendered(&items(name, &file));
            assert!(
                found
                    .iter()
                    .enumerate()
                    .all(|(n, page)| *page == format!("https://a.org/{n} html <p>page {n}"))
            );
            assert_eq!(found.len(), 400);
        }
    }
}

#[test]
fn a_revisit_is_resolved_from_a_zstd_frame() {
    let digest = "WARC-Payload-Digest: sha1:ABC\r\n";
    let original =
        response_with("https://a.org/1", digest, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>same");
    let fields = format!(
        "WARC-Type: revisit\r\nWARC-Target-URI: https://a.org/2\r\nWARC-Date: 2020-01-01\r\n{digest}\
         WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
         WARC-Refers-To-Target-URI: https://a.org/1\r\n"
    );
    let revisit = record(&fields, b"");
    let expected = ["https://a.org/1 html <p>same", "https://a.org/2 html <p>same"];
    check("a.warc.zst", &[zstd(&original), zstd(&revisit)].concat(), &expected);
}
