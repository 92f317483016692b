//! Tests of `GET /v1/load/history`.

use super::*;

#[tokio::test]
async fn the_history_contains_the_recorded_points() {
    let service = TestService::new();
    assert_eq!(service.get("/v1/load/history").await.json(), json!({"now_ms": NOW.millis(), "points": []}));
    let recording = tokio::spawn(service.app.clone().record_load_history());
    let point = loop {
        let history = service.get("/v1/load/history").await.json();
        if let Some(point) = history["points"].get(0) {
            break point.clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&point["at_ms"], &point["oldest_pending_ms"]), (&json!(NOW.millis()), &json!(1_500)));
    assert_eq!(point["submissions_per_s"], Value::Null, "the first point has no rates");
    assert!(!point["partitions"].as_array().unwrap().is_empty());
    let later = service.get(&format!("/v1/load/history?since={}", NOW.millis())).await.json();
    assert_eq!(later["points"], json!([]));
    service.get("/v1/load/history?since=soon").await.problem(400);
    // The recording ends with the service, although the next point is not due.
    service.app.drain();
    tokio::time::timeout(std::time::Duration::from_secs(20), recording).await.unwrap().unwrap();
}
