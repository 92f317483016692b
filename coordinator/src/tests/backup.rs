//! Tests of `/v1/backup`: complete and broken-off answers.

use doppel_protocol::Tier1Error;

use super::gate::until;
use super::*;

#[tokio::test]
async fn one_backup_at_a_time() {
    let service = Arc::new(TestService::new());
    service.store(&[page("http://a/", "t", 0), page("http://b/", "u", 0)]).await;
    let closed = service.tiers.gate.close("backup");
    let other = Arc::clone(&service);
    let first = tokio::spawn(async move { other.get("/v1/backup").await });
    service.tiers.gate.begun("backup", 1).await;
    let detail = service.get("/v1/backup").await.problem(503)["detail"].to_string();
    assert!(detail.contains("another backup is in progress"), "{detail}");
    drop(closed);
    let reply = first.await.unwrap();
    assert_eq!(
        (reply.status, &reply.headers["content-type"]),
        (StatusCode::OK, &"application/octet-stream".parse().unwrap())
    );
    let mut urls: Vec<&str> = reply.text().lines().collect();
    urls.sort_unstable();
    assert_eq!(urls, ["http://a/", "http://b/"]);
    until(async || service.get("/v1/backup").await.status == 200).await;
}

#[tokio::test]
async fn a_backup_that_fails_breaks_off() {
    let service = Arc::new(TestService::new());
    service.store(&[page("http://a/", "t", 0)]).await;
    let closed = service.tiers.gate.close("backup");
    let request = Request::get("/v1/backup").body(Body::empty()).unwrap();
    let response = service.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    service.tiers.state().refuse = Some((0, Tier1Error::ReadOnly("it failed".to_owned())));
    drop(closed);
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
    assert!(body.is_err(), "it looks whole: {body:?}");
    // The permit of the failed backup is returned a moment later.
    until(async || service.get("/v1/backup").await.problem(503)["type"] == "urn:doppel:problem:read-only")
        .await;
}

#[tokio::test]
async fn a_backup_without_its_end_breaks_off() {
    let service = TestService::new();
    service.store(&[page("http://a/", "t", 0)]).await;
    service.tiers.state().cut_backup = true;
    let request = Request::get("/v1/backup").body(Body::empty()).unwrap();
    let response = service.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await;
    assert!(body.is_err(), "it looks whole: {body:?}");
}
