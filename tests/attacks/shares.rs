//! A client that takes all slots of a limited resource: flushes that wait, samples, what-if figures, and a
//! page with very many redirects that changes all the time. Meanwhile the server must decide other clients'
//! pages and answer their questions.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;

use super::flood::while_others_ask;
use super::harness::wait_until;
use super::{Door, PATIENCE, Server};

/// Variable with the number of redirects that the attacker records. 100,000 take too long for every run.
const REDIRECTS: &str = "DOPPEL_ATTACK_REDIRECTS";
const REDIRECTS_DEFAULT: usize = 4_000;

/// Number of changes of the redirects' target in one request.
const FLIPS: usize = 200;

/// Pause between two requests of a thread of the attacker. The threads share the processors with the server,
/// and the test measures what a request holds, not how many requests arrive.
const PAUSE: Duration = Duration::from_millis(20);

/// Duration of an attack.
const ATTACKED: Duration = Duration::from_secs(4);

const NDJSON: &str = "application/x-ndjson";
const TARGET: &str = "http://target.example/";

/// During an attack, answers to others may take `SLOWER` times as long as on a quiet server, or up to `SLOW`.
const SLOWER: u32 = 5;
const SLOW: Duration = Duration::from_millis(500);

/// Runs an attack while other clients send requests. Their answers must come soon, and their pages must be
/// decided within [`PATIENCE`].
fn attacked(door: &Door, what: &str, attack: impl Fn(&AtomicBool) + Sync) {
    let ended = AtomicBool::new(false);
    let waits = while_others_ask(door, what, || {
        thread::scope(|scope| {
            let attacks = scope.spawn(|| attack(&ended));
            let ends = Ends(&ended);
            let begin = Instant::now();
            let mut decided = 0;
            while begin.elapsed() < ATTACKED || decided < 3 {
                decide_one(door, &format!("http://well.example/{}/{decided}", what.replace(' ', "-")));
                decided += 1;
            }
            drop(ends);
            attacks.join().unwrap();
            println!("{what}: {decided} pages of others were decided");
        });
    });
    assert!(waits.during < SLOW.max(waits.quiet * SLOWER), "{what}: others wait too long: {waits:?}");
}

/// Sets the flag that ends an attack when it is dropped, so that the attack also ends if the test fails.
struct Ends<'e>(&'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Submits a new page of another client, and waits for its decision.
fn decide_one(door: &Door, url: &str) {
    let begin = Instant::now();
    let text: String = (0..30).fold(String::new(), |mut text, n| {
        let _ = write!(text, "{}{n} ", url.replace(|c: char| !c.is_alphanumeric(), ""));
        text
    });
    let page = serde_json::json!({"url": url, "text": text}).to_string();
    assert_eq!(door.post("/v1/pages", "application/json", page, &door.tokens.write).status(), 200);
    wait_until("a page of another client to be decided", PATIENCE, || {
        let status = door.send(Method::GET, &format!("/v1/status?url={url}"), Some(&door.tokens.read));
        let status: Value = status.json().unwrap();
        (status["status"] != "pending").then_some(())
    });
    assert!(begin.elapsed() < PATIENCE, "{url} was decided after {:?}", begin.elapsed());
}

/// Submits lines of pages until the server accepts all of them.
fn push(door: &Door, lines: &str, token: &str) {
    wait_until("pages to be taken", 12 * PATIENCE, || {
        let taken = door.http.post(format!("{}/v1/pages", door.server.url)).header("content-type", NDJSON);
        let taken = taken.body(lines.to_owned()).bearer_auth(token).timeout(12 * PATIENCE).send().unwrap();
        let (status, answers) = (taken.status().as_u16(), taken.text().unwrap());
        assert!([200, 429, 503].contains(&status), "{status}: {answers}");
        (status == 200 && !answers.contains("\"retry\"")).then_some(())
    });
}

fn flush(door: &Door) {
    wait_until("everything to be decided", 60 * PATIENCE, || {
        let flush = door.http.post(format!("{}/v1/flush?wait=true&timeout=60", door.server.url));
        let flush = flush.bearer_auth(&door.tokens.write).timeout(Duration::from_secs(90)).send().unwrap();
        (flush.json::<Value>().unwrap()["done"] == true).then_some(())
    });
}

