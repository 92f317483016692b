//! Bad input through the binary, end to end. Every bad input gives a clear error or a defined result, never a
//! panic. Valid input beside it is never lost.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use harness::pages::{Random, html, ndjson, near_copy, text};
use harness::warc::{endless_zeros, gzip, page, response};
use harness::{OwnServer, crawl, crawls, json_of, lines_of, run};
use serde_json::{Value, json};

const GIB: u64 = 1 << 30;

/// The result of `doppel dedup` for some inputs.
struct Dedup {
    code: Option<i32>,
    errors: String,
    summary: Value,
    /// The export.
    lines: Vec<Value>,
}

impl Dedup {
    fn urls(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line["url"].as_str().unwrap()).collect()
    }

    fn bad(&self, reason: &str) -> u64 {
        self.summary["input"]["bad"][reason].as_u64().unwrap_or(0)
    }
}

fn dedup(inputs: &[&Path]) -> Dedup {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out.jsonl");
    let mut arguments = vec!["dedup", "--json", "--out", out.to_str().unwrap()];
    arguments.extend(inputs.iter().map(|path| path.to_str().unwrap()));
    let Output { status, stdout, stderr } = run(arguments);
    let errors = String::from_utf8(stderr).unwrap();
    assert!(matches!(status.code(), Some(0..=5)), "{status}: {errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    let summary = serde_json::from_slice(&stdout).unwrap_or(Value::Null);
    let lines = lines_of(&fs::read_to_string(out).unwrap_or_default());
    Dedup { code: status.code(), errors, summary, lines }
}

/// Creates a file in the test's temporary directory.
fn file(home: &tempfile::TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn good(number: u64) -> String {
    html("good", &text(number, 100))
}

fn url(number: u64) -> String {
    format!("http://good.example/{number}")
}

fn good_record(number: u64) -> Vec<u8> {
    page(&url(number), good(number).as_bytes())
}

#[test]
fn a_truncated_gzip_keeps_what_came_before() {
    let home = tempfile::tempdir().unwrap();
    let mut bytes: Vec<u8> = (0..9).flat_map(|number| gzip(&good_record(number))).collect();
    let last = gzip(&good_record(9));
    bytes.extend_from_slice(&last[..last.len() / 2]);
    let cut = file(&home, "cut.warc.gz", bytes);
    let after = file(&home, "after.warc.gz", gzip(&good_record(10)));
    let result = dedup(&[&cut, &after]);
    assert_eq!(result.code, Some(5), "{}", result.errors);
    assert!(result.errors.contains("cut.warc.gz could not be read to the end"), "{}", result.errors);
    assert_eq!(result.urls().len(), 10, "nine before the cut and one in the next file");
}

#[test]
fn damage_in_the_middle_does_not_end_the_file() {
    let home = tempfile::tempdir().unwrap();
    let corrupt = |number: u64| {
        let mut member = gzip(&good_record(number));
        *member.last_mut().unwrap() ^= 1;
        member
    };
    let cut = |number: u64| {
        let member = gzip(&good_record(number));
        member[..member.len() / 2].to_vec()
    };
    let damaged = [gzip(&good_record(0)), cut(1), corrupt(2), gzip(&good_record(3))].concat();
    let path = file(&home, "damaged.warc.gz", &damaged);
    let result = dedup(&[&path]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.urls(), [url(0), url(3)]);
    assert_eq!(result.bad("corrupt compressed data"), 2, "{}", result.summary);
    assert_eq!(result.summary["input"]["incomplete"], json!([]));
    assert_eq!(run(["dedup".as_ref(), "--strict".as_ref(), path.as_os_str()]).status.code(), Some(5));
    // A file counts once in `incomplete`, however often it is damaged.
    let path = file(&home, "cut.warc.gz", [damaged, cut(4)].concat());
    let result = dedup(&[&path, &path]);
    assert_eq!(result.code, Some(5), "{}", result.errors);
    assert!(result.errors.contains("cut.warc.gz could not be read to the end"), "{}", result.errors);
    assert_eq!(result.summary["input"]["incomplete"], json!([path]));
}

#[test]
fn broken_warc_heads_do_not_affect_their_neighbours() {
    let home = tempfile::tempdir().unwrap();
    let broken: [&[u8]; 5] = [
        b"WARC/1.0\r\nWARC-Type response\r\n\r\n",
        b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: many\r\n\r\n",
        b"no WARC at all\r\n\r\n",
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: nowhere\r\nContent-Length: 0\r\n\r\n\r\n\r\n",
        &response("http://bad.example/", "HTTP/1.1 2000 OK", b"x"),
    ];
    let mut bytes = Vec::new();
    for (number, broken) in broken.iter().enumerate() {
        bytes.extend(gzip(&good_record(number as u64)));
        bytes.extend(gzip(broken));
    }
    bytes.extend(gzip(&good_record(99)));
    let result = dedup(&[&file(&home, "broken.warc.gz", bytes)]);
    assert_eq!(result.urls().len(), 6, "{}", result.errors);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    let bad: u64 =
        result.summary["input"]["bad"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert!(bad >= 4, "each broken record is counted: {}", result.summary);
}

#[test]
fn bad_records_of_a_crawl_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let moved = |to: &str| format!("HTTP/1.1 301 Moved Permanently\r\nLocation: {to}");
    let future =
        String::from_utf8(page("http://future.example/", b"<p>a")).unwrap().replace("2024-05", "2999-05");
    let records = [
        response("http://itself.example/", &moved("http://itself.example/#top"), b""),
        response("http://nowhere.example/", "HTTP/1.1 301 Moved Permanently", b""),
        page("http://nul.example/\0", b"<p>a"),
        future.into_bytes(),
        page("http://empty.example/", b""),
        good_record(1),
    ];
    let bytes = records.iter().flat_map(|record| gzip(record)).collect::<Vec<_>>();
    let result = dedup(&[&file(&home, "odd.warc.gz", bytes)]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.urls(), ["http://empty.example/", &url(1)], "{}", result.errors);
    let input = &result.summary["input"];
    assert_eq!(input["skipped"], json!({"redirect to itself": 1, "redirect without a target": 1}));
    assert_eq!(result.bad("bad date"), 1, "{input}");
    assert_eq!(input["bad"].as_object().unwrap().len(), 2, "{input}");
}

#[test]
fn strict_turns_bad_records_into_an_exit_code() {
    let home = tempfile::tempdir().unwrap();
    let path = file(&home, "lines.jsonl", "{\"url\": \"http://a.example/\", \"text\": \"a\"}\n{}\n");
    assert_eq!(run(["dedup".as_ref(), path.as_os_str()]).status.code(), Some(0));
    assert_eq!(run(["dedup".as_ref(), "--strict".as_ref(), path.as_os_str()]).status.code(), Some(5));
}

#[test]
fn invalid_utf_8_is_read_as_some_charset() {
    let home = tempfile::tempdir().unwrap();
    let mut html = good(1).into_bytes();
    html.splice(60..60, [0xff, 0xfe, 0x80, b' ', 0xc3, 0x28]);
    let bytes = [gzip(&page("http://bad.example/", &html)), gzip(&good_record(1))].concat();
    let mut text = good(2).into_bytes();
    text.splice(10..10, [0xff]);
    let line = [br#"{"url": "http://bad.example/2", "text": ""#, &text[..0], b"\xff\"}\n"].concat();
    let result = dedup(&[&file(&home, "a.warc.gz", bytes), &file(&home, "b.jsonl", line)]);
    assert_eq!(result.urls(), ["http://bad.example/", &url(1)], "{}", result.errors);
    assert_eq!(
        result.lines[0]["group"], result.lines[1]["group"],
        "the two pages must still be near-duplicates"
    );
    assert_eq!(result.bad("JSON line that is no page"), 1, "JSON is UTF-8");
}

#[test]
fn a_page_of_50_mb_is_refused_and_the_others_are_accepted() {
    let home = tempfile::tempdir().unwrap();
    let large = html("large", &text(5, 7_200_000));
    assert!(large.len() > 50_000_000);
    let bytes = [
        gzip(&good_record(1)),
        gzip(&page("http://large.example/", large.as_bytes())),
        gzip(&good_record(2)),
    ]
    .concat();
    let result = dedup(&[&file(&home, "large.warc.gz", bytes)]);
    assert_eq!(result.urls(), [url(1), url(2)], "{}", result.errors);
    assert_eq!(result.bad("too large"), 1, "{}", result.summary);

    let server = OwnServer::start(&[]);
    let pages = [
        json!({"url": url(1), "html": good(1)}),
        json!({"url": "http://large.example/", "html": large}),
        json!({"url": url(2), "html": good(2)}),
    ];
    let answers = server.push(&pages);
    assert!(
        answers[1]["error"]["reason"].as_str().unwrap().contains("more than the limit of"),
        "{}",
        answers[1]
    );
    assert_eq!(answers[0]["outcome"], json!("pending"));
    assert_eq!(answers[2]["outcome"], json!("pending"));
}

#[test]
fn pages_that_grow_when_encoded_are_refused_and_the_others_are_accepted() {
    let home = tempfile::tempdir().unwrap();
    let latin = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=iso-8859-1";
    let bytes = [
        gzip(&good_record(1)),
        // The first page is binary and is not sent. The second page doubles its size when it is encoded in
        // UTF-8.
        gzip(&page("http://nul.example/", &vec![0; 12 << 20])),
        gzip(&response("http://latin.example/", latin, &vec![0xe9; 10 << 20])),
        gzip(&good_record(2)),
    ]
    .concat();
    let path = file(&home, "grows.warc.gz", bytes);
    let server = OwnServer::start(&[]);
    let load = |options: &[&str]| {
        let fixed = ["load", "--json", "--lanes", "1", "--server", &server.url, path.to_str().unwrap()];
        run(fixed.iter().chain(options))
    };
    let Output { status, stdout, stderr } = load(&[]);
    let errors = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(0), "{errors}");
    let summary: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"pending": 2, "refused": 1}), "{errors}");
    assert!(errors.contains("binary or compressed data, not text"), "{errors}");
    assert!(errors.contains("http://latin.example/: "), "{errors}");
    assert_eq!(load(&["--strict"]).status.code(), Some(5));
}

