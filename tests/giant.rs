//! Giant groups: they merge, are repaired, lose their winner, and follow thousands of redirects, while the
//! test queries other pages all the time. Long chains, in which every other page is kept: they grow, lose
//! their winner, and break.
//!
//! `DOPPEL_GIANT` sets the size of the group to merge, and the other sizes follow from it: a chain has a
//! fifth of the pages. The default is small; 50,000 is the size that matters. The test prints the duration of
//! each operation, the memory, and the latency of status queries for other pages:
//!
//! `DOPPEL_GIANT=50000 cargo test --release --test giant -- --nocapture`
//!
//! `DOPPEL_EQUAL` sets the size of a group of equal pages that loses its winner while other pages arrive:
//!
//! `DOPPEL_EQUAL=1000000 cargo test --release --test giant equal -- --nocapture`
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use harness::OwnServer;
use harness::asker::Asker;
use harness::metrics::Samples;
use harness::pages::{Random, text};
use serde_json::{Value, json};

/// Number of unrelated pages that the test queries.
const OTHERS: u64 = 500;

/// Time limit for waiting. Pages that are near thousands of others take long to decide.
const PATIENCE: Duration = Duration::from_secs(900);

fn size() -> u64 {
    std::env::var("DOPPEL_GIANT").map_or(1_000, |text| text.parse().expect("DOPPEL_GIANT is a number"))
}

/// The 200 words of a page: one word is specific to the page, the others belong to its family. Two pages of a
/// family have J = 195 / 205. The first 24 words of family 1 differ from those of family 0 (J = 171 / 229),
/// and family 2 is between the two (J = 183 / 217 and 179 / 221).
fn words(family: u64, own: u64) -> String {
    let mut words = text(77, 200);
    let changed = [0, 24, 12][usize::try_from(family).unwrap()];
    for (at, word) in words.iter_mut().enumerate().take(changed) {
        *word = format!("other{at}");
    }
    words[100] = format!("own{own}");
    words.join(" ")
}

/// Submits pages one after another, in batches, with an increasing date.
struct Pusher<'s> {
    server: &'s OwnServer,
    seconds: u64,
}

impl Pusher<'_> {
    fn push(&mut self, pages: impl IntoIterator<Item = Value>) {
        self.seconds += 1;
        let date = format!("2024-01-{:02}T{:02}:00:00Z", 1 + self.seconds / 24, self.seconds % 24);
        let pages: Vec<Value> = pages
            .into_iter()
            .map(|mut page| {
                page["fetched_at"] = json!(date);
                page
            })
            .collect();
        for batch in pages.chunks(100) {
            self.server.push_all(batch);
        }
    }
}

/// Runs `act` while other pages are queried. Prints the time, and prints and returns the 99th percentile of
/// the query latency in milliseconds.
fn timed(server: &OwnServer, what: &str, act: impl FnOnce()) -> f64 {
    let asker = Asker::start(server, |n| {
        format!("http://other.example/{}", Random::new(n).index(usize::try_from(OTHERS).unwrap()))
    });
    let began = Instant::now();
    act();
    let took = began.elapsed();
    let p99 = asker.stop();
    let memory =
        server.peak_memory().map_or_else(String::new, |bytes| format!(", at most {} MB", bytes >> 20));
    println!("{what}: {:.1} s, status of other pages p99 {p99:.2} ms{memory}", took.as_secs_f64());
    p99
}

/// Starts a server with the pages that the test queries. Also returns the 99th percentile of their latency
/// without load.
fn with_others() -> (OwnServer, f64) {
    let server = OwnServer::start(&["--group-members-max", "1000000"]);
    let other = |page| json!({"url": format!("http://other.example/{page}"), "text": text(1_000 + page, 120).join(" ")});
    Pusher { server: &server, seconds: 0 }.push((0..OTHERS).map(other));
    server.flush_within(PATIENCE);
    let quiet = timed(&server, "quiet", || thread::sleep(Duration::from_secs(3)));
    (server, quiet)
}

fn url(family: u64, page: u64) -> String {
    format!("http://family{family}.example/{page:06}")
}

