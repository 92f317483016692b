//! Options that name fields of records. A misspelt field is reported for one file, for several files, and for
//! a file from which one page is compared.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, text};
use crate::harness::{lines_of, run, run_ok};
use crate::{code, errors};

fn write(home: &Path, name: &str, records: &[Value]) -> String {
    let path = home.join(name);
    fs::write(&path, ndjson(records)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_field_that_no_record_has_is_an_error_before_anything_is_recorded() {
    let home = tempfile::tempdir().unwrap();
    let record = json!({"text": "some words", "meta": {"url": "https://a.example/", "at": null}, "nr": 1});
    let one = write(home.path(), "1.jsonl", &[record.clone(), record]);
    let data = home.path().join("data");
    for (option, value, alike) in [
        ("--url-field", "meta.ulr", "meta.url, "),
        ("--id-field", "number", "nr, "),
        ("--text-field", "txet", "text, "),
        ("--html-field", "htlm", ""),
        ("--date-field", "when", ""),
    ] {
        let output = run(["dedup", "--data", data.to_str().unwrap(), option, value, &one]);
        assert_eq!(code(&output), 2, "{option}: {}", errors(&output));
        let says = format!("{one}: the first records have no field {value} ({option}); they have {alike}");
        assert!(errors(&output).contains(&says), "{}", errors(&output));
        assert!(!data.exists(), "{option}");
        // `explain` also reports it for a file from which it reads one page.
        let explained = run(["explain", option, value, &one, &one]);
        assert_eq!(code(&explained), 2, "{option}: {}", errors(&explained));
        assert!(errors(&explained).contains(&says), "{}", errors(&explained));
    }
    // A field with the value null exists, so it is not misspelt.
    let output = run(["dedup", "--date-field", "meta.at", &one]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let says = "the field meta.at (--date-field) has no value in the first records";
    assert!(errors(&output).contains(says), "{}", errors(&output));
}

#[test]
fn one_of_several_files_must_have_a_field_and_the_others_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let without =
        write(home.path(), "1.jsonl", &[json!({"text": "some words", "url": "https://a.example/"})]);
    let with = write(home.path(), "2.jsonl", &[json!({"text": "some words", "link": "https://b.example/"})]);
    let output = run(["dedup", "--latest", "--out", "-", "--url-field", "link", &without, &with]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let says = format!("doppel: {without}: the first records have no field link (--url-field); they have ");
    assert!(errors(&output).contains(&says), "{}", errors(&output));
    assert!(!errors(&output).contains(&format!("{with}: the first records")), "{}", errors(&output));
    let urls: Vec<_> = lines_of(&String::from_utf8(output.stdout).unwrap());
    let urls: Vec<_> = urls.iter().map(|line| line["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["https://b.example/", "record:1.jsonl#row=1"]);
    let nowhere = run(["dedup", "--url-field", "lnik", &without, &with]);
    assert_eq!(code(&nowhere), 2, "{}", errors(&nowhere));
    assert!(errors(&nowhere).contains("nor has any other file"), "{}", errors(&nowhere));
}

#[test]
fn a_named_field_is_missing_from_a_file_without_records() {
    let home = tempfile::tempdir().unwrap();
    let empty = write(home.path(), "1.jsonl", &[]);
    let with = write(home.path(), "2.jsonl", &[json!({"text": "some words", "url": "https://a.example/"})]);
    for files in [[&empty, &with], [&with, &empty]] {
        let output = run(["dedup", "--url-field", "ulr", files[0], files[1]]);
        assert_eq!(code(&output), 2, "{files:?}: {}", errors(&output));
        let says = format!("{with}: the first records have no field ulr (--url-field)");
        assert!(errors(&output).contains(&says), "{}", errors(&output));
    }
    let output = run(["dedup", "--url-field", "url", &empty, &with]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
}

#[test]
fn one_record_of_a_file_is_explained_by_its_name() {
    let home = tempfile::tempdir().unwrap();
    let words = text(1, 100).join(" ");
    let file = write(home.path(), "a.jsonl", &[json!({"body": words, "key": "x"})]);
    let fields = ["--text-field", "body", "--id-field", "key"];
    let explain = |options: &[&str]| {
        run(["explain", "--json"].iter().chain(options).chain(&fields).chain(&[file.as_str(), file.as_str()]))
    };
    let named = explain(&["--url-a", "record:a.jsonl#x", "--url-b", "http://found.example/"]);
    assert_eq!(code(&named), 0, "{}", errors(&named));
    let compared: Value = serde_json::from_slice(&named.stdout).unwrap();
    let urls = [&compared["a"]["url"], &compared["b"]["url"]];
    assert_eq!(urls, [&json!("record:a.jsonl#x"), &json!("http://found.example/")]);
    let wrong = explain(&["--url-a", "record:a.jsonl#y"]);
    assert_eq!(code(&wrong), 5, "{}", errors(&wrong));
    let says = "record:a.jsonl#y is not there, but record:a.jsonl#x";
    assert!(errors(&wrong).contains(says), "{}", errors(&wrong));
}

#[test]
fn a_warning_is_printed_once_although_the_input_is_read_several_times() {
    let home = tempfile::tempdir().unwrap();
    let mut records: Vec<_> =
        (0..20).map(|n| json!({"content": text(n / 2, 100).join(" "), "id": n})).collect();
    records.push(json!({"id": 99, "content": 7}));
    let file = write(home.path(), "a.jsonl", &records);
    let bad = home.path().join("bad.jsonl");
    let bad = bad.to_str().unwrap();
    for policies in [&["--policy", "jaccard"][..], &["--policy", "imatch", "--policy", "by-site"]] {
        let output = run(["pilot", "--bad", bad].iter().chain(policies).chain(&[file.as_str()]));
        let told = errors(&output);
        assert_eq!(
            told.matches("content from").count() + told.matches("text from content").count(),
            1,
            "{told}"
        );
        assert_eq!(told.matches("is a number, and has to be text").count(), 1, "{told}");
        let written = lines_of(&fs::read_to_string(bad).unwrap());
        let of_line = written.iter().filter(|line| line["line"] == 21).count();
        let by_site = written.iter().filter(|line| line["url"].is_string()).count();
        let asks_for_sites = policies.contains(&"by-site");
        assert_eq!(of_line, 1, "{written:?}");
        assert_eq!(by_site, if asks_for_sites { 20 } else { 0 }, "{written:?}");
    }
    let summary = run_ok(["dedup", "--json", "--policy", "imatch", &file]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["input"]["records"], 20);
}

#[test]
fn without_dates_the_first_of_equal_records_of_several_files_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let record = |id: &str| json!({"id": id, "text": text(1, 100).join(" ")});
    // Neither the names of the files nor the ids sort in the order of the input.
    let first = write(home.path(), "z.jsonl", &[record("a-long-id"), record("b")]);
    let second = write(home.path(), "a.jsonl", &[record("a"), record("c")]);
    for (files, winner) in
        [([&first, &second], "record:z.jsonl#a-long-id"), ([&second, &first], "record:a.jsonl#a")]
    {
        let lines = lines_of(&run_ok(["dedup", "--latest", "--out", "-", files[0], files[1]]));
        let kept: Vec<_> = lines.iter().filter(|line| line["status"] == "winner").collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0]["url"], json!(winner));
    }
}

#[test]
fn a_table_with_another_separator_names_the_option() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.csv");
    fs::write(&path, "url;text\nhttps://a.example/;some words\n").unwrap();
    let path = path.to_str().unwrap();
    for options in [&["--separator", ","][..], &["--separator", ",", "--text-field", "text"]] {
        let output = run(["dedup"].into_iter().chain(options.iter().copied()).chain([path]));
        assert_ne!(code(&output), 0);
        let says = "url;text";
        let hint = "; pass --separator ';' if that separates the cells";
        assert!(errors(&output).contains(says) && errors(&output).contains(hint), "{}", errors(&output));
    }
}