#[test]
fn flushes_of_one_client_do_not_keep_others_from_flushing() {
    let door = Door::open(&[]);
    let attacker = &door.tokens.operate;
    let flush = |token: &str, seconds: u64| {
        door.send(Method::POST, &format!("/v1/flush?wait=true&timeout={seconds}"), Some(token))
            .status()
            .as_u16()
    };
    let refused = AtomicUsize::new(0);
    attacked(&door, "flushes", |ended| {
        thread::scope(|scope| {
            // Some page is always pending.
            scope.spawn(|| {
                let mut part = 0;
                while !ended.load(Ordering::Relaxed) {
                    let page = |n| {
                        format!(
                            "{{\"url\":\"http://busy.example/{part}/{n}\",\"text\":\"busy {part} {n}\"}}\n"
                        )
                    };
                    push(&door, &(0..50).map(page).collect::<String>(), attacker);
                    part += 1;
                    thread::sleep(PAUSE);
                }
            });
            for _ in 0..10 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        let status = flush(attacker, 1);
                        assert!([200, 429].contains(&status), "{status}");
                        refused.fetch_add(usize::from(status == 429), Ordering::Relaxed);
                        thread::sleep(PAUSE);
                    }
                });
                scope.spawn(|| {
                    let request = format!(
                        "POST /v1/flush?wait=true&timeout=3600 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {attacker}\r\n\
                         content-length: 0\r\n\r\n"
                    );
                    while !ended.load(Ordering::Relaxed) {
                        // The client closes the connection before the answer arrives.
                        door.connect().write_all(request.as_bytes()).unwrap();
                        thread::sleep(Duration::from_millis(200));
                    }
                });
            }
            while !ended.load(Ordering::Relaxed) {
                assert_eq!(flush(&door.tokens.write, 1), 200, "another client must still be able to flush");
            }
        });
    });
    assert!(refused.load(Ordering::Relaxed) > 0, "the server must refuse flushes beyond the client's share");
    wait_until("the server to free the flushes of closed connections", PATIENCE, || {
        (flush(attacker, 1) == 200).then_some(())
    });
    // The server ends although a flush still waits.
    let mut stream = door.connect();
    let request = format!(
        "POST /v1/flush?wait=true&timeout=3600 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {attacker}\r\ncontent-length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    ends_soon(door.server);
}

/// Sends SIGTERM, and checks that the server ends within ten seconds.
fn ends_soon(server: Server) {
    let begin = Instant::now();
    assert!(server.terminate());
    assert!(begin.elapsed() < 2 * PATIENCE, "the server has ended after {:?}", begin.elapsed());
}

#[test]
fn samples_and_what_if_figures_of_one_client_do_not_keep_others_from_theirs() {
    let door = Door::open(&[]);
    let page = |n| format!("{{\"url\":\"http://some.example/{n}\",\"text\":\"{}\"}}\n", words(n));
    push(&door, &(0..300).map(page).collect::<String>(), &door.tokens.write);
    flush(&door);
    let (sampled, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let what_if = "/v1/reports/load-balance/what-if";
    let begin = Instant::now();
    attacked(&door, "samples and what-if figures", |ended| {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        let sample = door.send(Method::GET, "/v1/sample", Some(&door.tokens.operate));
                        match sample.status().as_u16() {
                            200 => sampled.fetch_add(1, Ordering::Relaxed),
                            429 | 503 => 0,
                            status => panic!("{status}"),
                        };
                        let report = door.send(Method::GET, what_if, Some(&door.tokens.operate));
                        if report.status() == 200 && report.json::<Value>().unwrap().get("age_ms").is_none() {
                            made.fetch_add(1, Ordering::Relaxed);
                        }
                        thread::sleep(PAUSE);
                    }
                });
            }
            let got = |path: &str| {
                wait_until(path, PATIENCE, || {
                    let answer = door.send(Method::GET, path, Some(&door.tokens.read));
                    (answer.status() == 200).then_some(())
                });
            };
            got("/v1/sample");
            got(what_if);
        });
    });
    // The server makes these figures at most every ten seconds.
    let pauses = usize::try_from(begin.elapsed().as_secs() / 10).unwrap();
    let (sampled, made) = (sampled.load(Ordering::Relaxed), made.load(Ordering::Relaxed));
    assert!((1..=1 + pauses).contains(&sampled), "{sampled} samples");
    assert!(made <= 2 + pauses, "what-if figures were made {made} times");
    ends_soon(door.server);
}

