//! Moves a node's only partition to another node while pages arrive. No page is lost or stored twice, the
//! groups are correct, and queries do not wait for the move, even if the process is killed in the middle.
//!
//! `DOPPEL_MOVE` sets the approximate number of signatures in the partition. The default is small; 1,000,000
//! is the size that matters. The test prints how long the move took, and the latency of status queries before
//! and during the move:
//!
//! `DOPPEL_MOVE=1000000 cargo test --release --test moving -- --nocapture`
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use harness::asker::Asker;
use harness::pages::{Random, near_copy, text};
use harness::{OwnServer, PATIENCE, Server, json_of, wait_until};
use serde_json::{Value, json};

/// Pages submitted per second.
const STREAM: u64 = 2_000;

/// Batches per second.
const BATCHES: u64 = 20;

/// Every `ANCHORS`-th page never changes: other pages are near copies of it, and the test queries it.
const ANCHORS: u64 = 10;

fn size() -> u64 {
    std::env::var("DOPPEL_MOVE").map_or(2_000, |text| text.parse().expect("DOPPEL_MOVE is a number"))
}

/// A stream of pages that appear, change and disappear, and the state that must result.
struct Stream {
    random: Random,
    seconds: u64,
    /// The content of every live page by its number: a seed, and the variant if it is a near copy.
    live: BTreeMap<u64, (u64, Option<u64>)>,
    next_page: u64,
    next_seed: u64,
}

impl Stream {
    fn new() -> Self {
        Self { random: Random::new(5), seconds: 0, live: BTreeMap::new(), next_page: 0, next_seed: 0 }
    }

    fn page(&mut self, number: u64, content: (u64, Option<u64>)) -> Value {
        let mut words = text(content.0, 60);
        if let Some(copy) = content.1 {
            words = near_copy(&words, copy);
        }
        self.live.insert(number, content);
        json!({"url": url(number), "fetched_at": self.date(), "text": words.join(" ")})
    }

    fn date(&self) -> String {
        let minutes = self.seconds / 60;
        let (days, hours) = (minutes / 1_440, minutes / 60 % 24);
        format!(
            "2024-{:02}-{:02}T{hours:02}:{:02}:{:02}Z",
            1 + days / 28,
            1 + days % 28,
            minutes % 60,
            self.seconds % 60
        )
    }

    fn new_page(&mut self) -> Value {
        self.next_page += 1;
        self.next_seed += 1;
        self.page(self.next_page - 1, (self.next_seed, None))
    }

    /// A new page, a near copy of an anchor, new content for a page, or the deletion of a page.
    fn any_page(&mut self) -> Value {
        self.seconds += 1;
        let number = 1 + self.random.index(usize::try_from(self.next_page - 1).unwrap()) as u64;
        match self.random.index(10) {
            0 if !number.is_multiple_of(ANCHORS) => {
                self.live.remove(&number);
                json!({"url": url(number), "fetched_at": self.date(), "dead": true})
            }
            1 if !number.is_multiple_of(ANCHORS) => {
                self.next_seed += 1;
                self.page(number, (self.next_seed, None))
            }
            2 | 3 => {
                let anchor = number - number % ANCHORS;
                // The test queries the first anchors, which must stay unique.
                let anchor = if anchor < 100 * ANCHORS { 100 * ANCHORS } else { anchor };
                let seed = self.live[&anchor].0;
                self.next_page += 1;
                self.page(self.next_page - 1, (seed, Some(self.next_page)))
            }
            _ => self.new_page(),
        }
    }

