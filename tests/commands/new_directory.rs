//! `doppel dedup --data` into a new directory. Grouping at once creates the same directory as recording page
//! by page. The directory appears whole or not at all, and later runs and servers can use it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, rounds, text};
use crate::harness::{PATIENCE, Server, doppel, kill_at_moments, meaning, run, run_ok, wait_until};
use crate::{code, errors, finished, interrupt};

/// Writes a crawl of several rounds, one file for each.
fn crawl_files(home: &Path, topics: usize) -> Vec<String> {
    let write = |(round, pages): (usize, &Vec<Value>)| {
        let path = home.join(format!("round-{round}.jsonl"));
        fs::write(&path, ndjson(pages)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    rounds(5, topics, 3).iter().enumerate().map(write).collect()
}

fn dedup(data: &Path, options: &[&str], inputs: &[String]) -> String {
    let common = ["dedup", "--data", data.to_str().unwrap()];
    let inputs = inputs.iter().map(String::as_str);
    run_ok(common.into_iter().chain(options.iter().copied()).chain(inputs))
}

/// The counts of pages and groups in a summary.
fn found(summary: &str) -> Value {
    let summary: Value = serde_json::from_str(summary).unwrap();
    // Page by page, the newest of several versions in a batch is applied first. The others are then stale,
    // and none is unchanged.
    let work = [
        "confirmed",
        "compared_updates",
        "verified",
        "rejected",
        "merges",
        "rechecks",
        "evictions",
        "stale",
        "unchanged",
    ];
    let mut found = json!({});
    for field in ["pages", "groups", "largest", "input", "gone", "pruned"] {
        found[field] = summary[field].clone();
    }
    let pages = found["pages"].as_object_mut().unwrap();
    work.iter().chain(&["searches", "stale_results"]).for_each(|field| drop(pages.remove(*field)));
    let largest = found["largest"].as_array_mut().unwrap();
    largest.iter_mut().for_each(|group| drop(group.as_object_mut().unwrap().remove("group")));
    found
}

/// The URLs that a new consumer of the change feed receives.
fn feed(server: &Server) -> BTreeSet<String> {
    let mut urls = BTreeSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("limit", "100")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = server.ask("/v1/changes", &query);
        let changes = answer["changes"].as_array().unwrap();
        urls.extend(changes.iter().map(|change| change["url"].as_str().unwrap().to_owned()));
        if changes.is_empty() {
            return urls;
        }
        cursor = answer["cursor"].as_str().map(str::to_owned);
    }
}

#[test]
fn a_directory_made_at_once_equals_one_made_page_by_page() {
    for options in
        [&[][..], &["--shards", "5", "--ranges", "3"], &["--group-members-max", "2", "--tau", "0.7"]]
    {
        let home = tempfile::tempdir().unwrap();
        let files = crawl_files(home.path(), 60);
        let [at_once, again, page_by_page] = ["a", "b", "c"].map(|name| home.path().join(name));
        let slowly = [options, &["--incremental"]].concat();
        let (out, json) = ([options, &["--out", "-"]].concat(), [options, &["--json"]].concat());
        let whole = dedup(&at_once, &out, &files[..2]);
        assert_eq!(dedup(&again, &out, &files[..2]), whole, "the same command gives the same output");
        fs::remove_dir_all(&again).unwrap();
        let summary = dedup(&again, &json, &files[..2]);
        let expected = dedup(&page_by_page, &[&slowly[..], &["--json"]].concat(), &files[..2]);
        assert_eq!(found(&summary), found(&expected), "{options:?}");
        let checked = run(["check", at_once.to_str().unwrap()]);
        assert_eq!(code(&checked), 0, "{}", String::from_utf8_lossy(&checked.stdout));
        let server = Server::start(&page_by_page, &[]);
        let all = feed(&server);
        assert_eq!(meaning(&server.export()), meaning(&whole), "{options:?}");
        assert!(server.terminate());
        let server = Server::start(&at_once, &[]);
        assert_eq!(server.export(), whole);
        assert_eq!(feed(&server), all);
        assert!(server.terminate());
        // Record a further round page by page in both directories.
        let limits: &[&str] =
            if options.len() == 4 && options[0] == "--group-members-max" { &options[..2] } else { &[] };
        let next = |data: &Path| dedup(data, &[limits, &["--out", "-"]].concat(), &files[2..]);
        assert_eq!(meaning(&next(&at_once)), meaning(&next(&page_by_page)), "{options:?}");
        assert_eq!(code(&run(["check", at_once.to_str().unwrap()])), 0);
    }
}

#[test]
fn the_first_start_of_a_directory_that_was_made_at_once_uses_its_snapshots() {
    for (options, ranges) in [(&[][..], 1), (&["--shards", "5", "--ranges", "3"][..], 3)] {
        let home = tempfile::tempdir().unwrap();
        let files = crawl_files(home.path(), 60);
        let data = home.path().join("data");
        let whole = dedup(&data, &[options, &["--out", "-"]].concat(), &files[..2]);
        for range in 0..ranges {
            assert!(data.join(format!("tier1/range-{range}/statuses.dat")).exists());
        }
        let checked = run(["check", "--json", data.to_str().unwrap()]);
        let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert!(report["sound"] == true, "{report}");
        assert!(report["tier2"]["snapshot_contents"].as_u64().unwrap() > 10, "{report}");
        let server = Server::start(&data, &[]);
        let count = |what: &str| server.log().matches(what).count();
        wait_until("the status tables to be complete", PATIENCE, || {
            (count("the status table is complete") == ranges).then_some(())
        });
        assert_eq!(count("from_snapshot=true"), ranges, "{}", server.log());
        // The index was told only what has changed since its snapshot.
        assert_eq!(count("fed the changed contents of a range"), ranges, "{}", server.log());
        assert_eq!(count("fed the contents of a range"), 0, "{}", server.log());
        assert_eq!(server.export(), whole);
        assert!(server.terminate());
        // Another number of dimensions needs another index.
        let server = Server::start(&data, &["--dimensions", "2"]);
        assert!(server.log().contains("reading all signatures instead"), "{}", server.log());
        assert_eq!(server.export(), whole);
        assert!(server.terminate());
    }
}

#[test]
fn a_server_continues_a_directory_that_was_made_at_once() {
    let home = tempfile::tempdir().unwrap();
    let (data, input) = (home.path().join("data"), home.path().join("pages.jsonl"));
    let page = |name: &str, seed: u64| json!({"url": format!("http://a.example/{name}"), "text": text(seed, 100).join(" ")});
    fs::write(&input, ndjson(&[page("a", 1), page("bb", 1), page("c", 2)])).unwrap();
    dedup(&data, &[], &[input.to_str().unwrap().to_owned()]);
    let server = Server::start(&data, &[]);
    let status = |name: &str| server.status(&format!("http://a.example/{name}"))["status"].clone();
    assert_eq!([status("a"), status("bb"), status("c")], ["winner", "duplicate", "unique"]);
    let group = server.status("http://a.example/a")["group"].clone();
    server.push(&[page("dd", 2), page("bb", 3), page("eee", 1)]);
    server.flush();
    assert_eq!([status("a"), status("bb"), status("c")], ["winner", "unique", "winner"]);
    assert_eq!([status("dd"), status("eee")], ["duplicate", "duplicate"]);
    assert_ne!(
        server.status("http://a.example/c")["group"],
        group,
        "the id of a dissolved group must not be used again"
    );
    assert!(server.delete("/v1/pages", &[("url", "http://a.example/a")]).status().is_success());
    server.flush();
    assert_eq!([status("a"), status("eee")], ["dead", "unique"]);
    assert!(server.terminate());
    assert_eq!(code(&run(["check", data.to_str().unwrap()])), 0);
}

#[test]
fn a_run_that_is_killed_leaves_nothing_that_can_be_opened() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path(), 150);
    let data = home.path().join("data");
    let expected =
        run_ok(["dedup", "--latest", "--out", "-"].into_iter().chain(files.iter().map(String::as_str)));
    let making = || {
        let mut command = doppel();
        command.args(["dedup", "--data"]).arg(&data).args(&files);
        command
    };
    kill_at_moments(25, making, |ended| {
        let checked = run(["check", data.to_str().unwrap()]);
        let is_done = data.join("manifest.json").exists();
        if is_done {
            assert_eq!(code(&checked), 0, "{}", errors(&checked));
            fs::remove_dir_all(&data).unwrap();
        } else {
            assert!(!ended, "a run that exited with 0 must leave a manifest");
            assert_eq!(code(&checked), 1);
        }
        is_done
    });
    // Set up states that last too short to be hit by a random kill.
    for rests in
        [&["unfinished/tier1/range-0", "tier1/range-0"][..], &["unfinished", "tier1"], &["unfinished/tier1"]]
    {
        for options in [&["--out", "-"][..], &["--incremental", "--out", "-"]] {
            rests.iter().for_each(|name| fs::create_dir_all(data.join(name)).unwrap());
            fs::write(data.join("manifest.json.new1"), "{").unwrap();
            let refused = run(["backup", "--out", "-", "--data", data.to_str().unwrap()]);
            assert_eq!(code(&refused), 1);
            let says = "run that command again, or name another directory. The directory has no data yet";
            assert!(errors(&refused).contains(says), "{}", errors(&refused));
            assert_eq!(meaning(&dedup(&data, options, &files)), meaning(&expected));
            assert_eq!(code(&run(["check", data.to_str().unwrap()])), 0);
            fs::remove_dir_all(&data).unwrap();
        }
    }
    // A file that Doppel does not know is not removed.
    fs::create_dir_all(data.join("unfinished")).unwrap();
    fs::write(data.join("unfinished/mine"), "").unwrap();
    for way in ["--json", "--incremental"] {
        let refused = run(["dedup", way, "--data", data.to_str().unwrap(), &files[0]]);
        assert_eq!(code(&refused), 1);
        assert!(data.join("unfinished/mine").exists());
    }
}

