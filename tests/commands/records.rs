//! Files of records whose schemas differ from Doppel's own, and bad records.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, near_copy, text};
use crate::harness::{OwnServer, lines_of, run, run_ok};
use crate::{answer, code, errors};

/// Texts of several families of near copies. The families alternate.
fn texts() -> Vec<String> {
    let family = |topic: u64| text(topic, 200);
    let variants = (0..3).flat_map(|variant| (0..12).map(move |topic| (topic, variant)));
    // Every fourth family has a single text.
    let variants = variants.filter(|(topic, variant)| topic % 4 > 0 || *variant == 0);
    variants.map(|(topic, variant)| near_copy(&family(topic), variant).join(" ")).collect()
}

fn url(number: usize) -> String {
    format!("https://site{}.example/{number}?page=1", number % 5)
}

fn date(number: usize) -> String {
    format!("2023-05-{:02}T08:{:02}:00Z", 1 + number % 28, number % 60)
}

/// Writes one record for each text; `record` gets the number of the text and the text.
fn write(home: &Path, name: &str, record: impl Fn(usize, String) -> Value) -> PathBuf {
    let records: Vec<_> =
        texts().into_iter().enumerate().map(|(number, text)| record(number, text)).collect();
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, ndjson(&records)).unwrap();
    path
}

fn export(file: &Path, options: &[&str]) -> String {
    run_ok(["dedup", "--out", "-"].into_iter().chain(options.iter().copied()).chain([file.to_str().unwrap()]))
}

/// Like [`export`], but with one page for each URL, as a server has them.
fn export_pages(file: &Path, options: &[&str]) -> String {
    export(file, &[&["--latest"], options].concat())
}