fn words(n: usize) -> String {
    (0..60).fold(String::new(), |mut text, at| {
        let _ = write!(text, "w{n}x{at} ");
        text
    })
}

/// A version of the target of the redirects, alive or dead, dated at this second of a day.
fn version(second: usize, is_alive: bool) -> String {
    let state = if is_alive { "\"text\":\"the target that is there\"" } else { "\"dead\":true" };
    let date = format!("2026-01-01T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60);
    format!("{{\"url\":\"{TARGET}\",\"fetched_at\":\"{date}\",{state}}}\n")
}

/// Bytes that a process has handed to the system for writing: mostly to files, and a few as answers.
fn written(server: &Server) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{}/io", server.id())).unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().trim().parse().unwrap()
}

#[test]
fn a_changing_page_with_very_many_redirects_does_not_delay_other_clients() {
    let redirects: usize =
        std::env::var(REDIRECTS).ok().map_or(REDIRECTS_DEFAULT, |count| count.parse().unwrap());
    let door = Door::open(&[]);
    let attacker = door.tokens.operate.clone();
    let redirect = |n: usize| format!("{{\"url\":\"http://r.example/{n}\",\"redirect_to\":\"{TARGET}\"}}\n");
    push(&door, &version(0, true), &attacker);
    for part in (0..redirects).collect::<Vec<_>>().chunks(1_000) {
        push(&door, &part.iter().map(|n| redirect(*n)).collect::<String>(), &attacker);
    }
    flush(&door);
    let counters = |door: &Door| {
        let quality = door.send(Method::GET, "/v1/reports/quality", Some(&door.tokens.read));
        quality.json::<Value>().unwrap()["counters"].clone()
    };
    assert_eq!(counters(&door)["duplicates"], redirects);

    // The target dies and comes back once.
    let before = written(&door.server);
    push(&door, &version(1, false), &attacker);
    flush(&door);
    assert_eq!(counters(&door)["unresolved"], redirects);
    push(&door, &version(2, true), &attacker);
    flush(&door);
    let once = written(&door.server) - before;

    // First one request with all changes, then many requests of a line each.
    let last = AtomicUsize::new(2);
    let next = || last.fetch_add(1, Ordering::Relaxed) + 1;
    let flips =
        |count: usize| (0..count).map(|_| next()).map(|at| version(at, at % 2 == 0)).collect::<String>();
    let before = written(&door.server);
    push(&door, &flips(FLIPS), &attacker);
    flush(&door);
    let at_once = written(&door.server) - before;
    println!(
        "{redirects} redirects: {once} bytes for two changes of their target, {at_once} for {FLIPS} in one request"
    );
    assert!(
        at_once < 2 * once + (FLIPS as u64) * 20_000,
        "{at_once} bytes were written, {once} for two changes"
    );

    attacked(&door, "changes of a page with many redirects", |ended| {
        while !ended.load(Ordering::Relaxed) {
            push(&door, &flips(FLIPS), &attacker);
            for _ in 0..20 {
                push(&door, &flips(1), &attacker);
            }
        }
    });

    // The server ends in the middle of a round and the next start resumes. Then the test kills it in the
    // middle of a round.
    if last.load(Ordering::Relaxed) % 2 == 1 {
        push(&door, &flips(1), &attacker);
        flush(&door);
    }
    push(&door, &flips(1), &attacker);
    let door = door.restarted(ends_soon);
    flush(&door);
    assert_eq!(counters(&door)["unresolved"], redirects, "the page is dead");
    push(&door, &flips(1), &attacker);
    let door = door.restarted(Server::kill);
    flush(&door);
    assert_eq!(counters(&door)["unresolved"], 0, "the page is alive");
}