#[test]
fn an_interruption_leaves_a_whole_directory_or_none() {
    let home = tempfile::tempdir().unwrap();
    let input = home.path().join("crawl.jsonl");
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 40).join(" ")});
    fs::write(&input, ndjson(&(0..3_000).map(page).collect::<Vec<_>>())).unwrap();
    for attempt in 0..24 {
        let data = home.path().join(format!("data-{attempt}"));
        let mut command = doppel();
        command.args(["dedup", "--ranges", "8", "--data"]).arg(&data).arg(&input);
        let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // All rows are on disk, and the run makes the index. Or the index is on disk, too, and the run only moves
        // both to their places, which takes some milliseconds.
        let last = if attempt < 8 { "tier1/range-7/progress" } else { "tier2/node-0/snapshot.dat" };
        let last = data.join("unfinished").join(last);
        while !last.exists() && run.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_micros(200));
        }
        thread::sleep(Duration::from_micros(200 * attempt));
        if run.try_wait().unwrap().is_none() {
            interrupt(&run, if attempt % 2 == 0 { "TERM" } else { "INT" });
        }
        let said = errors(&finished(run));
        let is_whole = data.join("manifest.json").exists();
        assert!(is_whole || !said.contains("is whole"), "{said}");
        assert!(!is_whole || !said.contains("goes on") && !said.contains("begins anew"), "{said}");
        dedup(&data, &["--ranges", "8"], &[input.to_str().unwrap().to_owned()]);
        let checked = crate::harness::run(["check", data.to_str().unwrap()]);
        assert_eq!(code(&checked), 0, "attempt {attempt}, {said}: {}", errors(&checked));
    }
}

