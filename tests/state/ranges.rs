//! A collection in several ranges: its files on disk, and the detection of a database that belongs to another
//! moment than the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use doppel_protocol::RangeMap;
use doppel_tier1::{Database, JoinedStore, Store};
use serde_json::json;

use super::collection::{SHARDS, directory, fill};
use super::place::{Place, back_up, copy, done, fails, restore};
use crate::harness::{Server, meaning, run};

const OPTIONS: [&str; 4] = ["--shards", SHARDS, "--ranges", "3"];

/// The collection of the other tests, in three ranges.
fn in_ranges() -> &'static Path {
    static DIRECTORY: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, data) = DIRECTORY.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        let server = Server::start(&data, &OPTIONS);
        fill(&server);
        assert!(server.terminate());
        (home, data)
    });
    data
}

fn check(dir: &Path) -> std::process::Output {
    run([Path::new("check"), dir])
}

fn serve(dir: &Path) -> std::process::Output {
    run([Path::new("serve"), Path::new("--listen"), Path::new("127.0.0.1:0"), Path::new("--data"), dir])
}

#[test]
fn each_range_has_a_database_and_a_backup_contains_all_of_them() {
    let place = Place::new();
    let [first, second] = ["first", "second"].map(|name| place.path(name));
    let restored = place.path("restored");
    done(&check(in_ranges()));
    done(&back_up(in_ranges(), &first));
    done(&restore(&first, &restored));
    for range in 0..3 {
        assert!(restored.join(format!("tier1/range-{range}/db")).is_file());
    }
    done(&check(&restored));
    done(&back_up(&restored, &second));
    assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap());
    let whole = place.path("whole");
    copy(directory(), &whole);
    let (one, several) = (Server::start(&whole, &[]), Server::start(&restored, &OPTIONS));
    several.flush();
    assert!(several.export().lines().count() > 30);
    assert_eq!(meaning(&several.export()), meaning(&one.export()));
}

#[test]
fn a_range_from_an_earlier_moment_is_refused() {
    let place = Place::new();
    for range in 0..3 {
        let dir = place.path(&format!("data-{range}"));
        copy(in_ranges(), &dir);
        let server = Server::start(&dir, &[]);
        // Make redirects between pages of all ranges.
        let redirect = |(from, to): (u32, u32)| json!({ "url": format!("http://from.example/{from}"), "redirect_to": format!("http://to.example/{to}") });
        server.push(&(0..40).map(|n| redirect((n, n * 7 % 40))).collect::<Vec<_>>());
        server.flush();
        assert!(server.terminate());
        done(&check(&dir));
        let of_range = format!("tier1/range-{range}");
        fs::remove_dir_all(dir.join(&of_range)).unwrap();
        copy(&in_ranges().join(&of_range), &dir.join(&of_range));
        fails(&check(&dir), "do not serve it");
        fails(&serve(&dir), "restore the whole collection from a backup");
    }
}

#[test]
fn a_range_that_is_missing_is_named() {
    let place = Place::new();
    let dir = place.path("data");
    copy(in_ranges(), &dir);
    fs::remove_dir_all(dir.join("tier1/range-1")).unwrap();
    for output in [check(&dir), serve(&dir), back_up(&dir, &place.path("file"))] {
        fails(&output, "tier1/range-1: restore it from a backup");
    }
    assert!(!dir.join("tier1/range-1").exists(), "the command must not create an empty range in its place");
}

#[test]
fn a_row_in_the_database_of_another_range_is_found() {
    let place = Place::new();
    let dir = place.path("data");
    copy(in_ranges(), &dir);
    let map = RangeMap::new(SHARDS.parse().unwrap(), 3).unwrap();
    let stores = Database::open_ranges(&dir.join("tier1"), map).unwrap();
    let key = b"\0\x02c".to_vec();
    let value = JoinedStore::new(map, &stores).get(&key).unwrap();
    stores[0].commit(vec![(key, value)]).unwrap();
    drop(stores);
    let output = check(&dir);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.contains("is in the database of range 0"), "{said}");
}