#[test]
fn decompression_bombs_are_not_unpacked() {
    let home = tempfile::tempdir().unwrap();
    let bomb = endless_zeros(10 * GIB);
    assert!(bomb.len() < 11 << 20, "{} bytes", bomb.len());
    let after = file(&home, "after.jsonl", format!("{}\n", json!({"url": url(1), "html": good(1)})));
    for name in ["bomb.warc.gz", "bomb.jsonl.gz"] {
        let result = dedup(&[&file(&home, name, &bomb), &after]);
        assert_eq!(result.urls(), [url(1)], "{name}: {}", result.errors);
        assert_eq!(result.code, Some(5), "{name}: {}", result.errors);
    }
    // The bomb is one record of a WARC file whose other records are valid.
    let member: Vec<u8> = gzip(&page("http://bomb.example/", &vec![b' '; 100 << 20]));
    let bytes = [gzip(&good_record(1)), member, gzip(&good_record(2))].concat();
    let result = dedup(&[&file(&home, "inside.warc.gz", bytes)]);
    assert_eq!(result.urls(), [url(1), url(2)], "{}", result.errors);

    let server = OwnServer::start(&[]);
    let response = server.post_encoded("/v1/pages", "application/x-ndjson", "gzip", bomb);
    assert_eq!(response.status(), 413);
    let problem: Value = response.json().unwrap();
    assert!(problem["detail"].is_string(), "{problem}");
    if let Some(peak) = server.peak_memory() {
        assert!(peak < 2 * GIB, "the server unpacked the bomb: its peak memory is {peak} bytes");
    }
}

