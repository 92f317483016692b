//! Measures how long the ranges of a killed node of tier 1 have no owner, and how much longer questions about
//! other ranges take meanwhile.
//!
//! The test kills one owner by default. `DOPPEL_TAKEOVERS` sets how many owners it kills; it then kills as
//! many once more, each together with the log server that leads one of their streams. It prints all figures,
//! and only demands that no question fails:
//!
//! `DOPPEL_TAKEOVERS=50 cargo test --release --test takeover -- --nocapture`
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doppel_contract::client::{Client, Method};
use doppel_model::PageUrl;
use harness::trial::Trial;
use harness::{Server, all_is_well, lines_of, run_ok};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const PAGES: usize = 600;

/// Number of threads that ask questions. `PAUSE` is the time between an answer and the next question.
const ASKERS: usize = 2;
const PAUSE: Duration = Duration::from_millis(5);

/// How long a client retries a question, as the command line does.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the test asks questions before a kill (`QUIET`), and after the last range has an owner again
/// (`AFTER`).
const QUIET: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_millis(500);

/// Time limit for a takeover.
const LIMIT: Duration = Duration::from_secs(120);

fn page(n: usize) -> String {
    format!("http://site.example/{n}")
}

fn line(n: usize) -> Value {
    json!({"url": page(n), "text": format!("page number {n}"), "fetched_at": "2026-01-01T00:00:00Z"})
}

/// The cluster, and the pages of each range.
struct Stage {
    trial: Trial,
    front: Server,
    pages: Vec<Vec<usize>>,
}

/// Figures that the test measures.
#[derive(Default)]
struct Measurements {
    /// Milliseconds until a page of each range was accepted again.
    without_owner: Vec<f64>,
    /// Latencies of questions in milliseconds, before a kill (`quiet`) and during a takeover (`meanwhile`).
    quiet: Vec<f64>,
    meanwhile: Vec<f64>,
}

impl Stage {
    fn status(&self) -> Value {
        self.front.ask("/v1/cluster", &[])
    }

