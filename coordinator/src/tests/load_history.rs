//! Tests of `GET /v1/load/history`.

use super::*;

#[tokio::test]
async fn the_history_has_what_was_noted() {
    let door = Door::new();
    assert_eq!(door.get("/v1/load/history").await.json(), json!({"now_ms": NOW.millis(), "points": []}));
    let noting = tokio::spawn(door.app.clone().note_load_points());
    let point = loop {
        let history = door.get("/v1/load/history").await.json();
        if let Some(point) = history["points"].get(0) {
            break point.clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&point["at_ms"], &point["oldest_pending_ms"]), (&json!(NOW.millis()), &json!(1_500)));
    assert_eq!(point["submissions_per_s"], Value::Null, "nothing came before");
    assert!(!point["partitions"].as_array().unwrap().is_empty());
    let later = door.get(&format!("/v1/load/history?since={}", NOW.millis())).await.json();
    assert_eq!(later["points"], json!([]));
    door.get("/v1/load/history?since=soon").await.problem(400);
    // The recording ends with the service, although the next point is not due.
    door.app.drain();
    tokio::time::timeout(std::time::Duration::from_secs(20), noting).await.unwrap().unwrap();
}
