//! Measures what a page costs a replicated cluster: bytes on each connection between roles, and processor
//! time of each role. Three kinds of load are measured: new pages, unchanged pages, and pages whose text has
//! changed.
//!
//! `DOPPEL_COST` sets the number of pages; the default is small. The test prints all figures:
//!
//! `DOPPEL_COST=100000 cargo test --release --test cost -- --nocapture`
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use harness::metrics::Samples;
use harness::pages::text;
use harness::trial::Trial;
use harness::{Server, all_is_well};
use serde_json::{Value, json};

/// Number of words of a page. `BATCH` is the number of pages in a request.
const WORDS: usize = 150;
const BATCH: usize = 500;

/// Unit of the kernel's count of processor time, in ticks per second.
const TICKS: f64 = 100.0;

const ROLES: [(&str, &str); 4] =
    [("coordinators", "coordinators"), ("tier 1", "tier1"), ("tier 2", "tier2"), ("log servers", "engine")];

/// Connections whose bytes are counted: a description, the name prefix of the processes that count them, the
/// calls, and the direction.
const WAYS: [(&str, &str, &str, &str); 10] = [
    ("coordinators to tier 1", "front-", "tier1/", "sent"),
    ("tier 1 to coordinators", "front-", "tier1/", "received"),
    ("tier 1 to tier 1, about ranges", "record-", "range-owner/", "sent"),
    ("tier 1 to tier 1, orders for the index", "record-", "tier2/", "sent"),
    ("tier 1 to tier 2", "record-", "index-node/", "sent"),
    ("tier 2 to tier 1", "record-", "index-node/", "received"),
    ("tier 1 to tier 2, signatures asked for", "index-", "tier1/signatures", "received"),
    ("tier 1 to the log", "record-", "log", "sent"),
    ("the log to tier 1", "record-", "log", "received"),
    ("the log to others", "", "log", "received"),
];

/// All counters at one moment.
struct Counts {
    client: f64,
    ways: Vec<f64>,
    streams: f64,
    processor: Vec<f64>,
}

fn sum(samples: &Samples, node: &str, call: &str, direction: &str) -> f64 {
    let (node, call) = (format!("{{node=\"{node}"), format!("call=\"{call}"));
    samples.sum("doppel_wire_bytes_total", &[&node, &call, &format!("direction=\"{direction}\"")])
}

impl Counts {
    fn of(trial: &Trial, fronts: &[Server]) -> Self {
        // Wait until the status that the coordinators cache is fetched again.
        thread::sleep(Duration::from_millis(300));
        // Each coordinator reports the figures of all nodes of both tiers, and of itself.
        let samples: Vec<Samples> = fronts.iter().map(Samples::of).collect();
        let bytes = |&(_, node, call, direction): &(&str, &str, &str, &str)| match (node, call) {
            ("front-", call) => samples.iter().map(|samples| sum(samples, node, call, direction)).sum(),
            ("", call) => {
                let fronts: f64 = samples.iter().map(|samples| sum(samples, "front-", call, direction)).sum();
                fronts + sum(&samples[0], "index-", call, direction)
            }
            (node, call) => sum(&samples[0], node, call, direction),
        };
        let ways = WAYS.iter().map(bytes).collect();
        let client = |samples: &Samples| samples.sum("doppel_coordinator_ingest_bytes_total", &[]);
        let processor = ROLES
            .iter()
            .map(|(_, role)| trial.names(role).iter().map(|name| processor_seconds(trial.pid(name))).sum());
        Self {
            client: samples.iter().map(client).sum(),
            ways,
            streams: samples[0].sum("doppel_cluster_stream_bytes", &[]),
            processor: processor.collect(),
        }
    }
}

/// Processor time that a process has used so far, in seconds.
fn processor_seconds(pid: i32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The program's name, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

fn lines(pages: u64, round: u64) -> Vec<Value> {
    let date = format!("2026-01-{:02}T00:00:00Z", round + 1);
    let page = |n: u64| {
        let mut words = text(n, WORDS);
        if round == 2 {
            // Replace two thirds of the words.
            words.splice(WORDS / 3.., text(n + pages, WORDS - WORDS / 3));
        }
        json!({"url": format!("http://site{}.example/{n}", n % 97), "fetched_at": date, "text": words.join(" ")})
    };
    (0..pages).map(page).collect()
}

fn load(fronts: &[Server], lines: &[Value]) {
    thread::scope(|scope| {
        for (front, lines) in fronts.iter().zip(lines.chunks(lines.len().div_ceil(fronts.len()))) {
            scope.spawn(|| lines.chunks(BATCH).for_each(|batch| front.push_patiently(batch)));
        }
    });
    fronts[0].flush_patiently();
}

#[test]
fn the_cost_of_a_page_is_measured_on_every_connection() {
    let pages: u64 = std::env::var("DOPPEL_COST").map_or(2_000, |pages| pages.parse().unwrap());
    let options = ["--tier1", "3", "--tier2", "4", "--coordinators", "2", "--log-max-bytes", "4294967296"];
    let Some(trial) = Trial::replicated(&options) else { return };
    let fronts = trial.coordinators();
    all_is_well(&fronts[0]);
    // Count the traffic without a load first: beats, questions about the state, heartbeats.
    let (before, began) = (Counts::of(&trial, &fronts), Instant::now());
    thread::sleep(Duration::from_secs(2));
    let after = Counts::of(&trial, &fronts);
    let idle: Vec<f64> = after.ways.iter().zip(&before.ways).map(|(after, before)| after - before).collect();
    println!(
        "a second without a load, in bytes: {:.0}",
        idle.iter().sum::<f64>() / began.elapsed().as_secs_f64()
    );
    for (round, what) in (0..).zip(["new", "unchanged", "changed"]) {
        let lines = lines(pages, round);
        let (before, began) = (Counts::of(&trial, &fronts), Instant::now());
        load(&fronts, &lines);
        let seconds = began.elapsed().as_secs_f64();
        let after = Counts::of(&trial, &fronts);
        let each = |after: f64, before: f64| (after - before) / pages as f64;
        println!("{pages} pages that are {what}, in {seconds:.1} s; for each page");
        println!("  {:>10.0} bytes  clients to coordinators", each(after.client, before.client));
        for ((what, ..), (after, before)) in WAYS.iter().zip(after.ways.iter().zip(&before.ways)) {
            println!("  {:>10.0} bytes  {what}", each(*after, *before));
        }
        let log = each(after.streams, before.streams);
        println!("  {log:>10.0} bytes  in the streams, at each log server that has a copy");
        for ((what, _), (after, before)) in ROLES.iter().zip(after.processor.iter().zip(&before.processor)) {
            println!("  {:>10.0} µs     of processor, {what}", each(*after, *before) * 1e6);
        }
        let way = |what: &str| {
            let at = WAYS.iter().position(|(way, ..)| *way == what).unwrap();
            each(after.ways[at], before.ways[at])
        };
        assert!(
            way("coordinators to tier 1") > 10.0 && way("tier 1 to the log") > 10.0 && log > 10.0,
            "{what}"
        );
        if what != "unchanged" {
            assert!(way("tier 1 to tier 2") > 100.0, "{what}");
            // A record goes once to the log, and from the log to a standby.
            assert!(way("tier 1 to the log") > log / 2.0 && way("the log to tier 1") > log / 2.0, "{what}");
        }
    }
}
