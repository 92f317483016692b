//! `--reference` protects records, and `--reference-only` removes nothing else than their near-duplicates.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::harness::doppel;
use crate::harness::pages::{near_copy, text};
use crate::{code, errors};

/// A directory with a reference of two texts, and a training set. Of the training set, one row is a near-copy of a
/// reference, two are near-copies of each other, and one is like no other.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let texts: Vec<Vec<String>> = (0..4).map(|seed| text(seed, 200)).collect();
    let row = |id: &str, words: &[String]| json!({"id": id, "text": words.join(" ")}).to_string() + "\n";
    let reference = [row("test-0", &texts[0]), row("test-1", &texts[1])];
    fs::write(home.path().join("eval.jsonl"), reference.concat()).unwrap();
    let training = [
        row("of-test", &near_copy(&texts[0], 9)),
        row("first", &texts[2]),
        row("second", &near_copy(&texts[2], 9)),
        row("alone", &texts[3]),
    ];
    fs::write(home.path().join("train.jsonl"), training.concat()).unwrap();
    home
}

fn dedup(home: &Path, arguments: &[&str]) -> Output {
    doppel().current_dir(home).arg("dedup").args(arguments).output().unwrap()
}

fn summary(output: &Output) -> Value {
    assert!(output.status.success(), "{}", errors(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The ids of the records of a file of results.
fn ids(path: &Path) -> Vec<String> {
    let lines = fs::read_to_string(path).unwrap_or_default();
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
    lines.lines().map(id).collect()
}

#[test]
fn only_near_duplicates_of_the_reference_are_removed() {
    let home = home();
    let options = [
        "--reference",
        "eval.jsonl",
        "--reference-only",
        "--json",
        "--pairs",
        "pairs",
        "--kept",
        "kept",
        "--removed",
        "removed",
    ];
    let output = dedup(home.path(), &[&options[..], &["--annotate", "train.jsonl"]].concat());
    let summary = summary(&output);
    assert_eq!(ids(&home.path().join("kept/train.jsonl")), ["first", "second", "alone"]);
    assert_eq!(ids(&home.path().join("removed/train.jsonl")), ["of-test"]);
    assert!(!home.path().join("kept/eval.jsonl").exists(), "the reference is written");
    assert_eq!(summary["records"]["removed"], json!({"duplicate": 1}));
    let reference = json!({"path": "eval.jsonl", "records": 2, "bad": 0, "removed": 1, "pairs": 1});
    assert_eq!(summary["references"], json!([reference]));
    let removed = fs::read_to_string(home.path().join("removed/train.jsonl")).unwrap();
    let annotated: Value = serde_json::from_str(&removed).unwrap();
    assert_eq!(annotated["doppel_duplicate_of_file"], "eval.jsonl", "{annotated}");
    assert_eq!(annotated["doppel_duplicate_of_id"], "test-0", "{annotated}");
}

#[test]
fn a_reference_is_kept_and_everything_else_is_grouped() {
    let home = home();
    let options =
        ["--reference", "eval.jsonl", "--json", "--kept", "kept", "--removed", "removed", "--out", "out"];
    let output = dedup(home.path(), &[&options[..], &["train.jsonl"]].concat());
    let summary = summary(&output);
    assert_eq!(ids(&home.path().join("kept/train.jsonl")), ["first", "alone"]);
    assert_eq!(ids(&home.path().join("removed/train.jsonl")), ["of-test", "second"]);
    assert_eq!(summary["records"]["read"], 4, "records of the reference are counted");
    let reference = json!({"path": "eval.jsonl", "records": 2, "bad": 0, "removed": 1});
    assert_eq!(summary["references"], json!([reference]));
    let out = fs::read_to_string(home.path().join("out")).unwrap();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["duplicate_of_record"]["file"], "eval.jsonl");
    assert_eq!(lines[0]["duplicate_of_record"]["id"], "test-0");
    assert_eq!(lines[2]["duplicate_of_record"]["file"], "train.jsonl");
}

#[test]
fn each_set_counts_what_is_removed_for_it() {
    let home = home();
    fs::copy(home.path().join("eval.jsonl"), home.path().join("other.jsonl")).unwrap();
    let options = ["--reference", "eval.jsonl", "--reference", "other.jsonl", "--json", "train.jsonl"];
    let removed = |options: &[&str]| {
        let sets = summary(&dedup(home.path(), options))["references"].clone();
        sets.as_array().unwrap().iter().map(|set| set["removed"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(removed(&[&options[..], &["--reference-only"]].concat()), [1, 1]);
    assert_eq!(removed(&options), [1, 0], "the record names the first protected record");
    // Times of files have no effect.
    let other = fs::File::options().write(true).open(home.path().join("other.jsonl")).unwrap();
    other.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(removed(&options), [1, 0], "the older reference is named");
}

#[test]
fn mistakes_are_refused_before_anything_is_read() {
    let home = home();
    fs::create_dir(home.path().join("sets")).unwrap();
    fs::copy(home.path().join("eval.jsonl"), home.path().join("sets/eval.jsonl")).unwrap();
    assert!(dedup(home.path(), &["--data", "collection", "eval.jsonl"]).status.success());
    let train = "train.jsonl";
    let cases: [(&[&str], &str); 14] = [
        (&["--reference", train, train], "so each of its records would be a duplicate of itself"),
        (
            &["--reference", "sets", "sets/eval.jsonl"],
            "so each of its records would be a duplicate of itself",
        ),
        (&["--reference", "eval.jsonl", "--out", "eval.jsonl", train], "--out would write eval.jsonl"),
        (&["--reference", "sets", "--kept", "sets", train], "which is in the reference sets"),
        (&["--reference", "sets", "--kept", "sets/clean", train], "which is in the reference sets"),
        (
            &["--reference", "sets/**/*.jsonl", "--kept", "sets/clean", train],
            "which is in the reference sets/**/*.jsonl",
        ),
        (&["--reference", "sets", "--out", "sets/out", train], "which is in the reference sets"),
        (
            &["--reference", "eval.jsonl", "--reference-only", "--pairs", "p", "--bad", "p", train],
            "--pairs and --bad",
        ),
        (&["--reference", "-", "-"], "standard input can be read once"),
        (&["--reference", "eval.jsonl", "--data", "data", train], "--data"),
        (&["--reference", "collection", train], "collection is a data directory"),
        (&["--reference-only", train], "--reference <PATH>"),
        (&["--reference", "eval.jsonl", "--pairs", "pairs", train], "--reference-only"),
        (
            &["--reference", "eval.jsonl", "--reference-only", "--pairs", "p", "--out", "p", train],
            "--pairs and --out",
        ),
    ];
    for (arguments, says) in cases {
        let output = dedup(home.path(), arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", errors(&output));
        assert!(errors(&output).contains(says), "{arguments:?}: {}", errors(&output));
    }
}

#[test]
fn a_reference_is_never_overwritten_through_a_link() {
    let home = home();
    let at = |path: &str| home.path().join(path);
    for dir in ["in/sub", "in/other", "kept", "sets"] {
        fs::create_dir_all(at(dir)).unwrap();
    }
    fs::copy(at("train.jsonl"), at("in/sub/eval.jsonl")).unwrap();
    fs::copy(at("train.jsonl"), at("in/other/train.jsonl")).unwrap();
    fs::copy(at("eval.jsonl"), at("sets/eval.jsonl")).unwrap();
    std::os::unix::fs::symlink(at("sets"), at("kept/sub")).unwrap();
    let arguments = ["--reference", "sets/eval.jsonl", "--reference-only", "--kept", "kept", "in/**/*.jsonl"];
    let output = dedup(home.path(), &arguments);
    assert_eq!(code(&output), 2, "{}", errors(&output));
    assert_eq!(fs::read(at("sets/eval.jsonl")).unwrap(), fs::read(at("eval.jsonl")).unwrap());
}

#[test]
fn directories_of_pages_are_not_compared_with_themselves() {
    let home = home();
    fs::create_dir_all(home.path().join("site/sub")).unwrap();
    let page = text(7, 100).join(" ");
    for path in ["site/a.html", "site/sub/b.html"] {
        fs::write(home.path().join(path), format!("<p>{page}</p>")).unwrap();
    }
    for (reference, input) in [("site", "site/sub"), ("site/sub", "site"), ("site", "site/a.html")] {
        let output = dedup(home.path(), &["--reference", reference, "--reference-only", input]);
        assert_eq!(code(&output), 2, "{reference} and {input}: {}", errors(&output));
    }
    fs::copy(home.path().join("eval.jsonl"), home.path().join("site/eval.jsonl")).unwrap();
    let output = dedup(home.path(), &["--reference", "site", "train.jsonl"]);
    assert_eq!(code(&output), 5, "a file of the reference is not read: {}", errors(&output));
}

#[test]
fn a_reference_is_not_removed_as_a_result_whose_input_has_gone() {
    let home = home();
    let at = |path: &str| home.path().join(path);
    fs::create_dir(at("in")).unwrap();
    fs::copy(at("train.jsonl"), at("in/day-1.jsonl")).unwrap();
    assert!(dedup(home.path(), &["--kept", "clean", "in/*.jsonl"]).status.success());
    fs::rename(at("in/day-1.jsonl"), at("in/day-2.jsonl")).unwrap();
    let output = dedup(home.path(), &["--reference", "clean/day-1.jsonl", "--kept", "clean", "in/*.jsonl"]);
    assert_eq!(code(&output), 2, "{}", errors(&output));
    assert!(errors(&output).contains("is in clean, the directory of --kept"), "{}", errors(&output));
    assert!(at("clean/day-1.jsonl").exists());
}

#[test]
fn standard_output_is_in_no_reference_and_json_beside_data_is_only_named() {
    let home = home();
    fs::create_dir(home.path().join("sets")).unwrap();
    fs::copy(home.path().join("eval.jsonl"), home.path().join("sets/eval.jsonl")).unwrap();
    fs::write(home.path().join("sets/dataset_info.json"), "{\"rows\": 2}").unwrap();
    let output = doppel()
        .current_dir(home.path().join("sets"))
        .args(["dedup", "--reference", ".", "--reference-only", "--out", "-", "../train.jsonl"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("1 JSON file not read"), "{}", errors(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 4);
}

#[test]
fn a_reference_that_cannot_be_read_whole_ends_the_run() {
    let home = home();
    fs::write(home.path().join("broken.jsonl.gz"), b"\x1f\x8b\x08 no gzip").unwrap();
    fs::write(home.path().join("empty.jsonl"), b"").unwrap();
    let whole = fs::read_to_string(home.path().join("eval.jsonl")).unwrap();
    fs::write(home.path().join("cut.jsonl"), &whole[..whole.len() - 9]).unwrap();
    for reference in ["absent.jsonl", "broken.jsonl.gz", "empty.jsonl", "cut.jsonl"] {
        for only in [&["--reference-only"][..], &[]] {
            let options = ["--reference", reference, "--kept", "kept", "train.jsonl"];
            let output = dedup(home.path(), &[&options[..], only].concat());
            assert!(!output.status.success(), "{reference} protects nothing");
            assert!(errors(&output).contains(reference), "{}", errors(&output));
            assert!(!home.path().join("kept/train.jsonl").exists(), "{reference}: results are written");
        }
    }
}
