//! Outputs that cannot be written. A command that fails to write an output must not exit with 0.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::harness::pages::{ndjson, text};
use crate::harness::small_disk::SmallDisk;
use crate::harness::{OwnServer, doppel};
use crate::{code, errors};

/// A device on which every write fails.
const FULL: &str = "/dev/full";

/// Writes pages, two of which are duplicates, a bad record, and a data directory with these pages.
fn put_inputs(home: &Path) {
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n / 2, 60).join(" ")});
    let pages = ndjson(&(0..8).map(page).collect::<Vec<_>>());
    fs::write(home.join("pages.jsonl"), &pages).unwrap();
    fs::write(home.join("bad.jsonl"), format!("{pages}{{\"url\": 7}}\n")).unwrap();
    let made = run(home, &["dedup", "--data", "data", "pages.jsonl"]);
    assert_eq!(code(&made), 0, "{}", errors(&made));
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    doppel().current_dir(home).args(arguments).output().unwrap()
}

/// Runs a command whose standard output cannot be written.
fn run_to_full(mut command: Command) -> Output {
    command.stdout(File::options().write(true).open(FULL).unwrap()).output().unwrap()
}

#[test]
fn a_file_of_bad_records_that_cannot_be_written_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put_inputs(home);
    for arguments in [
        &["dedup"][..],
        &["dedup", "--json", "--kept", "kept"],
        &["dedup", "--data", "new"],
        &["dedup", "--data", "paged", "--incremental"],
        &["pilot"],
        &["plan", "--nodes", "2"],
        &["policy-tables", "--out", "tables", "--policy", "imatch"],
    ] {
        let output = run(home, &[arguments, &["--bad", FULL, "bad.jsonl"]].concat());
        let said = errors(&output);
        assert_eq!(code(&output), 1, "{arguments:?}: {said}");
        assert!(said.contains("/dev/full does not have all bad records"), "{arguments:?}: {said}");
        // Without bad records there is nothing to write, so the run succeeds.
        let output = run(home, &["dedup", "--bad", FULL, "pages.jsonl"]);
        assert_eq!(code(&output), 0, "{}", errors(&output));
    }
    let server = OwnServer::start(&[]);
    let mut load = doppel();
    load.current_dir(home).env("DOPPEL_SERVER", &server.url).args(["load", "--bad", FULL, "bad.jsonl"]);
    let output = load.output().unwrap();
    assert_eq!(code(&output), 1, "{}", errors(&output));
    assert!(errors(&output).contains("/dev/full does not have all bad records"), "{}", errors(&output));
}

#[test]
fn a_disk_that_fills_while_bad_records_are_written_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let small = home.path().join("small");
    fs::create_dir(&small).unwrap();
    let Some(disk) = SmallDisk::make(&small, 64 << 10) else { return };
    let bad = format!("{{{}\n", "x".repeat(1_000));
    let good = json!({"url": "http://a.example/", "text": "a page"});
    fs::write(home.path().join("bad.jsonl"), format!("{good}\n{}", bad.repeat(200))).unwrap();
    let mut command = disk.command(doppel().get_program());
    command.args(["dedup", "--max-bad", "1", "--bad"]).arg(small.join("list"));
    let output = command.arg(home.path().join("bad.jsonl")).output().unwrap();
    assert_eq!(code(&output), 1, "{}", errors(&output));
    let says = format!("{} does not have all bad records", small.join("list").display());
    assert!(errors(&output).contains(&says), "{}", errors(&output));
}

#[test]
fn outputs_that_cannot_be_written_are_errors() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put_inputs(home);
    for arguments in [
        &["dedup", "--out", FULL, "pages.jsonl"][..],
        &["dedup", "--report", FULL, "pages.jsonl"],
        &["dedup", "--latest", "--out", FULL, "pages.jsonl"],
        &["overlap", "--pairs", FULL, "pages.jsonl"],
        &["plan", "--nodes", "2", "--map", FULL, "pages.jsonl"],
        &["plan", "--nodes", "2", "--assignments", FULL, "pages.jsonl"],
        &["backup", "--data", "data", "--out", FULL],
    ] {
        let output = run(home, arguments);
        assert_eq!(code(&output), 1, "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(FULL), "{arguments:?}: {}", errors(&output));
    }
}

