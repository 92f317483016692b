//! Planted faults: `doppel check` finds every one, and reports nothing for an undamaged directory.

use std::fs;
use std::path::Path;

use doppel_model::stable_hash64;
use doppel_tier1::check::planted::plantable_faults;
use doppel_tier1::{Database, Store};
use serde_json::Value;

use super::collection::{SHARDS, directory};
use super::place::{Place, back_up, copy, done, fails, run_when_free, stderr};
use crate::harness::{Server, run};

fn check(dir: &Path) -> (std::process::Output, Value) {
    let output = run_when_free([Path::new("check"), Path::new("--json"), dir]);
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output, report)
}

#[test]
fn an_undamaged_directory_passes_and_is_not_changed() {
    let place = Place::new();
    let (dir, before, after) = (place.path("data"), place.path("before"), place.path("after"));
    copy(directory(), &dir);
    done(&back_up(&dir, &before));
    let (output, report) = check(&dir);
    done(&output);
    assert_eq!(report["sound"], true);
    assert_eq!(report["tier1"]["findings"]["examples"], Value::Array(vec![]));
    assert!(report["tier1"]["pages"].as_u64().unwrap() > 30, "{report}");
    let words = String::from_utf8(run([Path::new("check"), &dir]).stdout).unwrap();
    assert!(words.ends_with("sound\n") && words.contains("3 shards"), "{words}");
    let contents = report["tier2"]["snapshot_contents"].as_u64().unwrap();
    assert!(
        contents > 10 && words.contains(&format!("tier 2: a snapshot of {contents} contents, ")),
        "{words}"
    );
    done(&back_up(&dir, &after));
    assert!(fs::read(before).unwrap() == fs::read(after).unwrap(), "a check changed rows");
}

#[test]
fn a_directory_in_use_is_not_touched() {
    let place = Place::new();
    let dir = place.path("data");
    copy(directory(), &dir);
    let server = Server::start(&dir, &[]);
    let (url, process) = (&server.url, server.id());
    let named = format!("doppel: {} is open in the server at {url} (process {process})", dir.display());
    let instead = format!("`doppel backup --server {url} --out FILE`");
    for refused in [check(&dir).0, back_up(&dir, &place.path("file"))] {
        [&*named, &*instead, "another process uses it"].iter().for_each(|said| fails(&refused, said));
    }
    assert!(!place.path("file").exists());
    assert!(server.terminate());
    done(&check(&dir).0);
}

/// Plants rows with wrong content but a correct checksum.
#[test]
fn every_planted_row_is_found() {
    let place = Place::new();
    let sample = place.path("sample");
    copy(directory(), &sample);
    let faults = plantable_faults(
        &Database::open(&sample.join("tier1/range-0"), true).unwrap(),
        SHARDS.parse().unwrap(),
    )
    .unwrap();
    assert!(faults.len() >= 20, "{} faults", faults.len());
    let mut missed = Vec::new();
    for (number, fault) in faults.into_iter().enumerate() {
        let dir = place.path(&number.to_string());
        copy(directory(), &dir);
        Database::open(&dir.join("tier1/range-0"), true).unwrap().commit(fault.writes).unwrap();
        let (output, report) = check(&dir);
        let invariant = serde_json::to_value(fault.invariant).unwrap();
        let counts = &report["tier1"]["findings"]["counts"];
        let found = counts[invariant.as_str().unwrap()].as_u64().unwrap_or(0);
        if output.status.code() != Some(1) || report["sound"] != false || found == 0 {
            missed.push(format!("{}: {invariant} is not in {counts}: {}", fault.name, stderr(&output)));
        }
        fs::remove_dir_all(dir).unwrap();
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Replaces text in a file.
fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Changes a manifest and recomputes its checksum.
fn forge(dir: &Path, change: impl FnOnce(&mut Value)) {
    let path = dir.join("manifest.json");
    let mut sealed: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut sealed["manifest"]);
    let checksum = stable_hash64(sealed["manifest"].to_string().as_bytes());
    sealed["checksum"] = format!("{checksum:016x}").into();
    fs::write(path, sealed.to_string()).unwrap();
}

/// The offset at which the zeros at the end of a file begin.
fn written(path: &Path) -> u64 {
    fs::read(path).unwrap().iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1
}

fn cut(path: &Path, bytes: impl FnOnce(u64) -> u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(bytes(length)).unwrap();
}

/// Flips a bit wherever a file contains these bytes.
fn flip(path: &Path, part: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let places: Vec<usize> =
        bytes.windows(part.len()).enumerate().filter(|(_, w)| *w == part).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "{} has no such bytes", path.display());
    places.into_iter().for_each(|at| bytes[at + part.len() / 2] ^= 4);
    fs::write(path, bytes).unwrap();
}

