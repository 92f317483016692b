//! A data directory does not read a file again that it has taken, and an interrupted run resumes.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, text};
use crate::harness::{PATIENCE, doppel, meaning, run, run_ok, wait_until};
use crate::{code, errors, finished};

fn dedup(data: &Path, options: &[&str], inputs: &[String]) -> String {
    let common = ["dedup", "--data", data.to_str().unwrap()];
    let inputs = inputs.iter().map(String::as_str);
    run_ok(common.into_iter().chain(options.iter().copied()).chain(inputs))
}

fn write(home: &Path, name: &str, lines: &[Value]) -> String {
    let path = home.join(name);
    fs::write(&path, ndjson(lines)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// How often a log or a list names a file. A log names it for each of its records, and once more at its end.
fn names(list: &Path, file: &str) -> usize {
    let list = fs::read(list).unwrap_or_default();
    list.windows(file.len()).filter(|part| *part == file.as_bytes()).count()
}

/// Runs `dedup` on two files and a pipe, kills it while it waits for the pipe, and runs the same command
/// again. Returns the messages of the second run.
fn killed_and_given_again(home: &Path, data: &Path, way: &str) -> String {
    let pages = |name: &str, from: u64| {
        let page = |n: u64| {
            let near = if n.is_multiple_of(5) { vec!["other".to_owned()] } else { Vec::new() };
            let words = [text(n / 2, 40), near].concat().join(" ");
            json!({"url": format!("http://{name}.example/{n}"), "text": words})
        };
        ndjson(&(from..from + 1_100).map(page).collect::<Vec<_>>())
    };
    let [a, b, c] = ["a.jsonl", "b.jsonl", "c.jsonl"].map(|name| home.join(name));
    fs::write(&a, pages("a", 0)).unwrap();
    fs::write(&b, pages("b", 900)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &c, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let command = || {
        let mut command = doppel();
        command.args(["dedup", "--json", way, "--data"]).arg(data).args([&a, &b, &c]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut first = command().spawn().unwrap();
    wait_until("the end of the first file", PATIENCE, || {
        let in_log = names(&data.join("unfinished/extracted.log"), "a.jsonl") > 1_100;
        (in_log || names(&data.join("ingested.jsonl"), "a.jsonl") > 0).then_some(())
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let second = command().spawn().unwrap();
    fs::write(&c, pages("c", 500)).unwrap();
    let second = finished(second);
    assert_eq!(code(&second), 0, "{}", errors(&second));
    let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert_eq!(summary["input"]["read_before"], json!({"files": 1, "records": 1_100, "bad": 0}));
    assert_eq!(summary["input"]["records"], 2_200);
    assert_eq!(summary["pages"]["live"], 3_300);
    // The result equals that of an uninterrupted run, from the same bytes.
    let whole = home.join("whole");
    fs::remove_file(&c).unwrap();
    fs::write(&c, pages("c", 500)).unwrap();
    let export = |dir: &Path, input: &Path| {
        let out = home.join("out");
        let [dir, out, input] = [dir, &out, input].map(|path| path.to_str().unwrap());
        run_ok(["dedup", "--data", dir, "--out", out, input]);
        meaning(&fs::read_to_string(out).unwrap())
    };
    dedup(&whole, &[], &[&a, &b].map(|path| path.to_str().unwrap().to_owned()));
    assert_eq!(export(data, &c), export(&whole, &c));
    assert_eq!(code(&run(["check", data.to_str().unwrap()])), 0);
    errors(&second)
}

#[test]
fn an_interrupted_first_run_resumes_behind_the_last_file_that_it_read() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let said = killed_and_given_again(home.path(), &data, "--strict");
    assert!(said.contains("going on after 1 file that an interrupted run has read"), "{said}");
    assert!(!data.join("unfinished").exists());
}

#[test]
fn files_that_a_collection_has_taken_are_not_read_again() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    killed_and_given_again(home.path(), &data, "--incremental");
    // All inputs have been taken now. It is no error that nothing is left to read.
    let files = ["a.jsonl", "b.jsonl"].map(|name| home.path().join(name).to_str().unwrap().to_owned());
    let summary: Value = serde_json::from_str(&dedup(&data, &["--json"], &files)).unwrap();
    assert_eq!(summary["input"]["read_before"]["files"], 2);
    assert_eq!(summary["input"]["records"], json!(0));
    assert_eq!(summary["outcomes"]["unchanged"], json!(0));
    let again: Value = serde_json::from_str(&dedup(&data, &["--json", "--read-again"], &files)).unwrap();
    assert_eq!(again["input"]["records"], json!(2_200));
    assert_eq!(again["outcomes"]["unchanged"], json!(2_200));
    // Copying records into results requires reading them.
    let kept = home.path().join("kept");
    let copied = dedup(&data, &["--json", "--kept", kept.to_str().unwrap()], &files);
    let copied: Value = serde_json::from_str(&copied).unwrap();
    assert_eq!(copied["input"]["records"], 2_200);
    // A file that has grown counts as another file.
    let grown = fs::read_to_string(&files[1]).unwrap()
        + &ndjson(&[json!({"url": "http://new.example/", "text": "x"})]);
    fs::write(&files[1], grown).unwrap();
    let summary: Value = serde_json::from_str(&dedup(&data, &["--json"], &files)).unwrap();
    assert_eq!(summary["input"]["read_before"]["files"], json!(1));
    assert_eq!(summary["outcomes"]["unchanged"], json!(1_100));
    assert_eq!(summary["input"]["records"], json!(1_101));
    assert_eq!(summary["outcomes"]["pending"], json!(1));
}

#[test]
fn a_run_that_fails_keeps_the_files_that_it_read() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 40).join(" ")});
    let files = [
        write(home.path(), "a.jsonl", &(0..1_100).map(page).collect::<Vec<_>>()),
        write(home.path(), "b.jsonl", &(1_000..2_100).map(page).collect::<Vec<_>>()),
        home.path().join("c.jsonl").to_str().unwrap().to_owned(),
    ];
    let pipe = Path::new(&files[2]);
    let make_pipe = || {
        rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .unwrap();
    };
    let command = || {
        let mut command = doppel();
        command.args(["dedup", "--json", "--data"]).arg(&data).args(&files);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // Before the first file has ended, there is nothing to resume from.
    let refused = run(["dedup", "--text-field", "body", "--data", data.to_str().unwrap(), &files[0]]);
    assert_eq!(code(&refused), 2, "{}", errors(&refused));
    assert!(!errors(&refused).contains("goes on") && !data.exists(), "{}", errors(&refused));
    make_pipe();
    let failing = command();
    wait_until("the end of the first file", PATIENCE, || {
        (names(&data.join("unfinished/extracted.log"), "a.jsonl") > 1_100).then_some(())
    });
    fs::remove_dir_all(data.join("unfinished/tier1")).unwrap();
    fs::write(pipe, ndjson(&[page(5_000)])).unwrap();
    let failed = finished(failing);
    assert_eq!(code(&failed), 1, "{}", errors(&failed));
    assert!(errors(&failed).contains("from which the same command goes on"), "{}", errors(&failed));
    let again = command();
    fs::write(pipe, ndjson(&[page(5_000)])).unwrap();
    let again = finished(again);
    assert!(errors(&again).contains("going on after 2 files that"), "{}", errors(&again));
    let summary: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(summary["pages"]["live"], json!(2_101));
    assert_eq!(summary["input"]["read_before"]["files"], json!(2));
    assert!(!data.join("unfinished").exists());
}

#[test]
fn results_and_a_report_include_files_that_an_interrupted_run_has_read() {
    let home = tempfile::tempdir().unwrap();
    let lines = |name: &str, pages: u64| {
        let page = |n: u64| match n {
            // First a line that cannot be read, then a record that this policy refuses because it has no
            // host.
            3 => "{\"url\": ".to_owned(),
            7 => json!({"text": text(n, 40).join(" ")}).to_string(),
            // A page with the same text as the page before it.
            5 => json!({"url": format!("http://{name}.example/{n}"), "text": text(4, 40).join(" ")})
                .to_string(),
            // Later versions of pages, and texts that occur in all files.
            _ if n.is_multiple_of(9) => {
                json!({"url": format!("http://x.example/{n}"), "text": text(n / 18, 40).join(" ")})
                    .to_string()
            }
            _ => json!({"url": format!("http://{name}.example/{n}"), "text": text(n, 40).join(" ")})
                .to_string(),
        };
        (0..pages).map(|n| page(n) + "\n").collect::<String>()
    };
    for (name, pages) in [("a", 1_100), ("b", 1_200), ("c", 30_000)] {
        fs::write(home.path().join(format!("{name}.jsonl")), lines(name, pages)).unwrap();
    }
    let command = |data: &str| {
        let mut command = doppel();
        command.current_dir(home.path()).args(["dedup", "--json", "--policy", "by-site", "--data", data]);
        let results = ["--annotate", "--kept", "kept", "--removed", "removed", "--report", "report.html"];
        command.args(results).args(["a.jsonl", "b.jsonl", "c.jsonl"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let written = || {
        let sides =
            ["a", "b", "c"].map(|name| ["kept", "removed"].map(|side| format!("{side}/{name}.jsonl")));
        sides.map(|sides| sides.map(|path| fs::read_to_string(home.path().join(path)).unwrap()))
    };
    let whole = finished(command("whole"));
    assert_eq!(code(&whole), 0, "{}", errors(&whole));
    let expected = written();
    assert!(expected.iter().flatten().all(|file| !file.is_empty()));

    let mut first = command("data");
    let log = home.path().join("data/unfinished/extracted.log");
    // Two of the 1,200 lines are not usable.
    wait_until("the end of two files", PATIENCE, || (names(&log, "b.jsonl") > 1_198).then_some(()));
    first.kill().unwrap();
    first.wait().unwrap();
    let again = finished(command("data"));
    assert_eq!(code(&again), 0, "{}", errors(&again));
    assert!(errors(&again).contains("going on after 2 files that"), "{}", errors(&again));
    assert!(written() == expected, "the results differ from those of an uninterrupted run");
    let [whole, again] = [whole, again].map(|run| serde_json::from_slice::<Value>(&run.stdout).unwrap());
    assert_eq!(again["results"], whole["results"]);
    assert_eq!(again["pages"], whole["pages"]);
    assert_eq!(again["input"]["read_before"], json!({"files": 2, "records": 2_296, "bad": 4}));
    let report = fs::read_to_string(home.path().join("report.html")).unwrap();
    assert!(report.contains("with 2,296 records, 4 bad"), "{report}");
}

#[test]
fn a_file_in_the_log_of_an_interrupted_run_is_not_read_again_whatever_its_date() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3_600);
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 40).join(" ")});
    let file = write(home.path(), "a.jsonl", &(0..2_100).map(page).collect::<Vec<_>>());
    fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
    let second = write(home.path(), "b.jsonl", &(3_000..4_100).map(page).collect::<Vec<_>>());
    let pipe = home.path().join("c.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let command = || {
        let mut command = doppel();
        command.args(["dedup", "--json", "--data"]).arg(&data).args([&file, &second, &file]).arg(&pipe);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut first = command();
    // The last page of the third file is in a batch that waits for the pipe.
    wait_until("the end of two files", PATIENCE, || {
        (names(&data.join("unfinished/extracted.log"), "b.jsonl") > 1_100).then_some(())
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let again = command();
    fs::write(&pipe, ndjson(&[page(5_000)])).unwrap();
    let again = finished(again);
    assert!(errors(&again).contains("going on after 2 files that"), "{}", errors(&again));
    let summary: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(summary["input"]["read_before"], json!({"files": 2, "records": 3_200, "bad": 0}));
    assert_eq!(summary["pages"]["live"], 3_201);
}

#[test]
fn a_list_of_read_files_without_a_collection_is_ignored() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let page = json!({"url": "http://a.example/", "text": "some words"});
    let files = [write(home.path(), "a.jsonl", &[page])];
    for way in [&["--json"][..], &["--json", "--incremental"]] {
        dedup(&data, &[], &files);
        // This is the state that a run leaves if it is killed before it writes the manifest.
        fs::remove_file(data.join("manifest.json")).unwrap();
        fs::create_dir(data.join("unfinished")).unwrap();
        fs::remove_dir_all(data.join("tier2")).unwrap();
        let summary: Value = serde_json::from_str(&dedup(&data, way, &files)).unwrap();
        assert_eq!(summary["input"]["records"], json!(1), "{way:?}");
        assert_eq!(summary["pages"]["live"], json!(1), "{way:?}");
        fs::remove_dir_all(&data).unwrap();
    }
}

#[test]
fn a_run_with_too_many_bad_records_fails_again() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let good = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 30).join(" ")});
    let lines: Vec<_> = (0..60).map(|n| if n % 2 == 0 { good(n) } else { json!({"text": 7}) }).collect();
    let file = write(home.path(), "a.jsonl", &lines);
    let other = write(home.path(), "b.jsonl", &(100..2_000).map(good).collect::<Vec<_>>());
    let dedup = |options: &[&str], files: &[&str]| {
        let common = ["dedup", "--json", "--data", data.to_str().unwrap()];
        run(common.iter().chain(options).chain(files))
    };
    for _ in 0..2 {
        let output = dedup(&[], &[&file]);
        assert_eq!(code(&output), 5, "{}", errors(&output));
        assert!(errors(&output).contains("30 of 60 records were bad"), "{}", errors(&output));
    }
    // With enough sound records the run succeeds, and `--bad` still writes the bad ones.
    assert_eq!(code(&dedup(&[], &[&file, &other])), 0);
    let bad = home.path().join("bad");
    assert_eq!(code(&dedup(&["--bad", bad.to_str().unwrap()], &[&file, &other])), 0);
    assert_eq!(fs::read_to_string(bad).unwrap().lines().count(), 30);
    assert_eq!(code(&dedup(&["--strict"], &[&file, &other])), 5);
}