#[test]
fn deep_nesting_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let words = text(1, 100).join(" ");
    let deep = format!("<html><body>{}{words}", "<div><b><table><tr><td>".repeat(200_000));
    let bytes = [gzip(&page("http://deep.example/", deep.as_bytes())), gzip(&good_record(1))].concat();
    let result = dedup(&[&file(&home, "deep.warc.gz", bytes)]);
    assert_eq!(result.urls(), ["http://deep.example/", &url(1)], "{}", result.errors);
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let server = OwnServer::start(&[]);
    let response = server.post("/v1/pages", "application/json", format!("{{\"url\": {deep}}}"));
    assert_eq!(response.status(), 400);
    assert_eq!(server.get("/healthz").status(), 200);
}

#[test]
fn one_bad_line_among_a_thousand_is_one_error() {
    let mut lines: Vec<String> =
        (0..1_000).map(|number| format!("{}\n", json!({"url": url(number), "html": good(number)}))).collect();
    lines.insert(500, "{\"url\": \"http://bad.example/\", \"html\": oops}\n".to_owned());
    let server = OwnServer::start(&[]);
    let answers = json_lines(server.post("/v1/pages", "application/x-ndjson", lines.concat()));
    assert_eq!(answers.len(), 1_001);
    assert_eq!(answers[500]["line"], 501);
    assert!(answers[500]["error"]["reason"].is_string(), "{}", answers[500]);
    let taken = answers.iter().filter(|answer| answer["outcome"] == "pending").count();
    assert_eq!(taken, 1_000);
    server.flush();
    assert_eq!(server.export().lines().count(), 1_000);

    let home = tempfile::tempdir().unwrap();
    let result = dedup(&[&file(&home, "lines.jsonl", lines.concat())]);
    assert_eq!(result.lines.len(), 1_000);
    assert_eq!(result.bad("JSON line that is no page"), 1);
    assert!(result.errors.contains("lines.jsonl, line 501"), "{}", result.errors);
}

