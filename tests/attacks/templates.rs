//! A client that sends pages of one template whose texts are just not similar enough, so that the server
//! compares every page with very many others. Meanwhile the server must decide another client's pages, end
//! when it is told to, and stop the work at once after a purge.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::flood::p99;
use super::{Door, PATIENCE};
use crate::harness::metrics::Samples;
use crate::harness::pages::ndjson;
use crate::harness::{doppel, lines_of, wait_until};

/// Variable with the number of pages of the template. 30,000 take too long for every run.
const PAGES: &str = "DOPPEL_ATTACK_TEMPLATE_PAGES";
const PAGES_DEFAULT: usize = 4_000;

/// Number of words that all pages of the template share (`SHARED`), and of words of each page alone (`OWN`).
/// Two pages have a similarity of 0.79.
const SHARED: usize = 400;
const OWN: usize = 50;

/// Number of pages that the other client sends at a time.
const OTHERS: usize = 20;

/// Time limit for the pages of the template, while another client sends pages.
const ATTACKED: Duration = Duration::from_secs(100);

/// Time limit for a server to end after SIGTERM.
const END: Duration = Duration::from_secs(10);

fn template(pages: usize) -> impl Iterator<Item = Value> {
    let shared: String = (0..SHARED).map(|word| format!("shared{word} ")).collect();
    (0..pages).map(move |page| {
        let own: String = (0..OWN).map(|word| format!("own{page}x{word} ")).collect();
        json!({"url": format!("http://template.example/{page}"), "text": format!("{shared}{own}")})
    })
}

fn count() -> usize {
    std::env::var(PAGES).ok().map_or(PAGES_DEFAULT, |pages| pages.parse().unwrap())
}

/// Pushes pages as the crawler, in batches. If too many pages are pending, waits and goes on.
fn push(door: &Door, pages: impl Iterator<Item = Value>, end: &AtomicBool) {
    let pages: Vec<Value> = pages.collect();
    for batch in pages.chunks(500) {
        let body = ndjson(batch);
        while !end.load(Ordering::Relaxed) {
            let answer = door.post("/v1/pages", "application/x-ndjson", body.clone(), &door.tokens.write);
            match answer.status().as_u16() {
                200 => break,
                429 => thread::sleep(Duration::from_millis(200)),
                status => panic!("{status}: {}", answer.text().unwrap()),
            }
        }
    }
}

/// Pushes pages of another client, and waits for their decisions. Returns the time of the slowest decision,
/// and the latencies of the status queries.
fn decided(door: &Door, round: usize) -> (Duration, Vec<Duration>) {
    let url = |page: usize| format!("http://well{round}.example/{page}");
    let text = |page: usize| -> String { (0..60).map(|word| format!("r{round}p{page}w{word} ")).collect() };
    let pages: Vec<Value> = (0..OTHERS).map(|page| json!({"url": url(page), "text": text(page)})).collect();
    let begin = Instant::now();
    let taken = door.post("/v1/pages", "application/x-ndjson", ndjson(&pages), &door.tokens.operate);
    assert_eq!(taken.status(), 200, "{}", taken.text().unwrap());
    let mut answers = vec![begin.elapsed()];
    for page in 0..OTHERS {
        loop {
            let asked = Instant::now();
            let path = format!("/v1/status?url={}", url(page));
            let answer = door.send(Method::GET, &path, Some(&door.tokens.operate));
            answers.push(asked.elapsed());
            let status: Value = answer.json().unwrap();
            if status["status"] != "pending" {
                assert_eq!(status["status"], "unique", "{status}");
                break;
            }
            assert!(begin.elapsed() < PATIENCE, "a page of another client waits for {:?}", begin.elapsed());
            thread::sleep(Duration::from_millis(5));
        }
    }
    (begin.elapsed(), answers)
}

/// Runs rounds of the other client until `end`, at least `least` of them. Returns the time of the slowest
/// decision, and the 99th percentile of the latencies.
fn rounds(door: &Door, first: usize, least: usize, end: &AtomicBool) -> (Duration, Duration) {
    let (mut slowest, mut all) = (Duration::ZERO, Vec::new());
    for round in first.. {
        let (time, answers) = decided(door, round);
        slowest = slowest.max(time);
        all.extend(answers);
        if round + 1 >= first + least && end.load(Ordering::Relaxed) {
            break;
        }
    }
    all.sort();
    (slowest, p99(&all))
}

fn pending(door: &Door) -> u64 {
    Samples::of(&door.server).get("doppel_tier1_pending_pages").unwrap() as u64
}