#[test]
fn giant_groups_settle_and_do_not_slow_other_queries() {
    let size = size();
    let (server, quiet) = with_others();
    let mut pusher = Pusher { server: &server, seconds: 1 };
    let mut random = Random::new(9);
    let mut worst = 0.0_f64;

    worst = worst.max(timed(&server, &format!("two groups of {}", size / 2), || {
        for family in [0, 1] {
            pusher.push(
                (0..size / 2).map(|page| json!({"url": url(family, page), "text": words(family, page)})),
            );
        }
        server.flush_within(PATIENCE);
    }));
    let group = |page: &str| server.status(page)["group"].as_str().unwrap().to_owned();
    assert_ne!(group(&url(0, 0)), group(&url(1, 0)));

    worst = worst.max(timed(&server, "one page merges them", || {
        pusher.push([json!({"url": url(2, 0), "text": words(2, 0)})]);
        server.flush_within(PATIENCE);
    }));
    let merged = group(&url(0, 0));
    assert_eq!(merged, group(&url(1, size / 2 - 1)));
    let members = server.ask(&format!("/v1/groups/{merged}"), &[])["members"].clone();
    assert_eq!(members, json!(size + 1));

    worst = worst.max(timed(&server, "its repair", || {
        let repaired = server.post_json(&format!("/v1/groups/{merged}/repair"), &json!({}));
        assert_eq!(repaired["applied"], true);
        server.flush_within(PATIENCE);
    }));

    worst = worst.max(timed(&server, &format!("{size} exact copies join"), || {
        let copy = |page| json!({"url": url(0, size + page), "text": words(0, 0)});
        pusher.push((0..size).map(copy));
        server.flush_within(PATIENCE);
    }));

    let winner = server.status(&url(0, size + 1))["winner"].as_str().unwrap().to_owned();
    worst = worst.max(timed(&server, &format!("the winner of {} losers dies", 2 * size), || {
        pusher.push([json!({"url": winner, "dead": true})]);
        server.flush_within(PATIENCE);
    }));
    let next = server.status(&url(0, size + 1))["winner"].as_str().unwrap().to_owned();
    assert_ne!(next, winner);
    assert_eq!(server.status(&next)["status"], "winner");

    worst = worst.max(timed(&server, "the bridge goes, and the group falls apart", || {
        pusher.push([json!({"url": url(2, 0), "dead": true})]);
        server.flush_within(PATIENCE);
    }));
    assert_ne!(group(&url(0, 5)), group(&url(1, 5)));

    let redirects = size / 5;
    worst = worst.max(timed(&server, &format!("{redirects} redirects to one page that moves"), || {
        let source = |page| json!({"url": format!("http://r.example/{page}"), "redirect_to": url(1, 7)});
        pusher.push((0..redirects).map(source));
        server.flush_within(PATIENCE);
        pusher.push([json!({"url": url(1, 7), "redirect_to": url(0, 8)})]);
        server.flush_within(PATIENCE);
    }));
    assert_eq!(group(&format!("http://r.example/{}", redirects - 1)), group(&url(0, 8)));

    worst = worst.max(timed(&server, "chains of 30 redirects", || {
        let hop = |n: u64| {
            let to = if n % 30 == 29 { url(0, 9) } else { format!("http://chain.example/{}", n + 1) };
            json!({"url": format!("http://chain.example/{n}"), "redirect_to": to})
        };
        pusher.push((0..size / 50).map(|n| n * 30).flat_map(|n| (n..n + 30).map(hop)));
        server.flush_within(PATIENCE);
    }));
    assert_eq!(server.status("http://chain.example/9")["reason"], "too_many_hops");
    assert_eq!(server.status("http://chain.example/10")["status"], "duplicate");

    worst = worst.max(timed(&server, "a page alternates between two groups", || {
        for turn in 0..size / 50 {
            let family = turn % 2;
            pusher.push([json!({"url": "http://flap.example/", "text": words(family, random.number())})]);
        }
        server.flush_within(PATIENCE);
    }));
    println!("p99 of other pages' status: quiet {quiet:.2} ms, at worst {worst:.2} ms");
}

/// Submits one page after another until `is_over`. Returns the time of each request in milliseconds, sorted.
fn push_meanwhile(server: &OwnServer, topic: u64, is_over: &AtomicBool) -> Vec<f64> {
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let number = topic + times.len() as u64;
        let page = json!({"url": format!("http://pushed.example/{number}"), "text": text(5_000 + number, 120).join(" ")});
        let began = Instant::now();
        server.push_all(&[page]);
        times.push(began.elapsed().as_secs_f64() * 1_000.0);
        thread::sleep(Duration::from_millis(5));
    }
    times.sort_by(f64::total_cmp);
    times
}

