//! Injects faults into a replicated cluster of real processes, while clients push pages and ask for their
//! statuses.
//!
//! The test kills and stops processes, deletes disks and cuts connections, in an order drawn from a seed.
//! Meanwhile no answer may be false. In the end no acknowledged page may be lost: the export must equal that
//! of one undisturbed process that received the same pages.
//!
//! `DOPPEL_FAULTS` sets the number of faults (default 10), and `DOPPEL_FAULT_SEED` repeats their order.
//! `DOPPEL_FAULT_STOP` is the longest time in seconds for which a process stops or a connection is cut
//! (default 6, and 30 from 30 faults on).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod faults {
    pub(crate) mod clients;
    pub(crate) mod crawl;
    pub(crate) mod fault;
    pub(crate) mod network;
    pub(crate) mod processes;
}

use std::sync::atomic::Ordering;
use std::thread;

use doppel_model::Timestamp;
use faults::clients::Clients;
use faults::crawl::Crawl;
use faults::fault::Faults;
use faults::processes::Cluster;
use harness::{Meaning, Server, differences, meaning, run_ok};
use serde_json::{Value, json};

const RANGES: u16 = 6;

/// From this number of faults on, faults last longer.
const LONG: u64 = 30;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// The meaning of the export of one process that received the same pages.
fn of_one_process(crawl: &Crawl, rounds: usize) -> Meaning {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    for round in 0..rounds {
        let pages: Vec<Value> = crawl.round(round).into_iter().map(|page| page.line).collect();
        server.push_all(&pages);
    }
    server.flush();
    meaning(&server.export())
}

#[test]
fn under_any_fault_no_acknowledged_page_is_lost_and_no_answer_is_false() {
    let count = number("DOPPEL_FAULTS").unwrap_or(10);
    let seed = number("DOPPEL_FAULT_SEED").unwrap_or_else(doppel_model::random_number);
    let stop_max = number("DOPPEL_FAULT_STOP").unwrap_or(if count < LONG { 6 } else { 30 }).max(3);
    let Some(mut cluster) = Cluster::start(RANGES) else { return };
    println!("{count} faults, DOPPEL_FAULT_SEED={seed}");
    let (crawl, clients) = (Crawl::new(seed), Clients::new(cluster.fronts()));
    thread::scope(|scope| {
        scope.spawn(|| clients.push(&crawl));
        for asker in [seed, !seed] {
            let clients = &clients;
            scope.spawn(move || clients.ask(asker));
        }
        Faults::new(&mut cluster, &clients, seed, stop_max).run(usize::try_from(count).unwrap());
        clients.stop();
    });
    let rounds = clients.rounds.load(Ordering::Relaxed);
    let said = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    println!(
        "{rounds} rounds, {} answers, of them {} duplicates and {} of replicas; {} requests not answered",
        said(&clients.answers),
        said(&clients.duplicates),
        said(&clients.old),
        said(&clients.refusals)
    );
    let violations = clients.violations();
    assert!(violations.is_empty(), "DOPPEL_FAULT_SEED={seed}\n{}", violations.join("\n"));
    assert!(said(&clients.duplicates) > 0, "no answer named a duplicate, so the test checked nothing");

    let fronts = [cluster.front(0), cluster.front(1)];
    fronts[0].flush_patiently();
    for (url, acknowledged) in clients.history.newest() {
        let answer = fronts[0].status(&url);
        assert_ne!(answer["status"], "unknown", "{url} was acknowledged and is lost");
        let kept = answer["fetched_at"].as_str().map(|date| date.parse::<Timestamp>().unwrap());
        assert!(kept.is_none_or(|kept| kept == acknowledged), "{acknowledged} was acknowledged: {answer}");
    }
    let expected = of_one_process(&crawl, rounds);
    for front in &fronts {
        let differences = differences(&meaning(&front.export()), &expected);
        assert!(differences.is_empty(), "DOPPEL_FAULT_SEED={seed}\n{}", differences.join("\n"));
    }
    let home = tempfile::tempdir().unwrap();
    let (file, dir) = (home.path().join("backup"), home.path().join("restored"));
    run_ok(["backup", "--server", &fronts[1].url, "--out", file.to_str().unwrap()]);
    run_ok(["restore", "--data", dir.to_str().unwrap(), file.to_str().unwrap()]);
    run_ok(["check", dir.to_str().unwrap()]);
    assert_eq!(fronts[0].ask("/v1/cluster", &[])["attention"], json!([]));
}
