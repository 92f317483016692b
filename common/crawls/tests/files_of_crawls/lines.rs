//! Tests with files of JSON lines.

use doppel_contract::page::{PageBody, PageItem};
use doppel_model::PageUrl;

use super::*;

#[test]
fn every_kind_of_page_is_read_in_every_compression() {
    let file = concat!(
        "\u{feff}{\"url\":\"https://a.org/1\",\"html\":\"<p>\\u00e9\"}\r\n",
        "\n  \t\r\n",
        "{\"url\":\"https://a.org/2\",\"text\":\"\"}\n",
        "{\"url\":\"https://a.org/3\",\"redirect_to\":\"https://a.org/1\"}\n",
        "{\"url\":\"https://a.org/4\",\"dead\":true,\"fetched_at\":\"2020-01-01T00:00:00Z\",\"popularity\":2,\"language\":\"en\"}",
    );
    let expected = [
        "https://a.org/1 html [utf-8] <p>é",
        "https://a.org/2 text ",
        "https://a.org/3 to https://a.org/1",
        "https://a.org/4 dead",
    ];
    let (first, second) = file.as_bytes().split_at(100);
    check("a.jsonl", file.as_bytes(), &expected);
    check("a.ndjson", file.as_bytes(), &expected);
    check("a.json", file.as_bytes(), &expected);
    check("unnamed", file.as_bytes(), &expected);
    check("a.jsonl.gz", &gzip(file.as_bytes()), &expected);
    check("a.jsonl.gz", &[gzip(first), gzip(second)].concat(), &expected);
    check("a.jsonl.zst", &zstd(file.as_bytes()), &expected);
    check("a.jsonl.zst", &[zstd(first), zstd(second)].concat(), &expected);
    check("unnamed", &zstd(file.as_bytes()), &expected);
    for (name, pack) in [("a.jsonl.bz2", bzip2 as fn(&[u8]) -> Vec<u8>), ("a.ndjson.xz", xz)] {
        check(name, &pack(file.as_bytes()), &expected);
        check(name, &[pack(first), pack(second)].concat(), &expected);
        check("unnamed", &pack(file.as_bytes()), &expected);
    }
    check("named-gz-but-plain.jsonl", &gzip(file.as_bytes()), &expected);

    let last = items("a.jsonl", file.as_bytes()).pop().unwrap();
    let Item::Page(last) = last else { panic!("{last:?}") };
    assert_eq!(last.fetched_at, Some("2020-01-01T00:00:00Z".parse().unwrap()));
    assert_eq!((last.popularity, last.language.as_deref()), (Some(2.0), Some("en")));
    let first = items("a.jsonl", file.as_bytes()).swap_remove(0);
    let Item::Page(first) = first else { panic!("{first:?}") };
    assert_eq!(first.fetched_at, None);
}

