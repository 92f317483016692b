//! Tests that one client leaves resources for the others, even if it disconnects before its answer (guarantee
//! G6).

use std::net::IpAddr;
use std::time::{Duration, Instant};

use doppel_http::Remote;
use doppel_protocol::Tier1Error;
use tokio::task::JoinHandle;

use super::*;
use crate::limits::{CLIENT, ClientLimits, SAMPLE_PAUSE};
use gate::until;

const ANN: &str = "10.0.0.1";
const BOB: &str = "10.0.0.2";

/// Sends a request as the client with this address.
async fn ask(door: &Door, client: &str, method: &str, path: &str) -> Reply {
    let remote = Remote(client.parse::<IpAddr>().unwrap());
    door.send(Request::builder().method(method).uri(path).extension(remote).body(Body::empty()).unwrap())
        .await
}

fn asking(
    door: &Arc<Door>,
    client: &'static str,
    method: &'static str,
    path: &'static str,
) -> JoinHandle<Reply> {
    let door = Arc::clone(door);
    tokio::spawn(async move { ask(&door, client, method, path).await })
}

const FLUSH: &str = "/v1/flush?wait=true&timeout=3600";
const SHORT_FLUSH: &str = "/v1/flush?wait=true&timeout=1";

/// Creates a coordinator whose flushes wait for their full time.
fn undecided(answer: Result<bool, Tier1Error>) -> Arc<Door> {
    let door = Door::with(Limits { poll_step: Duration::from_millis(20), ..Limits::default() });
    door.tiers.state().undecided = Some(answer);
    Arc::new(door)
}

#[tokio::test]
async fn flushes_of_one_client_keep_no_other_from_flushing() {
    let door = undecided(Ok(false));
    let waiting: Vec<_> = (0..CLIENT.flushes).map(|_| asking(&door, ANN, "POST", FLUSH)).collect();
    door.tiers.gate.begun("flush", 2 * CLIENT.flushes).await;
    let refused = ask(&door, ANN, "POST", FLUSH).await;
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(refused.problem(429)["type"], "urn:doppel:problem:client-limit");
    // A flush that is not asked to wait returns at once and needs no permit.
    assert_eq!(ask(&door, ANN, "POST", "/v1/flush").await.json()["done"], false);
    assert_eq!(ask(&door, BOB, "POST", SHORT_FLUSH).await.json()["done"], false);
    // A client that disconnects returns its permit within a step or two.
    for flush in waiting {
        flush.abort();
        assert!(flush.await.unwrap_err().is_cancelled(), "a flush was answered");
    }
    let begin = Instant::now();
    until(async || ask(&door, ANN, "POST", SHORT_FLUSH).await.status == StatusCode::OK).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "the places come back after {:?}", begin.elapsed());
}

#[tokio::test]
async fn flushes_end_with_the_service() {
    let door = undecided(Ok(false));
    let waiting = asking(&door, ANN, "POST", FLUSH);
    door.tiers.gate.begun("flush", 3).await;
    door.app.drain();
    let answer = tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("it ends").unwrap();
    assert_eq!(answer.problem(503)["type"], "urn:doppel:problem:stopping");
}

#[tokio::test]
async fn a_flush_waits_for_a_part_that_does_not_answer_until_its_end() {
    let away = Err(Tier1Error::Unavailable("range 1 has no owner".to_owned()));
    let door = undecided(away.clone());
    let waiting = asking(&door, ANN, "POST", FLUSH);
    door.tiers.gate.begun("flush", 3).await;
    door.tiers.state().undecided = None;
    assert_eq!(waiting.await.unwrap().json()["done"], true);
    door.tiers.state().undecided = Some(away);
    let refused = ask(&door, ANN, "POST", SHORT_FLUSH).await;
    assert_eq!(refused.problem(503)["type"], "urn:doppel:problem:range-unavailable");
}

#[tokio::test]
async fn a_call_without_its_caller_keeps_the_place_of_the_client() {
    let client = ClientLimits { requests: 1, ..CLIENT };
    let door = Arc::new(Door::with(Limits { client, ..Limits::default() }));
    let closed = door.tiers.gate.close("pages");
    let gone = asking(&door, ANN, "GET", "/v1/status?url=http://a/");
    door.tiers.gate.begun("pages", 1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    for _ in 0..3 {
        let refused = ask(&door, ANN, "GET", "/v1/groups").await.problem(429);
        assert_eq!(refused["type"], "urn:doppel:problem:client-limit");
    }
    assert_eq!(ask(&door, BOB, "GET", "/v1/groups").await.status, 200);
    drop(closed);
    until(async || ask(&door, ANN, "GET", "/v1/groups").await.status == 200).await;
}

#[tokio::test]
async fn a_client_has_a_share_of_the_scrapes() {
    let client = ClientLimits { scrapes: 0, ..CLIENT };
    let door = Door::with(Limits { client, ..Limits::default() });
    ask(&door, ANN, "GET", "/metrics").await.problem(429);
    assert_eq!(door.get("/metrics").await.status, 200);
}

#[tokio::test]
async fn a_client_pauses_after_a_sample_and_others_have_their_turn() {
    let door = mapping::with_plan().await;
    let sample = async |client: &str| ask(&door, client, "GET", "/v1/sample?contents=7").await;
    assert_eq!(sample(ANN).await.status, 200);
    // The permit is returned a moment later, and then the client's pause begins.
    until(async || sample(ANN).await.status == StatusCode::TOO_MANY_REQUESTS).await;
    let refused = sample(ANN).await;
    let again: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((SAMPLE_PAUSE.as_secs() / 2..=SAMPLE_PAUSE.as_secs() + 1).contains(&again), "{again}");
    assert_eq!(refused.problem(429)["type"], "urn:doppel:problem:client-limit");
    assert_eq!(sample(BOB).await.status, 200);
    // A caller without limits does not pause between samples.
    until(async || door.get("/v1/sample").await.status == 200).await;
    until(async || door.get("/v1/sample").await.status == 200).await;
}

#[tokio::test]
async fn what_if_figures_that_are_asked_for_again_and_again_leave_the_place_free() {
    let door = mapping::with_plan().await;
    let first = door.get("/v1/reports/load-balance/what-if").await.json();
    assert_eq!(first.get("age_ms"), None);
    let closed = door.tiers.gate.close("sample");
    for _ in 0..5 {
        let mut kept = ask(&door, ANN, "GET", "/v1/reports/load-balance/what-if").await.json();
        assert!(kept.as_object_mut().unwrap().remove("age_ms").is_some(), "it is made again: {kept}");
        assert_eq!(kept, first);
    }
    drop(closed);
    assert_eq!(door.tiers.gate.count("sample"), 1);
    // When the report is too old, it is made again. Clients that ask meanwhile get the previous report.
    door.app.reports().what_if.grow_old(Duration::from_secs(10_000));
    let closed = door.tiers.gate.close("sample");
    let making = asking(&door, ANN, "GET", "/v1/reports/load-balance/what-if");
    door.tiers.gate.begun("sample", 2).await;
    let kept = ask(&door, BOB, "GET", "/v1/reports/load-balance/what-if").await.json();
    assert!(kept["age_ms"].as_u64().unwrap() >= 10_000_000, "{kept}");
    drop(closed);
    assert_eq!(making.await.unwrap().json(), first);
}
