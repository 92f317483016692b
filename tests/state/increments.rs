//! Incremental backups. With the full backup before them they restore the state at their moment, and any
//! other series of files is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use super::backup::has_all;
use super::collection::{SHARDS, directory, fill};
use super::place::{Place, back_up, copy, done, fails, restore, run_when_free, signature_bytes, stderr};
use crate::harness::pages::{ndjson, rounds, text};
use crate::harness::{PATIENCE, Server, doppel, kill_at_moments, meaning, run, wait_until};

const LATER: &str = "2024-06-01T00:00:00Z";

/// Makes an increment of a directory.
fn back_up_since(files: &[PathBuf], dir: &Path, out: &Path) -> Output {
    let mut arguments = vec![Path::new("backup"), Path::new("--data"), dir, Path::new("--out"), out];
    arguments.push(Path::new("--since"));
    arguments.extend(files.iter().map(PathBuf::as_path));
    run_when_free(arguments)
}

/// Makes a backup of a server, an increment if there are earlier files, and returns the summary.
fn ask(server: &Server, since: &[PathBuf], out: &Path) -> Value {
    let mut command = doppel();
    command.args(["backup", "--json", "--server", &server.url, "--out"]).arg(out);
    if !since.is_empty() {
        command.arg("--since").args(since);
    }
    let output = command.output().unwrap();
    done(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn restore_all(files: &[PathBuf], dir: &Path) -> Output {
    let arguments = [Path::new("restore"), Path::new("--data"), dir];
    run(arguments.into_iter().chain(files.iter().map(PathBuf::as_path)))
}

fn check_all(files: &[PathBuf]) -> Output {
    run([Path::new("check"), Path::new("--backup")].into_iter().chain(files.iter().map(PathBuf::as_path)))
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

/// Changes the collection in one step: pages appear, change and die, and one page is purged.
fn change(server: &Server, step: u32) {
    let text =
        |what: &str| format!("{what} of step {step}, with some more words than those that it has in common");
    server.push(&[
        json!({ "url": format!("http://new.example/{step}"), "fetched_at": LATER, "text": text("a new page") }),
        json!({ "url": "http://alone.example/12", "fetched_at": format!("2024-06-0{step}T00:00:00Z"), "text": text("a changed page") }),
        json!({ "url": format!("http://alone.example/{}", 12 + step), "fetched_at": LATER, "dead": true }),
    ]);
    let url = format!("http://b2.example/{}/0", step - 1);
    assert_eq!(server.post_json("/v1/purge", &json!({ "url": url }))["purged"], 1);
    server.flush();
}

#[test]
fn increments_of_a_directory_restore_what_a_full_backup_of_the_same_moment_does() {
    same_as_full(&["--shards", SHARDS]);
}

#[test]
fn increments_of_several_ranges_restore_what_a_full_backup_of_the_same_moment_does() {
    same_as_full(&["--shards", "7", "--ranges", "3"]);
}

fn same_as_full(options: &[&str]) {
    let place = Place::new();
    let data = place.path("data");
    let (server, first) = (Server::start(&data, options), place.path("full-0"));
    fill(&server);
    assert!(server.terminate());
    done(&back_up(&data, &first));
    let mut files = vec![first];
    for step in 1..=3 {
        let server = Server::start(&data, &[]);
        change(&server, step);
        assert!(server.terminate());
        let name = |what: &str| place.path(&format!("{what}-{step}"));
        let (full, out) = (name("full"), name("increment"));
        done(&back_up(&data, &full));
        done(&back_up_since(&files, &data, &out));
        assert!(size(&out) < size(&full) / 2, "{} of {} bytes", size(&out), size(&full));
        files.push(out);
        // The restored rows are equal byte by byte, and so is a backup of them.
        let [restored, again, from_full, of_full] = ["restored", "again", "from-full", "of-full"].map(name);
        done(&restore_all(&files, &restored));
        done(&restore(&full, &from_full));
        for (dir, file) in [(&restored, &again), (&from_full, &of_full)] {
            done(&run([Path::new("check"), dir]));
            done(&back_up(dir, file));
        }
        assert!(fs::read(&full).unwrap() == fs::read(&again).unwrap(), "step {step}");
        assert!(fs::read(&full).unwrap() == fs::read(&of_full).unwrap(), "step {step}");
        // An increment may also follow the full backup alone.
        let (alone, dir, again) = (name("alone"), name("restored-alone"), name("again-alone"));
        done(&back_up_since(&files[..1], &data, &alone));
        done(&restore_all(&[files[0].clone(), alone], &dir));
        done(&back_up(&dir, &again));
        assert!(fs::read(&full).unwrap() == fs::read(&again).unwrap(), "step {step}");
    }
    done(&check_all(&files));
}

#[test]
fn a_restored_series_has_no_signature_of_a_page_that_was_purged() {
    let place = Place::new();
    let server = Server::start(&place.path("data"), &[]);
    let pages: Vec<Value> = (0..60)
        .map(|seed| {
            let host = if seed < 10 { "kept.example" } else { "gone.example" };
            json!({ "url": format!("http://{host}/{seed}"), "text": text(seed, 300).join(" ") })
        })
        .collect();
    server.push_all(&pages);
    server.flush();
    let files = [place.path("full"), place.path("increment")];
    ask(&server, &[], &files[0]);
    assert_eq!(server.post_json("/v1/purge", &json!({ "host": "gone.example" }))["purged"], 50);
    server.flush();
    ask(&server, &files[..1], &files[1]);
    assert!(server.terminate());
    let [all, left] = ["all", "left"].map(|name| place.path(name));
    done(&restore_all(&files[..1], &all));
    done(&restore_all(&files, &left));
    let before = signature_bytes(&all);
    let restored = Server::start(&left, &[]);
    wait_until("the signatures to leave the files", PATIENCE, || {
        (signature_bytes(&left) < before / 3).then_some(())
    });
    assert_eq!(restored.status("http://kept.example/3")["status"], "unique");
    assert!(restored.terminate());
    done(&run([Path::new("check"), &left]));
}

#[test]
fn a_pipe_is_refused_because_a_series_is_read_twice() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for output in [
        restore_all(&[pipe.clone(), place.path("increment")], &place.path("data")),
        back_up_since(std::slice::from_ref(&pipe), directory(), &place.path("out")),
    ] {
        assert!(stderr(&output).contains("is no regular file, and a series is read twice"), "{output:?}");
    }
    // A hard link names the same file.
    let [one, other] = ["one", "other"].map(|name| place.path(name));
    fs::write(&one, "a backup").unwrap();
    fs::hard_link(&one, &other).unwrap();
    let output = back_up_since(&[one], directory(), &other);
    assert!(stderr(&output).contains("would replace the input"), "{output:?}");
}

#[test]
fn increments_of_a_server_restore_its_export_without_purged_pages() {
    let place = Place::new();
    let server = Server::start(&place.path("data"), &["--shards", SHARDS]);
    fill(&server);
    let purged = "http://b2.example/1/0";
    let mut files = vec![place.path("0")];
    let mut follows = ask(&server, &[], &files[0]);
    assert_eq!(follows.get("follows"), None);
    for step in 1..=2 {
        assert!(server.export().contains(purged));
        change(&server, step);
        let file = place.path(&step.to_string());
        let made = ask(&server, &files, &file);
        assert_eq!(made["follows"], follows["hash"]);
        assert_eq!(made["bytes"], size(&file));
        (files, follows) = ([files, vec![file]].concat(), made);
    }
    let export = server.export();
    assert!(!export.contains(purged));
    assert!(server.terminate());
    let checked = run([Path::new("check"), Path::new("--json"), Path::new("--backup")]
        .into_iter()
        .chain(files.iter().map(PathBuf::as_path)));
    done(&checked);
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(checked["sound"], json!(true));
    assert_eq!(checked["hashes"][2], follows["hash"]);

    let dir = place.path("restored");
    done(&restore_all(&files, &dir));
    let restored = Server::start(&dir, &[]);
    restored.flush();
    assert_eq!(restored.export(), export);
    assert_eq!(restored.status(purged)["status"], "unknown");
    // The restored collection continues the series.
    change(&restored, 3);
    let next = place.path("3");
    ask(&restored, &files, &next);
    files.push(next);
    let (export, again) = (restored.export(), place.path("again"));
    done(&restore_all(&files, &again));
    let again = Server::start(&again, &[]);
    again.flush();
    assert_eq!(again.export(), export);
}

#[test]
fn increments_under_load_are_consistent() {
    under_load(&["--shards", SHARDS]);
}

#[test]
fn increments_of_several_ranges_under_load_are_consistent() {
    under_load(&["--shards", "7", "--ranges", "3"]);
}

fn under_load(options: &[&str]) {
    let place = Place::new();
    let server = Server::start(&place.path("data"), options);
    let mut crawl = rounds(22, 400, 4);
    let [before, during, acknowledged] =
        ["before.jsonl", "during.jsonl", "acknowledged.jsonl"].map(|name| place.path(name));
    fs::write(&before, ndjson(&crawl.remove(0))).unwrap();
    fs::write(&during, ndjson(&crawl.concat())).unwrap();
    let load = |file: &Path, batch: &str| {
        let mut command = doppel();
        command.args(["load", "--batch", batch, "--server", &server.url, "--acknowledged"]);
        command.arg(&acknowledged).arg(file).stdout(Stdio::null()).spawn().unwrap()
    };
    assert!(load(&before, "1000").wait().unwrap().success());
    let mut files = vec![place.path("full")];
    ask(&server, &[], &files[0]);
    let known = fs::read_to_string(&acknowledged).unwrap().lines().count();
    let mut loading = load(&during, "20");
    wait_until("pages of the second round", PATIENCE, || {
        (fs::read_to_string(&acknowledged).unwrap().lines().count() > known).then_some(())
    });
    let (mut moments, mut changes) = (Vec::new(), 0);
    while loading.try_wait().unwrap().is_none() && moments.len() < 6 {
        let text = fs::read_to_string(&acknowledged).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]).to_owned();
        let file = place.path(&format!("increment-{}", moments.len()));
        changes += ask(&server, &files, &file)["changes"].as_u64().unwrap();
        files.push(file);
        moments.push((files.clone(), whole));
    }
    assert!(loading.wait().unwrap().success());
    assert!(changes > 0, "no row changed during any of the {} increments", moments.len());
    server.flush();
    let end = place.path("end");
    ask(&server, &files, &end);
    files.push(end);
    moments.push((files, fs::read_to_string(&acknowledged).unwrap()));
    let expected = meaning(&server.export());

    for (number, (files, acknowledged)) in moments.iter().enumerate() {
        let dir = place.path(&format!("restored-{number}"));
        done(&restore_all(files, &dir));
        done(&run_when_free([Path::new("check"), &dir]));
        let restored = Server::start(&dir, &[]);
        has_all(&restored, acknowledged);
        if number + 1 == moments.len() {
            restored.flush();
            assert_eq!(meaning(&restored.export()), expected);
        }
    }
}