/// Damages the only file of a directory.
fn only_file(dir: &Path, damage: impl FnOnce(&Path)) {
    let files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    damage(&files[0]);
}

/// A name, the expected message of the check, and the damage done to a directory.
type Damage = (&'static str, &'static str, fn(&Path));

/// Damages of files, each with its expected message.
const FILES: [Damage; 24] = [
    ("an edited manifest", "its checksum does not fit", |dir| {
        edit(&dir.join("manifest.json"), "\"shards\": 3", "\"shards\": 4");
    }),
    ("a manifest cut off", "manifest.json is damaged", |dir| cut(&dir.join("manifest.json"), |n| n - 9)),
    ("no manifest", "has no manifest.json", |dir| fs::remove_file(dir.join("manifest.json")).unwrap()),
    ("a manifest of a later format", "format 9", |dir| forge(dir, |manifest| manifest["format"] = 9.into())),
    ("a manifest of another tokeniser", "tokeniser version 9", |dir| {
        forge(dir, |manifest| manifest["tokeniser"] = 9.into());
    }),
    ("a manifest of the first tokeniser", "tokeniser version 1", |dir| {
        forge(dir, |manifest| manifest["tokeniser"] = 1.into());
    }),
    ("a manifest of fewer shards", "is of shard 2, but there are only 2 shards", |dir| {
        forge(dir, |manifest| manifest["shards"] = 2.into());
    }),
    ("a manifest of another policy", "is compared with", |dir| {
        forge(dir, |manifest| manifest["policy"] = "jaccard:tau=0.9".into());
    }),
    (
        "a manifest of a policy of other signatures",
        "which the policy simhash:differing=3 does not use",
        |dir| {
            forge(dir, |manifest| manifest["policy"] = "simhash:differing=3".into());
        },
    ),
    ("no database", "there is no database", |dir| fs::remove_dir_all(dir.join("tier1")).unwrap()),
    ("a database without its file", "there is no database", |dir| {
        fs::remove_file(dir.join("tier1/range-0/db")).unwrap();
    }),
    ("an empty database", "is empty, and the index has", |dir| {
        fs::remove_dir_all(dir.join("tier1")).unwrap();
        drop(Database::open(&dir.join("tier1/range-0"), true).unwrap());
    }),
    // The message about a database without its end depends on where sled's segments begin.
    ("a database cut in half", "data/tier1/range-0", |dir| {
        let written = written(&dir.join("tier1/range-0/db"));
        cut(&dir.join("tier1/range-0/db"), |_| written / 2);
    }),
    ("a database without its end", "data/tier1/range-0", |dir| {
        let written = written(&dir.join("tier1/range-0/db"));
        // Cut off enough to lose pages. A check need not detect lost work that the next start redoes, and
        // cutting an eighth was not always enough.
        cut(&dir.join("tier1/range-0/db"), |_| written / 4 * 3);
    }),
    (
        "a damaged configuration file of the database",
        "tier1/range-0 is damaged (its file conf is not what was written): restore",
        |dir| {
            flip(&dir.join("tier1/range-0/conf"), b"segment_size");
        },
    ),
    ("a flipped bit in the database's file", "", |dir| {
        flip(&dir.join("tier1/range-0/db"), b"http://alone.example/14");
    }),
    ("no log", "range-0/log is damaged (it has no file)", |dir| {
        only_file(&dir.join("tier1/range-0/log"), |path| fs::remove_file(path).unwrap());
    }),
    ("a log without its end", "range-0/log is damaged (it ends with record", |dir| {
        only_file(&dir.join("tier1/range-0/log"), |path| cut(path, |length| length - 1));
    }),
    ("no signatures", "00000000.sig is missing", |dir| {
        fs::remove_file(dir.join("tier1/range-0/signatures/00000000.sig")).unwrap();
    }),
    ("signatures cut in half", "00000000.sig is missing or cut", |dir| {
        cut(&dir.join("tier1/range-0/signatures/00000000.sig"), |length| length / 2);
    }),
    ("a damaged signature", "the checksum does not match", |dir| {
        let path = dir.join("tier1/range-0/signatures/00000000.sig");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    }),
    (
        "a damaged snapshot of the index",
        "node-0/snapshot.dat: it is damaged; the next start does without it",
        |dir| {
            cut(&dir.join("tier2/node-0/snapshot.dat"), |length| length - 1);
        },
    ),
    (
        "a directory in place of the snapshot",
        "node-0/snapshot.dat: it is a directory, not a file; the next",
        |dir| {
            fs::remove_file(dir.join("tier2/node-0/snapshot.dat")).unwrap();
            fs::create_dir(dir.join("tier2/node-0/snapshot.dat")).unwrap();
        },
    ),
    ("a damaged partition map", "map.json: ", |dir| fs::write(dir.join("tier2/map.json"), "{}\n[]").unwrap()),
];

