//! `--kept` and `--removed` write the original records of the inputs.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, rounds, text};
use crate::harness::small_disk::SmallDisk;
use crate::harness::warc::gzip;
use crate::harness::{doppel, kill_at_moments, lines_of, run_ok};
use crate::{code, errors, fifo};

fn dedup(home: &Path, options: &[&str], inputs: &[PathBuf]) -> Output {
    let mut command = doppel();
    command.current_dir(home).args(["dedup", "--latest", "--json", "--kept", "kept", "--removed", "removed"]);
    command.args(["--superseded", "superseded"]).args(options).args(inputs).output().unwrap()
}

fn summary(output: &Output) -> Value {
    assert!(output.status.success(), "{}", errors(output));
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["results"].clone()
}

/// Checks that the terms of the summary add up to the number of records, and agree with the written files.
fn check_equation(output: &Output) {
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (records, written) = (&summary["records"], &summary["results"]);
    let number = |of: &Value| of.as_u64().unwrap_or(0);
    let removed = |of: &Value| of["removed"].as_object().unwrap().values().map(number).sum::<u64>();
    let terms = ["kept", "superseded", "bad", "skipped"];
    let sum = |of: &Value| removed(of) + terms.iter().map(|term| number(&of[*term])).sum::<u64>();
    assert_eq!(number(&records["read"]), sum(records), "{summary}");
    assert_eq!(sum(records), sum(written), "{summary}");
    assert_eq!(records["removed"], written["removed"], "{summary}");
    for term in terms {
        assert_eq!(number(&records[term]), number(&written[term]), "{term}: {summary}");
    }
}

