//! Directories of results that other runs are writing to, or have written to earlier.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::harness::doppel;
use crate::harness::pages::{ndjson, text};
use crate::{code, errors, fifo};

/// Size limit of a page in bytes.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// The records of a file: a kept record, and a duplicate of it.
fn records(seed: u64) -> String {
    let words = text(seed, 60).join(" ");
    ndjson(&[0, 1].map(|n| json!({"url": format!("http://h{seed}/{n}"), "text": words})))
}

fn put(home: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    doppel().current_dir(home).args(["dedup", "--json"]).args(arguments).output().unwrap()
}

/// Runs a command that must exit with this code.
fn run_to(home: &Path, expected: i32, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert_eq!(code(&output), expected, "{arguments:?}: {}", errors(&output));
    errors(&output)
}

/// The result files in a directory, without the list that Doppel keeps of them.
fn results(dir: &Path) -> Vec<String> {
    let all = walkdir::WalkDir::new(dir).sort_by_file_name().into_iter().map(Result::unwrap);
    let files = all.filter(|entry| entry.file_type().is_file() && entry.file_name() != ".doppel-results");
    let below = |path: PathBuf| path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
    files.map(|entry| below(entry.into_path())).collect()
}

#[test]
fn a_run_refuses_directories_in_or_around_those_of_another_run() {
    let home = tempfile::tempdir().unwrap();
    let (home, pipe) = (home.path(), fifo(home.path()));
    put(home, "in/sub/big.jsonl", records(1));
    let real = fs::canonicalize(home).unwrap();
    for (held, refused, names) in [
        ("k", "k/sub", format!("another run writes to {}/k, which contains k/sub: wait", real.display())),
        ("k/sub", "k", format!("another run writes to {}/k/sub inside k: wait", real.display())),
        ("k/sub", "link", "another run writes to link: wait".to_owned()),
    ] {
        let _ = std::os::unix::fs::symlink(real.join("k/sub"), home.join("link"));
        let mut command = doppel();
        command.current_dir(home).args(["dedup", "--kept", held]).arg(&pipe).stdout(Stdio::null());
        let first = command.spawn().unwrap();
        // The run has claimed its directories when it opens the pipe.
        let mut to_first = fs::File::options().write(true).open(&pipe).unwrap();
        let said = run_to(home, 1, &["--removed", refused, "in/sub/big.jsonl"]);
        assert!(said.contains(&names), "{said}");
        // A directory beside the claimed one is free.
        run_to(home, 0, &["--kept", "k2", "--removed", "r", "in/sub/big.jsonl"]);
        to_first.write_all(records(2).as_bytes()).unwrap();
        drop(to_first);
        assert_eq!(code(&first.wait_with_output().unwrap()), 0);
        run_to(home, 0, &["--removed", refused, "in/sub/big.jsonl"]);
    }
}

#[test]
fn results_of_an_input_that_became_bad_are_removed_and_no_other_file() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for (name, seed) in [("in/a.jsonl", 1), ("in/b.jsonl", 2), ("other/c.jsonl", 3)] {
        put(home, name, records(seed));
    }
    let arguments = ["--kept", "k", "--removed", "r", "in/*.jsonl"];
    run_to(home, 0, &["--kept", "k", "other/*.jsonl"]);
    run_to(home, 0, &arguments);
    put(home, "k/notes.txt", "of the user");
    assert_eq!(results(&home.join("k")), ["a.jsonl", "b.jsonl", "c.jsonl", "notes.txt"]);
    put(home, "in/a.jsonl", "[{\"url\": \"http://h/\", \"text\": \"an array\"}]");
    let said = run_to(home, 5, &arguments);
    assert!(said.contains("removed k/a.jsonl: an earlier run wrote it"), "{said}");
    assert_eq!(results(&home.join("k")), ["b.jsonl", "c.jsonl", "notes.txt"]);
    assert_eq!(results(&home.join("r")), ["b.jsonl"]);
    // The next run has nothing to remove. Then the input is repaired.
    let said = run_to(home, 5, &arguments);
    assert!(!said.contains("removed k/"), "{said}");
    put(home, "in/a.jsonl", records(1));
    run_to(home, 0, &arguments);
    assert_eq!(results(&home.join("k")), ["a.jsonl", "b.jsonl", "c.jsonl", "notes.txt"]);
    // With another common root of the inputs, each result has another path.
    let said = run_to(home, 0, &["--kept", "k", "in/a.jsonl", "other/c.jsonl"]);
    assert!(said.contains("removed k/a.jsonl") && said.contains("removed k/c.jsonl"), "{said}");
    assert_eq!(results(&home.join("k")), ["b.jsonl", "in/a.jsonl", "notes.txt", "other/c.jsonl"]);
}

#[test]
fn results_of_a_file_that_disappeared_from_a_directory_or_pattern_are_removed() {
    for input in ["in", "in/*.jsonl"] {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        for name in ["in/a.jsonl", "in/b.jsonl"] {
            put(home, name, records(1));
        }
        run_to(home, 0, &["--kept", "k", input]);
        assert_eq!(results(&home.join("k")), ["a.jsonl", "b.jsonl"]);
        fs::remove_file(home.join("in/a.jsonl")).unwrap();
        let said = run_to(home, 0, &["--kept", "k", input]);
        assert!(said.contains("removed k/a.jsonl: an earlier run wrote it"), "{said}");
        assert_eq!(results(&home.join("k")), ["b.jsonl"]);
        // A run must not remove results for an empty directory, because the directory may just not be
        // mounted.
        fs::remove_file(home.join("in/b.jsonl")).unwrap();
        let output = run(home, &["--kept", "k", input]);
        assert_ne!(code(&output), 0, "{}", errors(&output));
        assert_eq!(results(&home.join("k")), ["b.jsonl"], "{}", errors(&output));
    }
}

