//! System calls that fail. Each sync and each rename of a command fails once. The command must end with an
//! error, or have done all of its work.
//!
//! `strace` injects the faults. The tests are skipped if `strace` is not installed, or is not allowed to
//! trace.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, text};
use crate::harness::{doppel, lines_of};
use crate::{code, errors};

/// The calls that fail, with the errors that a disk returns. The option `when` of `strace` counts the calls
/// of each name separately.
const FAULTS: [(&str, &str); 5] = [
    ("fsync", "EIO"),
    ("fsync", "ENOSPC"),
    ("fdatasync", "EIO"),
    ("fdatasync", "EDQUOT"),
    ("rename,renameat,renameat2", "EIO"),
];

/// Maximal number of calls that fail one after the other.
const CALLS_MAX: usize = 60;

/// The name of the file that `strace` writes beside the inputs.
const TRACE: &str = "trace";

/// Runs a command and makes one call fail. Returns its output, and whether the call happened and failed.
fn failing(home: &Path, (calls, error): (&str, &str), number: usize, arguments: &[&str]) -> (Output, bool) {
    let mut command = Command::new("strace");
    command.current_dir(home).args(["--seccomp-bpf", "-f", "-qq", "-o", TRACE]);
    command.arg(format!("--trace={calls}")).arg(format!("--inject={calls}:error={error}:when={number}"));
    let output = command.arg(doppel().get_program()).args(arguments).output().unwrap();
    let trace = fs::read_to_string(home.join(TRACE)).unwrap_or_default();
    (output, trace.contains("(INJECTED)"))
}

/// Whether the test can make system calls fail on this machine.
fn can_fail() -> bool {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("strace");
    command.current_dir(&home).args(["--seccomp-bpf", "-f", "-qq", "-o", TRACE, "--trace=fsync"]);
    let traces = command.arg("true").output().is_ok_and(|output| output.status.success());
    if !traces {
        eprintln!("skipped: strace is not installed, or is not allowed to trace");
    }
    traces
}

/// Runs the command once for each kind of fault and each call, and makes that call fail. `check` gets a
/// description of the fault, the output, and whether a call failed. Returns the number of failed calls.
fn each_call(
    home: &Path,
    arguments: &[&str],
    mut prepare: impl FnMut(),
    mut check: impl FnMut(&str, &Output, bool),
) -> usize {
    let mut failed = 0;
    for fault in FAULTS {
        for number in 1..=CALLS_MAX {
            prepare();
            let (output, has_failed) = failing(home, fault, number, arguments);
            let what = format!("{} {} of {number}", fault.0, fault.1);
            if !has_failed {
                assert_eq!(code(&output), 0, "{what}: {}", errors(&output));
            }
            check(&what, &output, has_failed);
            failed += usize::from(has_failed);
            if !has_failed {
                break;
            }
        }
    }
    failed
}

fn pages(seed: u64) -> Vec<Value> {
    let page =
        |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(seed + n / 2, 60).join(" ")});
    (0..40).map(page).collect()
}

fn run(home: &Path, arguments: &[&str]) {
    let output = doppel().current_dir(home).args(arguments).output().unwrap();
    assert_eq!(code(&output), 0, "{}", errors(&output));
}

/// The names and contents of the results in a directory.
fn results(dir: &Path) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.flatten().map(name).collect();
    names.retain(|name| name != ".doppel-results");
    names.sort();
    names.into_iter().map(|name| (name.clone(), fs::read_to_string(dir.join(name)).unwrap())).collect()
}

#[test]
fn replaced_results_are_all_old_or_all_new_in_each_file() {
    if !can_fail() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let arguments = ["dedup", "--kept", "kept", "--removed", "removed", "pages.jsonl"];
    let put = |seed| fs::write(home.join("pages.jsonl"), ndjson(&pages(seed))).unwrap();
    let of = || ["kept", "removed"].map(|side| results(&home.join(side)));
    let clear = || {
        let _ = ["kept", "removed"].map(|side| fs::remove_dir_all(home.join(side)));
    };
    put(500);
    run(home, &arguments);
    let second = of();
    let prepare = || {
        clear();
        put(1);
        run(home, &arguments);
        put(500);
    };
    prepare();
    let first = of();
    assert_ne!(first, second);
    let failed = each_call(home, &arguments, prepare, |what, output, has_failed| {
        let found = of();
        for (side, files) in found.iter().enumerate() {
            let known = |file| first[side].contains(file) || second[side].contains(file);
            assert!(files.iter().all(known), "{what}: a result was written in part: {files:?}");
        }
        if code(output) == 0 {
            assert_eq!(found, second, "{what}: the run ended with 0");
        }
        if has_failed {
            run(home, &arguments);
            assert_eq!(of(), second, "{what}: the next run");
        }
    });
    assert!(failed >= 8, "{failed} calls failed");
}

#[test]
fn a_collection_and_its_backup_lose_nothing_if_a_call_fails() {
    if !can_fail() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("pages.jsonl"), ndjson(&pages(1))).unwrap();
    let answers = |file: &str| {
        let mut lines = lines_of(&fs::read_to_string(home.join(file)).unwrap());
        lines.iter_mut().for_each(|line| line["group"] = Value::Null);
        lines
    };
    run(home, &["dedup", "--data", "whole", "--incremental", "--out", "expected", "pages.jsonl"]);
    let expected = answers("expected");
    let arguments = ["dedup", "--data", "data", "--incremental", "--out", "out", "pages.jsonl"];
    let prepare = || {
        let _ = (fs::remove_dir_all(home.join("data")), fs::remove_file(home.join("out")));
    };
    let failed = each_call(home, &arguments, prepare, |what, output, _| {
        if code(output) == 0 {
            assert_eq!(answers("out"), expected, "{what}: the run ended with 0");
        }
        run(home, &arguments);
        assert_eq!(answers("out"), expected, "{what}: the next run");
        run(home, &["check", "data"]);
    });
    assert!(failed >= 8, "{failed} calls failed");

    let arguments = ["backup", "--data", "whole", "--out", "a.backup"];
    let prepare = || fs::write(home.join("a.backup"), "the one before").unwrap();
    let failed = each_call(home, &arguments, prepare, |what, output, _| {
        let is_before = fs::read(home.join("a.backup")).unwrap() == b"the one before";
        assert!(
            code(output) != 0 || !is_before,
            "{what}: the command succeeded, but the backup is not the new one"
        );
        if !is_before {
            run(home, &["restore", "a.backup", "--data", "restored"]);
            fs::remove_dir_all(home.join("restored")).unwrap();
        }
    });
    assert!(failed >= 2, "{failed} calls failed");
}