#[test]
fn one_process_at_a_time_makes_a_directory_and_an_interruption_leaves_none() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let (input, pages) = (home.path().join("crawl.jsonl"), home.path().join("pages.jsonl"));
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 200).join(" ")});
    fs::write(&input, ndjson(&(0..20_000).map(page).collect::<Vec<_>>())).unwrap();
    fs::write(&pages, ndjson(&rounds(5, 10, 1)[0])).unwrap();
    let mut command = doppel();
    command.args(["dedup", "--data"]).arg(&data).arg(&input).stderr(Stdio::piped());
    let first = command.spawn().unwrap();
    wait_until("the run to write its log of extracted pages", PATIENCE, || {
        data.join("unfinished/extracted.log").exists().then_some(())
    });
    interrupt(&first, "STOP");
    for way in ["--json", "--incremental"] {
        let second = run(["dedup", way, "--data", data.to_str().unwrap(), pages.to_str().unwrap()]);
        assert_eq!(code(&second), 1);
        assert!(errors(&second).contains("another process is making it"), "{}", errors(&second));
    }
    let served = run(["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    assert!(errors(&served).contains("or still runs"), "{}", errors(&served));
    interrupt(&first, "INT");
    interrupt(&first, "CONT");
    let output = finished(first);
    let said =
        "doppel: interrupted; the same command goes on behind the last file that was read to its end\n";
    assert_eq!(code(&output), 130);
    assert_eq!(errors(&output).as_str(), said);
    assert!(!data.join("unfinished/tier1").exists());
    dedup(&data, &[], &[pages.to_str().unwrap().to_owned()]);
    assert_eq!(code(&run(["check", data.to_str().unwrap()])), 0);
    assert!(!data.join("unfinished").exists());
}

#[test]
fn an_error_leaves_the_directory_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let (missing, no_pages) = (home.path().join("missing.jsonl"), home.path().join("no-pages.jsonl"));
    fs::write(&no_pages, "{\"never\": 1}\n").unwrap();
    for (input, expected) in [(missing, 1), (no_pages, 5)] {
        let out = data.join("out.jsonl");
        let paths = [&data, &out, &input].map(|path| path.to_str().unwrap());
        let failed = run(["dedup", "--data", paths[0], "--out", paths[1], paths[2]]);
        assert_eq!(code(&failed), expected, "{}", errors(&failed));
        let says = if expected == 1 {
            "cannot read".to_owned()
        } else {
            format!("nothing is kept in {}: ", paths[0])
        };
        assert!(errors(&failed).contains(&says), "{}", errors(&failed));
        assert_eq!(fs::read_dir(&data).map_or(0, Iterator::count), 0);
    }
}