#[test]
fn a_foreign_file_at_the_path_of_a_result_stays_and_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put(home, "in/b.jsonl", records(2));
    let arguments = ["--max-bad", "1", "--kept", "k", "in/*.jsonl"];
    put(home, "in/a.jsonl", "[1]");
    put(home, "k/a.jsonl", "of the user");
    let said = run_to(home, 1, &arguments);
    assert!(said.contains("k/a.jsonl would be taken for a result of this run, and is none"), "{said}");
    assert_eq!(fs::read_to_string(home.join("k/a.jsonl")).unwrap(), "of the user");
    assert_eq!(results(&home.join("k")), ["a.jsonl", "b.jsonl"], "the other results must be written");
    fs::remove_file(home.join("k/a.jsonl")).unwrap();
    put(home, "in/a.jsonl", records(1));
    run_to(home, 0, &arguments);
    let mut result = fs::read_to_string(home.join("k/a.jsonl")).unwrap();
    result += "and a line of the user\n";
    put(home, "k/a.jsonl", &result);
    put(home, "in/a.jsonl", "[1]");
    run_to(home, 1, &arguments);
    assert_eq!(fs::read_to_string(home.join("k/a.jsonl")).unwrap(), result);
}

/// Writes the pages of a directory. Two of them have the same text.
fn put_site(home: &Path) {
    for (name, seed) in [("a/one.txt", 1), ("a/two.txt", 2), ("b/copy.txt", 2), ("b/three.txt", 3)] {
        put(&home.join("site"), name, text(seed, 60).join(" "));
    }
}

#[test]
fn pages_that_are_bad_or_gone_or_kept_instead_of_removed_leave_no_old_results() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put_site(home);
    let arguments = ["--kept", "k", "--removed", "r", "site"];
    run_to(home, 0, &arguments);
    assert_eq!(results(&home.join("k")), ["a/one.txt", "a/two.txt", "b/three.txt"]);
    assert_eq!(results(&home.join("r")), ["b/copy.txt"]);
    put(home, "site/a/one.txt", vec![b'x'; PAGE_BYTES_MAX + 1]);
    fs::remove_file(home.join("site/a/two.txt")).unwrap();
    let said = run_to(home, 0, &arguments);
    for gone in ["k/a/one.txt", "k/a/two.txt", "r/b/copy.txt"] {
        assert!(said.contains(&format!("removed {gone}: ")), "{said}");
    }
    assert_eq!(results(&home.join("k")), ["b/copy.txt", "b/three.txt"]);
    assert_eq!(results(&home.join("r")), [""; 0]);
    // This run writes only the results of the other option.
    put_site(home);
    run_to(home, 0, &arguments);
    fs::remove_file(home.join("site/a/two.txt")).unwrap();
    run_to(home, 0, &["--removed", "r", "site"]);
    assert_eq!(results(&home.join("r")), [""; 0]);
    // A directory without files may be one that is not mounted.
    fs::rename(home.join("site"), home.join("unmounted")).unwrap();
    fs::create_dir(home.join("site")).unwrap();
    let said = run_to(home, 1, &arguments);
    assert!(said.contains("it is unknown whether it still holds"), "{said}");
    assert!(results(&home.join("k")).contains(&"a/one.txt".to_owned()));
}

#[test]
fn results_of_pages_that_a_collection_stores_stay() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put_site(home);
    put(home, "in/a.jsonl", records(4));
    for way in [&["--data", "data"][..], &["--incremental", "--data", "data2"]] {
        let arguments = [way, &["--kept", "k", "site", "in/a.jsonl"]].concat();
        put_site(home);
        put(home, "in/a.jsonl", records(4));
        run_to(home, 0, &arguments);
        let all = ["in/a.jsonl", "site/a/one.txt", "site/a/two.txt", "site/b/three.txt"];
        assert_eq!(results(&home.join("k")), all);
        let before = fs::read(home.join("k/in/a.jsonl")).unwrap();
        // First the inputs are unchanged, then they are bad.
        run_to(home, 0, &arguments);
        assert_eq!(results(&home.join("k")), all);
        put(home, "in/a.jsonl", "[1]");
        fs::remove_file(home.join("site/a/two.txt")).unwrap();
        let said = run_to(home, 5, &arguments);
        assert!(said.contains("2 results of earlier runs stay"), "{said}");
        assert_eq!(
            results(&home.join("k")),
            all,
            "the collection must still report b/copy.txt as a duplicate of a/two.txt"
        );
        assert_eq!(fs::read(home.join("k/in/a.jsonl")).unwrap(), before);
    }
}

#[test]
fn a_symbolic_link_cannot_make_two_options_write_to_one_directory() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    put(home, "in/sub/a.jsonl", records(1));
    put(home, "in/b.jsonl", records(2));
    fs::create_dir_all(home.join("k")).unwrap();
    fs::create_dir_all(home.join("r/sub")).unwrap();
    std::os::unix::fs::symlink(home.join("r/sub"), home.join("k/sub")).unwrap();
    let arguments = ["--kept", "k", "--removed", "r", "in/b.jsonl", "in/sub/a.jsonl"];
    let said = run_to(home, 2, &arguments);
    assert!(said.contains("which is a place of another option's results"), "{said}");
    let summary: Value = serde_json::from_slice(&run(home, &arguments[2..]).stdout).unwrap();
    assert_eq!(summary["results"]["kept"], 2);
}
