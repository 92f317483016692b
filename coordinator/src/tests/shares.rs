//! Tests that one client leaves resources for the others, even if it disconnects before its answer (guarantee
//! G6).

use std::net::IpAddr;
use std::time::{Duration, Instant};

use doppel_http::ClientAddress;
use doppel_protocol::Tier1Error;
use tokio::task::JoinHandle;

use super::*;
use crate::limits::{CLIENT, ClientLimits, SAMPLE_PAUSE};
use gate::until;

const ANN: &str = "10.0.0.1";
const BOB: &str = "10.0.0.2";

/// Sends a request as the client with this address.
async fn ask(service: &TestService, client: &str, method: &str, path: &str) -> Reply {
    let remote = ClientAddress(client.parse::<IpAddr>().unwrap());
    service
        .send(Request::builder().method(method).uri(path).extension(remote).body(Body::empty()).unwrap())
        .await
}

fn asking(
    service: &Arc<TestService>,
    client: &'static str,
    method: &'static str,
    path: &'static str,
) -> JoinHandle<Reply> {
    let service = Arc::clone(service);
    tokio::spawn(async move { ask(&service, client, method, path).await })
}

const FLUSH: &str = "/v1/flush?wait=true&timeout=3600";
const SHORT_FLUSH: &str = "/v1/flush?wait=true&timeout=1";

/// Creates a coordinator whose flushes wait for their full time.
fn undecided(answer: Result<bool, Tier1Error>) -> Arc<TestService> {
    let service = TestService::with(Limits { poll_step: Duration::from_millis(20), ..Limits::default() });
    service.tiers.state().undecided = Some(answer);
    Arc::new(service)
}

#[tokio::test]
async fn flushes_of_one_client_do_not_block_other_clients() {
    let service = undecided(Ok(false));
    let waiting: Vec<_> = (0..CLIENT.flushes).map(|_| asking(&service, ANN, "POST", FLUSH)).collect();
    service.tiers.gate.begun("flush", 2 * CLIENT.flushes).await;
    let refused = ask(&service, ANN, "POST", FLUSH).await;
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(refused.problem(429)["type"], "urn:doppel:problem:client-limit");
    // A flush that is not asked to wait returns at once and needs no permit.
    assert_eq!(ask(&service, ANN, "POST", "/v1/flush").await.json()["done"], false);
    assert_eq!(ask(&service, BOB, "POST", SHORT_FLUSH).await.json()["done"], false);
    // A client that disconnects returns its permit within a step or two.
    for flush in waiting {
        flush.abort();
        assert!(flush.await.unwrap_err().is_cancelled(), "a flush was answered");
    }
    let begin = Instant::now();
    until(async || ask(&service, ANN, "POST", SHORT_FLUSH).await.status == StatusCode::OK).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "the places come back after {:?}", begin.elapsed());
}

#[tokio::test]
async fn flushes_end_when_the_service_stops() {
    let service = undecided(Ok(false));
    let waiting = asking(&service, ANN, "POST", FLUSH);
    service.tiers.gate.begun("flush", 3).await;
    service.app.drain();
    let answer = tokio::time::timeout(Duration::from_secs(5), waiting).await.expect("it ends").unwrap();
    assert_eq!(answer.problem(503)["type"], "urn:doppel:problem:stopping");
}

#[tokio::test]
async fn a_flush_waits_for_an_unavailable_range_until_its_timeout() {
    let away = Err(Tier1Error::Unavailable("range 1 has no owner".to_owned()));
    let service = undecided(away.clone());
    let waiting = asking(&service, ANN, "POST", FLUSH);
    service.tiers.gate.begun("flush", 3).await;
    service.tiers.state().undecided = None;
    assert_eq!(waiting.await.unwrap().json()["done"], true);
    service.tiers.state().undecided = Some(away);
    let refused = ask(&service, ANN, "POST", SHORT_FLUSH).await;
    assert_eq!(refused.problem(503)["type"], "urn:doppel:problem:range-unavailable");
}

#[tokio::test]
async fn a_call_without_its_client_keeps_the_permit_of_the_client() {
    let client = ClientLimits { requests: 1, ..CLIENT };
    let service = Arc::new(TestService::with(Limits { client, ..Limits::default() }));
    let closed = service.tiers.gate.close("pages");
    let gone = asking(&service, ANN, "GET", "/v1/status?url=http://a/");
    service.tiers.gate.begun("pages", 1).await;
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    for _ in 0..3 {
        let refused = ask(&service, ANN, "GET", "/v1/groups").await.problem(429);
        assert_eq!(refused["type"], "urn:doppel:problem:client-limit");
    }
    assert_eq!(ask(&service, BOB, "GET", "/v1/groups").await.status, 200);
    drop(closed);
    until(async || ask(&service, ANN, "GET", "/v1/groups").await.status == 200).await;
}

#[tokio::test]
async fn a_client_has_a_share_of_the_scrapes() {
    let client = ClientLimits { scrapes: 0, ..CLIENT };
    let service = TestService::with(Limits { client, ..Limits::default() });
    ask(&service, ANN, "GET", "/metrics").await.problem(429);
    assert_eq!(service.get("/metrics").await.status, 200);
}

#[tokio::test]
async fn a_client_pauses_after_a_sample_and_others_have_their_turn() {
    let service = mapping::with_plan().await;
    let sample = async |client: &str| ask(&service, client, "GET", "/v1/sample?contents=7").await;
    assert_eq!(sample(ANN).await.status, 200);
    // The permit is returned a moment later, and then the client's pause begins.
    until(async || sample(ANN).await.status == StatusCode::TOO_MANY_REQUESTS).await;
    let refused = sample(ANN).await;
    let again: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((SAMPLE_PAUSE.as_secs() / 2..=SAMPLE_PAUSE.as_secs() + 1).contains(&again), "{again}");
    assert_eq!(refused.problem(429)["type"], "urn:doppel:problem:client-limit");
    assert_eq!(sample(BOB).await.status, 200);
    // A caller without limits does not pause between samples.
    until(async || service.get("/v1/sample").await.status == 200).await;
    until(async || service.get("/v1/sample").await.status == 200).await;
}

#[tokio::test]
async fn repeated_what_if_requests_leave_the_permit_free() {
    let service = mapping::with_plan().await;
    let first = service.get("/v1/reports/load-balance/what-if").await.json();
    assert_eq!(first.get("age_ms"), None);
    let closed = service.tiers.gate.close("sample");
    for _ in 0..5 {
        let mut kept = ask(&service, ANN, "GET", "/v1/reports/load-balance/what-if").await.json();
        assert!(kept.as_object_mut().unwrap().remove("age_ms").is_some(), "it is made again: {kept}");
        assert_eq!(kept, first);
    }
    drop(closed);
    assert_eq!(service.tiers.gate.count("sample"), 1);
    // When the report is too old, it is made again. Clients that ask meanwhile get the previous report.
    service.app.reports().what_if.grow_old(Duration::from_secs(10_000));
    let closed = service.tiers.gate.close("sample");
    let making = asking(&service, ANN, "GET", "/v1/reports/load-balance/what-if");
    service.tiers.gate.begun("sample", 2).await;
    let kept = ask(&service, BOB, "GET", "/v1/reports/load-balance/what-if").await.json();
    assert!(kept["age_ms"].as_u64().unwrap() >= 10_000_000, "{kept}");
    drop(closed);
    assert_eq!(making.await.unwrap().json(), first);
}
