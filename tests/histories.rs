//! Compares random histories with a model. Whatever happened to a collection, the answers of a server, a
//! cluster and a batch must be those of the model.
//!
//! A seed determines a history: pages of families around the threshold, copies, several versions with one
//! date, late versions, redirects, deaths, purges, and repairs. Each history has a policy, winner rules and a
//! layout of its own. It runs over HTTP against a process that is killed with `kill -9` in between, or
//! against a cluster whose owners are killed.
//!
//! At rest, the test compares every answer with a model that computes it in the most direct way: status,
//! group, winner, duplicate, similarity, rule, reason, and the replayed change feed. Then `doppel dedup` gets
//! the same versions in another order.
//!
//! `DOPPEL_HISTORIES` sets the number of histories (default 100), and `DOPPEL_HISTORY_SEED` the first seed
//! (default 0). `DOPPEL_HISTORY_CLUSTERS` sets the number of histories in clusters (default 1, if there is a
//! `nats-server`). A failing history is shrunk before it is printed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod histories {
    pub(crate) mod batch;
    pub(crate) mod front;
    pub(crate) mod history;
    pub(crate) mod model;
    pub(crate) mod served;
    pub(crate) mod shrink;
    pub(crate) mod texts;
}

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use histories::front::{Front as _, InCluster, OneProcess};
use histories::history::History;
use histories::model::{Mistake, Signatures};
use histories::served::Served;
use histories::{batch, shrink};

/// Number of histories that run at once. A history mostly waits for a disk, so this is more than the number
/// of processors.
const AT_ONCE: usize = 4;

/// From this number of histories on, each planted mistake of the model must cause a difference.
const FOR_MISTAKES: u64 = 60;

fn number(name: &str, usual: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return usual };
    text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}"))
}

/// Statistics of a run.
#[derive(Debug, Default)]
struct RunStatistics {
    noticed: BTreeSet<Mistake>,
    compared: usize,
    /// Number of pages of the largest component with contents, and number of all pages.
    largest: usize,
    pages: usize,
}

/// Runs a history in one process, and in batches.
fn in_one_process(history: &History) -> Result<RunStatistics, String> {
    let signatures = Signatures::of(history);
    let mut served = Served::new(history, &signatures);
    let data = served.file("data");
    let mut process = OneProcess::start(data.clone(), served.server_options());
    served.run(&mut process)?;
    if !process.terminate() {
        return Err("the server ended with an error".to_owned());
    }
    let checked = harness::run(["check".as_ref(), data.as_os_str()]);
    if !checked.status.success() {
        return Err(format!("doppel check: {}", String::from_utf8_lossy(&checked.stdout)));
    }
    batch::compare(&served)?;
    Ok(statistics(&served))
}

fn statistics(served: &Served<'_>) -> RunStatistics {
    let largest = served.model(None).largest();
    RunStatistics {
        noticed: served.noticed.clone(),
        compared: served.compared,
        largest,
        pages: served.page_count(),
    }
}

/// Runs a history, and returns the message of a panic as a difference.
fn guarded(
    run: impl Fn(&History) -> Result<RunStatistics, String>,
    history: &History,
) -> Result<RunStatistics, String> {
    catch_unwind(AssertUnwindSafe(|| run(history))).unwrap_or_else(|panic| Err(message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

#[test]
fn in_a_process_every_answer_follows_from_the_versions() {
    let (first, count) = (number("DOPPEL_HISTORY_SEED", 0), number("DOPPEL_HISTORIES", 100));
    let next = AtomicU64::new(first);
    let (all, failed) = (Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= first + count {
                        break;
                    }
                    match guarded(in_one_process, &History::of(seed)) {
                        Ok(statistics) => all.lock().unwrap().push(statistics),
                        Err(difference) => {
                            eprintln!("seed {seed}: {difference}");
                            failed.lock().unwrap().insert(seed, difference);
                        }
                    }
                }
            });
        }
    });
    let (all, failed) = (all.into_inner().unwrap(), failed.into_inner().unwrap());
    let sum = |of: fn(&RunStatistics) -> usize| all.iter().map(of).sum::<usize>();
    let largest = all.iter().map(|statistics| statistics.largest).max().unwrap_or_default();
    println!(
        "{count} histories from DOPPEL_HISTORY_SEED={first}: {} pages, {} answers compared, up to {largest} contents in a group, {} \
         histories with differences: {:?}",
        sum(|statistics| statistics.pages),
        sum(|statistics| statistics.compared),
        failed.len(),
        failed.keys(),
    );
    if let Some((seed, _)) = failed.first_key_value() {
        let smallest = shrink::smallest(History::of(*seed), |history| guarded(in_one_process, history).err());
        panic!("{} of {count} histories failed; the first of them, shrunk:\n{smallest}", failed.len());
    }
    if count >= FOR_MISTAKES {
        let noticed: BTreeSet<Mistake> =
            all.iter().flat_map(|statistics| &statistics.noticed).copied().collect();
        let all: BTreeSet<Mistake> = Mistake::ALL.into();
        assert_eq!(noticed, all, "a model with each of these mistakes must differ from some answer");
    }
}

#[test]
fn in_a_cluster_every_answer_follows_from_the_versions() {
    let (first, count) = (number("DOPPEL_HISTORY_SEED", 0), number("DOPPEL_HISTORY_CLUSTERS", 1));
    for seed in first..first + count {
        let history = History::of_cluster(seed);
        let signatures = Signatures::of(&history);
        let mut served = Served::new(&history, &signatures);
        let Some(mut cluster) = InCluster::start(seed, &served.options()) else { return };
        if let Err(difference) = served.run(&mut cluster).and_then(|()| batch::compare(&served)) {
            panic!("in a cluster: {difference}\n{history}");
        }
        let RunStatistics { compared, largest, pages, .. } = statistics(&served);
        println!(
            "cluster of DOPPEL_HISTORY_SEED={seed}: {} kills, {pages} pages, {compared} answers compared, up to {largest} contents in a \
             group",
            cluster.kills
        );
        assert!(cluster.kills > 0 && cluster.is_cluster());
    }
}
