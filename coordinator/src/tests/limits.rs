//! Tests of request bodies that are compressed, too large, too slow, or too many (guarantee G6).

use std::convert::Infallible;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;

use super::*;

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn post_packed(service: &TestService, encoding: &str, kind: &str, body: impl Into<Body>) -> Reply {
    let request =
        Request::post("/v1/pages").header("content-type", kind).header("content-encoding", encoding);
    service.send(request.body(body.into()).unwrap()).await
}

#[tokio::test]
async fn compressed_bodies_are_decompressed() {
    let service = TestService::new();
    let body = format!("{}\n{}\n", page("http://a/", "t", 0), page("http://b/", "t", 1));
    let two_members = [gzip(&body.as_bytes()[..100]), gzip(&body.as_bytes()[100..])].concat();
    for (encoding, packed) in [
        ("gzip", gzip(body.as_bytes())),
        ("GZip", two_members),
        ("zstd", zstd::encode_all(body.as_bytes(), 3).unwrap()),
        ("identity", body.clone().into_bytes()),
    ] {
        assert_eq!(post_packed(&service, encoding, NDJSON, packed).await.lines().len(), 2, "{encoding}");
    }
}

#[tokio::test]
async fn damaged_compression_is_refused() {
    let service = TestService::new();
    let body = page("http://a/", "t", 0).to_string();
    let sound = [("gzip", gzip(body.as_bytes())), ("zstd", zstd::encode_all(body.as_bytes(), 3).unwrap())];
    for (encoding, packed) in sound {
        for broken in [&packed[..packed.len() / 2], &packed[..packed.len() - 1], b"nonsense", b""] {
            post_packed(&service, encoding, JSON, broken.to_vec()).await.problem(400);
        }
        let mut flipped = packed.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 0x55;
        // zstd without a checksum may not detect the damage. The body is then an invalid page, or another
        // page.
        let reply = post_packed(&service, encoding, JSON, flipped).await;
        assert!(encoding == "zstd" || reply.status == 400, "{reply:?}");
    }
    // The window is larger than RFC 9659 allows.
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&[b' '; 1 << 10]).unwrap();
    std::io::copy(&mut std::io::repeat(b' ').take(16 << 20), &mut encoder).unwrap();
    post_packed(&service, "zstd", JSON, encoder.finish().unwrap()).await.problem(400);
}

#[tokio::test]
async fn bombs_are_stopped_at_the_limit() {
    let limits = Limits { body_bytes: 1 << 20, ..Limits::default() };
    let service = TestService::with(limits);
    let mut bomb = Vec::new();
    let mut encoder = GzEncoder::new(&mut bomb, Compression::best());
    std::io::copy(&mut std::io::repeat(b'\n').take(200 << 20), &mut encoder).unwrap();
    encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let zstd_bomb = zstd::encode_all(std::io::repeat(b'\n').take(200 << 20), 1).unwrap();
    let begin = Instant::now();
    post_packed(&service, "gzip", NDJSON, bomb).await.problem(413);
    post_packed(&service, "zstd", NDJSON, zstd_bomb).await.problem(413);
    assert!(begin.elapsed() < Duration::from_secs(2), "nothing beyond the limit is decompressed");
    assert!(
        service
            .get("/metrics")
            .await
            .text()
            .contains("doppel_coordinator_body_memory_free_bytes 1073741824\n")
    );
}

#[tokio::test]
async fn long_bodies_are_refused_by_length_and_by_count() {
    let limits = Limits { wire_bytes: 1_000, body_bytes: 4_000, lines: 3, ..Limits::default() };
    let service = TestService::with(limits);
    service.post("/v1/pages", NDJSON, "x".repeat(1_001)).await.problem(413);
    // The body has no stated length.
    let pieces = stream::iter((0..20).map(|_| Ok::<_, Infallible>(vec![b'\n'; 100])));
    service.post("/v1/pages", NDJSON, Body::from_stream(pieces)).await.problem(413);
    let line = "{\"url\": \"http://a/\", \"text\": \"x\"}\n";
    assert_eq!(service.post("/v1/pages", NDJSON, line.repeat(3)).await.lines().len(), 3);
    let problem = service.post("/v1/pages", NDJSON, line.repeat(4)).await.problem(413);
    assert!(problem["detail"].as_str().unwrap().contains("3 lines"));
    let four_thousand = gzip(format!("{}{}", " ".repeat(4_000 - line.len()), line).as_bytes());
    assert_eq!(post_packed(&service, "gzip", NDJSON, four_thousand).await.lines().len(), 1);
    let one_more = gzip(format!("{}{}", " ".repeat(4_001 - line.len()), line).as_bytes());
    post_packed(&service, "gzip", NDJSON, one_more).await.problem(413);
    assert_eq!(service.tiers.state().submitted.concat().len(), 4);
}