#[test]
fn a_bad_line_is_reported_and_does_not_affect_other_lines() {
    for (bad, expected) in [
        ("{", "EOF while parsing an object at column 1"),
        ("not JSON", "expected ident at column 2"),
        (r#"{"url":"http://a/\u0000","dead":true}"#, r#""url": the URL has a control character at byte 9"#),
        (
            r#"{"url":"http://a/","redirect_to":"http://a/"}"#,
            r#""redirect_to": the page redirects to itself"#,
        ),
        (
            r#"{"url":"http://a/","dead":true,"fetched_at":"2123-01-01T00:00:00Z"}"#,
            r#""fetched_at": 2123-01-01T00:00:00Z is more than 24 hours ahead"#,
        ),
        (r#"{"url":"http://a/"}"#, "no content: one of html, text, redirect_to and dead: true is needed"),
    ] {
        let mut lines: Vec<_> =
            (0..1000).map(|n| format!(r#"{{"url":"https://a.org/{n}","dead":true}}"#)).collect();
        lines[499] = bad.to_owned();
        let rendered = rendered(&items("a.jsonl", lines.join("\n").as_bytes()));
        assert_eq!(rendered.len(), 1000);
        assert_eq!(rendered[499], format!("bad: a.jsonl, line 500: {expected}"));
        assert_eq!(rendered.iter().filter(|line| line.ends_with(" dead")).count(), 999);
    }
    let mut invalid_utf_8 = b"{\"url\":\"https://a.org/1\",\"text\":\"\xff\"}\n".to_vec();
    invalid_utf_8.extend(b"{\"url\":\"https://a.org/2\",\"dead\":true}");
    let rendered = rendered(&items("a.jsonl", &invalid_utf_8));
    assert!(rendered[0].starts_with("bad: a.jsonl, line 1: \"text\": invalid unicode"), "{}", rendered[0]);
    assert_eq!(rendered[1], "https://a.org/2 dead");
}

#[test]
fn lines_and_pages_above_their_limits_are_bad() {
    let line =
        |bytes: usize| format!("{{\"url\":\"https://a.org/1\",\"text\":\"{}\"}}\n", "x ".repeat(bytes / 2));
    let file = line(50 << 20) + &line(17 << 20) + &line(2);
    for content in [file.as_bytes().to_vec(), gzip(file.as_bytes())] {
        let rendered = rendered(&items("a.jsonl", &content));
        assert_eq!(rendered[0], "bad: a.jsonl, line 1: a line of 52428836 bytes; at most 33619968 are taken");
        assert_eq!(rendered[1], "bad: a.jsonl, line 2: \"text\": 17825792 bytes; at most 16777216 are taken");
        assert_eq!(rendered[2..], ["https://a.org/1 text x "]);
    }
}

#[test]
fn damaged_compression_ends_the_file() {
    let lines: Vec<_> =
        (0..1000).map(|n| format!("{{\"url\":\"https://a.org/{n}\",\"dead\":true}}\n")).collect();
    for (name, packed) in [
        ("a.jsonl.gz", gzip(lines.concat().as_bytes())),
        ("a.jsonl.zst", zstd(lines.concat().as_bytes())),
        ("a.jsonl.bz2", bzip2(lines.concat().as_bytes())),
        ("a.jsonl.xz", xz(lines.concat().as_bytes())),
    ] {
        let rendered = rendered(&items(name, &packed[..packed.len() - 5]));
        let (last, pages) = rendered.split_last().unwrap();
        assert!(last.ends_with("the data end in the middle of it"), "{last}");
        assert!(pages.iter().enumerate().all(|(n, page)| *page == format!("https://a.org/{n} dead")));
    }
    for empty in ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.warc", "a.warc.gz"] {
        check(empty, b"", &[]);
    }
    check("a.jsonl.gz", &gzip(b""), &[]);
}

#[test]
fn a_whole_line_before_damage_is_read() {
    let line = |n: u32| format!("{{\"url\":\"https://a.org/{n}\",\"dead\":true}}");
    let two = format!("{}\n{}", line(1), line(2));
    let pages = ["https://a.org/1 dead", "https://a.org/2 dead"];
    for (junk, reason) in [
        (&b"junk"[..], "the data end in the middle of it"),
        (
            b"junk of more than a header's length",
            "corrupt compressed data: no gzip header where a member should begin",
        ),
    ] {
        let bad = format!("bad: a.jsonl.gz, line 3: {reason}");
        check("a.jsonl.gz", &[&gzip(two.as_bytes()), junk].concat(), &[pages[0], pages[1], &bad]);
        // An incomplete line before the damage is not reported separately.
        let half = gzip(&two.as_bytes()[..two.len() - 1]);
        let bad = format!("bad: a.jsonl.gz, line 2: {reason}");
        check("a.jsonl.gz", &[&half, junk].concat(), &[pages[0], &bad]);
    }
}

#[test]
fn a_line_that_doppel_writes_is_read_unchanged() {
    let html = "<p>\u{0}\"\\\u{2028}".to_owned() + &"text ".repeat(20);
    let item = PageItem {
        url: PageUrl::parse("https://a.org/1").unwrap(),
        body: PageBody::Html(html.clone()),
        fetched_at: Some(NOW),
        popularity: Some(0.5),
        language: Some("en".to_owned()),
    };
    let mut lines = Vec::new();
    item.to_json_line(&mut lines);
    let read = items("a.jsonl", &lines).remove(0);
    let Item::Page(read) = read else { panic!("{read:?}") };
    assert_eq!(read.body, FetchedBody::Html { bytes: html.into_bytes(), charset: Some("utf-8".to_owned()) });
    assert_eq!((read.url, read.fetched_at), (item.url, item.fetched_at));
    assert_eq!((read.popularity, read.language), (item.popularity, item.language));
}

#[test]
fn expansion_is_bounded_whatever_the_compression() {
    let limits = Limits { expansion_free_bytes: 1 << 20, ..LIMITS };
    let spaces = vec![b' '; 16 << 20];
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd, bzip2, xz] {
        let packed = pack(&spaces);
        assert!(packed.len() * 250 < 15 << 20);
        let items = items_within(limits, "a.jsonl", &packed);
        let [Item::Bad(error)] = &items[..] else { panic!("{items:?}") };
        assert!(matches!(error.reason, Reason::Expansion { .. }), "{error}");
    }
}
