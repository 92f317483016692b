//! Tests of flush, health and metrics, and of the server on a real socket.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn a_flush_waits_only_on_request() {
    let service = TestService::new();
    service.post_json("/v1/pages", &page("http://a/", "t", 0)).await;
    let now = service.post_json("/v1/flush", &Value::Null).await.json();
    assert_eq!((&now["done"], &now["backlog"]["pending"]), (&json!(false), &json!(1)));
    let waited = service.post_json("/v1/flush?wait=true&timeout=5", &Value::Null).await.json();
    assert_eq!((&waited["done"], &waited["backlog"]["pending"]), (&json!(true), &json!(0)));
    assert_eq!(service.tiers.state().flushes, 2);
    for query in ["timeout=0", "timeout=3601"] {
        assert_eq!(
            service.post_json(&format!("/v1/flush?{query}"), &Value::Null).await.problem(400)["field"],
            "timeout"
        );
    }
}

#[tokio::test]
async fn health_and_readiness_are_reported() {
    let service = TestService::new();
    assert_eq!(
        (service.get("/healthz").await.status, service.get("/readyz").await.status),
        (StatusCode::OK, StatusCode::OK)
    );
    service.tiers.state().refuse = Some((0, doppel_protocol::Tier1Error::ReadOnly("broken".to_owned())));
    assert_eq!(service.get("/readyz").await.problem(503)["type"], "urn:doppel:problem:read-only");
    // Neither answer repeats the error text of the storage engine.
    let not_ready = async || service.get("/v1/reports/quality").await.json()["not_ready"].clone();
    let why = not_ready().await.as_str().unwrap().to_owned();
    assert!(why.contains("takes no writes") && !why.contains("broken"), "{why}");
    service.tiers.state().refuse = Some((0, doppel_protocol::Tier1Error::DiskFull("no space".to_owned())));
    assert!(not_ready().await.as_str().unwrap().contains("no space"));
    service.tiers.state().refuse = None;
    assert_eq!(not_ready().await, Value::Null);
    assert_eq!(service.get("/v1/reports/quality").await.json()["full_disks"], 1);
    service.app.drain();
    assert_eq!(service.get("/readyz").await.problem(503)["type"], "urn:doppel:problem:stopping");
    assert_eq!(service.get("/healthz").await.status, StatusCode::OK);
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let service = TestService::new();
    service.store(&[page("http://a/", "t", 0), page("http://b/", "t", 2)]).await;
    service.post("/v1/pages", NDJSON, "nonsense").await;
    service.get("/v1/status?url=nonsense").await.problem(400);
    service.get("/v1/groups/g7-0").await.problem(404);
    service.get("/anything/else").await.problem(404);
    let reply = service.get("/metrics").await;
    assert!(reply.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = reply.text();
    for line in [
        "doppel_coordinator_http_requests_total{method=\"POST\",route=\"/v1/pages\",status=\"200\"} 2",
        "doppel_coordinator_http_requests_total{method=\"GET\",route=\"/v1/status\",status=\"400\"} 1",
        "doppel_coordinator_http_requests_total{method=\"GET\",route=\"/v1/groups/{id}\",status=\"404\"} 1",
        "doppel_coordinator_http_requests_total{method=\"GET\",route=\"unmatched\",status=\"404\"} 1",
        "doppel_coordinator_http_request_seconds_count{method=\"POST\",route=\"/v1/pages\",status=\"2xx\"} 2",
        "doppel_coordinator_ingest_pages_total{outcome=\"pending\"} 2",
        "doppel_coordinator_ingest_pages_total{outcome=\"invalid\"} 1",
        "doppel_coordinator_body_memory_free_bytes 1073741824",
        "doppel_tier1_live_pages 2",
        "doppel_tier1_confirmed_updates_total 3",
        "doppel_tier1_pending_limit_pages 1000",
        "doppel_tier1_status_table_bytes 640",
        "doppel_tier1_oldest_pending_seconds 1.5",
        "doppel_tier1_decision_seconds_bucket{le=\"0.03\"} 1",
        "doppel_tier1_decision_seconds_bucket{le=\"+Inf\"} 2",
        "doppel_tier1_shard_live_pages{shard=\"0\"} 2",
        "doppel_tier1_quarantined_groups 0",
        "doppel_build_info{version=\"0.1.0\",policy=\"jaccard:tau=0.8\"} 1",
        "doppel_tier1_full_disk_ranges 1",
        "doppel_tier1_disk_recoveries_total 20",
        "doppel_tier2_imbalance_ratio 1.17",
        "doppel_tier2_node_imbalance_ratio 2.0",
        "doppel_tier2_serving_nodes 3",
        "doppel_tier2_migration_contents 0",
        "doppel_tier2_partition_contents{partition=\"2\",node=\"0\"} 7",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

#[tokio::test]
async fn the_metrics_have_the_requested_format() {
    let service = TestService::new();
    let scrape = async |accept: &str| {
        service.send(Request::get("/metrics").header("accept", accept).body(Body::empty()).unwrap()).await
    };
    let classic = scrape("text/plain;version=0.0.4").await;
    assert_eq!(classic.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(classic.headers["vary"], "accept");
    assert!(classic.text().contains("\n# TYPE doppel_tier2_searches_total counter\n"));
    assert!(!classic.text().contains("# EOF") && !classic.text().contains("# UNIT"));
    let other = scrape("application/openmetrics-text;q=0.9,text/plain;q=0.1").await;
    assert!(other.text().contains("\n# TYPE doppel_tier2_searches counter\n"));
}

/// The tool of Prometheus reads both text formats alike and reports no fault.
#[tokio::test]
async fn the_metrics_pass_promtool() {
    let (service, _) = cluster::service();
    service.store(&[page("http://a/", "t", 0), page("http://b/", "t", 2)]).await;
    let request = Request::get("/metrics").header("accept", "text/plain").body(Body::empty()).unwrap();
    let reply = service.send(request).await;
    let child = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("promtool is not installed: the metrics are not checked with it");
        return;
    };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &reply.body).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}\n{}", reply.text());
}

#[tokio::test]
async fn metrics_say_which_tier_does_not_answer() {
    let service = TestService::new();
    let unavailable = || doppel_protocol::Tier1Error::Unavailable("range 1 does not answer".to_owned());
    for (tier1, tier2) in [(true, true), (false, true), (true, false), (false, false)] {
        service.tiers.state().totals_error = (!tier1).then(unavailable);
        service.tiers.state().index_error = (!tier2).then_some(doppel_protocol::IndexError::Stopping);
        let reply = service.get("/metrics").await;
        assert_eq!(reply.status, StatusCode::OK);
        let has = |start: &str| reply.text().lines().any(|line| line.starts_with(start));
        assert!(has(&format!("doppel_tier1_up {}", u8::from(tier1))), "{reply:?}");
        assert!(has(&format!("doppel_tier2_up {}", u8::from(tier2))), "{reply:?}");
        assert_eq!((has("doppel_tier1_live_pages "), has("doppel_tier2_searches_total ")), (tier1, tier2));
        assert!(has("doppel_coordinator_body_memory_free_bytes "));
        let quality = service.get("/v1/reports/quality").await;
        match tier1 {
            true => assert_eq!(quality.status, StatusCode::OK),
            false => assert_eq!(quality.problem(503)["type"], "urn:doppel:problem:range-unavailable"),
        }
    }
    assert_eq!(service.get("/healthz").await.status, StatusCode::OK);
}

struct Running {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn run(service: &TestService) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move { stopped.await.unwrap_or(()) };
    let ended = tokio::spawn(crate::serve(listener, service.app.clone(), shutdown));
    Running { address, stop, ended }
}

#[tokio::test]
async fn a_request_in_progress_is_answered_before_the_service_ends() {
    let service = TestService::with(Limits { poll_step: Duration::from_millis(20), ..Limits::default() });
    let Running { address, stop, ended } = run(&service).await;
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(b"GET /v1/changes?wait=60 HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.send(()).unwrap();
    let mut answer = String::new();
    timeout(Duration::from_secs(20), connection.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\"at_end\":true}"), "{answer}");
    timeout(Duration::from_secs(20), ended).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nothing listens any more");
}

#[tokio::test]
async fn the_service_ends_after_the_drain_limit() {
    let service = TestService::with(Limits { drain: Duration::from_millis(200), ..Limits::default() });
    let Running { address, stop, ended } = run(&service).await;
    let mut connection = TcpStream::connect(address).await.unwrap();
    // The request announces a body that never arrives.
    let head =
        b"POST /v1/pages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n";
    connection.write_all(head).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begin = Instant::now();
    stop.send(()).unwrap();
    timeout(Duration::from_secs(10), ended).await.unwrap().unwrap().unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let service = TestService::with(Limits { write_pause: Duration::from_millis(100), ..Limits::default() });
    let Running { address, stop: _stop, .. } = run(&service).await;
    let mut connection = TcpStream::connect(address).await.unwrap();
    // The answers of about 30 kB each exceed what the operating system buffers for a connection.
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let asked = 2_000;
    let write = async {
        for _ in 0..asked {
            if connection.write_all(request).await.is_err() {
                return;
            }
        }
    };
    timeout(Duration::from_secs(20), write).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut answers = Vec::new();
    // The connection may end with a reset.
    let _ = timeout(Duration::from_secs(20), connection.read_to_end(&mut answers)).await.unwrap();
    let answered = answers.windows(8).filter(|text| text == b"HTTP/1.1").count();
    assert!(answered < asked, "every answer was sent");
}

#[tokio::test]
async fn every_answer_names_the_policy() {
    let service = TestService::comparing("simhash".parse().unwrap());
    for path in ["/v1/status?url=http://a.example/", "/v1/groups", "/healthz", "/v1/nothing"] {
        assert_eq!(service.get(path).await.headers["doppel-policy"], "simhash:differing=3", "{path}");
    }
}