#[test]
fn a_template_below_the_threshold_does_not_delay_other_clients_or_the_end_of_the_server() {
    let door = Door::open(&[]);
    let over = AtomicBool::new(true);
    let quiet = rounds(&door, 0, 10, &over);
    over.store(false, Ordering::Relaxed);
    let during = thread::scope(|scope| {
        let others = scope.spawn(|| rounds(&door, 1_000, 10, &over));
        push(&door, template(count()), &AtomicBool::new(false));
        let begin = Instant::now();
        // Wait until half of the pages are decided, which takes longer than sending them.
        let is_half = || pending(&door) < count() as u64 / 2;
        while begin.elapsed() < ATTACKED && !is_half() {
            thread::sleep(Duration::from_millis(100));
        }
        println!(
            "a template: {} of {} pages are pending after {:?}",
            pending(&door),
            count(),
            begin.elapsed()
        );
        assert!(
            is_half() || count() > PAGES_DEFAULT,
            "half of the pages of the template are still pending after {ATTACKED:?}"
        );
        over.store(true, Ordering::Relaxed);
        others.join().unwrap()
    });
    println!(
        "a template: decisions of others {:?}, quiet {:?}; answers {:?}, quiet {:?}",
        during.0, quiet.0, during.1, quiet.1
    );
    assert!(during.1 < (5 * quiet.1).max(Duration::from_millis(100)), "{during:?} is slow beside {quiet:?}");
    // The restarted server resumes: no page is lost, and no page has a partner. With very many pages the test
    // does not wait for all decisions.
    let door = door.restarted(|server| {
        let begin = Instant::now();
        assert!(server.terminate(), "the server did not exit with 0");
        println!("a template: the server has ended after {:?}", begin.elapsed());
        assert!(begin.elapsed() < END, "the server has ended after {:?}", begin.elapsed());
    });
    let server = &door.server;
    let is_waited_for = count() <= PAGES_DEFAULT;
    if is_waited_for {
        server.flush_patiently();
    }
    let mut statuses: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines_of(&server.export()) {
        if let (Some(url), Some(status)) = (line["url"].as_str(), line["status"].as_str())
            && url.starts_with("http://template.example/")
        {
            *statuses.entry(status.to_owned()).or_default() += 1;
        }
    }
    let undecided = statuses.remove("pending").unwrap_or_default();
    assert!(undecided == 0 || !is_waited_for, "{undecided} pages are pending");
    assert_eq!(statuses, BTreeMap::from([("unique".to_owned(), count() - undecided)]));
}

#[test]
fn a_client_may_have_half_of_all_pending_pages_and_a_purge_ends_their_work() {
    const LIMIT: usize = 4_000;
    let door = Door::open(&["--pending-max", &LIMIT.to_string()]);
    let refused = thread::scope(|scope| {
        scope
            .spawn(|| {
                let pages: Vec<Value> = template(3 * LIMIT).collect();
                pages.chunks(500).find_map(|batch| {
                    let kind = "application/x-ndjson";
                    let answer = door.post("/v1/pages", kind, ndjson(batch), &door.tokens.write);
                    (answer.status() != 200).then(|| answer.text().unwrap())
                })
            })
            .join()
            .unwrap()
    });
    let refused: Value = serde_json::from_str(&refused.expect("all pages were taken")).unwrap();
    assert_eq!(refused["type"], "urn:doppel:problem:client-limit", "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("one client may have 2000"), "{refused}");
    decided(&door, 0);
    let purged = door.post(
        "/v1/purge",
        "application/json",
        json!({"host": "template.example"}).to_string(),
        &door.tokens.operate,
    );
    assert_eq!(purged.status(), 200, "{}", purged.text().unwrap());
    wait_until("the end of the work for purged pages", PATIENCE, || (pending(&door) == 0).then_some(()));
    let flush = door.send(Method::POST, "/v1/flush?wait=true&timeout=4", Some(&door.tokens.operate));
    assert_eq!(flush.json::<Value>().unwrap()["done"], true);
    decided(&door, 1);
}

#[test]
fn a_load_waits_while_its_client_has_no_free_flush_slot() {
    let door = Door::open(&[]);
    push(&door, template(8_000), &AtomicBool::new(false));
    // The client's flush slots are taken while these connections are open and pages are pending.
    let request = format!(
        "POST /v1/flush?wait=true&timeout=3600 HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: 0\r\n\r\n",
        door.tokens.write
    );
    let mut connections = Vec::new();
    wait_until("all flush slots of the client to be taken", Duration::from_secs(30), || {
        let mut connection = door.connect();
        connection.write_all(request.as_bytes()).unwrap();
        connections.push(connection);
        // The connection takes its place before the flush below asks for one. Otherwise the connection is refused.
        thread::sleep(Duration::from_millis(200));
        let flush = door.send(Method::POST, "/v1/flush?wait=true&timeout=1", Some(&door.tokens.write));
        (flush.status() == 429).then_some(())
    });
    let (pages, token) = (door._home.path().join("pages.jsonl"), door._home.path().join("write.token"));
    std::fs::write(&pages, "{\"url\":\"http://loaded.example/\",\"text\":\"a page\"}\n").unwrap();
    std::fs::write(&token, &door.tokens.write).unwrap();
    let mut command = doppel();
    command.args(["load", "--flush", "--server", &door.server.url, "--token-file"]).arg(&token).arg(&pages);
    let mut load = command.stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) && pending(&door) > 0 {
        let is_waiting = load.try_wait().unwrap().is_none();
        assert!(
            is_waiting || pending(&door) == 0,
            "the load must wait while its client has no free flush slot"
        );
        thread::sleep(Duration::from_millis(50));
    }
    drop(connections);
    let purge = json!({"host": "template.example"}).to_string();
    let purged = door.post("/v1/purge", "application/json", purge, &door.tokens.operate);
    assert_eq!(purged.status(), 200, "{}", purged.text().unwrap());
    let output = load.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
