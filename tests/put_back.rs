//! A shared log whose servers have all lost acknowledged entries. The nodes that have copied the entries
//! write them back to the log.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::pages::rounds;
use harness::trial::Trial;
use harness::{all_is_well, meaning, of_one_process, run_ok};
use serde_json::Value;

/// Replaces the directory `to` by a copy of `from`.
fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// All servers of the log lose power at once, and with it the acknowledged entries that they had not written
/// to disk. The test simulates this by replacing their directories with older copies. The nodes of tier 1
/// keep running, and in the last turn they are restarted as well.
#[test]
fn entries_that_all_servers_of_the_log_lost_are_written_back() {
    const SERVERS: [&str; 3] = ["log-1", "log-2", "log-3"];
    const RECORDS: [&str; 3] = ["record-1", "record-2", "record-3"];
    let rounds = rounds(11, 60, 5);
    let expected = of_one_process(&rounds);
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    // Choose settlement by a standby, so that a node has copied every settled commit.
    if !trial.settles_by_standby() {
        let file = trial.data("cluster.toml");
        run_ok(["cluster", "log", "--cluster", file.to_str().unwrap(), "--settlement", "standby"]);
        for name in [&RECORDS[..], &["index-1", "front-1"]].concat() {
            trial.kill(name);
            trial.start(name);
        }
    }
    let front = &trial.coordinators()[0];
    let old = |name: &str| trial.data(&format!("old-{name}"));
    let push = |pages: &[Value]| pages.chunks(30).for_each(|batch| front.push_patiently(batch));
    push(&rounds[0]);
    for (turn, pages) in rounds[1..].iter().enumerate() {
        all_is_well(front);
        if turn % 2 == 0 {
            SERVERS.iter().for_each(|name| trial.kill(name));
            SERVERS.iter().for_each(|name| copy(&trial.data(name), &old(name)));
            SERVERS.iter().for_each(|name| trial.start(name));
            push(pages);
            continue;
        }
        // The servers will lose the pages of the previous round and the first half of this one.
        push(&pages[..pages.len() / 2]);
        SERVERS.iter().for_each(|name| trial.kill(name));
        if turn == 3 {
            RECORDS.iter().for_each(|name| trial.kill(name));
        }
        SERVERS.iter().for_each(|name| copy(&old(name), &trial.data(name)));
        SERVERS.iter().for_each(|name| trial.start(name));
        if turn == 3 {
            RECORDS.iter().for_each(|name| trial.start(name));
        }
        push(&pages[pages.len() / 2..]);
        front.flush_patiently();
    }
    assert_eq!(meaning(&front.export()), expected);
    all_is_well(front);
    let said = RECORDS.map(|name| fs::read_to_string(trial.data(name).with_extension("log")).unwrap());
    assert!(
        said.concat().contains("the log has the lost entries again"),
        "no node wrote lost entries back to the log"
    );
}
