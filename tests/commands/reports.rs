//! `doppel dedup --report`: its figures equal those of the export, and markup in the texts of pages is
//! escaped.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, near_copy, rounds, text};
use crate::harness::{doppel, lines_of, run, run_ok};
use crate::{code, errors};

/// Runs `doppel dedup`, and returns the export and the report.
fn reported(home: &Path, options: &[&str], inputs: &[&Path]) -> (Vec<Value>, String) {
    let (out, report) = (home.join("out.jsonl"), home.join("report.html"));
    let to = ["dedup", "--latest", "--out", out.to_str().unwrap(), "--report", report.to_str().unwrap()];
    let inputs = inputs.iter().map(|path| path.to_str().unwrap());
    run_ok(to.into_iter().chain(options.iter().copied()).chain(inputs));
    (lines_of(&fs::read_to_string(&out).unwrap()), fs::read_to_string(&report).unwrap())
}

fn write(home: &Path, name: &str, pages: &[Value]) -> PathBuf {
    let path = home.join(name);
    fs::write(&path, ndjson(pages)).unwrap();
    path
}

/// The table cells behind the heading of a row.
fn cells<'r>(report: &'r str, heading: &str) -> Vec<&'r str> {
    let row = report
        .split_once(&format!("<th scope=\"row\">{heading}"))
        .unwrap_or_else(|| panic!("{heading}: {report}"));
    let row = row.1.split_once("</tr>").unwrap().0;
    row.split("<td>").skip(1).map(|cell| cell.split_once("</td>").unwrap().0).collect()
}

/// The report without the ids of groups, which depend on how the collection was made.
fn without_ids(report: &str) -> String {
    let mut parts = report.split("Group g");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |all, part| all + "Group" + part.split_once(':').unwrap().1)
}

#[test]
fn the_figures_equal_those_of_the_export_in_every_mode() {
    let home = tempfile::tempdir().unwrap();
    let crawl: Vec<_> = rounds(11, 60, 2).into_iter().enumerate().collect();
    let files: Vec<_> =
        crawl.iter().map(|(n, pages)| write(home.path(), &format!("round-{n}.jsonl"), pages)).collect();
    let inputs: Vec<_> = files.iter().map(PathBuf::as_path).collect();
    let (export, report) = reported(home.path(), &[], &inputs);
    for status in ["unique", "winner", "duplicate", "secondary", "unresolved"] {
        let pages = export.iter().filter(|line| line["status"] == status).count();
        if pages > 0 {
            assert_eq!(cells(&report, status)[0], pages.to_string(), "{status}");
        }
    }
    let equal = export.iter().filter(|line| line["similarity"] == 1.0).count();
    assert_eq!(cells(&report, "1</th>").last().unwrap(), &equal.to_string());
    let all = export.iter().filter(|line| line["status"] == "duplicate").count();
    assert_eq!(cells(&report, "all</th>")[0], all.to_string());
    assert!(all > 20 && report.contains("<figure>") && report.contains("<mark>"), "{report}");
    assert!(report.contains("<dt>dates</dt><dd>2024-03-01T00:00:00Z to 2024-03-02T"), "{report}");
    assert!(!report.contains("is not in the inputs"));

    assert_eq!(reported(home.path(), &[], &inputs).1, report, "two runs give the same bytes");
    let data = home.path().join("data");
    let data = ["--data", data.to_str().unwrap()];
    assert_eq!(without_ids(&reported(home.path(), &data, &inputs).1), without_ids(&report));
    let (_, one_by_one) = reported(home.path(), &["--incremental"], &inputs);
    assert_eq!(without_ids(&one_by_one), without_ids(&report));

    // The report of an existing collection cannot show the texts of inputs that are not read again.
    let copy = export.iter().find(|line| line["status"] == "unique").unwrap()["url"].clone();
    let page = crawl.iter().flat_map(|(_, pages)| pages).rfind(|page| page["url"] == copy).unwrap();
    let more: Vec<_> =
        (0..30).map(|n| json!({"url": format!("http://new.example/{n}"), "html": page["html"]})).collect();
    let more = write(home.path(), "more.jsonl", &more);
    let (_, report) = reported(home.path(), &data, &[&more]);
    assert!(
        report.contains("has pages of earlier inputs, too") && report.contains("is not in the inputs"),
        "{report}"
    );
}