#[test]
fn pages_are_kept_when_the_output_cannot_be_written() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path(), 10);
    for (name, way) in [("at-once", "--json"), ("page-by-page", "--incremental")] {
        let data = home.path().join(name);
        let failed = run(["dedup", "--data", data.to_str().unwrap(), "--out", "/dev/full", way, &files[0]]);
        assert_eq!(code(&failed), 1);
        assert!(!failed.stdout.is_empty(), "the command must still print its summary");
        let says = format!("the collection in {} is complete", data.display());
        let said = errors(&failed);
        assert!(said.contains(&says) && said.contains("cannot write /dev/full: "), "{said}");
        assert_eq!(said.matches("os error").count(), 1, "{said}");
        assert_eq!(code(&run(["check", data.to_str().unwrap()])), 0);
    }
}

#[test]
fn the_output_file_may_lie_in_the_data_directory() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path(), 10);
    for (name, way) in [("at-once", "--json"), ("page-by-page", "--incremental")] {
        let data = home.path().join(name);
        let out = data.join("out.jsonl");
        dedup(&data, &[way, "--out", out.to_str().unwrap()], &files);
        assert!(fs::read_to_string(&out).unwrap().lines().count() > 5);
        assert_eq!(code(&run(["check", data.to_str().unwrap()])), 0);
    }
}

#[test]
fn a_file_is_refused_as_a_data_directory() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let path = file.to_str().unwrap();
    for arguments in [
        &["dedup", "--data", path, path][..],
        &["dedup", "--incremental", "--data", path, path],
        &["serve", "--listen", "127.0.0.1:0", "--data", path],
        &["check", path],
        &["backup", "--out", "-", "--data", path],
    ] {
        let refused = run(arguments.iter().copied());
        assert_eq!(code(&refused), 1);
        let says = format!("doppel: {path} is a file, not a directory; name a directory\n");
        assert!(errors(&refused).ends_with(&says), "{arguments:?}: {}", errors(&refused));
    }
}
