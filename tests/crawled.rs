//! Loads real crawls through both coordinators of a replicated cluster at once. The groups, winners and
//! statuses must equal those of a single process.
//!
//! The crawls are `mid`, its redirects, and the ten rounds of `trace`. The records of each file go
//! alternately to the two coordinators. A round starts after the previous round is decided everywhere. The
//! test prints how long both loads took.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use flate2::bufread::GzDecoder;
use harness::pages::ndjson;
use harness::trial::Trial;
use harness::{Meaning, Server, all_is_well, crawl, crawls, differences, lines_of, meaning, run_ok};
use serde_json::json;

/// Date of the redirects of `mid`. They come after its pages, which carry the dates of their sources.
const REDIRECTED: &str = "2026-06-01T00:00:00Z";

/// The two halves of the files of a round, one for each coordinator.
type Round = [Vec<PathBuf>; 2];

/// Deals the records of a WARC file out to two files. Each record must be a gzip member of its own.
fn halves(file: &Path, to: &Path) -> [PathBuf; 2] {
    let packed = fs::read(file).unwrap();
    let (mut halves, mut at, mut turn) = ([Vec::new(), Vec::new()], 0, 0);
    while at < packed.len() {
        let mut member = GzDecoder::new(&packed[at..]);
        let mut record = Vec::new();
        member.read_to_end(&mut record).unwrap();
        let end = packed.len() - member.into_inner().len();
        if record.starts_with(b"WARC/1.0\r\nWARC-Type: warcinfo") {
            halves.iter_mut().for_each(|half| half.extend_from_slice(&packed[at..end]));
        } else {
            halves[turn % 2].extend_from_slice(&packed[at..end]);
            turn += 1;
        }
        at = end;
    }
    assert!(turn > 100, "{} has {turn} records", file.display());
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut number = 0;
    halves.map(|half| {
        number += 1;
        let path = to.join(format!("{number}-{name}"));
        fs::write(&path, half).unwrap();
        path
    })
}

/// The rounds that the test loads.
fn rounds(data: &Path, to: &Path) -> Vec<Round> {
    let round = |files: &[PathBuf]| {
        let mut round = Round::default();
        for file in files {
            for (half, path) in round.iter_mut().zip(halves(file, to)) {
                half.push(path);
            }
        }
        round
    };
    let trace: Vec<Round> = crawl(data, "trace").chunks(1).map(round).collect();
    let mid = round(&crawl(data, "mid"));
    let stubs = lines_of(&fs::read_to_string(data.join("mid/mid.redirects.jsonl")).unwrap());
    let redirect = |stub: &serde_json::Value| json!({"url": stub["url"], "redirect_to": stub["to"], "fetched_at": REDIRECTED});
    let mut redirects = Round::default();
    for (at, some) in stubs.chunks(stubs.len().div_ceil(2)).enumerate() {
        let path = to.join(format!("redirects-{at}.jsonl"));
        fs::write(&path, ndjson(&some.iter().map(redirect).collect::<Vec<_>>())).unwrap();
        redirects[at].push(path);
    }
    [mid, redirects].into_iter().chain(trace).collect()
}

fn load(server: &Server, files: &[PathBuf]) {
    let mut arguments: Vec<&str> = vec!["load", "--server", &server.url];
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    run_ok(arguments);
}

fn of_one_process(rounds: &[Round]) -> Meaning {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    for round in rounds {
        round.iter().for_each(|files| load(&server, files));
        server.flush();
    }
    meaning(&server.export())
}

#[test]
fn real_crawls_reach_the_groups_of_one_process() {
    let Some(data) = crawls("real_crawls_reach_the_groups_of_one_process") else { return };
    let options = ["--tier1", "3", "--tier2", "4", "--coordinators", "2", "--ranges", "6", "--replicas", "2"];
    let Some(trial) = Trial::replicated(&options) else { return };
    let temp = tempfile::tempdir().unwrap();
    let rounds = rounds(&data, temp.path());
    let fronts = trial.coordinators();
    all_is_well(&fronts[0]);
    let began = Instant::now();
    for (number, round) in rounds.iter().enumerate() {
        thread::scope(|scope| {
            for (front, files) in fronts.iter().zip(round) {
                scope.spawn(|| load(front, files));
            }
        });
        fronts[number % 2].flush_patiently();
    }
    let in_cluster = began.elapsed();
    let began = Instant::now();
    let expected = of_one_process(&rounds);
    println!(
        "{} rounds, {} pages, {} groups: {:.0} s in the cluster, {:.0} s in one process",
        rounds.len(),
        expected.0.len(),
        expected.1.len(),
        in_cluster.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    assert!(expected.1.len() > 1_000, "{} groups", expected.1.len());
    for front in &fronts {
        let differences = differences(&meaning(&front.export()), &expected);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
    all_is_well(&fronts[1]);
}
