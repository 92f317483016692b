//! Callers who go before their answer, or are sent away: what they leave behind still counts (G6).

use std::time::Duration;

use super::*;
use crate::limits::HEAVY_CALLS;
use gate::until;

#[tokio::test]
async fn an_export_without_its_caller_keeps_its_place() {
    let door = Arc::new(Door::new());
    let closed = door.tiers.gate.close("scan");
    for _ in 0..HEAVY_CALLS {
        door.ask_and_go("GET", "/v1/export", "scan").await;
    }
    let one_more = tokio::time::timeout(Duration::from_secs(5), door.get("/v1/export")).await;
    one_more.expect("it is refused at once").problem(503);
    drop(closed);
    until(async || door.get("/v1/export").await.status == 200).await;
}

#[tokio::test]
async fn a_call_without_its_caller_keeps_its_place_and_health_has_others() {
    let door = Arc::new(Door::with(Limits { requests: 1, ..Limits::default() }));
    let closed = door.tiers.gate.close("pages");
    door.ask_and_go("GET", "/v1/status?url=http://a/", "pages").await;
    door.get("/v1/groups").await.problem(503);
    assert_eq!(door.get("/readyz").await.status, 200);
    assert_eq!(door.get("/metrics").await.status, 200);
    drop(closed);
    until(async || door.get("/v1/groups").await.status == 200).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_answered_and_keeps_its_place() {
    let limits = Limits { requests: 1, call_time: Duration::from_millis(50), ..Limits::default() };
    let door = Door::with(limits);
    let closed = door.tiers.gate.close("pages");
    let problem = door.get("/v1/status?url=http://a/").await.problem(503);
    assert_eq!(problem["type"], "urn:doppel:problem:timeout");
    door.get("/v1/groups").await.problem(503);
    assert_eq!(door.get("/readyz").await.status, 200);
    drop(closed);
    until(async || door.get("/v1/groups").await.status == 200).await;
}

#[tokio::test]
async fn a_report_without_its_caller_is_kept_for_the_next() {
    let door = Arc::new(Door::new());
    let closed = door.tiers.gate.close("groups");
    door.ask_and_go("GET", "/v1/reports/groups", "groups").await;
    let next = tokio::spawn({
        let door = Arc::clone(&door);
        async move { door.get("/v1/reports/groups").await.status }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(closed);
    assert_eq!(next.await.unwrap(), 200);
    assert_eq!(door.tiers.gate.count("groups"), 1, "it was made once");
}

#[tokio::test]
async fn a_repair_without_its_caller_keeps_its_place() {
    let door = Arc::new(Door::with(Limits { repair_wait: Duration::from_millis(20), ..Limits::default() }));
    let closed = door.tiers.gate.close("repair");
    door.ask_and_go("POST", "/v1/groups/g1-0/repair", "repair").await;
    let many = json!({"groups": ["g1-0"]});
    for (path, body) in [("/v1/groups/g1-0/repair", &Value::Null), ("/v1/repair", &many)] {
        let one_more = tokio::time::timeout(Duration::from_secs(5), door.post_json(path, body)).await;
        one_more.expect("it is refused after a while").problem(503);
    }
    assert_eq!(door.tiers.gate.count("repair"), 1);
    drop(closed);
    until(async || door.post_json("/v1/repair", &many).await.status == 200).await;
}