#[test]
fn the_name_of_a_field_is_checked_against_earlier_files_that_have_fields() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let record = |field: &str, n: u64| {
        let url = format!("http://a.example/{n}");
        json!({field: text(n, 30).join(" "), "url": url})
    };
    let first = write(home.path(), "a.jsonl", &[record("body", 1)]);
    let other = write(home.path(), "b.jsonl", &[record("text", 2)]);
    let crawl = home.path().join("c.warc");
    fs::write(&crawl, crate::harness::warc::page("http://c.example/", b"<p>words")).unwrap();
    let dedup = |files: &[&str]| {
        let common = ["dedup", "--json", "--text-field", "body", "--data", data.to_str().unwrap()];
        run(common.iter().chain(files))
    };
    let crawl = crawl.to_str().unwrap();
    assert_eq!(code(&dedup(&[crawl])), 0);
    // The crawl is known and has no fields, so the other file must have the field.
    let refused = dedup(&[crawl, &other]);
    assert!(code(&refused) == 2 && errors(&refused).contains("have no field body"), "{}", errors(&refused));
    assert_eq!(code(&dedup(&[crawl, &first])), 0);
    let taken = dedup(&[crawl, &first, &other]);
    assert_ne!(code(&taken), 2, "{}", errors(&taken));
}