/// All files below a directory by their paths, including files with temporary names.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let all = walkdir::WalkDir::new(dir).into_iter().filter_map(Result::ok);
    // Leave out the list of results that Doppel keeps.
    let files = all.filter(|entry| entry.file_type().is_file() && entry.file_name() != ".doppel-results");
    files
        .map(|entry| (entry.path().strip_prefix(dir).unwrap().to_owned(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// The expected reason for the removal of each line, or `None` if the line is kept. Derived from the export
/// and the dates alone.
fn expected(export: &str, lines: &[String]) -> Vec<Option<&'static str>> {
    let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |record: &Value, field: &str| record[field].as_str().unwrap_or_default().to_owned();
    let mut present: HashMap<String, (String, usize)> = HashMap::new();
    for (at, record) in records.iter().enumerate() {
        let (url, date) = (text(record, "url"), text(record, "fetched_at"));
        let is_stale = present.get(&url).is_some_and(|(newest, _)| date < *newest);
        if !is_stale {
            present.insert(url, (date, at));
        }
    }
    let status: HashMap<String, String> =
        lines_of(export).iter().map(|line| (text(line, "url"), text(line, "status"))).collect();
    let fate = |(at, record): (usize, &Value)| {
        let url = text(record, "url");
        match status.get(&url).map(String::as_str) {
            _ if present[&url].1 != at => Some("superseded"),
            None => Some("dead"),
            Some("duplicate") if record["redirect_to"].is_string() => Some("redirect"),
            Some("duplicate") => Some("duplicate"),
            Some(_) => None,
        }
    };
    records.iter().enumerate().map(fate).collect()
}

/// Writes a crawl of two rounds to two files. Returns the files and their lines.
fn crawl(home: &Path, seed: u64, topics: usize) -> (Vec<PathBuf>, Vec<Vec<String>>) {
    let lines = |pages: &Vec<Value>| {
        ndjson(pages).lines().map(|line| line.replacen("\":", "\" : ", 1)).collect::<Vec<String>>()
    };
    let rounds: Vec<_> = rounds(seed, topics, 2).iter().map(lines).collect();
    let paths: Vec<_> = ["in/a/0.jsonl", "in/b/1.jsonl.gz"].map(|name| home.join(name)).into();
    for (path, lines) in paths.iter().zip(&rounds) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = lines.join("\n") + "\n";
        let is_packed = path.extension().unwrap() == "gz";
        fs::write(path, if is_packed { gzip(text.as_bytes()) } else { text.into_bytes() }).unwrap();
    }
    (paths, rounds)
}

fn unpacked(path: &Path) -> String {
    use std::io::Read as _;
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    if path.extension().unwrap() == "gz" {
        flate2::read::GzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
        return text;
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn kept_and_removed_lines_are_unchanged_input_lines_in_every_mode() {
    let home = tempfile::tempdir().unwrap();
    let (inputs, rounds) = crawl(home.path(), 11, 60);
    let export = run_ok(
        ["dedup", "--latest", "--out", "-"]
            .iter()
            .map(AsRef::as_ref)
            .chain(inputs.iter().map(|path| path.as_os_str())),
    );
    let all = rounds.concat();
    let fates = expected(&export, &all);
    let mut reasons = BTreeMap::<&str, u64>::new();
    fates.iter().flatten().for_each(|reason| *reasons.entry(reason).or_default() += 1);
    assert_eq!(reasons.len(), 4, "the crawl must contain every reason: {reasons:?}");
    let kept = fates.iter().filter(|fate| fate.is_none()).count();
    let superseded = reasons.remove("superseded").unwrap();
    for options in [&[][..], &["--incremental"], &["--data", "data"], &["--data", "data"]] {
        let output = dedup(home.path(), options, &inputs);
        let written =
            json!({"kept": kept, "removed": reasons, "superseded": superseded, "bad": 0, "skipped": 0});
        assert_eq!(summary(&output), written, "{options:?}");
        check_equation(&output);
        let mut fates = fates.iter();
        for (name, lines) in ["a/0.jsonl", "b/1.jsonl.gz"].iter().zip(&rounds) {
            let mut sides = [String::new(), String::new(), String::new()];
            for line in lines {
                let side = match fates.next().unwrap() {
                    None => 0,
                    Some("superseded") => 2,
                    Some(_) => 1,
                };
                sides[side] += &format!("{line}\n");
            }
            for (side, lines) in ["kept", "removed", "superseded"].iter().zip(sides) {
                assert_eq!(unpacked(&home.path().join(side).join(name)), lines, "{side} {options:?}");
            }
        }
        assert_eq!(files(&home.path().join("kept")).len(), 2);
    }
}

#[test]
fn annotations_agree_with_the_export() {
    let home = tempfile::tempdir().unwrap();
    let (inputs, _) = crawl(home.path(), 12, 30);
    let output = dedup(home.path(), &["--annotate", "--out", "export"], &inputs);
    summary(&output);
    let export = fs::read_to_string(home.path().join("export")).unwrap();
    let by_url: HashMap<String, Value> =
        lines_of(&export).into_iter().map(|line| (line["url"].as_str().unwrap().to_owned(), line)).collect();
    for (side, name) in [
        ("kept", "a/0.jsonl"),
        ("kept", "b/1.jsonl.gz"),
        ("removed", "b/1.jsonl.gz"),
        ("superseded", "a/0.jsonl"),
    ] {
        for line in lines_of(&unpacked(&home.path().join(side).join(name))) {
            let reason = &line["doppel_reason"];
            if reason == "superseded" || reason == "dead" {
                assert!(line["doppel_group"].is_null());
                continue;
            }
            assert_eq!(reason.is_null(), side == "kept");
            let exported = &by_url[line["url"].as_str().unwrap()];
            for field in ["group", "winner", "duplicate_of", "similarity"] {
                assert_eq!(line[format!("doppel_{field}")], exported[field], "{line}");
            }
        }
    }
}

#[test]
fn bad_records_are_neither_kept_nor_removed_and_standard_input_is_read_twice() {
    let home = tempfile::tempdir().unwrap();
    let page = |n: u32| json!({"url": format!("http://a/{n}"), "text": text(u64::from(n % 2), 60).join(" ")});
    let lines = format!("{}\n{{\"url\": 7}}\n\n{}\n{}", page(0), page(1), page(2));
    let input = home.path().join("pages.jsonl");
    fs::write(&input, &lines).unwrap();
    // A real file has the name under which standard input is written.
    fs::write(home.path().join("stdin"), "").unwrap();
    for options in [&["--annotate", "-"][..], &["-"]] {
        let mut command = doppel();
        command.current_dir(home.path()).args(["dedup", "--json", "--kept", "kept", "--removed", "removed"]);
        let output = command.args(options).stdin(fs::File::open(&input).unwrap()).output().unwrap();
        let written =
            json!({"kept": 2, "removed": {"duplicate": 1}, "superseded": 0, "bad": 1, "skipped": 0});
        assert_eq!(summary(&output), written);
        check_equation(&output);
    }
    let kept = fs::read_to_string(home.path().join("kept/stdin")).unwrap();
    assert_eq!(kept, format!("{}\n{}\n", page(0), page(1)));
    assert_eq!(fs::read_to_string(home.path().join("removed/stdin")).unwrap(), page(2).to_string());
}

#[test]
fn wrong_output_options_are_refused_before_anything_is_read() {
    let home = tempfile::tempdir().unwrap();
    let (inputs, _) = crawl(home.path(), 13, 2);
    let input = inputs[0].to_str().unwrap();
    for dir in ["x", "site/a", "links"] {
        fs::create_dir_all(home.path().join(dir)).unwrap();
    }
    fs::write(home.path().join("site/a/index.html"), "<p>page").unwrap();
    std::os::unix::fs::symlink(&inputs[0], home.path().join("links/0.jsonl")).unwrap();
    let before = files(home.path());
    for (arguments, message) in [
        (&["--annotate", input][..], "--annotate needs --kept, --removed or --superseded"),
        (&["--superseded", "x", input], "--superseded needs --latest or --data"),
        (&["--incremental", input], "add --latest"),
        (&["--kept", "x", "--removed", "x/y", input], "neither in the other"),
        (&["--kept", "in/kept", "in"], "is inside the input"),
        (&["--kept", "in/a", input], "which is an input"),
        (&["--kept", "in", "in/*/*.jsonl"], "which is an input"),
        (&["--kept", "x", input, "in/a/../a/0.jsonl"], "would both have their results at 0.jsonl"),
        (&["--kept", "in/a", "links/0.jsonl"], "which is an input"),
        (&["--kept", ".", "site"], "which is in, or around, the input"),
        (&["--removed", ".", "site"], "which is in, or around, the input"),
        (&["--kept", "x", "site", "site/a/index.html"], "would both have their results at"),
        (&["--kept", "x", "--out", "x/groups", input], "--out is inside --kept x"),
        (&["--kept", "x", "--data", "x/data", input], "--data is inside --kept x"),
        (&["--kept", "x", "--bad", "site/bad", "site"], "--bad is inside the input"),
        (&["--kept", "x", "--report", "site/a/report.html", "site"], "--report is inside the input"),
        (&["--kept", "data/x", "--data", "data", input], "is inside the data directory"),
        (&["--kept", "in/a/0.jsonl", input], "cannot write to in/a/0.jsonl"),
    ] {
        let output = doppel().current_dir(home.path()).arg("dedup").args(arguments).output().unwrap();
        let is_usage = !message.starts_with("cannot");
        assert_eq!(code(&output), if is_usage { 2 } else { 1 }, "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(message), "{arguments:?}: {}", errors(&output));
        assert_eq!(files(home.path()), before, "{arguments:?}");
    }
}

#[test]
fn a_killed_run_that_is_repeated_writes_the_same_files() {
    let home = tempfile::tempdir().unwrap();
    let (inputs, _) = crawl(home.path(), 14, 120);
    let sides = ["kept", "removed", "superseded"].map(|side| home.path().join(side));
    summary(&dedup(home.path(), &[], &inputs));
    let whole = sides.each_ref().map(|side| files(side));
    let clear = || sides.iter().for_each(|side| drop(fs::remove_dir_all(side)));
    clear();
    let command = || {
        let mut command = doppel();
        command.current_dir(home.path()).args([
            "dedup",
            "--latest",
            "--kept",
            "kept",
            "--removed",
            "removed",
        ]);
        command.args(["--superseded", "superseded"]).args(&inputs);
        command
    };
    let mut last = 0;
    kill_at_moments(16, command, |ended| {
        for (side, whole) in sides.iter().zip(&whole) {
            for (name, bytes) in files(side) {
                let is_part = name.to_str().unwrap().contains(".doppel-result-");
                assert!(is_part || bytes == whole[&name], "{} was written in part", name.display());
            }
        }
        last += 1;
        if !ended && last % 4 == 0 {
            summary(&dedup(home.path(), &[], &inputs));
            assert_eq!(sides.each_ref().map(|side| files(side)), whole);
        }
        clear();
        ended
    });
}

#[test]
fn a_page_that_redirects_by_itself_is_removed_as_a_redirect() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a.jsonl");
    let words = text(1, 40).join(" ");
    let moved = "<meta http-equiv=refresh content='0; url=http://a.example/new'>";
    fs::write(
        &path,
        ndjson(&[
            json!({"url": "http://a.example/new", "text": words}),
            json!({"url": "http://a.example/copy", "text": words}),
            json!({"url": "http://a.example/old", "html": moved}),
            json!({"url": "http://a.example/lost", "html": moved.replace("new", "nowhere")}),
        ]),
    )
    .unwrap();
    for way in [&[][..], &["--incremental"]] {
        let results = summary(&dedup(home.path(), way, std::slice::from_ref(&path)));
        assert_eq!(results["removed"], json!({"duplicate": 1, "redirect": 1}), "{way:?}");
        assert_eq!(results["kept"], 2, "{way:?}");
    }
}

#[test]
fn a_full_disk_leaves_no_partial_file() {
    let home = tempfile::tempdir().unwrap();
    let small = home.path().join("small");
    fs::create_dir(&small).unwrap();
    let Some(disk) = SmallDisk::make(&small, 128 << 10) else { return };
    let (inputs, rounds) = crawl(home.path(), 15, 300);
    assert!(rounds[0].concat().len() > 512 << 10);
    // A crawl of one round has no versions, and keeps half of its bytes.
    let inputs = &inputs[..1];
    let mut command = disk.command(doppel().get_program());
    command.arg("dedup").arg("--kept").arg(small.join("kept")).args(inputs);
    let output = command.output().unwrap();
    assert_eq!(code(&output), 1, "{}", errors(&output));
    let expected = format!("cannot write {} past its first ", small.join("kept/0.jsonl").display());
    assert!(
        errors(&output).contains(&expected) && errors(&output).contains("No space left"),
        "{}",
        errors(&output)
    );
    assert_eq!(files(&disk.path().join("kept")), BTreeMap::new());
}

#[test]
fn an_input_that_changes_during_the_run_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let fifo = fifo(home.path());
    let (inputs, _) = crawl(home.path(), 16, 5);
    let mut command = doppel();
    command.current_dir(home.path()).args(["dedup", "--kept", "kept"]).args(&inputs).arg(&fifo);
    let child =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    // The command has looked at the other inputs when it opens the pipe.
    let mut pipe = fs::File::options().write(true).open(&fifo).unwrap();
    fs::write(&inputs[0], b"{\"url\": \"http://other/\", \"text\": \"x\"}\n").unwrap();
    std::io::Write::write_all(&mut pipe, b"{\"url\": \"http://a/\", \"text\": \"x\"}\n").unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 1);
    assert!(errors(&output).contains("0.jsonl has changed since it was read first"), "{}", errors(&output));
    assert_eq!(files(&home.path().join("kept")).len(), 0);
}

#[test]
fn a_second_run_is_refused_the_directories_of_the_first() {
    let home = tempfile::tempdir().unwrap();
    let fifo = fifo(home.path());
    let (inputs, _) = crawl(home.path(), 17, 5);
    let mut command = doppel();
    command.current_dir(home.path()).args(["dedup", "--removed", "../removed/../kept"]).arg(&fifo);
    fs::create_dir(home.path().join("cwd")).unwrap();
    command.current_dir(home.path().join("cwd"));
    let first = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    // The first run has claimed the directory when it opens the pipe.
    let mut pipe = fs::File::options().write(true).open(&fifo).unwrap();
    let second = dedup(home.path(), &[], &inputs);
    assert_eq!(code(&second), 1);
    assert!(errors(&second).contains("another run writes to kept"), "{}", errors(&second));
    std::io::Write::write_all(&mut pipe, b"{\"url\": \"http://a/\", \"text\": \"x\"}\n").unwrap();
    drop(pipe);
    assert_eq!(code(&first.wait_with_output().unwrap()), 0);
    summary(&dedup(home.path(), &[], &inputs));
}

#[test]
fn files_of_a_directory_of_pages_are_copied_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let words = |seed: u64| text(seed, 60).join(" ");
    let site = [
        ("a/index.html", format!("<p>{}</p>", words(1))),
        ("a/copy.html", format!("<p>{}</p>", words(1))),
        ("b/other.txt", words(2)),
        ("b/picture.png", "no page".to_owned()),
    ];
    for (name, content) in &site {
        let path = home.path().join("site").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::write(home.path().join("site/.hidden.html"), "hidden").unwrap();
    let inputs = [home.path().join("site")];
    // A file that another run has left in the directory of removed pages.
    fs::write(home.path().join("site/b/other.txt"), words(1)).unwrap();
    summary(&dedup(home.path(), &[], &inputs));
    assert!(home.path().join("removed/b/other.txt").exists());
    fs::write(home.path().join("site/b/other.txt"), words(2)).unwrap();
    let output = dedup(home.path(), &[], &inputs);
    assert_eq!(
        summary(&output),
        json!({"kept": 2, "removed": {"duplicate": 1}, "superseded": 0, "bad": 0, "skipped": 1})
    );
    let [kept, removed] = ["kept", "removed"].map(|side| files(&home.path().join(side)));
    assert_eq!(kept.len(), 3);
    assert_eq!(removed.len(), 1);
    let all: BTreeMap<_, _> = kept.into_iter().chain(removed).collect();
    let expected = site.map(|(name, content)| (PathBuf::from(name), content.into_bytes()));
    assert_eq!(all, expected.into());
    let output = dedup(home.path(), &["--annotate"], &inputs);
    assert_eq!(code(&output), 2);
    assert!(errors(&output).contains("--annotate has no place in files of pages"), "{}", errors(&output));
}