#[test]
fn equal_pages_lose_their_winner_while_others_push() {
    let size: u64 =
        std::env::var("DOPPEL_EQUAL").map_or(2_000, |text| text.parse().expect("DOPPEL_EQUAL is a number"));
    let (server, _) = with_others();
    let copy = |page| json!({"url": url(0, page), "text": words(0, 0)});
    for first in (0..size).step_by(1_000) {
        server.push_patiently(&(first..size.min(first + 1_000)).map(copy).collect::<Vec<_>>());
    }
    server.flush_within(PATIENCE);
    let winner = || server.status(&url(0, size - 1))["winner"].as_str().unwrap().to_owned();
    // The group is at rest once no message for the next step is in an outbox.
    let messages = || Samples::of(&server).get("doppel_tier1_outbox_messages").unwrap();
    let measured = |topic: u64, act: &dyn Fn()| {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let pushing = scope.spawn(|| push_meanwhile(&server, topic, &is_over));
            act();
            is_over.store(true, Ordering::Relaxed);
            let times = pushing.join().unwrap();
            let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
            println!(
                "{} pushes: p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms",
                times.len(),
                at(50),
                at(99),
                at(100)
            );
            at(99)
        })
    };
    let quiet = measured(0, &|| thread::sleep(Duration::from_secs(10)));
    let before = winner();
    let began = Instant::now();
    let meanwhile = measured(1_000_000, &|| {
        server.push_all(&[json!({"url": before, "dead": true})]);
        let mut calm = 0;
        while calm < 20 || winner() == before {
            assert!(
                began.elapsed() < PATIENCE,
                "after {PATIENCE:?} the group still sends messages to its members"
            );
            calm = if messages() == 0.0 { calm + 1 } else { 0 };
            thread::sleep(Duration::from_millis(20));
        }
    });
    println!(
        "the winner of {size} equal pages dies: {:.1} s; p99 of other pushes {meanwhile:.2} ms, quiet {quiet:.2} ms",
        began.elapsed().as_secs_f64()
    );
    server.flush_within(PATIENCE);
    assert_ne!(winner(), before);
    let group = server.status(&url(0, size - 1))["group"].as_str().unwrap().to_owned();
    let answer = server.ask(&format!("/v1/groups/{group}"), &[]);
    assert_eq!(answer["members"], json!(size - 1), "{answer}");
    assert_eq!(answer["quarantined"], json!(false), "{answer}");
}

/// Page `at` of a chain: 200 words, shifted by 12 words against the page before. J = 184 / 216 to the page
/// before, and 172 / 228 to the one before that.
fn link(at: u64) -> Value {
    let words: Vec<String> = (at * 12..at * 12 + 200).map(|word| format!("w{word}")).collect();
    json!({"url": url(3, at), "text": words.join(" ")})
}

/// Checks that every other page of a chain is a duplicate of the page before it.
fn is_covered(server: &OwnServer, chain: impl Iterator<Item = u64>) {
    let expected: Vec<Value> = chain
        .enumerate()
        .map(|(place, at)| {
            let status = [if place == 0 { "winner" } else { "secondary" }, "duplicate"][place % 2];
            let kept = if place % 2 == 0 { Value::Null } else { json!(url(3, at - 1)) };
            json!({"url": url(3, at), "status": status, "duplicate_of": kept})
        })
        .collect();
    for piece in expected.chunks(1_000) {
        let urls: Vec<&Value> = piece.iter().map(|page| &page["url"]).collect();
        let answers = server.post_json("/v1/status", &json!({"urls": urls}));
        for (expected, answer) in piece.iter().zip(answers["pages"].as_array().unwrap()) {
            for field in ["url", "status", "duplicate_of"] {
                assert_eq!(answer[field], expected[field], "{answer}");
            }
        }
    }
}

#[test]
fn long_chains_are_covered_and_do_not_slow_other_queries() {
    let length = size() / 5;
    let (server, quiet) = with_others();
    let mut pusher = Pusher { server: &server, seconds: 1 };
    let mut worst = 0.0_f64;
    worst = worst.max(timed(&server, &format!("a chain of {length}"), || {
        pusher.push((0..length).map(link));
        server.flush_within(PATIENCE);
    }));
    is_covered(&server, 0..length);

    worst = worst.max(timed(&server, "its winner dies, and every other page is kept now", || {
        pusher.push([json!({"url": url(3, 0), "dead": true})]);
        server.flush_within(PATIENCE);
    }));
    is_covered(&server, 1..length);

    let middle = length / 2;
    worst = worst.max(timed(&server, "it breaks in the middle", || {
        pusher.push([json!({"url": url(3, middle), "dead": true})]);
        server.flush_within(PATIENCE);
    }));
    is_covered(&server, 1..middle);
    is_covered(&server, middle + 1..length);

    worst = worst.max(timed(&server, "it closes, and one page after the other changes", || {
        pusher.push([link(middle)]);
        for at in 1..length.min(50) {
            pusher.push([json!({"url": url(3, at), "text": format!("gone {at}")})]);
            pusher.push([link(at)]);
        }
        server.flush_within(PATIENCE);
    }));
    is_covered(&server, 1..length);
    println!("p99 of other pages' status: quiet {quiet:.2} ms, at worst {worst:.2} ms");
}