#[test]
fn every_damaged_file_is_found() {
    let mut missed = Vec::new();
    for (name, says, damage) in FILES {
        let place = Place::new();
        let dir = place.path("data");
        copy(directory(), &dir);
        damage(&dir);
        let output = run([Path::new("check"), &dir]);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        // The message names a database once, by its directory.
        let is_named_twice = said.contains("the database the database");
        if output.status.code() != Some(1) || !said.contains(says) || is_named_twice {
            missed.push(format!("{name}: {says:?} is not in: {said}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The rows of an earlier state are consistent with each other, so only their age can reveal them.
#[test]
fn an_older_database_in_place_of_a_newer_one_is_detected() {
    let place = Place::new();
    let dir = place.path("data");
    copy(directory(), &dir);
    let server = Server::start(&dir, &[]);
    server.push(&[
        serde_json::json!({ "url": "http://late.example/page", "text": "a page that was acknowledged" }),
    ]);
    assert!(server.terminate());
    done(&check(&dir).0);
    let progress = fs::read(dir.join("tier1/range-0/progress")).unwrap();
    fs::remove_dir_all(dir.join("tier1")).unwrap();
    copy(&directory().join("tier1"), &dir.join("tier1"));
    fs::write(dir.join("tier1/range-0/progress"), progress).unwrap();
    let (output, report) = check(&dir);
    fails(&output, "do not serve it");
    let detail = &report["tier1"]["findings"]["examples"][0]["detail"];
    assert!(detail.as_str().unwrap().contains("has lost its last changes"), "{report}");
    let serve =
        [Path::new("serve"), Path::new("--listen"), Path::new("127.0.0.1:0"), Path::new("--data"), &dir];
    fails(&run(serve), "has lost its last changes");
}

#[test]
fn a_damaged_index_is_rebuilt_and_other_damage_prevents_the_start() {
    let place = Place::new();
    let (whole, index, rows) = (place.path("whole"), place.path("index"), place.path("rows"));
    for dir in [&whole, &index, &rows] {
        copy(directory(), dir);
    }
    let expected = Server::start(&whole, &[]).export();
    fs::remove_dir_all(index.join("tier2")).unwrap();
    let server = Server::start(&index, &[]);
    assert_eq!(server.export(), expected);
    assert!(server.terminate());
    done(&check(&index).0);

    // Write the totals of shard 0 in the form of a later version.
    let store = Database::open(&rows.join("tier1/range-0"), true).unwrap();
    let mut meta = store.get(b"\0\0c").unwrap().unwrap();
    meta.truncate(meta.len() - 4);
    meta[0] += 1;
    let sum = stable_hash64(&meta) as u32;
    meta.extend(sum.to_le_bytes());
    store.commit(vec![(b"\0\0c".to_vec(), Some(meta))]).unwrap();
    drop(store);
    let serve =
        [Path::new("serve"), Path::new("--listen"), Path::new("127.0.0.1:0"), Path::new("--data"), &rows];
    fails(&run_when_free(serve), "has records of version");
    fails(&back_up(&rows, &place.path("file")), "has records of version");
    fails(&check(&rows).0, "another version of this program made it");
}