#[test]
fn bad_fields_are_named() {
    let server = OwnServer::start(&[]);
    let cases = [
        (json!({"url": "http://a.example/\0", "text": "a"}), "url"),
        (json!({"url": "", "text": "a"}), "url"),
        (json!({"url": "/relative", "text": "a"}), "url"),
        (json!({"url": "ftp://a.example/", "text": "a"}), "url"),
        (json!({"url": format!("http://a.example/{}", "x".repeat(9000)), "text": "a"}), "url"),
        (json!({"text": "a"}), "url"),
        (
            json!({"url": "http://a.example/", "text": "a", "fetched_at": "2999-01-01T00:00:00Z"}),
            "fetched_at",
        ),
        (json!({"url": "http://a.example/", "text": "a", "fetched_at": "tomorrow"}), "fetched_at"),
        (json!({"url": "http://a.example/", "redirect_to": "http://a.example/#x"}), "redirect_to"),
        (json!({"url": "http://a.example/", "redirect_to": "javascript:alert(1)"}), "redirect_to"),
        (json!({"url": "http://a.example/", "text": "a", "html": "a"}), "text"),
        (json!({"url": "http://a.example/", "text": "a", "popularity": -1}), "popularity"),
        (json!({"url": "http://a.example/", "text": "a", "colour": "red"}), "colour"),
    ];
    let pages: Vec<Value> = cases.iter().map(|(page, _)| page.clone()).collect();
    for ((page, field), answer) in cases.iter().zip(server.push(&pages)) {
        assert_eq!(answer["error"]["field"], *field, "{page}: {answer}");
        let response = server.post("/v1/pages", "application/json", page.to_string());
        assert_eq!(response.status(), 400, "{page}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        assert_eq!(response.json::<Value>().unwrap()["field"], *field, "{page}");
    }
    assert_eq!(server.export(), "", "the server must store no bad page");
}

#[test]
fn empty_bodies_and_wrong_forms_are_refused() {
    let server = OwnServer::start(&[]);
    for (content_type, body, status) in [
        ("application/json", "", 400),
        ("application/x-ndjson", "", 400),
        ("application/json", " \n", 400),
        ("application/json", "[]", 400),
        ("application/json", "[{\"url\": \"http://a.example/\", \"text\": \"a\"}]", 400),
        ("application/json", "null", 400),
        ("text/html", "<p>", 400),
        ("text/css", "<p>", 415),
    ] {
        let response = server.post("/v1/pages", content_type, body);
        assert_eq!(response.status(), status, "{content_type} {body:?}");
        assert!(response.json::<Value>().unwrap()["detail"].is_string());
    }
    let response = server.post_encoded("/v1/pages", "application/json", "gzip", b"not gzip".to_vec());
    assert_eq!(response.status(), 400);
    let response = server.post_encoded("/v1/pages", "application/json", "br", b"?".to_vec());
    assert_eq!(response.status(), 415);
}

#[test]
fn empty_and_repetitive_pages_have_defined_results() {
    let server = OwnServer::start(&[]);
    let pages = [
        json!({"url": "http://empty.example/1", "html": ""}),
        json!({"url": "http://empty.example/2", "html": "<html><body></body></html>"}),
        json!({"url": "http://word.example/300", "text": "word ".repeat(300)}),
        json!({"url": "http://word.example/400", "text": "word ".repeat(400)}),
        json!({"url": "http://short.example/1", "text": "one two three"}),
        json!({"url": "http://short.example/2", "text": "One, two: THREE!"}),
        json!({"url": "http://short.example/3", "text": "one two three four"}),
    ];
    server.push(&pages);
    server.flush();
    let status = |url: &str| server.status(url)["status"].as_str().unwrap().to_owned();
    assert_eq!([status("http://empty.example/1"), status("http://empty.example/2")], ["unique", "unique"]);
    // The sets of shingles are equal although the texts are different.
    assert_eq!(
        [status("http://word.example/300"), status("http://word.example/400")],
        ["winner", "duplicate"]
    );
    // Short texts are duplicates only if their contents are equal.
    assert_eq!([status("http://short.example/1"), status("http://short.example/2")], ["winner", "duplicate"]);
    assert_eq!(status("http://short.example/3"), "unique");
}

#[test]
fn missing_or_unsupported_inputs_are_named() {
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("missing.warc.gz");
    let result = dedup(&[&missing]);
    assert_eq!(result.code, Some(1));
    assert!(result.errors.contains("missing.warc.gz"), "{}", result.errors);
    for (name, bytes) in [("picture.png", &b"\x89PNG\r\n\x1a\n\0\0"[..]), ("array.json", b"[1, 2]")] {
        let result = dedup(&[&file(&home, name, bytes)]);
        assert_eq!(result.code, Some(5), "{name}: {}", result.errors);
        assert_eq!(result.lines.len(), 0, "{name}: {}", result.errors);
        assert!(result.errors.contains(name), "{}", result.errors);
    }
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let result = dedup(&[&empty]);
    assert_eq!(result.code, Some(5), "{}", result.errors);
    assert_eq!(result.lines.len(), 0, "{}", result.errors);
    assert!(result.errors.contains("nothing was read: there is nothing in the input"), "{}", result.errors);
    // The command reads standard input, which is empty here.
    let result = dedup(&[Path::new("-")]);
    assert_eq!(result.code, Some(5));
    assert!(result.errors.contains("nothing was read"), "{}", result.errors);
    let result = dedup(&[Path::new("-"), Path::new("-")]);
    assert_eq!(result.code, Some(2));
    assert!(result.errors.contains("standard input can be read once"), "{}", result.errors);
}

#[test]
fn inputs_without_any_usable_page_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("bad.jsonl", b"nonsense\n{\"url\": 7}\n".to_vec()),
        ("readme.warc", b"This is a README, and no crawl.\n".to_vec()),
    ] {
        let result = dedup(&[&file(&home, name, bytes)]);
        assert_eq!(result.code, Some(5), "{name}: {}", result.errors);
        assert_eq!(result.lines.len(), 0, "{name}: {}", result.errors);
        assert!(result.errors.contains("nothing was read"), "{name}: {}", result.errors);
    }
}