    /// The owner of every range.
    fn owners(&self) -> Vec<String> {
        let status = self.status();
        let ranges = status["ranges"].as_array().unwrap().iter();
        ranges.map(|range| range["owner"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Kills the owner of a range, together with the leader of its stream if `with_leader`. Restores all
    /// processes before it returns.
    fn kill_owner(&self, range: usize, with_leader: bool, measured: &mut Measurements) {
        all_is_well(&self.front);
        let (status, owners) = (self.status(), self.owners());
        let victim = &owners[range];
        let (mut dead, mut others): (Vec<usize>, Vec<usize>) = Default::default();
        for (at, owner) in owners.iter().enumerate() {
            if owner == victim { dead.push(at) } else { others.push(at) }
        }
        let others: Vec<usize> = others.iter().flat_map(|range| &self.pages[*range]).copied().collect();
        assert!(!others.is_empty(), "{victim} owns all ranges");
        let leader = status["engine"]["streams"][range]["leader"].as_str().unwrap();
        let names: Vec<&str> = if with_leader { vec![victim, leader] } else { vec![victim] };
        let pids: Vec<Pid> = names.iter().map(|name| Pid::from_raw(self.trial.pid(name)).unwrap()).collect();

        let (quiet, stop) = (AtomicBool::new(true), AtomicBool::new(false));
        let times = Mutex::new((Vec::new(), Vec::new()));
        thread::scope(|scope| {
            for asker in 0..ASKERS {
                let (others, quiet, stop, times) = (&others, &quiet, &stop, &times);
                scope.spawn(move || self.ask(others, asker, quiet, stop, times));
            }
            thread::sleep(QUIET);
            quiet.store(false, Ordering::SeqCst);
            let began = Instant::now();
            pids.iter().for_each(|pid| kill_process(*pid, Signal::KILL).unwrap());
            let until_taken = |range: &usize| {
                let pages = &self.pages[*range];
                move || self.until_taken(pages[0], began)
            };
            let taken: Vec<_> = dead.iter().map(|range| scope.spawn(until_taken(range))).collect();
            measured.without_owner.extend(taken.into_iter().map(|taken| taken.join().unwrap()));
            thread::sleep(AFTER);
            stop.store(true, Ordering::SeqCst);
        });
        let (mut before, mut meanwhile) = times.into_inner().unwrap();
        measured.quiet.append(&mut before);
        measured.meanwhile.append(&mut meanwhile);
        names.iter().for_each(|name| self.trial.start(name));
        self.front.flush_patiently();
        all_is_well(&self.front);
        // Return the ranges, so that the next kill does not find all of them at one node.
        for (range, owner) in owners.iter().enumerate() {
            if self.owners()[range] != *owner {
                run_ok([
                    "cluster",
                    "takeover",
                    "--range",
                    &range.to_string(),
                    "--to",
                    owner,
                    "--server",
                    &self.front.url,
                ]);
            }
        }
    }

    /// Milliseconds until the range of a page accepts it.
    fn until_taken(&self, page: usize, began: Instant) -> f64 {
        loop {
            let body = format!("{}\n", line(page));
            let response = self.front.post("/v1/pages", "application/x-ndjson", body);
            let is_taken =
                response.status() == 200 && lines_of(&response.text().unwrap())[0]["outcome"].is_string();
            if is_taken {
                return milliseconds(began);
            }
            assert!(began.elapsed() < LIMIT, "no owner accepts page {page} within {LIMIT:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Asks about one page after another, as the command line does, and records the latency of each answer.
    fn ask(
        &self,
        pages: &[usize],
        asker: usize,
        quiet: &AtomicBool,
        stop: &AtomicBool,
        times: &Mutex<(Vec<f64>, Vec<f64>)>,
    ) {
        let client = Client::new(&self.front.url).unwrap();
        let mut turn = asker * pages.len() / ASKERS;
        while !stop.load(Ordering::SeqCst) {
            let url = page(pages[turn % pages.len()]);
            turn += 1;
            let (is_quiet, began) = (quiet.load(Ordering::SeqCst), Instant::now());
            let request = client.request(Method::GET, &["v1", "status"]).query(&[("url", &url)]);
            let answer = client.ask_patiently::<Value>(&request, PATIENCE);
            let answer = answer.unwrap_or_else(|error| panic!("a question about {url} failed: {error}"));
            assert_eq!(answer.value["status"], "unique", "{}", answer.text);
            let took = milliseconds(began);
            let mut times = times.lock().unwrap();
            // A question that was asked before the kill and answered after it counts as asked during the
            // takeover.
            let to = if is_quiet && quiet.load(Ordering::SeqCst) { &mut times.0 } else { &mut times.1 };
            to.push(took);
            drop(times);
            thread::sleep(PAUSE);
        }
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// The figure at the given share (0 to 1) of all figures in ascending order.
fn percentile(figures: &mut [f64], share: f64) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[((figures.len() - 1) as f64 * share).round() as usize]
}

impl Measurements {
    fn print(mut self, what: &str) {
        let of = |figures: &mut [f64]| [0.5, 0.99, 1.0].map(|share| percentile(figures, share));
        let (count, [half, most, max]) = (self.without_owner.len(), of(&mut self.without_owner));
        println!(
            "{what}: {count} ranges without an owner for p50 {half:.0} ms, p99 {most:.0} ms, max {max:.0} ms"
        );
        let (quiet, meanwhile) = (self.quiet.len(), self.meanwhile.len());
        let ([_, before, before_max], [_, then, then_max]) = (of(&mut self.quiet), of(&mut self.meanwhile));
        println!(
            "  questions about pages of other ranges: none of {meanwhile} failed; p99 {then:.1} ms meanwhile (max {then_max:.0}), \
             {before:.1} ms before (max {before_max:.0}, of {quiet}): {:.2} times",
            then / before
        );
    }
}

#[test]
fn writes_resume_after_an_owner_dies_and_no_question_fails() {
    let times = std::env::var("DOPPEL_TAKEOVERS").ok().map(|times| times.parse::<usize>().unwrap());
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let front = trial.coordinators().remove(0);
    let lines: Vec<Value> = (0..PAGES).map(line).collect();
    front.push_patiently(&lines);
    front.flush_patiently();
    all_is_well(&front);
    let status = front.ask("/v1/cluster", &[]);
    let ranges = status["ranges"].as_array().unwrap();
    let bounds: BTreeMap<u64, usize> =
        (0..).zip(ranges).map(|(at, range)| (range["first_shard"].as_u64().unwrap(), at)).collect();
    let shards = ranges.last().unwrap()["last_shard"].as_u64().unwrap() as u16 + 1;
    let mut pages = vec![Vec::new(); ranges.len()];
    for n in 0..PAGES {
        let shard = PageUrl::parse(&page(n)).unwrap().id().shard(shards);
        let (_, range) = bounds.range(..=u64::from(shard.0)).next_back().unwrap();
        pages[*range].push(n);
    }
    assert!(pages.iter().all(|pages| !pages.is_empty()), "every range must have pages");
    let stage = Stage { trial, front, pages };
    let turns = times.unwrap_or(1);
    let mut alone = Measurements::default();
    (0..turns).for_each(|turn| stage.kill_owner(turn % stage.pages.len(), false, &mut alone));
    alone.print(&format!("{turns} times the owner was killed"));
    if times.is_some() {
        let mut together = Measurements::default();
        (0..turns).for_each(|turn| stage.kill_owner(turn % stage.pages.len(), true, &mut together));
        together.print(&format!("{turns} times with the leader of a stream of it"));
    }
    for n in 0..PAGES {
        assert_eq!(stage.front.status(&page(n))["status"], "unique");
    }
}
