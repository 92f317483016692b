//! Clients that take all the capacity they can get: compressed bombs, bodies that arrive drop by drop, idle
//! connections, and a flood of URLs. The server must bound its memory, and other clients must get their
//! answers in time.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;

use super::{Door, PATIENCE};

/// Variable with the number of URLs that an attacker pushes. A million takes too long for every run.
const URLS: &str = "DOPPEL_ATTACK_URLS";
const URLS_DEFAULT: usize = 20_000;

/// Number of idle connections.
const IDLE: usize = 1_500;

/// Number of answers from which the 99th percentile is computed: ten of them lie above it.
const ANSWERS: usize = 1_000;

/// How long the attacker sends bombs.
const BOMBED: Duration = Duration::from_secs(4);

/// Memory for bodies of these servers (`BODY_MEMORY`), and other memory of the process (`ASIDE`), in MiB.
const BODY_MEMORY: u64 = 64;
const ASIDE: u64 = 160;

/// Queries a status nine times and then submits a page, again and again until `end`, with at least `least`
/// requests. Every answer must come within [`PATIENCE`]. Returns the latencies, sorted.
fn answered(door: &Door, end: &AtomicBool, least: usize) -> Vec<Duration> {
    let mut times = Vec::new();
    while times.len() < least || !end.load(Ordering::Relaxed) {
        let begin = Instant::now();
        if times.len() % 10 == 0 {
            let page = format!("{{\"url\":\"http://well.example/{}\",\"text\":\"a b c\"}}", times.len());
            let taken = door.post("/v1/pages", "application/json", page, &door.tokens.write);
            assert_eq!(taken.status(), 200, "{}", taken.text().unwrap());
        } else {
            let path = "/v1/status?url=http://well.example/0";
            assert_eq!(door.send(Method::GET, path, Some(&door.tokens.read)).status(), 200);
        }
        let took = begin.elapsed();
        assert!(took < PATIENCE, "an answer took {took:?}");
        times.push(took);
        thread::sleep(Duration::from_millis(2));
    }
    times.sort();
    times
}

/// 99th percentile of the latency of other clients, on a quiet server and during an attack.
#[derive(Debug)]
pub(super) struct Waits {
    pub(super) quiet: Duration,
    pub(super) during: Duration,
}

/// The 99th percentile of sorted latencies.
pub(super) fn p99(times: &[Duration]) -> Duration {
    times[times.len() * 99 / 100]
}

/// Runs an attack while other clients send requests. Prints and returns their latency.
pub(super) fn while_others_ask(door: &Door, what: &str, attack: impl FnOnce() + Send) -> Waits {
    let quiet = answered(door, &AtomicBool::new(true), ANSWERS);
    let end = AtomicBool::new(false);
    let during = thread::scope(|scope| {
        let asks = scope.spawn(|| answered(door, &end, 100));
        let attacks = scope.spawn(attack);
        let done = attacks.join();
        end.store(true, Ordering::Relaxed);
        let times = asks.join().unwrap();
        done.unwrap();
        times
    });
    let (before, during) = (p99(&quiet), p99(&during));
    println!(
        "{what}: p99 of others {:.1} ms, quiet {:.1} ms: {:.1} times",
        during.as_secs_f64() * 1e3,
        before.as_secs_f64() * 1e3,
        during.as_secs_f64() / before.as_secs_f64()
    );
    Waits { quiet: before, during }
}

fn small() -> Door {
    Door::open(&["--body-memory", &format!("{BODY_MEMORY}MiB")])
}

/// Spaces, in whole MiB, compressed with gzip.
pub(super) fn bomb(bytes: usize) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let piece = vec![b' '; 1 << 20];
    for _ in 0..bytes >> 20 {
        packed.write_all(&piece).unwrap();
    }
    packed.finish().unwrap()
}