    /// Submits batches until `until` returns true. Returns the rate in pages per second.
    fn run(&mut self, server: &Server, mut until: impl FnMut() -> bool) -> f64 {
        let (began, mut batches) = (Instant::now(), 0);
        while !until() {
            let pages: Vec<Value> = (0..STREAM / BATCHES).map(|_| self.any_page()).collect();
            server.push_all(&pages);
            batches += 1;
            let due = began + Duration::from_secs(1) * batches / u32::try_from(BATCHES).unwrap();
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        f64::from(batches) * (STREAM / BATCHES) as f64 / began.elapsed().as_secs_f64()
    }

    /// Checks that every live page exists exactly once and has the right group.
    fn check(&self, server: &Server) {
        server.flush();
        let contents: std::collections::BTreeSet<_> = self.live.values().collect();
        let nodes = contents_by_node(server);
        assert_eq!(nodes.values().sum::<u64>(), contents.len() as u64, "{nodes:?}");
        let copies: Vec<(&u64, &(u64, Option<u64>))> =
            self.live.iter().filter(|(_, content)| content.1.is_some()).collect();
        let anchors: BTreeMap<u64, u64> = self
            .live
            .iter()
            .filter(|(n, c)| n.is_multiple_of(ANCHORS) && c.1.is_none())
            .map(|(n, c)| (c.0, *n))
            .collect();
        for (number, content) in copies.iter().step_by(copies.len().div_ceil(300).max(1)) {
            let (copy, anchor) = (server.status(&url(**number)), server.status(&url(anchors[&content.0])));
            assert!(copy["group"].is_string() && copy["group"] == anchor["group"], "{copy} {anchor}");
        }
    }
}

fn url(number: u64) -> String {
    format!("http://site{}.example/{number}", number % 97)
}

/// The number of contents on each node that has any.
fn contents_by_node(server: &Server) -> BTreeMap<u64, u64> {
    let load = server.ask("/v1/reports/load-balance", &[]);
    let mut nodes = BTreeMap::new();
    for partition in load["partitions"].as_array().unwrap() {
        let node = partition["node"].as_u64().unwrap();
        *nodes.entry(node).or_insert(0) += partition["contents"].as_u64().unwrap();
    }
    nodes.retain(|_, contents| *contents > 0);
    nodes
}

/// Requests a change of the mapping. Waits first if the service is changing the mapping itself.
fn start_change(server: &Server, action: &str, node: u64) -> Value {
    let body = json!({"action": action, "node": node}).to_string();
    let started = wait_until("the service to accept a change of the mapping", PATIENCE, || {
        let response = server.post("/v1/rebalance", "application/json", body.clone());
        (response.status() != 409).then(|| json_of(response))
    });
    assert_eq!(started["started"], true, "{started}");
    started
}

fn is_moving(server: &Server) -> bool {
    !server.ask("/v1/rebalance", &[])["progress"].is_null()
}

/// Two nodes, each with one partition of about `size` signatures.
fn filled(server: &Server, size: u64) -> Stream {
    let mut stream = Stream::new();
    let mut left = 2 * size;
    while left > 0 {
        let some = left.min(500);
        let pages: Vec<Value> = (0..some).map(|_| stream.new_page()).collect();
        server.push_all(&pages);
        left -= some;
    }
    server.flush();
    stream
}

const NODES: [&str; 4] = ["--index-nodes", "2", "--partitions", "1"];

#[test]
fn a_partition_moves_while_pages_stream_in() {
    let size = size();
    let server = OwnServer::start(&NODES);
    let mut stream = filled(&server, size);
    assert_eq!(contents_by_node(&server).len(), 2);
    let anchor = |n: u64| url(n % 100 * ANCHORS);

    let before = Asker::start(&server, anchor);
    let (began, length) = (Instant::now(), if size > 100_000 { 20 } else { 2 });
    let rate_before = stream.run(&server, || began.elapsed() > Duration::from_secs(length));
    let before = before.stop();

    let meanwhile = Asker::start(&server, anchor);
    let change = start_change(&server, "drain", 0);
    // The move may also join partitions that the service has split on its own.
    assert_eq!(change["splits"], 0, "nothing is split for one node: {change}");
    let moved = change["contents_moved"].as_u64().unwrap();
    assert!(moved >= size / 2, "{moved}");
    let began = Instant::now();
    // Continue for a while after the move, so that dropping the old partition is included.
    let mut ended: Option<Instant> = None;
    let rate = stream.run(&server, || {
        if ended.is_none() && !is_moving(&server) {
            ended = Some(Instant::now());
        }
        ended.is_some_and(|ended| ended.elapsed() > Duration::from_secs(2))
    });
    let meanwhile = meanwhile.stop();
    let took = ended.unwrap() - began;
    println!(
        "{moved} signatures moved in {:.1} s while {rate:.0} pages/s came ({rate_before:.0} before); status p99 {before:.1} ms before, {meanwhile:.1} ms meanwhile",
        took.as_secs_f64()
    );
    stream.check(&server);
    assert_eq!(contents_by_node(&server).keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn a_change_interrupted_by_a_kill_is_completed_after_the_restart() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path(), &NODES);
    let mut stream = filled(&server, 1_500);
    let actions = [("drain", 0), ("join", 0), ("drain", 1), ("join", 1), ("drain", 0), ("join", 0)];
    for (turn, (action, node)) in actions.into_iter().enumerate() {
        start_change(&server, action, node);
        let (began, pause) = (Instant::now(), Duration::from_millis(10 << turn));
        stream.run(&server, || began.elapsed() > pause);
        server.kill();
        server = Server::start(data.path(), &NODES);
        wait_until("the interrupted change to be completed", PATIENCE, || {
            (!is_moving(&server)).then_some(())
        });
        let nodes = contents_by_node(&server);
        assert_eq!(nodes.contains_key(&node), action == "join", "{action} {node}: {nodes:?}");
        stream.check(&server);
    }
}
