//! The stored format. A backup made by an earlier build is either still read, or rejected with a message that
//! names its version.
//!
//! `DOPPEL_FIXTURE=write` rewrites the fixture of the current format; see CONTRIBUTING.md.

use std::fs;
use std::path::{Path, PathBuf};

use doppel_tier1::backup::BackupReader;

use super::collection::{SHARDS, fill};
use super::place::{Place, done, fails, restore};
use crate::harness::{Server, run};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Writes the fixture of this version.
fn write() {
    let place = Place::new();
    let server = Server::start(&place.path("data"), &["--shards", SHARDS]);
    fill(&server);
    let file = place.path("file");
    done(&run(["backup", "--server", &server.url, "--out"].iter().map(Path::new).chain([file.as_path()])));
    let version = BackupReader::open(&mut fs::File::open(&file).unwrap()).unwrap().head().records;
    let name = |ending: &str| fixtures().join(format!("records-{version}.{ending}"));
    fs::copy(&file, name("backup")).unwrap();
    fs::write(name("jsonl"), server.export()).unwrap();
}

/// Each fixture has an export beside it, unless this version rejects the fixture.
#[test]
fn every_format_is_read_or_named() {
    if std::env::var("DOPPEL_FIXTURE").as_deref() == Ok("write") {
        write();
    }
    let mut read = 0;
    for entry in fs::read_dir(fixtures()).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "backup") {
            continue;
        }
        assert!(fs::metadata(&file).unwrap().len() < 100_000, "{} is large", file.display());
        let place = Place::new();
        let dir = place.path("data");
        let Ok(expected) = fs::read_to_string(file.with_extension("jsonl")) else {
            fails(&restore(&file, &dir), "it has records of version");
            continue;
        };
        done(&restore(&file, &dir));
        done(&run([Path::new("check"), &dir]));
        let server = Server::start(&dir, &[]);
        server.flush();
        assert_eq!(server.export(), expected, "{}", file.display());
        let history = server.status("http://a.example/copy/1");
        assert_eq!(history["status"], "duplicate");
        assert_eq!(history["winner"], "http://a.example/");
        read += 1;
    }
    assert!(read > 0, "there is no fixture of the current format");
}