#[tokio::test]
async fn slow_bodies_are_refused() {
    let limits = Limits {
        body_pause: Duration::from_millis(60),
        body_time: Duration::from_millis(300),
        ..Limits::default()
    };
    let service = TestService::with(limits);
    let silent = Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>());
    service.post("/v1/pages", JSON, silent).await.problem(408);
    // A body that sends a byte now and then observes the pause limit, but not the limit on the whole time.
    let drip = stream::unfold(0, |n| async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Some((Ok::<_, Infallible>(vec![b' ']), n + 1))
    });
    let begin = Instant::now();
    service.post("/v1/pages", JSON, Body::from_stream(drip)).await.problem(408);
    assert!(begin.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let service = TestService::new();
    let pieces = [Ok(b"{\"url\": ".to_vec()), Err(std::io::Error::other("gone"))];
    service.post("/v1/pages", JSON, Body::from_stream(stream::iter(pieces))).await.problem(400);
}

#[tokio::test]
async fn bodies_share_a_memory_budget() {
    let limits = Limits { body_memory_bytes: 600 << 10, ..Limits::default() };
    let service = Arc::new(TestService::with(limits));
    // This request holds 200 kB until the test ends it.
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let first = vec![b' '; 200 << 10];
    let rest = stream::once(async move {
        ended.await.unwrap();
        Ok(b"{\"url\": \"http://a/\", \"text\": \"x\"}".to_vec())
    });
    let body =
        Body::from_stream(futures_util::StreamExt::chain(stream::iter([Ok::<_, Infallible>(first)]), rest));
    let holding = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.post("/v1/pages", JSON, body).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let text = " ".repeat(320 << 10);
    let other = json!({"url": "http://b/", "text": text}).to_string();
    service.post("/v1/pages", JSON, other.clone()).await.problem(503);
    assert_eq!(
        service.post_json("/v1/pages", &page("http://c/", "t", 0)).await.status,
        200,
        "a small one fits"
    );
    end.send(()).unwrap();
    assert_eq!(holding.await.unwrap().status, 200);
    assert_eq!(service.post("/v1/pages", JSON, other).await.status, 200, "the budget is returned");
}

/// Returns the free memory for bodies and their answers, in bytes.
async fn free(service: &TestService) -> usize {
    let metrics = service.get("/metrics").await;
    let name = "doppel_coordinator_body_memory_free_bytes ";
    metrics.text().lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

#[tokio::test]
async fn answers_to_lines_share_the_memory_budget() {
    let budget = 128 << 10;
    let service = TestService::with(Limits { body_memory_bytes: budget, ..Limits::default() });
    // The lines fit in the budget, but their answers do not.
    let line = "{\"a\":1}\n";
    service.post("/v1/pages", NDJSON, line.repeat(1_000)).await.problem(503);
    assert_eq!(free(&service).await, budget);
    assert_eq!(service.post("/v1/pages", NDJSON, line.repeat(100)).await.lines().len(), 100);
    assert_eq!(free(&service).await, budget);
}

#[tokio::test]
async fn no_page_is_recorded_without_memory_for_its_answer() {
    let budget = 77 << 10;
    let service =
        TestService::with(Limits { body_memory_bytes: budget, chunk_lines: 2, ..Limits::default() });
    let url = |n: usize| format!("http://a/{n}?{}", "x".repeat(5_000));
    let body: String = (0..10).map(|n| format!("{}\n", json!({"url": url(n), "text": "x"}))).collect();
    let reply = service.post("/v1/pages", NDJSON, body.clone()).await;
    let lines = reply.lines();
    assert!(free(&service).await < budget, "an answer that is not sent yet counts");
    let taken: Vec<_> =
        lines.iter().filter_map(|line| line["outcome"].as_str().and(line["url"].as_str())).collect();
    assert_eq!((lines.len(), taken.len()), (10, 4));
    for (n, line) in lines.iter().enumerate().skip(4) {
        assert_eq!((&line["line"], &line["error"]["code"]), (&json!(n + 1), &json!("retry")), "{line}");
    }
    assert_eq!(taken, (0..4).map(url).collect::<Vec<_>>());
    assert_eq!(taken, service.tiers.state().submitted.concat());
    drop(reply);
    // The task that sent the answer returns its share a moment later.
    for _ in 0..100 {
        if free(&service).await == budget {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(free(&service).await, budget);
}

#[tokio::test]
async fn a_probe_body_counts_against_the_memory_budget_until_it_is_answered() {
    let service = Arc::new(TestService::new());
    let budget = free(&service).await;
    let closed = service.tiers.gate.close("probe");
    let probe = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.post_json("/v1/probe", &json!({"text": words("t", 0, 20_000)})).await.status }
    });
    service.tiers.gate.begun("probe", 1).await;
    assert!(free(&service).await <= budget - words("t", 0, 20_000).len());
    drop(closed);
    assert_eq!(probe.await.unwrap(), 200);
    assert_eq!(free(&service).await, budget);
}

#[tokio::test]
async fn requests_in_progress_are_limited_and_health_checks_are_not() {
    let limits = Limits { requests: 1, poll_step: Duration::from_millis(20), ..Limits::default() };
    let service = Arc::new(TestService::with(limits));
    let poll = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/changes?wait=60").await.status }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    service.get("/v1/status?url=http://a/").await.problem(503);
    assert_eq!(service.get("/healthz").await.status, 200);
    service.app.drain();
    assert_eq!(poll.await.unwrap(), 200);
    assert_eq!(service.get("/v1/status?url=http://a/").await.status, 200);
}