#[test]
fn standard_output_that_cannot_be_written_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put_inputs(home);
    let server = OwnServer::start(&[]);
    let mut load = doppel();
    load.current_dir(home).env("DOPPEL_SERVER", &server.url).args(["load", "--flush", "pages.jsonl"]);
    assert_eq!(code(&load.output().unwrap()), 0);
    let page = "http://a.example/1";
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["help", "dedup"],
        &["completions", "bash"],
        &["dedup", "pages.jsonl"],
        &["dedup", "--json", "pages.jsonl"],
        &["dedup", "--out", "-", "pages.jsonl"],
        &["dedup", "--report", "-", "pages.jsonl"],
        &["pilot", "pages.jsonl"],
        &["overlap", "pages.jsonl"],
        &["overlap", "--pairs", "-", "pages.jsonl"],
        &["plan", "--nodes", "2", "pages.jsonl"],
        &["check", "data"],
        &["check", "--json", "data"],
        &["backup", "--data", "data", "--out", "-"],
        &["backup", "--data", "data", "--out", "a.backup"],
        &["restore", "a.backup", "--data", "restored"],
        &["init", "cluster.toml", "--tier1", "a=127.0.0.1:7710", "--tier2", "b=127.0.0.1:7720"],
        &["status", page],
        &["status", "--json", page],
        &["explain", page, "http://a.example/0"],
        &["changes"],
        &["changes", "--json"],
        &["export"],
        &["export", "--out", "-"],
        &["report", "quality"],
        &["report", "--json", "quality"],
        &["repairs"],
        &["load", "pages.jsonl"],
        &["ready"],
        &["delete", page],
    ] {
        let mut command = doppel();
        command.current_dir(home).env("DOPPEL_SERVER", &server.url).args(arguments);
        let output = run_to_full(command);
        assert_eq!(code(&output), 1, "{arguments:?}: {}", errors(&output));
        let says = "o standard output: No space left on device";
        let is_said = errors(&output).contains(says) || arguments[0] == "backup";
        assert!(is_said, "{arguments:?}: {}", errors(&output));
    }
}

/// Runs a command whose files may have `blocks` blocks of 512 bytes at most. A write beyond that limit fails
/// after a part of it was written.
fn limited(home: &Path, blocks: u64, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    let limit = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command.current_dir(home).args(["-c", &limit]).arg(doppel().get_program()).args(arguments);
    command.output().unwrap()
}

/// Limits in blocks at which the write of a file fails: at its beginning, within a buffer, or at its end.
const BLOCKS: [u64; 9] = [0, 1, 15, 16, 17, 40, 128, 129, 200];

#[test]
fn a_write_that_fails_at_any_byte_leaves_each_result_whole_or_missing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 200).join(" ")});
    let pages: String = (0..120).map(|n| format!("{}\n", page(n))).collect();
    assert!(pages.len() > 150 << 10, "{}", pages.len());
    fs::create_dir(home.join("in")).unwrap();
    for name in ["a", "b"] {
        fs::write(home.join(format!("in/{name}.jsonl")), &pages).unwrap();
    }
    let mut failed = 0;
    for blocks in BLOCKS.into_iter().chain([100_000]) {
        let output =
            limited(home, blocks, &["dedup", "--kept", "kept", "--removed", "removed", "in/*.jsonl"]);
        let is_done = code(&output) == 0;
        assert!(is_done || code(&output) == 1, "{blocks}: {}", errors(&output));
        failed += u32::from(!is_done);
        for (side, name, whole) in
            [("kept", "a", &*pages), ("kept", "b", ""), ("removed", "a", ""), ("removed", "b", &*pages)]
        {
            let found = fs::read_to_string(home.join(side).join(format!("{name}.jsonl")));
            let found = found.unwrap_or_else(|_| (if is_done { "missing" } else { whole }).to_owned());
            assert!(found == whole, "{blocks}: {side}/{name} was written in part");
        }
        let names = fs::read_dir(home.join("kept")).map(|names| names.flatten().collect::<Vec<_>>());
        let is_part = |name: &fs::DirEntry| name.file_name().to_string_lossy().ends_with(".part");
        assert!(!names.unwrap_or_default().iter().any(is_part), "{blocks}: a part is left");
        let _ = [fs::remove_dir_all(home.join("kept")), fs::remove_dir_all(home.join("removed"))];
    }
    assert!(failed >= 8, "{failed}");
}

#[test]
fn a_write_that_fails_at_any_byte_leaves_the_previous_backup() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = OwnServer::start(&[]);
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 300).join(" ")});
    server.push_all(&(0..100).map(page).collect::<Vec<_>>());
    server.flush();
    for blocks in BLOCKS {
        fs::write(home.join("a.backup"), "the one before").unwrap();
        let arguments = ["backup", "--server", &server.url, "--out", "a.backup"];
        let output = limited(home, blocks, &arguments);
        assert_eq!(code(&output), 1, "{blocks}: {}", errors(&output));
        assert!(errors(&output).contains("a.backup"), "{}", errors(&output));
        assert_eq!(fs::read_to_string(home.join("a.backup")).unwrap(), "the one before");
        assert_eq!(fs::read_dir(home).unwrap().count(), 1, "{blocks}: a part is left");
    }
    let whole = limited(home, 100_000, &["backup", "--server", &server.url, "--out", "a.backup"]);
    assert_eq!(code(&whole), 0, "{}", errors(&whole));
    assert!(fs::metadata(home.join("a.backup")).unwrap().len() > 512 * BLOCKS[8]);
}