#[test]
fn pages_get_the_same_dates_whether_or_not_their_file_is_read_again() {
    let home = tempfile::tempdir().unwrap();
    let words = |seed: u64| text(seed, 40).join(" ");
    let page = |url: &str, seed: u64| json!({"url": url, "text": words(seed)});
    let a = write(home.path(), "a.jsonl", &[page("http://a.example/", 1)]);
    let b = write(home.path(), "b.jsonl", &[page("http://a.example/", 2)]);
    let same = write(home.path(), "same.jsonl", &[page("http://b.example/", 1)]);
    // Whether the version of the first file is the present one.
    let is_first = |data: &Path, files: &[String]| {
        dedup(data, &[], files);
        dedup(data, &["--out", "-"], std::slice::from_ref(&same)).contains("\"status\":\"duplicate\"")
    };
    for (files, before) in [([&a, &b, &a], 1), ([&b, &a, &b], 2), ([&a, &b, &b], 2)] {
        let files = files.map(String::clone);
        let (whole, parts) = (home.path().join("whole"), home.path().join("parts"));
        let expected = is_first(&whole, &files);
        assert_eq!(expected, files[2] == a);
        dedup(&parts, &[], &files[..before]);
        assert_eq!(is_first(&parts, &files), expected, "{before} of {files:?} were known");
        [whole, parts].iter().for_each(|data| fs::remove_dir_all(data).unwrap());
    }
}