#[test]
fn a_wrong_length_in_one_member_costs_one_record_and_is_counted() {
    let home = tempfile::tempdir().unwrap();
    let mut records: Vec<_> =
        (0..10).map(|number| page(&format!("https://a.org/{number}"), good(number).as_bytes())).collect();
    let text = String::from_utf8(records[4].clone()).unwrap();
    let (before, rest) = text.split_once("Content-Length: ").unwrap();
    records[4] = format!("{before}Content-Length: 9{rest}").into_bytes();
    for (name, bytes) in [("a.warc", records.concat()), ("a.warc.gz", gzip(&records.concat()))] {
        let result = dedup(&[&file(&home, name, bytes)]);
        assert_eq!(result.code, Some(0), "{name}: {}", result.errors);
        assert_eq!(result.lines.len(), 9, "{name}: {}", result.errors);
        assert_eq!(result.bad("broken WARC or ARC record"), 1, "{name}");
        assert_eq!(result.summary["input"]["skipped_bytes"], records[4].len(), "{name}");
        let told =
            format!("the record does not end where its length says; {} bytes were skipped", records[4].len());
        assert!(result.errors.contains(&told), "{name}: {}", result.errors);
    }
}

#[test]
fn files_without_records_are_no_error() {
    let home = tempfile::tempdir().unwrap();
    let empty = [
        ("a.warc.gz", gzip(b"")),
        ("b.jsonl", Vec::new()),
        ("c.arc", Vec::new()),
        ("d.csv", Vec::new()),
        ("e.warc", Vec::new()),
    ]
    .map(|(name, bytes)| file(&home, name, &bytes));
    for input in &empty {
        let result = dedup(&[input]);
        assert_eq!(result.code, Some(0), "{input:?}: {}", result.errors);
        assert_eq!(result.lines.len(), 0, "{input:?}: {}", result.errors);
    }
    let result = dedup(&empty.each_ref().map(PathBuf::as_path));
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.lines.len(), 0, "{}", result.errors);
    let bad = file(&home, "bad.jsonl", b"nonsense\n");
    let result = dedup(&[&empty[0], &bad]);
    assert_eq!(result.code, Some(5), "{}", result.errors);
}

