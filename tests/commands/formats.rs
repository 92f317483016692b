//! Reads equal pages in every format, and from standard input, patterns and directories. The results must be
//! equal.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampMillisecondArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::harness::pages::{ndjson, text};
use crate::harness::warc::{gzip, response};
use crate::harness::{doppel, lines_of, run, run_ok};
use crate::{code, errors, fifo};

/// The day 2021-01-01, in days since 1970-01-01.
const DAYS: i64 = 18_628;

/// A page: its URL, its day, and its text, which contains quotes and line ends.
struct Page {
    url: String,
    day: i64,
    text: String,
}

/// The pages. Every third page is a near-duplicate of another one.
fn pages() -> Vec<Page> {
    let page = |number: u32| {
        let same = if number.is_multiple_of(3) { 3 } else { number };
        let words = text(u64::from(same), 80).join(" ");
        let text = format!("\"Title\", of {same}\n{words}, é\nend");
        Page { url: format!("https://a.example/{number}"), day: i64::from(number % 5), text }
    };
    (0..60).map(page).collect()
}

fn date(page: &Page) -> String {
    format!("2021-01-{:02}T00:00:00Z", page.day + 1)
}

fn jsonl(pages: &[Page]) -> String {
    let item = |page: &Page| json!({"url": page.url, "text": page.text, "fetched_at": date(page)});
    ndjson(&pages.iter().map(item).collect::<Vec<Value>>())
}

fn csv(pages: &[Page], separator: char) -> String {
    let mut csv = ["url", "timestamp", "text"].join(&separator.to_string());
    for page in pages {
        let quoted = page.text.replace('"', "\"\"");
        csv += &format!("\r\n{}{separator}{}{separator}\"{quoted}\"", page.url, date(page));
    }
    csv
}

fn wet(pages: &[Page]) -> Vec<u8> {
    let mut wet = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n".to_vec();
    for page in pages {
        let Page { url, text, .. } = page;
        write!(
            wet,
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {url}\r\nWARC-Date: {}\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            date(page),
            text.len()
        )
        .unwrap();
    }
    wet
}

