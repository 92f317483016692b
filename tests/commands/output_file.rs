//! `--out` replaces an ordinary file completely or not at all, and writes to a special file directly.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use serde_json::json;

use super::fake_server::{fake_server, fake_server_that_breaks_off};
use crate::harness::pages::{ndjson, text};
use crate::harness::{PATIENCE, doppel, lines_of, run, wait_until};
use crate::{code, errors, fifo, finished, interrupt, numbered};

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_output_file_is_replaced_completely_or_not_at_all() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 5);
    let out = home.path().join("out.jsonl");
    fs::write(&out, "old").unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o640)).unwrap();
    let link = home.path().join("link");
    symlink("out.jsonl", &link).unwrap();
    let before = names(home.path());
    let dedup = |out: &Path, input: &Path| run(["dedup".as_ref(), "--out".as_ref(), out, input]);
    let export = |url: &str| run(["export", "--server", url, "--out", out.to_str().unwrap()]);
    // A failing run does not change the file, and leaves no other file behind.
    let missing = dedup(&out, &home.path().join("missing.jsonl"));
    assert_eq!(code(&missing), 1, "{}", errors(&missing));
    let refused = export(&fake_server(|_, _| Some((503, String::new()))));
    assert_eq!(code(&refused), 4, "{}", errors(&refused));
    let (url, sender) = fake_server_that_breaks_off();
    drop(sender);
    let broken = export(&url);
    assert_eq!(code(&broken), 1, "{}", errors(&broken));
    assert!(errors(&broken).contains("out.jsonl"), "{}", errors(&broken));
    let (url, _sender) = fake_server_that_breaks_off();
    let mut command = doppel();
    let mut interrupted = command.args(["export", "--server", &url, "--out"]).arg(&out).spawn().unwrap();
    wait_until("the export to begin", PATIENCE, || (names(home.path()) != before).then_some(()));
    interrupt(&interrupted, "INT");
    let status = wait_until("the export to end", PATIENCE, || interrupted.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    assert_eq!(fs::read_to_string(&out).unwrap().as_str(), "old");
    assert_eq!(names(home.path()), before);

    // A link still points to the file afterwards, and the file keeps its permissions.
    let output = dedup(&link, &crawl);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(lines_of(&fs::read_to_string(&out).unwrap()).len(), 5);
    assert_eq!(names(home.path()), before);
    assert!(link.is_symlink());
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o640);

    // The output may replace the input.
    let output = dedup(&crawl, &crawl);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(fs::read(&crawl).unwrap(), fs::read(&out).unwrap());

    // A path at which no file can be created is detected before anything is read.
    for wrong in [home.path().join("none/out.jsonl"), home.path().to_owned(), home.path().join("new/")] {
        let output = dedup(&wrong, &home.path().join("missing.jsonl"));
        assert_eq!(code(&output), 1);
        let cannot = format!("cannot write {}", wrong.display());
        assert!(errors(&output).contains(&cannot), "{}", errors(&output));
        assert!(
            !errors(&output).contains(".part"),
            "the message must not contain the name of a temporary file: {}",
            errors(&output)
        );
    }
}

#[test]
fn special_files_are_written_to() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, fifo) = (numbered(home.path(), 5), fifo(home.path()));
    let dedup = |out: &Path| {
        let mut command = doppel();
        command.args(["dedup", "--json", "--out"]).arg(out).arg(&crawl);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let (sender, read) = mpsc::channel();
    let path = fifo.clone();
    thread::spawn(move || sender.send(fs::read_to_string(path).unwrap()));
    let output = finished(dedup(&fifo));
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(lines_of(&read.recv_timeout(PATIENCE).unwrap()).len(), 5);
    let output = finished(dedup(Path::new("/dev/null")));
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert_eq!(
        lines_of(std::str::from_utf8(&output.stdout).unwrap()).len(),
        1,
        "standard output must have the summary alone"
    );
    // `/dev/stdout` has the same effect as `-`, even if it is a file.
    let output = finished(dedup(Path::new("/dev/stdout")));
    assert_eq!(lines_of(std::str::from_utf8(&output.stdout).unwrap()).len(), 5);
    assert_eq!(lines_of(&errors(&output))[0]["pages"]["live"], 5, "{}", errors(&output));
    let out = home.path().join("out.jsonl");
    let mut command = doppel();
    command.args(["dedup", "--out", "/dev/stdout"]).arg(&crawl).stderr(Stdio::null());
    assert!(command.stdout(fs::File::create(&out).unwrap()).status().unwrap().success());
    assert_eq!(lines_of(&fs::read_to_string(&out).unwrap()).len(), 5);
}

#[test]
fn the_summary_goes_to_standard_error_as_json_if_standard_output_has_data() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, data) = (home.path().join("crawl.jsonl"), home.path().join("data"));
    let page = |n: u64| {
        let words = [text(0, 40), text(n, 40)].concat().join(" ");
        json!({"url": format!("http://a.example/{n}"), "text": words})
    };
    fs::write(&crawl, ndjson(&(0..30).map(page).collect::<Vec<_>>())).unwrap();
    let (crawl, data) = (crawl.to_str().unwrap(), data.to_str().unwrap());
    for (arguments, field) in [
        (&["dedup", "--out", "-", crawl][..], "groups"),
        (&["dedup", "--data", data, "--report", "-", crawl], "groups"),
        (&["plan", "--map", "-", crawl], "imbalance_floor"),
        (&["plan", "--assignments", "-", crawl], "imbalance_floor"),
        (&["policy-tables", "--policy", "imatch", "--out", "-", crawl], "words"),
        (&["backup", "--data", data, "--out", "-"], "rows"),
    ] {
        let output = run(arguments.iter().chain(&["--json"]));
        let said = errors(&output);
        let summaries: Vec<&str> = said.lines().filter(|line| line.starts_with('{')).collect();
        assert!(code(&output) == 0 && summaries.len() == 1, "{arguments:?}: {said}");
        assert!(lines_of(summaries[0])[0].get(field).is_some(), "{arguments:?}: {said}");
        assert!(!output.stdout.is_empty());
    }
}