fn summary(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An id. Neither the ids nor their lengths are in the order of the numbers.
fn id(number: usize) -> String {
    format!("doc {:x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (number % 3 * 16))
}

#[test]
fn records_with_urls_and_dates_give_the_same_result_as_doppels_own_format() {
    let home = tempfile::tempdir().unwrap();
    let own = write(
        home.path(),
        "own.jsonl",
        |n, text| json!({"url": url(n), "fetched_at": date(n), "text": text}),
    );
    let expected = export_pages(&own, &[]);
    let c4 =
        write(home.path(), "c4.jsonl", |n, text| json!({"text": text, "timestamp": date(n), "url": url(n)}));
    assert_eq!(export_pages(&c4, &[]), expected);
    let red_pajama = write(
        home.path(),
        "red-pajama.jsonl",
        |n, text| json!({"raw_content": text, "id": n, "metadata": {"url": url(n), "date": date(n).trim_end_matches('Z'), "length": 7}}),
    );
    assert_eq!(export_pages(&red_pajama, &[]), expected);
    let named = write(
        home.path(),
        "named.jsonl",
        |n, body| json!({"text": "the same", "doc": {"body": body, "at": date(n)}, "url": "no", "link": url(n)}),
    );
    let fields = ["--text-field", "doc.body", "--url-field", "link", "--date-field", "doc.at"];
    assert_eq!(export_pages(&named, &fields), expected);
    assert_eq!(
        export_pages(&named, &[&["--incremental"], &fields[..]].concat()).lines().count(),
        expected.lines().count()
    );
}

#[test]
fn records_without_urls_get_the_same_groups_and_the_first_record_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let own = write(home.path(), "own.jsonl", |n, text| json!({"url": url(n), "text": text}));
    let dolma = write(home.path(), "dolma.jsonl", |n, text| {
        let (id, added) = (id(n), "2023-04-11T09:57:03.044571+00:00");
        json!({"id": id, "text": text, "source": "common-crawl", "added": added, "metadata": {"provenance": n}})
    });
    let bare = write(home.path(), "bare.jsonl", |_, text| json!({"content": text}));
    let groups = |export: &str, number: &dyn Fn(&str) -> usize| {
        let mut groups = BTreeMap::<String, Vec<usize>>::new();
        for line in lines_of(export) {
            let page = number(line["url"].as_str().unwrap());
            groups
                .entry(line["group"].as_str().unwrap_or(&page.to_string()).to_owned())
                .or_default()
                .push(page);
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups.sort();
        groups
    };
    let of_own = |name: &str| (0..texts().len()).find(|n| url(*n) == name).unwrap();
    let of_dolma = |name: &str| {
        let name = |n: &usize| format!("record:dolma.jsonl#{}", id(*n).replace(' ', "%20")) == name;
        (0..texts().len()).find(name).unwrap()
    };
    let of_bare =
        |name: &str| name.strip_prefix("record:bare.jsonl#row=").unwrap().parse::<usize>().unwrap() - 1;
    let expected = groups(&export(&own, &[]), &of_own);
    assert!(expected.iter().any(|group| group.len() == 3) && expected.iter().any(|group| group.len() == 1));
    type Number<'n> = &'n dyn Fn(&str) -> usize;
    let numbers: [(&Path, Number<'_>); 2] = [(&dolma, &of_dolma), (&bare, &of_bare)];
    for (file, number) in numbers {
        let data = home.path().join("data").join(file.file_stem().unwrap());
        for options in [&[][..], &["--data", data.to_str().unwrap()]] {
            let export = export(file, options);
            let groups = groups(&export, number);
            assert_eq!(groups, expected, "{export}");
            for line in lines_of(&export) {
                let own = number(line["url"].as_str().unwrap());
                let group = groups.iter().find(|group| group.contains(&own)).unwrap();
                let status = if group.len() == 1 {
                    "unique"
                } else if own == group[0] {
                    "winner"
                } else {
                    "duplicate"
                };
                assert_eq!(line["status"], status, "{line}");
            }
        }
    }
}

#[test]
fn guessed_fields_are_printed_once_and_are_in_the_summary() {
    let home = tempfile::tempdir().unwrap();
    let record =
        |n: usize, text: String| json!({"text": text, "timestamp": "soon", "url": url(n), "language": 7});
    let first = write(home.path(), "a.jsonl", record);
    let second = write(home.path(), "b.jsonl", record);
    let other = write(home.path(), "c.jsonl", |n, text| json!({"content": text, "id": n}));
    let own = write(
        home.path(),
        "d.jsonl",
        |n, text| json!({"url": format!("http://d.example/{n}"), "text": text}),
    );
    let files = [&first, &second, &other, &own].map(|path| path.to_str().unwrap());
    let output = run(["dedup", "--json"].iter().chain(&files));
    assert_eq!(code(&output), 0, "{}", errors(&output));
    let (a, c) = (files[0], files[2]);
    let said = format!(
        "doppel: {a}: text from text, URL from url\ndoppel: {c}: text from content, id from id; no URL, so a record is \
         named by its id\n"
    );
    assert_eq!(errors(&output), said);
    let input = &summary(&output)["input"];
    let expected = json!([
        {"fields": {"text": "text", "url": "url"}, "guessed": ["text", "url"], "files": 2, "first": a},
        {"fields": {"text": "content", "id": "id"}, "guessed": ["text", "id"], "files": 1, "first": c},
    ]);
    assert_eq!(input["fields"], expected);
    assert_eq!(input["ignored"], json!({}));
}

#[test]
fn a_server_treats_a_record_like_any_other_page() {
    let home = tempfile::tempdir().unwrap();
    let server = OwnServer::start(&[]);
    let dolma =
        write(home.path(), "dolma.jsonl", |n, text| json!({"id": id(n), "text": text, "source": "x"}));
    answer(&server, &["load", "--flush", dolma.to_str().unwrap()]);
    assert_eq!(
        lines_of(&server.export()),
        lines_of(&export_pages(&dolma, &[]))
            .into_iter()
            .map(|mut line| {
                // Replace the id of the group, which depends on who made the group.
                line["group"] =
                    lines_of(&server.export()).into_iter().find(|other| other["url"] == line["url"]).unwrap()
                        ["group"]
                        .clone();
                line
            })
            .collect::<Vec<_>>()
    );
    let name = format!("record:dolma.jsonl#{}", id(1).replace(' ', "%20"));
    assert_eq!(server.status(&name)["status"], "winner");
    assert!(answer(&server, &["status", &name]).contains(&name));
    assert!(answer(&server, &["changes", "--json"]).contains(&name));
    answer(&server, &["delete", &name]);
    server.flush();
    assert_eq!(server.status(&name)["status"], "dead");
    let other = "record:by-hand.jsonl#row=1";
    let answers = server.push(&[
        json!({"url": other, "text": "some words"}),
        json!({"url": "record:by-hand.jsonl", "text": "some words"}),
        json!({"url": "https://a.org/", "text": "some words", "title": "unknown"}),
    ]);
    assert_eq!(answers[0]["url"], other);
    let reason = |n: usize| answers[n]["error"]["reason"].as_str().unwrap().to_owned();
    assert!(reason(1).contains("the name of a record is record:FILE#ID"), "{}", reason(1));
    assert!(reason(2).contains("unknown field"), "{}", reason(2));
}

#[test]
fn a_policy_that_reads_sites_reports_records_without_a_host() {
    let home = tempfile::tempdir().unwrap();
    let bare = write(home.path(), "bare.jsonl", |_, text| json!({"text": text}));
    let output = run(["dedup", "--policy", "by-site", bare.to_str().unwrap()]);
    assert_eq!(code(&output), 5);
    let says =
        "record:bare.jsonl#row=1: the URL has no host, and the policy by-site compares pages by their sites";
    assert!(errors(&output).contains(says), "{}", errors(&output));
}

#[test]
fn rows_with_the_same_url_are_judged_separately() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.jsonl");
    let row =
        |seed: u64| json!({"url": "https://a.example/", "text": text(seed, 100).join(" "), "title": "x"});
    fs::write(&path, ndjson(&[row(1), row(2), row(1)])).unwrap();
    let lines = lines_of(&export(&path, &["--latest"]));
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["url"], json!("https://a.example/"));
    let lines = lines_of(&export(&path, &[]));
    let rows: Vec<_> = lines
        .iter()
        .map(|line| (line["record"]["line"].as_u64(), line["status"].as_str().unwrap()))
        .collect();
    assert_eq!(rows, [(Some(1), "winner"), (Some(2), "unique"), (Some(3), "duplicate")]);
    let file = path.to_str().unwrap();
    assert_eq!(lines[2]["duplicate_of"], "https://a.example/");
    assert_eq!(lines[2]["duplicate_of_record"], json!({"file": file, "line": 1}));
    assert_eq!(lines[0]["winner_record"], json!({"file": file, "line": 1}));
    assert_eq!(lines[1]["winner_record"], Value::Null);
}

#[test]
fn files_with_the_same_name_are_told_apart_or_refused() {
    let home = tempfile::tempdir().unwrap();
    let rows = ["1/part.jsonl", "2/part.jsonl"]
        .map(|name| write(home.path(), name, |_, text| json!({"text": text})));
    let output = run(["dedup", "--latest", rows[0].to_str().unwrap(), rows[1].to_str().unwrap()]);
    assert_eq!(code(&output), 2, "{}", errors(&output));
    assert!(errors(&output).contains("have one name, and their records"), "{}", errors(&output));
    let ids = ["3/part.jsonl", "4/part.jsonl"]
        .map(|name| write(home.path(), name, |n, text| json!({"id": n, "text": text})));
    let output = run(["dedup", "--latest", "--json", ids[0].to_str().unwrap(), ids[1].to_str().unwrap()]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(
        errors(&output).contains("records with the same id are versions of each other"),
        "{}",
        errors(&output)
    );
    assert_eq!(summary(&output)["pages"]["live"], texts().len());
    // If each record is judged on its own, files with the same name are told apart by their directories.
    for files in [&rows, &ids] {
        let [first, second] = [&files[0], &files[1]].map(|path| path.to_str().unwrap());
        let lines = lines_of(&run_ok(["dedup", "--out", "-", first, second]));
        assert_eq!(lines.len(), 2 * texts().len());
        let urls: HashSet<_> = lines.iter().map(|line| line["url"].as_str().unwrap()).collect();
        assert_eq!(urls.len(), lines.len(), "{urls:?}");
        let dir = files[1].parent().unwrap().file_name().unwrap().to_str().unwrap();
        assert!(urls.iter().any(|url| url.starts_with(&format!("record:{dir}/part.jsonl#"))), "{urls:?}");
    }
}

/// Writes a file of 100 records. The first `bad` records have no text.
fn with_bad(home: &Path, bad: usize) -> String {
    let record = |n| {
        if n < bad { json!({"id": n, "other": n}) } else { json!({"id": n, "text": format!("text {n}")}) }
    };
    let path = home.join("some-bad.jsonl");
    fs::write(&path, ndjson(&(0..100).map(record).collect::<Vec<_>>())).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn too_many_bad_records_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let dedup = |bad: usize, options: &[&str]| {
        let file = with_bad(home.path(), bad);
        run(["dedup"].into_iter().chain(options.iter().copied()).chain([file.as_str()]))
    };
    for (bad, options, expected) in [
        (20, &[][..], 0),
        (21, &[], 5),
        (21, &["--max-bad", "0.21"], 0),
        (21, &["--max-bad", "0.2"], 5),
        (1, &["--max-bad", "0"], 5),
        (0, &["--max-bad", "0"], 0),
        (1, &["--strict"], 5),
        (1, &["--max-bad", "2"], 2),
    ] {
        let output = dedup(bad, options);
        assert_eq!(code(&output), expected, "{bad} {options:?}: {}", errors(&output));
    }
    let output = dedup(21, &["--out", "-"]);
    let says =
        "21 of 100 records were bad, and at most a share of 0.05 may be (--max-bad); all others were taken";
    assert!(errors(&output).contains(says), "{}", errors(&output));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).lines().count(),
        79,
        "the good records must be processed"
    );
}

#[test]
fn the_message_about_a_file_without_text_lists_its_fields() {
    let home = tempfile::tempdir().unwrap();
    let path = write(home.path(), "a.jsonl", |n, text| json!({"Body": text, "URL": url(n)}));
    let output = run(["dedup", path.to_str().unwrap()]);
    let says = "no text or HTML found; the first records have Body, URL (--text-field names one); no URL";
    assert!(code(&output) == 5 && errors(&output).contains(says), "{}", errors(&output));
    assert!(!errors(&output).contains("text from text"));
}

#[test]
fn bad_records_are_written_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let (path, bad) = (home.path().join("a.jsonl"), home.path().join("bad.jsonl"));
    let lines: [&[u8]; 6] = [
        br#"{"text": "a", "id": 1}"#,
        br#"{"text": 7,  "id": "\u00e9"}"#,
        b"not JSON \xff",
        br#"{"text": "b", "id": 1}"#,
        b"{\"id\": 2}  \r",
        br#"{"text": "c", "id": 2}"#,
    ];
    fs::write(&path, lines.join(&b'\n')).unwrap();
    fs::write(&bad, "from an earlier run").unwrap();
    let [path, bad] = [&path, &bad].map(|path| path.to_str().unwrap());
    let summary = run_ok(["dedup", "--json", "--id-field", "id", "--bad", bad, path]);
    assert_eq!(serde_json::from_str::<Value>(&summary).unwrap()["input"]["records"], 2);
    let kind = "record that is no page";
    let written = lines_of(&fs::read_to_string(bad).unwrap());
    let hex: String = lines[2].iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [
        json!({"file": path, "line": 2, "kind": kind, "reason": "\"text\": is a number, and has to be text", "record": "{\"text\": 7,  \"id\": \"\\u00e9\"}"}),
        json!({"file": path, "line": 3, "kind": "JSON line that is no page", "reason": "expected ident at column 2", "record_hex": hex}),
        json!({"file": path, "line": 4, "kind": kind, "reason": "\"id\": an earlier record of the file has the id \"1\"", "record": "{\"text\": \"b\", \"id\": 1}"}),
        json!({"file": path, "line": 5, "kind": kind, "reason": "\"text\": missing", "record": "{\"id\": 2}  "}),
    ];
    assert_eq!(written, expected);

    // Tables are learnt in a separate pass, which writes no output.
    let policy = ["dedup", "--policy", "imatch", "--id-field", "id", "--bad", bad, path];
    run(policy);
    assert_eq!(lines_of(&fs::read_to_string(bad).unwrap()), expected);
    let sites = run(["dedup", "--policy", "by-site", "--id-field", "id", "--bad", bad, path]);
    assert_eq!(code(&sites), 5);
    assert_eq!(
        lines_of(&fs::read_to_string(bad).unwrap()).len(),
        6,
        "the output must also have the records without a host"
    );

    let printed = run(["dedup", "--bad", "-", path]);
    assert!(code(&printed) == 2 && errors(&printed).contains("--bad names a file"), "{}", errors(&printed));
    let before = fs::read(path).unwrap();
    let itself = run(["dedup", "--bad", path, path]);
    assert_eq!(code(&itself), 2, "{}", errors(&itself));
    assert_eq!(fs::read(path).unwrap(), before);
}
