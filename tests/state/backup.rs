//! Backups of a directory, of a server, and of a server under load.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::collection::{SHARDS, directory, fill};
use super::place::{Place, back_up, copy, done, restore, stderr};
use crate::harness::pages::{ndjson, rounds};
use crate::harness::{PATIENCE, Server, doppel, lines_of, meaning, run, wait_until};

/// Backs up a server and returns the summary.
fn back_up_server(server: &Server, file: &Path) -> Value {
    let arguments = ["backup", "--json", "--server", &server.url, "--out"];
    let output = run(arguments.iter().map(Path::new).chain([file]));
    done(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check(dir: &Path) {
    done(&run([Path::new("check"), dir]));
}

#[test]
fn backup_restore_and_backup_again_are_byte_equal() {
    let place = Place::new();
    let [first, second] = ["first", "second"].map(|name| place.path(name));
    let dir = place.path("restored");
    done(&back_up(directory(), &first));
    done(&restore(&first, &dir));
    check(&dir);
    done(&back_up(&dir, &second));
    assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap());
    let manifest = |dir: &Path| fs::read(dir.join("manifest.json")).unwrap();
    assert!(manifest(&dir) == manifest(directory()));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "manifest.json and tier1");
}

#[test]
fn a_server_and_its_restored_backup_export_the_same_bytes() {
    let place = Place::new();
    let (dir, restored, file) = (place.path("data"), place.path("restored"), place.path("file"));
    copy(directory(), &dir);
    let server = Server::start(&dir, &[]);
    let (export, summary) = (server.export(), back_up_server(&server, &file));
    assert_eq!(summary["bytes"], fs::metadata(&file).unwrap().len());
    done(&restore(&file, &restored));
    check(&restored);
    let other = Server::start(&restored, &[]);
    other.flush();
    assert!(export.lines().count() > 30);
    assert_eq!(other.export(), export);
    // Both continue in the same way, with the same ids and numbers.
    for server in [&server, &other] {
        server.push(&[json!({ "url": "http://alone.example/12", "fetched_at": "2024-06-01T00:00:00Z", "redirect_to": "http://a.example/" })]);
        server.flush();
    }
    assert_eq!(other.export(), server.export());
    assert!(other.terminate() && server.terminate());
}

#[test]
fn a_backup_that_cannot_be_written_does_not_blame_the_server() {
    let place = Place::new();
    let server = Server::start(&place.path("data"), &[]);
    let output = doppel().args(["backup", "--server", &server.url, "--out", "/dev/full"]).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("No space left on device") && !said.contains("the server's log"), "{said}");
}

#[test]
fn a_backup_under_load_is_a_consistent_snapshot() {
    back_up_under_load(&["--shards", SHARDS]);
}

#[test]
fn a_backup_of_several_ranges_under_load_is_a_consistent_snapshot() {
    back_up_under_load(&["--shards", "7", "--ranges", "3"]);
}

fn back_up_under_load(options: &[&str]) {
    let place = Place::new();
    let server = Server::start(&place.path("data"), options);
    let mut crawl = rounds(21, 400, 4);
    let last = ndjson(&crawl.pop().unwrap());
    let (before, during) = (ndjson(&crawl.remove(0)), ndjson(&crawl.concat()));
    let [before_file, during_file, last_file, acknowledged] =
        ["before.jsonl", "during.jsonl", "last.jsonl", "acknowledged.jsonl"].map(|name| place.path(name));
    for (file, text) in [(&before_file, &before), (&during_file, &during), (&last_file, &last)] {
        fs::write(file, text).unwrap();
    }
    let load = |server: &Server, file: &Path, batch: &str| {
        let mut command = doppel();
        command
            .args(["load", "--batch", batch, "--server", &server.url, "--acknowledged"])
            .arg(&acknowledged);
        command.arg(file).stdout(Stdio::null()).spawn().unwrap()
    };
    assert!(load(&server, &before_file, "1000").wait().unwrap().success());
    let mut loading = load(&server, &during_file, "4");
    let known = fs::read_to_string(&acknowledged).unwrap().lines().count();
    wait_until("pages of the second round", PATIENCE, || {
        (fs::read_to_string(&acknowledged).unwrap().lines().count() > known).then_some(())
    });

    // Several backups, so that at least one overlaps with commits.
    let mut backups = Vec::new();
    while loading.try_wait().unwrap().is_none() && backups.len() < 6 {
        let text = fs::read_to_string(&acknowledged).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]).to_owned();
        let file = place.path(&format!("backup-{}", backups.len()));
        let changes = back_up_server(&server, &file)["changes"].as_u64().unwrap();
        // Keep only a last backup during which rows have changed, however slow the load is.
        if backups.len() < 5 || changes > 0 {
            backups.push((file, whole, changes));
        }
    }
    assert!(loading.wait().unwrap().success());
    let most = backups.iter().max_by_key(|(_, _, changes)| *changes).unwrap();
    assert!(most.2 > 0, "no row changed during any of the {} backups", backups.len());
    assert!(load(&server, &last_file, "1000").wait().unwrap().success());
    server.flush();

    for (number, (file, acknowledged, _)) in backups.iter().enumerate() {
        let dir = place.path(&format!("restored-{number}"));
        done(&restore(file, &dir));
        check(&dir);
        let restored = Server::start(&dir, &[]);
        has_all(&restored, acknowledged);
        if file == &most.0 {
            // Loading again what came after the backup gives the same groups.
            for file in [&during_file, &last_file] {
                assert!(load(&restored, file, "1000").wait().unwrap().success());
            }
            restored.flush();
            assert_eq!(meaning(&restored.export()), meaning(&server.export()));
        }
        assert!(restored.terminate());
        check(&dir);
    }
}

/// Checks that every acknowledged page is present, in that version or a later one.
pub(crate) fn has_all(server: &Server, acknowledged: &str) {
    let lines = lines_of(acknowledged);
    assert!(lines.len() > 400);
    for lines in lines.chunks(1_000) {
        let urls: Vec<&Value> = lines.iter().map(|line| &line["url"]).collect();
        let answers = server.post_json("/v1/status", &json!({ "urls": urls }));
        for (answer, line) in answers["pages"].as_array().unwrap().iter().zip(lines) {
            assert_ne!(answer["status"], "unknown", "{line} was acknowledged before the backup began");
            assert!(
                answer["fetched_at"].as_str() >= line["fetched_at"].as_str(),
                "{answer} is older than {line}"
            );
        }
    }
}

#[test]
fn consumers_of_the_feed_continue_or_get_410() {
    let place = Place::new();
    let (dir, restored, file) = (place.path("data"), place.path("restored"), place.path("file"));
    let server = Server::start(&dir, &["--shards", SHARDS]);
    fill(&server);
    let end = |server: &Server| {
        server.ask("/v1/changes", &[("limit", "10000")])["cursor"].as_str().unwrap().to_owned()
    };
    let before = end(&server);
    back_up_server(&server, &file);
    server.push(&[json!({ "url": "http://new.example/", "text": "one that the backup does not have" })]);
    server.flush();
    let after = end(&server);
    assert!(server.terminate());
    done(&restore(&file, &restored));
    let server = Server::start(&restored, &[]);
    assert_eq!(server.query("/v1/changes", &[("cursor", &before)]).status(), 200);
    assert_eq!(server.query("/v1/changes", &[("cursor", &after)]).status(), 410);
}