#[test]
fn crawl_files_in_a_directory_are_pointed_out() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..3 {
        file(&home, &format!("{number}.warc.gz"), gzip(&good_record(number)));
    }
    // Crawl files are read if the directory has no pages.
    let result = dedup(&[home.path()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.lines.len(), 3, "{}", result.errors);
    // A directory that contains a page is a directory of pages, so only the pages are read.
    file(&home, "page.html", good(1));
    let result = dedup(&[home.path()]);
    assert_eq!(result.code, Some(0), "{}", result.errors);
    assert_eq!(result.lines.len(), 1, "{}", result.errors);
    let pattern = home.path().join("*.warc.gz").display().to_string();
    assert_eq!(result.summary["input"]["crawl_files"], json!({ &pattern: 3 }));
    assert_eq!(
        result.summary["input"]["skipped"],
        json!({}),
        "crawl files must not be counted as skipped as well"
    );
    let advice = format!("3 crawl files in directories not read: `doppel dedup {pattern}` reads them");
    assert!(result.errors.contains(&advice), "{}", result.errors);
}

#[test]
fn mutated_files_never_cause_a_panic() {
    let home = tempfile::tempdir().unwrap();
    let mut seeds: Vec<(String, Vec<u8>)> = vec![
        ("made.warc.gz".to_owned(), (0..8).flat_map(|number| gzip(&good_record(number))).collect()),
        ("made.warc".to_owned(), (0..8).flat_map(good_record).collect()),
        ("made.jsonl".to_owned(), ndjson(&lines()).into_bytes()),
        ("made.jsonl.gz".to_owned(), gzip(ndjson(&lines()).as_bytes())),
        ("made.jsonl.zst".to_owned(), zstd::encode_all(ndjson(&lines()).as_bytes(), 1).unwrap()),
        ("made.html".to_owned(), good(1).into_bytes()),
    ];
    if let Some(data) = crawls("mutated real crawls") {
        let real = fs::read(&crawl(&data, "quick")[1]).unwrap();
        seeds.push(("real.warc.gz".to_owned(), real));
    }
    let mut random = Random::new(1);
    for (name, seed) in &seeds {
        for _ in 0..6 {
            let mut bytes = seed.clone();
            mutate(&mut bytes, &mut random);
            let result = dedup(&[&file(&home, name, &bytes)]);
            assert!(matches!(result.code, Some(0 | 5)), "{name}: {}", result.errors);
        }
    }
}

#[test]
fn mutated_requests_are_answered() {
    let server = OwnServer::start(&[]);
    let body = ndjson(&lines()).into_bytes();
    let mut random = Random::new(2);
    for round in 0..100 {
        let mut bytes = body.clone();
        mutate(&mut bytes, &mut random);
        let kind = if round % 2 == 0 { "application/x-ndjson" } else { "application/json" };
        let response = server.post("/v1/pages", kind, bytes);
        assert!(matches!(response.status().as_u16(), 200 | 400), "{}", response.status());
    }
    assert_eq!(json_of(server.post("/v1/flush?wait=true", "application/json", ""))["done"], true);
}

fn lines() -> Vec<Value> {
    let base = text(1, 100);
    let page = |number| json!({"url": url(number), "html": html("page", &near_copy(&base, number))});
    (0..8).map(page).collect()
}

/// Flips, deletes, repeats and inserts some bytes.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.index(8) {
        let at = random.index(bytes.len());
        let end = (at + random.index(40)).min(bytes.len());
        match random.index(4) {
            0 => bytes[at] ^= 1 << random.index(8),
            1 => drop(bytes.drain(at..end.min(bytes.len() - 1))),
            2 => bytes.extend_from_within(at..end),
            _ => drop(bytes.splice(at..at, (0..4).map(|_| random.number() as u8))),
        }
    }
}

fn json_lines(response: reqwest::blocking::Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    lines_of(&response.text().unwrap())
}
