//! Revisit records of WARC files: if a revisit is kept, the record that it refers to is kept as well.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

use crate::errors;
use crate::harness::doppel;
use crate::harness::pages::{Random, text};
use crate::harness::warc::gzip;

/// Options for the three units of judging: records, latest versions, and pages of a collection.
const MODES: [&[&str]; 3] =
    [&[], &["--latest", "--superseded", "superseded"], &["--data", "data", "--superseded", "superseded"]];

/// A capture of a content, or with `revisit` a revisit record with these header fields. The number of a
/// content serves as its digest.
fn record(number: usize, url: &str, day: usize, content: u64, revisit: Option<&str>) -> Vec<u8> {
    let (kind, body) = match revisit {
        Some(_) => ("revisit", String::new()),
        None => ("response", format!("<p>{}", text(content, 60).join(" "))),
    };
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    let fields = revisit.map_or_else(String::new, |fields| {
        format!("WARC-Profile: http://netpreserve.org/warc/1.0/revisit/identical-payload-digest\r\n{fields}")
    });
    let record = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Date: 2024-01-{:02}T00:00:00Z\r\n\
         WARC-Target-URI: {url}\r\nWARC-Payload-Digest: sha1:{content}\r\n{fields}\
         Content-Type: application/http\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
        1 + day,
        block.len()
    );
    gzip(record.as_bytes())
}

/// Runs `dedup` on `crawl.warc.gz`, and returns the counts of records.
fn dedup(home: &Path, mode: &[&str]) -> Value {
    let mut command = doppel();
    command.current_dir(home).args([
        "dedup",
        "crawl.warc.gz",
        "--json",
        "--annotate",
        "--kept",
        "kept",
        "--removed",
        "removed",
    ]);
    let output = command.args(mode).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of = |side: &str| summary["results"][side].clone();
    let all = &summary["records"];
    for term in ["kept", "removed", "superseded", "bad", "skipped"] {
        let none = |count: &Value| count.is_null() || *count == json!(0) || *count == json!({});
        assert!(all[term] == of(term) || none(&all[term]) && none(&of(term)), "{term}: {summary}");
    }
    all.clone()
}

/// A record in an output directory.
struct WrittenRecord {
    stores_content: bool,
    /// Whether it has annotations. Skipped records have none, nor have originals whose page has a newer
    /// version.
    is_annotated: bool,
    digest: String,
    id: String,
    /// Id of the record that a revisit refers to.
    refers_to: Option<String>,
}

fn field(record: &str, name: &str) -> Option<String> {
    record.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)
}

fn written(home: &Path, side: &str) -> Vec<WrittenRecord> {
    let Ok(bytes) = fs::read(home.join(side).join("crawl.warc.gz")) else { return Vec::new() };
    let mut unpacked = String::new();
    MultiGzDecoder::new(&bytes[..]).read_to_string(&mut unpacked).unwrap();
    let read = |record: &str| WrittenRecord {
        stores_content: record.contains("WARC-Type: response"),
        is_annotated: record.contains("doppel_group") || record.contains("doppel_reason"),
        digest: field(record, "WARC-Payload-Digest: ").unwrap(),
        id: field(record, "WARC-Record-ID: ").unwrap(),
        refers_to: field(record, "WARC-Refers-To: "),
    };
    unpacked.split("WARC/1.0\r\n").skip(1).map(read).collect()
}

/// Checks that a kept record stores the content of every judged record, and that every kept revisit finds the
/// record that it refers to.
fn check_contents(home: &Path, what: &str) {
    let (kept, removed) = (written(home, "kept"), written(home, "removed"));
    let stored: HashSet<&String> =
        kept.iter().filter(|record| record.stores_content).map(|record| &record.digest).collect();
    for record in kept.iter().chain(&removed).filter(|record| record.is_annotated) {
        assert!(stored.contains(&record.digest), "{what}: no kept record stores {}", record.digest);
    }
    let ids: HashSet<&String> = kept.iter().map(|record| &record.id).collect();
    for record in kept.iter().filter(|record| record.is_annotated) {
        assert!(
            record.refers_to.iter().all(|id| ids.contains(id)),
            "{what}: {} is named and not kept",
            record.id
        );
    }
}

