//! Checks over random inputs that read = kept + removed + superseded + bad + skipped, both in the summary and
//! in the written files. Every removed record is a near-duplicate of the kept record that its annotation
//! names. The baseline, which shares no code with the engine, confirms that.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use doppel_baseline::{Contents, Tau, near_duplicate};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::errors;
use crate::harness::pages::{near_copy, text};
use crate::harness::{doppel, lines_of};

/// A line of the input.
#[derive(Debug, Clone)]
enum Row {
    /// A page with a text of a family. The texts of a family are near-duplicates of each other.
    Page {
        url: u8,
        day: Option<u8>,
        family: u8,
        variant: u8,
    },
    Redirect {
        url: u8,
        to: u8,
    },
    Dead {
        url: u8,
    },
    Bad,
}

fn row() -> impl Strategy<Value = Row> {
    let page = (0..9_u8, prop::option::of(1..5_u8), 0..5_u8, 0..4_u8)
        .prop_map(|(url, day, family, variant)| Row::Page { url, day, family, variant });
    prop_oneof![
        8 => page,
        1 => (0..9_u8, 0..12_u8).prop_map(|(url, to)| Row::Redirect { url, to }),
        1 => (0..9_u8).prop_map(|url| Row::Dead { url }),
        1 => Just(Row::Bad),
    ]
}

fn url(number: u8) -> String {
    format!("http://{}.example/{}", number % 3, "x".repeat(usize::from(number)))
}

/// The text of a page. A text of the last family is so short that it only duplicates equal texts.
fn words(family: u8, variant: u8) -> String {
    let words = text(u64::from(family), if family == 4 { 9 } else { 120 });
    if variant == 0 { words.join(" ") } else { near_copy(&words, u64::from(variant)).join(" ") }
}

fn line(number: usize, row: &Row) -> String {
    let line = match row {
        Row::Page { url: page, day, family, variant } => {
            let mut line = json!({"url": url(*page), "text": words(*family, *variant), "number": number});
            if let Some(day) = day {
                line["fetched_at"] = json!(format!("2024-01-0{day}T00:00:00Z"));
            }
            line
        }
        Row::Redirect { url: page, to } if page != to => {
            json!({"url": url(*page), "redirect_to": url(*to), "number": number})
        }
        Row::Redirect { url: page, .. } | Row::Dead { url: page } => {
            json!({"url": url(*page), "dead": true, "number": number})
        }
        Row::Bad => return format!("{{\"url\": {number}}}"),
    };
    line.to_string()
}

/// The written lines of one output (`kept`, `removed` or `superseded`), by their numbers.
fn side(home: &Path, name: &str) -> HashMap<u64, Value> {
    let files = [0, 1].map(|file| fs::read_to_string(home.join(name).join(format!("{file}.jsonl"))));
    let lines = files.into_iter().flatten().flat_map(|text| lines_of(&text));
    lines.map(|line| (line["number"].as_u64().unwrap(), line)).collect()
}

fn number(of: &Value) -> u64 {
    of.as_u64().unwrap_or(0)
}

