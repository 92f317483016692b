//! Answers for which replicas were read say how old they are.

use std::time::Duration;

use doppel_model::PageUrl;

use super::*;

/// A winner and its duplicate, and a page on its own.
async fn door() -> Door {
    let door = Door::new();
    door.store(&[page("http://w/", "t", 0), page("http://near/copy", "t", 4), page("http://alone/", "u", 0)])
        .await;
    door
}

impl Door {
    fn read_of_a_replica(&self, url: &str, millis: u64) {
        let page = PageUrl::parse(url).unwrap().id();
        self.tiers.state().old.insert(page, Duration::from_millis(millis));
    }

    async fn counted(&self) -> u64 {
        let metrics = self.get("/metrics").await;
        let name = "doppel_coordinator_replica_answers_total ";
        metrics.text().lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap()
    }
}

#[track_caller]
fn assert_age(answer: &Value, millis: u64) {
    let age = answer["age_ms"].as_u64().unwrap_or_else(|| panic!("no age: {answer}"));
    assert!((millis..5_000).contains(&age), "{answer}");
}

#[tokio::test]
async fn each_answer_has_the_greatest_age_of_what_was_read_for_it() {
    let door = door().await;
    let group = door.tiers.state().group_of("http://w/");
    let ways = [
        "/v1/status?url=http://near/copy".to_owned(),
        format!("/v1/groups/{group}"),
        "/v1/explain?a=http://near/copy&b=http://w/".to_owned(),
    ];
    for way in &ways {
        let answer = door.get(way).await.json();
        assert!(answer.get("age_ms").is_none(), "owners alone: {answer}");
    }
    door.read_of_a_replica("http://near/copy", 300);
    door.read_of_a_replica("http://w/", 1_200);
    for way in &ways {
        assert_age(&door.get(way).await.json(), 1_200);
    }
    let urls = ["http://near/copy", "http://alone/", "http://w/"];
    let answers = door.post_json("/v1/status", &json!({ "urls": urls })).await.json();
    assert_age(&answers["pages"][0], 1_200);
    assert!(answers["pages"][1].get("age_ms").is_none(), "another page: {answers}");
    assert_age(&answers["pages"][2], 1_200);
    let advice = door.status("http://near/copy").await;
    assert_eq!((&advice["status"], &advice["duplicate_of"]), (&json!("duplicate"), &json!("http://w/")));
    let probe = door.post_json("/v1/probe", &page("http://new/", "t", 2)).await.json();
    assert_age(&probe, 1_200);
    assert_eq!(door.counted().await, 3 + 2 + 1 + 1);
    // What is read of a group for a market is used for the pages after it.
    let answers = door.post_json("/v1/status", &json!({ "urls": urls, "market": "w" })).await.json();
    assert_age(&answers["pages"][2], 1_200);
}

#[tokio::test]
async fn what_is_older_than_five_seconds_is_no_answer() {
    let door = door().await;
    let group = door.tiers.state().group_of("http://w/");
    door.read_of_a_replica("http://w/", 5_001);
    for way in [
        "/v1/status?url=http://near/copy".to_owned(),
        format!("/v1/groups/{group}"),
        "/v1/explain?a=http://near/copy&b=http://w/".to_owned(),
    ] {
        let problem = door.get(&way).await.problem(503);
        assert!(problem["detail"].as_str().unwrap().contains("5 s is the most"), "{problem}");
    }
    door.post_json("/v1/status", &json!({"urls": ["http://alone/", "http://w/"]})).await.problem(503);
    assert!(door.status("http://alone/").await.get("age_ms").is_none());
    // An export is of owners.
    assert_eq!(door.get("/v1/export").await.lines().len(), 3);
    assert_eq!(door.counted().await, 0);
}