#[test]
fn files_that_are_no_series_are_named_and_nothing_is_written() {
    let place = Place::new();
    let data = place.path("data");
    copy(directory(), &data);
    let mut files = vec![place.path("full")];
    done(&back_up(&data, &files[0]));
    for step in 1..=2 {
        let server = Server::start(&data, &[]);
        change(&server, step);
        assert!(server.terminate());
        let file = place.path(&format!("increment-{step}"));
        done(&back_up_since(&files, &data, &file));
        files.push(file);
    }
    let [full, first, second] = <[PathBuf; 3]>::try_from(files.clone()).unwrap();
    let sound = fs::read(&first).unwrap();
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 1;
    let bad = |name: &str, bytes: &[u8]| {
        let path = place.path(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let (cut, damaged) = (bad("cut", &sound[..sound.len() - 1]), bad("damaged", &flipped));
    let other_data = place.path("other-data");
    assert!(Server::start(&other_data, &["--shards", SHARDS]).terminate());
    let (other, of_other) = (place.path("other"), place.path("of-other"));
    done(&back_up(&other_data, &other));
    done(&back_up_since(std::slice::from_ref(&other), &other_data, &of_other));

    let dir = place.path("restored");
    for (files, named, says) in [
        (vec![&full, &second], &second, "an increment between them is missing"),
        (vec![&full, &second, &first], &second, "not in order"),
        (vec![&first, &second], &first, "name the full backup first"),
        (vec![&full, &full], &full, "is a full backup"),
        (vec![&full, &first, &of_other], &of_other, "is of another collection"),
        (vec![&full, &cut, &second], &cut, "it is cut off after"),
        (vec![&full, &damaged, &second], &damaged, "is damaged: its checksum does not fit"),
    ] {
        let files: Vec<PathBuf> = files.into_iter().cloned().collect();
        for refused in
            [restore_all(&files, &dir), check_all(&files), back_up_since(&files, &data, &place.path("out"))]
        {
            fails(&refused, says);
            assert!(stderr(&refused).contains(&named.display().to_string()), "{}", stderr(&refused));
        }
        assert!(!dir.join("manifest.json").exists() && !dir.join("tier1").exists());
        assert!(!place.path("out").exists());
    }
    fails(&back_up_since(std::slice::from_ref(&other), &data, &place.path("out")), "of another collection");
    let onto_itself = back_up_since(&files, &data, &first);
    assert_eq!(onto_itself.status.code(), Some(2), "{}", stderr(&onto_itself));
    assert!(fs::read(&first).unwrap() == sound);
    done(&restore_all(&files, &dir));
}

/// A kill at any moment leaves a whole increment or none, and a whole directory or none.
#[test]
fn a_killed_increment_or_restore_leaves_nothing_that_counts() {
    let place = Place::new();
    let (data, full, out) = (place.path("data"), place.path("full"), place.path("increment"));
    let server = Server::start(&data, &["--shards", SHARDS]);
    let crawl = rounds(6, 300, 2);
    server.push(&crawl[0]);
    server.flush();
    ask(&server, &[], &full);
    server.push(&crawl[1]);
    assert!(server.terminate());
    let files = [full.clone(), out.clone()];
    let backing_up = || {
        let mut command = doppel();
        command.args(["backup", "--data"]).arg(&data).arg("--out").arg(&out).arg("--since").arg(&full);
        command
    };
    kill_at_moments(24, backing_up, |ended| {
        let is_done = out.exists();
        assert!(is_done || !ended);
        if is_done {
            done(&check_all(&files));
            fs::remove_file(&out).unwrap();
        }
        is_done
    });
    done(&back_up_since(&files[..1], &data, &out));
    let dir = place.path("restored");
    let restoring = || {
        let mut command = doppel();
        command.arg("restore").args(&files).arg("--data").arg(&dir);
        command
    };
    kill_at_moments(24, restoring, |ended| {
        let is_done = dir.join("manifest.json").exists();
        assert!(is_done || !ended);
        if is_done {
            done(&run_when_free([Path::new("check"), &dir]));
            fs::remove_dir_all(&dir).unwrap();
        }
        is_done
    });
}
