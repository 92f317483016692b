//! A restore accepts only complete files and empty directories, and restores everything or nothing.

use std::fs;
use std::path::Path;

use doppel_tier1::check::planted::plantable_faults;
use doppel_tier1::{Database, Store};

use super::collection::{SHARDS, directory};
use super::place::{Place, back_up, copy, done, fails, restore};
use crate::harness::pages::rounds;
use crate::harness::{Server, doppel, kill_at_moments, run};

#[test]
fn damaged_and_foreign_files_are_refused_without_a_trace() {
    let place = Place::new();
    let (file, bad, dir) = (place.path("file"), place.path("bad"), place.path("data"));
    done(&back_up(directory(), &file));
    let sound = fs::read(&file).unwrap();
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 1;
    let mut newer = sound.clone();
    newer[14] = b'2';
    for (bytes, says) in [
        (&sound[..sound.len() - 1], "it is cut off after"),
        (&sound[..sound.len() / 2], "it is cut off after"),
        (&flipped, "is damaged: its checksum does not fit"),
        (&newer, "it is not a Doppel backup"),
        (&[&sound[..], b"\n"].concat(), "more bytes follow the end"),
        (&b"SQLite format 3\0 and so on"[..], "it is not a Doppel backup"),
        (&b""[..], "it is not a Doppel backup"),
    ] {
        fs::write(&bad, bytes).unwrap();
        fails(&restore(&bad, &dir), says);
        assert!(!dir.exists(), "{says}: the restore left its directory");
        fails(&restore(&bad, &dir.join("below/it")), says);
        assert!(!dir.exists(), "{says}: the restore left the parent directory that it created");
    }
    // The restore must not remove a directory that existed before.
    let there = place.path("there");
    fs::create_dir(&there).unwrap();
    fs::write(&bad, &sound[..sound.len() / 2]).unwrap();
    fails(&restore(&bad, &there), "it is cut off after");
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
    fails(&restore(&bad, &there.join("below")), "it is cut off after");
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
    fails(&restore(Path::new("/"), &dir), "/ is a directory, not a backup");
    done(&restore(&file, &dir));
}

#[test]
fn a_directory_that_is_not_empty_is_not_changed() {
    let place = Place::new();
    let (file, dir) = (place.path("file"), place.path("data"));
    done(&back_up(directory(), &file));
    copy(directory(), &dir);
    fails(&restore(&file, &dir), "is not empty");
    done(&run([Path::new("check"), &dir]));
    // A user's folder happens to have the name of the temporary folder of a restore.
    let theirs = place.path("theirs");
    fs::create_dir_all(theirs.join("restoring/photos")).unwrap();
    fails(&restore(&file, &theirs), "is not empty");
    assert!(theirs.join("restoring/photos").is_dir());
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("photo.jpg"), b"").unwrap();
    fails(&restore(&file, &other), "is not empty");
    assert!(other.join("photo.jpg").exists());
}

#[test]
fn rows_damaged_before_the_backup_are_restored_only_on_request() {
    let place = Place::new();
    let (dir, file, restored) = (place.path("data"), place.path("file"), place.path("restored"));
    copy(directory(), &dir);
    let store = Database::open(&dir.join("tier1/range-0"), true).unwrap();
    let faults = plantable_faults(&store, SHARDS.parse().unwrap()).unwrap();
    let fault = faults.into_iter().find(|fault| fault.name == "a lost member").unwrap();
    store.commit(fault.writes).unwrap();
    drop(store);
    done(&back_up(&dir, &file));
    fails(&restore(&file, &restored), "what was backed up is damaged");
    assert!(!restored.join("manifest.json").exists());
    let arguments =
        [Path::new("restore"), &file, Path::new("--accept-findings"), Path::new("--data"), &restored];
    done(&run(arguments));
    fails(&run([Path::new("check"), &restored]), "is damaged");
}

/// A kill at any moment leaves either a complete directory or none.
#[test]
fn a_killed_restore_leaves_nothing_that_can_be_opened() {
    let place = Place::new();
    let (made, file, dir) = (place.path("made"), place.path("file"), place.path("data"));
    let server = Server::start(&made, &["--shards", SHARDS]);
    server.push(&rounds(5, 300, 1).concat());
    assert!(server.terminate());
    done(&back_up(&made, &file));
    let restoring = || {
        let mut command = doppel();
        command.arg("restore").arg(&file).arg("--data").arg(&dir);
        command
    };
    kill_at_moments(40, restoring, |ended| {
        let checked = run([Path::new("check"), &dir]);
        let is_done = dir.join("manifest.json").exists();
        if is_done {
            done(&checked);
            fs::remove_dir_all(&dir).unwrap();
        } else {
            assert!(!ended, "a restore that exited with 0 must leave a manifest");
            fails(&checked, "manifest.json");
        }
        is_done
    });
    // Set up states that last too short to be hit by a random kill: before the manifest gets its name, and
    // while the remains of an earlier run are removed.
    let _ = fs::remove_dir_all(&dir);
    for rests in [&["unfinished", "tier1"][..], &["unfinished"]] {
        rests.iter().for_each(|name| fs::create_dir_all(dir.join(name)).unwrap());
        fs::write(dir.join("manifest.json.new1"), "{").unwrap();
        done(&restore(&file, &dir));
        fs::remove_dir_all(&dir).unwrap();
    }
    done(&restore(&file, &dir));
    done(&run([Path::new("check"), &dir]));
}
