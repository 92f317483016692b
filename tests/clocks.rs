//! A replicated cluster in which some clocks are an hour ahead or behind. It reaches the groups of a single
//! process, other nodes take over ranges, and the cluster refuses pages from the far future.
//!
//! The library libfaketime shifts the clock of one node of each role. If it is not installed, the test prints
//! a line and passes; in CI it fails.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::path::Path;

use doppel_model::Timestamp;
use harness::pages::rounds;
use harness::trial::Trial;
use harness::{Server, all_is_well, differences, meaning, of_one_process};
use serde_json::json;

const HOUR_MS: i64 = 3_600_000;

/// Tolerance for measured clock offsets, in milliseconds, because the test itself takes time.
const SLACK_MS: i64 = 300_000;

/// Paths at which distributions install libfaketime. The variable `DOPPEL_FAKETIME` names another path.
const PLACES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

fn faketime() -> Option<String> {
    let named = std::env::var("DOPPEL_FAKETIME").ok();
    let found = named
        .or_else(|| PLACES.iter().find(|place| Path::new(place).exists()).map(|&place| place.to_owned()));
    if found.is_none() {
        assert!(
            std::env::var_os("CI").is_none(),
            "libfaketime was not found, and CI must not skip this test: install it or set DOPPEL_FAKETIME"
        );
        println!("skipped: libfaketime is not installed, and DOPPEL_FAKETIME does not name it");
    }
    found
}

/// How far the clock of a process was ahead of the test's clock when it wrote its last log line, in
/// milliseconds.
fn ahead(trial: &Trial, name: &str) -> i64 {
    let log = trial.log(name);
    let at = |line: &str| line.split_whitespace().next()?.parse::<Timestamp>().ok();
    let last = log
        .lines()
        .rev()
        .find_map(at)
        .unwrap_or_else(|| panic!("the log of {name} has no line with a time:\n{log}"));
    last.millis() - now().millis()
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// The answer of a coordinator to a page with this date.
fn pushed(front: &Server, url: &str, fetched_at: Option<Timestamp>) -> serde_json::Value {
    let mut page = json!({"url": url, "text": format!("a text of {url}")});
    if let Some(at) = fetched_at {
        page["fetched_at"] = at.to_string().into();
    }
    front.push(&[page]).remove(0)
}

fn with_clocks_wrong(seed: u64, offset: &str, offset_ms: i64) {
    let Some(faketime) = faketime() else { return };
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "2", "--coordinators", "2"]) else {
        return;
    };
    let fronts = trial.coordinators();
    all_is_well(&fronts[0]);
    // Only the offset is wrong: time passes at the right speed, as with most wrong clocks.
    let variables = [
        ("LD_PRELOAD", &*faketime),
        ("FAKETIME", offset),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("RUST_LOG", "info"),
    ];
    let wrong = ["record-2", "front-1", "index-1"];
    for name in wrong {
        trial.kill(name);
        trial.start_with(name, &variables);
    }
    all_is_well(&fronts[1]);

    let rounds = rounds(seed, 40, 5);
    let expected = of_one_process(&rounds);
    for (number, round) in rounds.iter().enumerate() {
        for (turn, batch) in round.chunks(30).enumerate() {
            fronts[turn % 2].push_patiently(batch);
            match (number, turn) {
                // Ranges move from a node with a right clock to others, one of which has a wrong clock, and
                // back.
                (1, 1) => trial.kill("record-1"),
                (2, 1) => trial.start("record-1"),
                (3, 0) => {
                    all_is_well(&fronts[1]);
                    trial.kill("record-2");
                }
                _ => {}
            }
        }
        fronts[number % 2].flush_patiently();
        if number == 3 {
            trial.start_with("record-2", &variables);
        }
    }
    for front in &fronts {
        let differences = differences(&meaning(&front.export()), &expected);
        assert!(differences.is_empty(), "{offset}\n{}", differences.join("\n"));
    }
    // Check that the clocks were wrong indeed.
    let is_about = |said: i64, expected: i64| (said - expected).abs() < SLACK_MS;
    assert!(is_about(ahead(&trial, "record-2"), offset_ms), "{}", ahead(&trial, "record-2"));
    let undated = "http://undated.example/";
    for (front, by) in fronts.iter().zip([offset_ms, 0]) {
        assert!(pushed(front, undated, None)["outcome"].is_string());
        let dated: Timestamp = front.status(undated)["fetched_at"].as_str().unwrap().parse().unwrap();
        // A page without a date takes the coordinator's clock, and does not replace a version with a later
        // date.
        let dated = dated.millis() - now().millis();
        assert!(is_about(dated, by) || is_about(dated, offset_ms.max(0)), "{dated}");
    }

    // A coordinator refuses a page that is more than 24 hours ahead of its own clock, and says so.
    let in_hours = |hours: i64| Some(now().plus_millis(hours * HOUR_MS + HOUR_MS / 2));
    for (front, by) in fronts.iter().zip([offset_ms / HOUR_MS, 0]) {
        let refused = pushed(front, "http://future.example/", in_hours(24 + by));
        let reason = refused["error"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("is more than 24 hours ahead"), "{refused}");
        let taken = pushed(front, "http://future.example/", in_hours(22 + by));
        assert!(taken["outcome"].is_string(), "{taken}");
    }
    fronts[0].flush_patiently();
    all_is_well(&fronts[1]);
}

#[test]
fn a_cluster_survives_clocks_that_are_an_hour_ahead() {
    with_clocks_wrong(21, "+1h", HOUR_MS);
}

#[test]
fn a_cluster_survives_clocks_that_are_an_hour_behind() {
    with_clocks_wrong(22, "-1h", -HOUR_MS);
}