#[test]
fn the_original_of_a_kept_revisit_is_kept_and_counted() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let refers = Some("WARC-Refers-To: <urn:uuid:0>\r\n");
    // The revisit precedes its original in the winner order, because its URL is shorter.
    let crawl =
        [record(0, "http://a.example/long", 0, 1, None), record(1, "http://a.example/", 0, 1, refers)];
    fs::write(home.join("crawl.warc.gz"), crawl.concat()).unwrap();
    let kept_alone = json!({"read": 2, "kept": 1, "removed": {"duplicate": 1}, "bad": 0, "skipped": 0});
    assert_eq!(dedup(home, MODES[0]), kept_alone);
    check_contents(home, "records");
    for mode in &MODES[1..] {
        let kept = json!({"read": 2, "kept": 2, "removed": {}, "superseded": 0, "bad": 0, "skipped": 0});
        assert_eq!(dedup(home, mode), kept, "{mode:?}");
        check_contents(home, mode[0]);
        fs::remove_dir_all(home.join("data")).ok();
    }
    // The page of the original gets another content.
    let crawl = [crawl.concat(), record(2, "http://a.example/long", 5, 2, None)];
    fs::write(home.join("crawl.warc.gz"), crawl.concat()).unwrap();
    for mode in &MODES[1..] {
        let kept = json!({"read": 3, "kept": 3, "removed": {}, "superseded": 0, "bad": 0, "skipped": 0});
        assert_eq!(dedup(home, mode), kept, "{mode:?}");
        check_contents(home, mode[0]);
        fs::remove_dir_all(home.join("data")).ok();
    }
}

#[test]
fn a_revisit_is_unchanged_only_if_its_page_has_that_content() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let url = "http://a.example/";
    let by = ["WARC-Refers-To: <urn:uuid:0>\r\n", "", "WARC-Refers-To-Target-URI: http://a.example/\r\n"];
    for fields in by {
        let mut crawl = vec![record(0, url, 0, 1, None), record(1, url, 1, 1, Some(fields))];
        fs::write(home.join("crawl.warc.gz"), crawl.concat()).unwrap();
        let unchanged = json!({"read": 2, "kept": 1, "removed": {}, "superseded": 0, "bad": 0, "skipped": 1});
        assert_eq!(dedup(home, MODES[1]), unchanged, "{fields}");
        // The page changes its content and changes back. Its original is kept.
        crawl.push(record(2, url, 2, 2, None));
        crawl.push(record(3, url, 3, 1, Some(fields)));
        fs::write(home.join("crawl.warc.gz"), crawl.concat()).unwrap();
        let back = json!({"read": 4, "kept": 2, "removed": {}, "superseded": 1, "bad": 0, "skipped": 1});
        assert_eq!(dedup(home, MODES[1]), back, "{fields}");
        check_contents(home, fields);
    }
}

/// Two pages have equal contents, and the better one is captured again. The revisit refers to its own page,
/// not to the first record with that digest.
#[test]
fn a_revisit_refers_to_the_record_that_it_names() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let url = "http://a.example/";
    for fields in ["WARC-Refers-To: <urn:uuid:1>\r\n", "WARC-Refers-To-Target-URI: http://a.example/\r\n", ""]
    {
        let crawl = [
            record(0, "http://b.example/x", 0, 1, None),
            record(1, url, 0, 1, None),
            record(2, url, 1, 1, Some(fields)),
        ];
        fs::write(home.join("crawl.warc.gz"), crawl.concat()).unwrap();
        let counts = json!({"read": 3, "kept": 1, "removed": {"duplicate": 1}, "superseded": 0, "bad": 0, "skipped": 1});
        assert_eq!(dedup(home, MODES[1]), counts, "{fields}");
        check_contents(home, fields);
        assert!(written(home, "kept").iter().any(|record| record.id == "<urn:uuid:1>"), "{fields}");
    }
}

#[test]
fn random_crawls_with_revisits_lose_no_content() {
    for seed in 0..20 {
        let home = tempfile::tempdir().unwrap();
        let mut random = Random::new(seed);
        let mut stored: Vec<(u64, usize, String)> = Vec::new();
        let mut crawl = Vec::new();
        for number in 0..40 {
            let url = format!("http://a.example/{}", "x".repeat(random.index(12)));
            let (content, revisit) = if stored.is_empty() || random.index(2) == 0 {
                let content = random.index(6) as u64;
                stored.push((content, number, url.clone()));
                (content, None)
            } else {
                let (content, original, of) = &stored[random.index(stored.len())];
                let id = format!("WARC-Refers-To: <urn:uuid:{original}>\r\n");
                let target = format!("WARC-Refers-To-Target-URI: {of}\r\n");
                let by = [id.clone(), format!("{id}{target}"), target, String::new()];
                (*content, Some(by[random.index(4)].clone()))
            };
            crawl.extend(record(number, &url, number / 4, content, revisit.as_deref()));
        }
        fs::write(home.path().join("crawl.warc.gz"), &crawl).unwrap();
        for mode in MODES {
            dedup(home.path(), mode);
            check_contents(home.path(), &format!("seed {seed}, {mode:?}"));
        }
    }
}
