//! Tests of the change feed and the export: `/v1/changes` and `/v1/export`.

use std::time::{Duration, Instant};

use super::*;

#[tokio::test]
async fn the_feed_is_resumable_and_ends() {
    let service = TestService::new();
    service.store(&[page("http://a/", "t", 0), page("http://b/", "t", 2), page("http://c/", "u", 0)]).await;
    let first = service.get("/v1/changes?limit=2").await.json();
    assert_eq!((first["changes"].as_array().unwrap().len(), &first["at_end"]), (2, &json!(false)));
    let cursor = first["cursor"].as_str().unwrap();
    let rest = service.get(&format!("/v1/changes?cursor={cursor}")).await.json();
    assert_eq!((rest["changes"].as_array().unwrap().len(), &rest["at_end"]), (1, &json!(true)));
    let all =
        [first["changes"].as_array().unwrap().clone(), rest["changes"].as_array().unwrap().clone()].concat();
    let loser = all.iter().find(|change| change["status"] == "duplicate").unwrap();
    let keys: Vec<_> = loser.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["duplicate_of", "fetched_at", "group", "reason", "similarity", "status", "url", "winner"]
    );
    assert!(loser["group"].as_str().unwrap().starts_with('g'));
}

#[tokio::test]
async fn json_lines_carry_the_cursor_in_a_header() {
    let service = TestService::new();
    service.store(&[page("http://a/", "t", 0)]).await;
    let request = Request::get("/v1/changes").header("accept", "text/html, application/x-ndjson;q=0.9");
    let reply = service.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.lines()[0]["url"], "http://a/");
    let header = |name: &str| reply.headers[name].to_str().unwrap().to_owned();
    assert_eq!((header("doppel-cursor"), header("doppel-at-end")), ("c1".to_owned(), "true".to_owned()));
}

#[tokio::test]
async fn expired_cursors_and_invalid_parameters_are_problems() {
    let service = TestService::new();
    assert_eq!(service.get("/v1/changes?cursor=abc.1-2").await.problem(410)["field"], "cursor");
    for malformed in ["", "other", "c1%20"] {
        let problem = service.get(&format!("/v1/changes?cursor={malformed}")).await.problem(400);
        assert_eq!(problem["field"], "cursor", "{malformed:?}");
    }
    // The longest cursor that a collection gives: one of 1,024 shards.
    let longest = format!("c{}", "0".repeat(15 + 1_024 * 34));
    assert_eq!(service.get(&format!("/v1/changes?cursor={longest}")).await.status, 200);
    let long = "x".repeat(40_000);
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("wait=61", "wait"),
        (&format!("cursor={long}"), "cursor"),
    ] {
        assert_eq!(service.get(&format!("/v1/changes?{query}")).await.problem(400)["field"], field);
    }
    let soon = service.get("/v1/changes?wait=soon").await.problem(400);
    assert_eq!(soon["detail"], "the query: wait: invalid digit found in string");
    assert_eq!(soon["field"], "wait");
    assert_eq!(service.get("/v1/changes?coursor=c1").await.problem(400)["field"], "coursor");
    assert_eq!(service.get("/v1/status").await.problem(400)["field"], "url");
}

#[tokio::test]
async fn a_long_poll_ends_with_the_first_event() {
    let service =
        Arc::new(TestService::with(Limits { poll_step: Duration::from_millis(20), ..Limits::default() }));
    let begin = Instant::now();
    let poll = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/changes?wait=30").await.json() }
    });
    // The long poll waits for more than one step without a change.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!poll.is_finished());
    service.store(&[page("http://a/", "t", 0)]).await;
    assert_eq!(poll.await.unwrap()["changes"][0]["url"], "http://a/");
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_long_poll_ends_after_its_time_and_at_shutdown() {
    let service =
        Arc::new(TestService::with(Limits { poll_step: Duration::from_millis(20), ..Limits::default() }));
    let begin = Instant::now();
    let empty = service.get("/v1/changes?wait=1").await.json();
    assert!(begin.elapsed() >= Duration::from_secs(1));
    assert_eq!(empty, json!({"changes": [], "cursor": "c0", "at_end": true}));
    let poll = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/changes?wait=60").await.json() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    service.app.drain();
    assert_eq!(poll.await.unwrap()["at_end"], true);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn long_polls_are_bounded() {
    let limits = Limits { long_polls: 1, poll_step: Duration::from_millis(20), ..Limits::default() };
    let service = Arc::new(TestService::with(limits));
    let poll = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/changes?wait=60").await.status }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    service.get("/v1/changes?wait=1").await.problem(503);
    assert_eq!(service.get("/v1/changes").await.status, 200, "a request without wait needs no permit");
    // A client that disconnects returns its permit.
    poll.abort();
    assert!(poll.await.unwrap_err().is_cancelled());
    assert_eq!(service.get("/v1/changes?wait=1").await.status, 200);
}

#[tokio::test]
async fn the_export_is_sorted_and_has_six_fields() {
    let service = TestService::new();
    let mut pages: Vec<_> = (0..300).map(|n| page(&format!("http://a/{n}"), &format!("t{n}x"), 0)).collect();
    pages.push(page("http://a/7?copy", "t7x", 2));
    pages.push(json!({"url": "http://a/\"quoted\"\\", "redirect_to": "http://none/"}));
    pages.push(json!({"url": "http://gone/", "dead": true}));
    service.store(&pages).await;
    let reply = service.get("/v1/export").await;
    assert_eq!(reply.headers["doppel-cursor"], "c303");
    let lines = reply.lines();
    let urls: Vec<_> = lines.iter().map(|line| line["url"].as_str().unwrap().to_owned()).collect();
    let mut sorted = urls.clone();
    sorted.sort();
    assert_eq!((urls.len(), &urls), (302, &sorted));
    let copy = lines.iter().find(|line| line["url"] == "http://a/7?copy").unwrap();
    assert_eq!((copy["status"].as_str(), copy["winner"].as_str()), (Some("duplicate"), Some("http://a/7")));
    assert!(reply.text().lines().all(|line| {
        let keys = [
            "{\"url\":",
            ",\"status\":",
            ",\"group\":",
            ",\"winner\":",
            ",\"duplicate_of\":",
            ",\"similarity\":",
        ];
        line.matches("\":").count() == 6 && keys.iter().all(|key| line.contains(key))
    }));
    let mut out = Vec::new();
    let summary = doppel_engine::export::write_export(&*service.tiers, None, &mut out).unwrap();
    assert_eq!((out.as_slice(), summary.pages, summary.cursor.as_str()), (&reply.body[..], 302, "c303"));
    service.tiers.state().damaged = true;
    assert!(service.get("/v1/export").await.problem(500)["detail"].as_str().unwrap().contains("damaged"));
}