#[test]
fn bombs_are_refused_within_the_memory_for_bodies() {
    let door = small();
    let zeros = bomb(512 << 20);
    assert!(zeros.len() < 1 << 20);
    while_others_ask(&door, "bombs", || {
        let begin = Instant::now();
        thread::scope(|scope| {
            for _ in 0..12 {
                let (zeros, door) = (zeros.clone(), &door);
                scope.spawn(move || {
                    let token = &door.tokens.operate;
                    while begin.elapsed() < BOMBED {
                        let request = door.http.post(format!("{}/v1/pages", door.server.url));
                        let request = request.header("content-encoding", "gzip").bearer_auth(token);
                        let request =
                            request.header("content-type", "application/x-ndjson").body(zeros.clone());
                        let status =
                            request.timeout(Duration::from_secs(60)).send().unwrap().status().as_u16();
                        assert!([413, 429, 503].contains(&status), "{status}");
                    }
                });
            }
        });
    });
    let peak = door.server.peak_memory().unwrap_or_default() >> 20;
    println!("bombs: at most {peak} MiB of memory");
    assert!(peak < BODY_MEMORY + ASIDE, "the server used {peak} MiB of memory");
}

#[test]
fn bodies_that_arrive_slowly_do_not_delay_other_clients() {
    let door = small();
    while_others_ask(&door, "bodies that drip", || {
        let head = format!(
            "POST /v1/pages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: 1000000\r\n\r\n",
            door.tokens.operate
        );
        let mut streams: Vec<TcpStream> = (0..150).map(|_| door.connect()).collect();
        for _ in 0..10 {
            for stream in &mut streams {
                // The server closes the connections that are too many.
                let _ = stream.write_all(if head.is_empty() { b"x" } else { head.as_bytes() });
            }
            thread::sleep(Duration::from_millis(200));
        }
    });
    assert_eq!(door.send(Method::GET, "/readyz", None).status(), 200);
}

#[test]
fn idle_connections_do_not_delay_other_clients() {
    let (soft, hard) = {
        let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        (limits.current.unwrap_or(u64::MAX), limits.maximum)
    };
    if soft < 2 * IDLE as u64 {
        // The server is started later and inherits this limit.
        let raised = rustix::process::Rlimit { current: hard, maximum: hard };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
        assert!(
            hard.is_none_or(|hard| hard >= 2 * IDLE as u64),
            "{hard:?} files may be open, and {IDLE} twice are needed"
        );
    }
    let door = small();
    while_others_ask(&door, "idle connections", || {
        let mut streams: Vec<TcpStream> = (0..IDLE).map(|_| door.connect()).collect();
        for (n, stream) in streams.iter_mut().enumerate() {
            // Some of the connections send the beginning of a request.
            if n % 3 == 0 {
                stream.write_all(b"GET /v1/status?url=http://a.example/ HTTP/1.1\r\nhost: lo").unwrap();
            }
        }
        thread::sleep(Duration::from_secs(3));
    });
}

#[test]
fn a_flood_of_urls_does_not_delay_other_clients() {
    let door = small();
    let urls = std::env::var(URLS).ok().map_or(URLS_DEFAULT, |urls| urls.parse().unwrap());
    while_others_ask(&door, "URLs without end", || {
        for part in 0..urls.div_ceil(500) {
            let lines: String = (0..500)
                .map(|n| {
                    format!("{{\"url\":\"http://h{part}x{n}.example/{n}\",\"text\":\"flood {part} {n} of words\"}}\n")
                })
                .collect();
            // If the server refuses the pages because too many are pending, the attacker tries again.
            let begin = Instant::now();
            loop {
                let kind = "application/x-ndjson";
                let taken = door.post("/v1/pages", kind, lines.clone(), &door.tokens.operate);
                match taken.status().as_u16() {
                    200 => break,
                    429 | 503 => thread::sleep(Duration::from_millis(200)),
                    status => panic!("{status}: {}", taken.text().unwrap()),
                }
                assert!(
                    begin.elapsed() < Duration::from_secs(120),
                    "the server still refuses the pages of the flood after two minutes"
                );
            }
            door.send(Method::GET, &format!("/v1/nothing/{part}"), Some(&door.tokens.operate));
        }
    });
    let metrics = door.send(Method::GET, "/metrics", Some(&door.tokens.read)).text().unwrap();
    assert!(
        metrics.lines().count() < 5_000,
        "the number of metrics must not grow with the requests of clients"
    );
}