#[test]
fn markup_in_pages_is_escaped_in_the_report() {
    let home = tempfile::tempdir().unwrap();
    let words = text(3, 100).join(" ");
    let hostile = "<script>alert(1)</script> \u{202e}drowssap\" & '</p></body>";
    let pages = [
        json!({"url": "http://evil.example/?<img src=x>\u{202e}gpj", "text": format!("{words} {hostile}")}),
        json!({"url": "http://evil.example/<b>", "text": format!("{words} {hostile} more")}),
    ];
    let crawl = write(home.path(), "<script>\u{202e}.jsonl", &pages);
    let (export, report) = reported(home.path(), &[], &[&crawl]);
    assert_eq!(export[1]["status"], "duplicate", "{export:?}");
    for never in ["<script", "<img", "<b>", "\u{202e}", "</p></body>"] {
        assert!(!report.contains(never), "{never}: {report}");
    }
    for shown in
        ["&lt;script&gt;alert(1)&lt;/script&gt; \\u{202e}drowssap", "/?&lt;img src=x&gt;\\u{202e}gpj"]
    {
        assert!(report.contains(shown), "{shown}: {report}");
    }
    assert!(report.contains("default-src 'none'") && report.contains("<mark>more</mark>"), "{report}");
}

#[test]
fn examples_of_standard_input_show_the_compared_version() {
    let home = tempfile::tempdir().unwrap();
    let words = text(5, 200);
    let page = |name: &str, hour: u8, words: &[String]| json!({"url": format!("http://a.example/{name}"), "fetched_at": format!("2024-01-01T0{hour}:00:00Z"), "text": words.join(" ")});
    let pages = [
        page("b", 1, &text(6, 200)),
        page("b", 3, &near_copy(&words, 1)),
        page("a", 1, &words),
        page("b", 2, &text(7, 200)),
    ];
    let report = home.path().join("report.html");
    let mut command = doppel();
    command.args(["dedup", "-", "--report"]).arg(&report).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(ndjson(&pages).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report = fs::read_to_string(&report).unwrap();
    assert!(report.contains("<h1>Duplicates in standard input</h1>"), "{report}");
    assert!(report.contains("<mark>changed1</mark>") && !report.contains("<dt>dates</dt>"), "{report}");
}

#[test]
fn a_report_shows_texts_of_an_input_that_an_output_replaces() {
    for way in [&[][..], &["--incremental"]] {
        let home = tempfile::tempdir().unwrap();
        let pages: Vec<_> = (0..2)
            .map(|n| json!({"url": format!("http://a.example/{n}"), "text": near_copy(&text(7, 300), n).join(" ")}))
            .collect();
        let crawl = write(home.path(), "out.jsonl", &pages);
        let (export, report) = reported(home.path(), way, &[&crawl]);
        assert_eq!(export.iter().filter(|line| line["status"] == "duplicate").count(), 1);
        assert!(report.contains("<figure>") && report.contains("<mark>"), "{report}");
    }
}

#[test]
fn a_report_replaces_no_input_and_no_other_output() {
    let home = tempfile::tempdir().unwrap();
    let crawl = write(home.path(), "crawl.jsonl", &[json!({"url": "http://a.example/", "text": "a"})]);
    let crawl = crawl.to_str().unwrap();
    let out = home.path().join("out");
    let out = out.to_str().unwrap();
    for wrong in
        [&["--report", crawl][..], &["--report", "-", "--out", "-"], &["--report", out, "--out", out]]
    {
        let output = run(["dedup", crawl].iter().chain(wrong));
        assert_eq!(code(&output), 2, "{wrong:?}: {}", errors(&output));
        assert_eq!(output.stdout.len(), 0, "{wrong:?}: {}", errors(&output));
    }
    // Nor may it replace an input that a pattern or a directory names.
    let pattern = format!("{}/*.jsonl", home.path().display());
    for inputs in [&*pattern, home.path().to_str().unwrap()] {
        let output = run(["dedup", "--report", crawl, inputs]);
        assert_eq!(code(&output), 2, "{inputs}: {}", errors(&output));
    }
    let output = run(["dedup", crawl, "--report", "-"]);
    assert!(
        output.stdout.starts_with(b"<!DOCTYPE html>") && output.stdout.ends_with(b"</html>"),
        "{}",
        errors(&output)
    );
    assert!(errors(&output).contains("judged"));
    let none = home.path().join("none/report.html");
    let output = run(["dedup", "--report", none.to_str().unwrap(), crawl]);
    assert!(errors(&output).contains("cannot write"), "{}", errors(&output));
}