fn check(rows: &[Row], latest: bool) {
    let home = tempfile::tempdir().unwrap();
    let lines: Vec<String> = rows.iter().enumerate().map(|(number, row)| line(number, row)).collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    for (file, lines) in [first, second].into_iter().enumerate() {
        fs::write(home.path().join(format!("{file}.jsonl")), lines.join("\n")).unwrap();
    }
    let mut command = doppel();
    command.current_dir(home.path()).args(["dedup", "--json", "--annotate", "--kept", "k", "--removed", "r"]);
    command.args(["--max-bad", "1", "--out", "out.jsonl"]);
    if latest {
        command.args(["--latest", "--superseded", "s"]);
    }
    let output = command.args(["0.jsonl", "1.jsonl"]).output().unwrap();
    if lines.iter().all(|line| !line.contains("number")) {
        return;
    }
    assert!(output.status.success(), "{}", errors(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let records = &summary["records"];
    let removed: u64 = records["removed"].as_object().unwrap().values().map(number).sum();
    let [read, kept, superseded, bad, skipped] =
        ["read", "kept", "superseded", "bad", "skipped"].map(|term| number(&records[term]));
    assert_eq!(read, kept + removed + superseded + bad + skipped, "{records}");
    assert_eq!(read, rows.len() as u64, "{records}");
    // If many lines of a file are bad, Doppel cannot tell that the other lines are pages in its own format,
    // which need no text.
    let bad_lines = |rows: &[Row]| rows.iter().filter(|row| matches!(row, Row::Bad)).count();
    assert!(bad >= bad_lines(rows) as u64, "{records}");
    let (first_rows, second_rows) = rows.split_at(first.len());
    let recognised = [first_rows, second_rows].map(|rows| bad_lines(rows) * 4 <= rows.len());
    if recognised == [true; 2] {
        assert_eq!(bad, bad_lines(rows) as u64, "{records}");
    }
    assert_eq!(records["superseded"].is_null(), !latest);
    let [kept_lines, removed_lines, superseded_lines] = ["k", "r", "s"].map(|name| side(home.path(), name));
    assert_eq!(kept_lines.len() as u64, kept, "{summary}");
    assert_eq!(removed_lines.len() as u64, removed, "{summary}");
    assert_eq!(superseded_lines.len() as u64, superseded, "{summary}");
    let mut contents = Contents::default();
    let tau = Tau::ratio(4, 5).unwrap();
    for line in removed_lines.values() {
        let reason = line["doppel_reason"].as_str().unwrap();
        if latest && reason != "duplicate" {
            assert_eq!(reason == "dead", line["dead"] == true, "{line}");
            assert_eq!(reason == "redirect", line["redirect_to"].is_string(), "{line}");
            continue;
        }
        assert_eq!(reason, "duplicate", "{line}");
        // Find the kept record by its file and its line number.
        let file = line["doppel_duplicate_of_file"].as_str().unwrap();
        let at = line["doppel_duplicate_of_id"].as_str().unwrap().strip_prefix("line=").unwrap();
        let before = if file == "0.jsonl" { 0 } else { first.len() };
        let at = before + at.parse::<usize>().unwrap() - 1;
        let of =
            kept_lines.get(&(at as u64)).unwrap_or_else(|| panic!("{line} names a record that is not kept"));
        let kept_url = &line["doppel_duplicate_of"];
        // A page of a file that Doppel cannot recognise has the name of its row if no field looks like a URL.
        let line_in_file = at - before + 1;
        let is_row_name = *kept_url == format!("record:{file}#row={line_in_file}");
        assert!(
            *kept_url == of["url"] || (is_row_name && !recognised[usize::from(file == "1.jsonl")]),
            "{line} names {of}"
        );
        let [a, b] = [line, of].map(|line| contents.intern(line["text"].as_str().unwrap()));
        assert!(
            a == b || near_duplicate(contents.get(a), contents.get(b), tau),
            "{line} is no near-duplicate of {of}"
        );
    }
    if !latest {
        let out = lines_of(&fs::read_to_string(home.path().join("out.jsonl")).unwrap());
        assert_eq!(out.len() as u64, kept + removed, "the output must have a line for every usable record");
    }
}

/// Bad lines whose URLs are numbers hide the field of URLs, so that pages are named by their rows.
#[test]
fn a_duplicate_names_a_row_where_bad_lines_hide_the_urls() {
    let page = |family| Row::Page { url: 0, day: None, family, variant: 0 };
    check(&[Row::Bad, Row::Bad, Row::Bad, page(0), page(1), page(0), page(1), page(1)], false);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_record_is_counted_once_and_every_removed_one_names_a_kept_one(
        rows in prop::collection::vec(row(), 1..40),
        latest in any::<bool>(),
    ) {
        check(&rows, latest);
    }
}