fn batch(pages: &[Page]) -> RecordBatch {
    let dates = pages.iter().map(|page| (DAYS + page.day) * 86_400_000);
    let columns: [(&str, ArrayRef); 3] = [
        ("text", Arc::new(StringArray::from_iter_values(pages.iter().map(|page| &page.text)))),
        ("url", Arc::new(StringArray::from_iter_values(pages.iter().map(|page| &page.url)))),
        ("date", Arc::new(TimestampMillisecondArray::from_iter_values(dates))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn in_parquet(pages: &[Page]) -> Vec<u8> {
    let batch = batch(pages);
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn in_arrow(pages: &[Page]) -> Vec<u8> {
    let batch = batch(pages);
    let mut writer = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn write(home: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The output of `doppel dedup`, with a line for every page.
fn dedup(arguments: &[&str]) -> String {
    run_ok(["dedup", "--latest", "--out", "-"].iter().chain(arguments))
}

/// Like [`dedup`], with `content` on standard input.
fn piped(content: &[u8], arguments: &[&str]) -> Output {
    let mut command = doppel();
    command.args(["dedup", "--latest", "--out", "-"]).args(arguments);
    let mut command =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = command.stdin.take().unwrap();
    let content = content.to_vec();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&content)));
    let output = command.wait_with_output().unwrap();
    feeder.join().unwrap();
    output
}

#[test]
fn every_format_gives_the_same_result() {
    let home = tempfile::tempdir().unwrap();
    let pages = pages();
    let expected = dedup(&[&write(home.path(), "a.jsonl", jsonl(&pages))]);
    assert_eq!(lines_of(&expected).len(), 60);
    assert!(expected.contains("\"duplicate\""));
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let files = [
        ("a.json.gz", gzip(jsonl(&pages).as_bytes())),
        ("a.csv", csv(&pages, ',').into_bytes()),
        ("b.csv.zst", zstd(csv(&pages, ';').as_bytes())),
        ("a.tsv", csv(&pages, '\t').into_bytes()),
        ("a.warc.wet.gz", gzip(&wet(&pages))),
        ("a.parquet", in_parquet(&pages)),
        ("no-name", in_parquet(&pages)),
        ("a.arrow", in_arrow(&pages)),
    ];
    for (name, content) in files {
        assert_eq!(dedup(&[&write(home.path(), name, &content)]), expected, "{name}");
        let format: &[&str] =
            if name.contains("csv") || name.contains("tsv") { &["--format", "csv"] } else { &[] };
        let output = piped(&content, &[format, &["-"]].concat());
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}: {}", errors(&output));
    }
}

#[test]
fn a_pipe_is_read_once_or_copied() {
    let home = tempfile::tempdir().unwrap();
    let pages = pages();
    let lines = jsonl(&pages);
    let file = write(home.path(), "a.jsonl", &lines);
    let pipe = fifo(home.path());
    // A policy that learns tables reads the pages twice, so the pipe is copied.
    for policy in ["jaccard", "imatch"] {
        let expected = dedup(&["--policy", policy, &file]);
        let (to, content) = (pipe.clone(), lines.clone());
        let feeder = std::thread::spawn(move || fs::write(to, content).unwrap());
        assert_eq!(dedup(&["--policy", policy, pipe.to_str().unwrap()]), expected, "{policy}");
        feeder.join().unwrap();
    }
    // Records of the copy are named after standard input, and a revisit record finds its original in the
    // copy.
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html";
    let original = response("http://a.example/", html, text(1, 40).join(" ").as_bytes());
    let revisit = String::from_utf8(response("http://b.example/", html, b"")).unwrap();
    let revisit = revisit.replace(
        "WARC-Type: response\r\n",
        "WARC-Type: revisit\r\nWARC-Refers-To: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n\
        WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n",
    );
    let crawl = [original, revisit.into_bytes(), b"broken".to_vec()].concat();
    let kept = home.path().join("kept");
    let output = piped(&crawl, &["--kept", kept.to_str().unwrap(), "-"]);
    assert!(errors(&output).contains("doppel: stdin, record at byte "), "{}", errors(&output));
    let urls = lines_of(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(
        urls.iter().map(|line| &line["url"]).collect::<Vec<_>>(),
        ["http://a.example/", "http://b.example/"]
    );
    let output = piped(b"just words", &["-"]);
    assert_eq!(code(&output), 5);
    assert!(
        errors(&output).contains("stdin: a page of HTML or text has no name here"),
        "{}",
        errors(&output)
    );
    let output = piped(b"", &["--format", "xml", "-"]);
    assert_eq!(code(&output), 2);
    assert!(
        errors(&output).contains("one of warc, arc, wacz, jsonl, csv, tsv, parquet and arrow"),
        "{}",
        errors(&output)
    );
}

#[test]
fn patterns_and_directories_name_crawl_files() {
    let home = tempfile::tempdir().unwrap();
    let pages = pages();
    let (first, rest) = pages.split_at(20);
    let (second, third) = rest.split_at(20);
    let expected = dedup(&[&write(home.path(), "all.jsonl", jsonl(&pages))]);
    let set = home.path().join("set");
    write(&set, "data/b/2.parquet", in_parquet(second));
    write(&set, "data/a/1.jsonl.zst", zstd::encode_all(jsonl(first).as_bytes(), 1).unwrap());
    write(&set, "data/c.csv", csv(third, ','));
    write(&set, "README.md", "About the set.");
    assert_eq!(dedup(&[set.to_str().unwrap()]), expected);
    let summary = run_ok(["dedup", "--json", set.to_str().unwrap()]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["input"]["skipped"], json!({"file beside crawl files": 1}));
    // The message names the files that may be crawl files.
    write(&set, "data/d.json", jsonl(third));
    let output = run(["dedup", "--json", set.to_str().unwrap()]);
    let json = set.join("data/*.json");
    let says = format!("1 crawl file in directories not read: `doppel dedup {}` reads them", json.display());
    assert!(errors(&output).contains(&says), "{}", errors(&output));
    fs::remove_file(set.join("data/d.json")).unwrap();
    let below = |pattern: &str| set.join(pattern).to_str().unwrap().to_owned();
    let [a, b, c] = ["data/**/*.jsonl.zst", "data/b/[12].*", "data/?.csv"].map(below);
    assert_eq!(dedup(&[&a, &b, &c]), expected);
    let none = below("data/*.warc*");
    let output = run(["dedup", &none]);
    assert_eq!(code(&output), 2);
    assert!(
        errors(&output).contains(&format!("{none}: no file matches this pattern")),
        "{}",
        errors(&output)
    );
}

#[test]
fn records_in_a_directory_are_named_by_their_paths_in_it() {
    let home = tempfile::tempdir().unwrap();
    let record = |number: u32| format!("{}\n", json!({"text": text(number.into(), 30).join(" ")}));
    write(home.path(), "set/a/x.jsonl", record(1));
    write(home.path(), "set/b/x.jsonl", record(2));
    let urls = |arguments: &[&str]| {
        lines_of(&dedup(arguments))
            .iter()
            .map(|line| line["url"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let expected = ["record:a/x.jsonl#row=1", "record:b/x.jsonl#row=1"];
    assert_eq!(urls(&[home.path().join("set").to_str().unwrap()]), expected);
    assert_eq!(urls(&[home.path().join("set/*/x.jsonl").to_str().unwrap()]), expected);
}
