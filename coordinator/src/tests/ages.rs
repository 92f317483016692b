//! Tests of the age of answers: an answer that was read from replicas states its age.

use std::time::Duration;

use doppel_model::PageUrl;

use super::*;
use crate::limits::ANSWER_ATTEMPTS;

/// A winner and its duplicate, and a page on its own.
async fn service() -> TestService {
    let service = TestService::new();
    service
        .store(&[page("http://w/", "t", 0), page("http://near/copy", "t", 4), page("http://alone/", "u", 0)])
        .await;
    service
}

impl TestService {
    /// Questions for which the page, its group and the winner are read.
    fn ways(&self) -> [String; 3] {
        let group = self.tiers.state().group_of("http://w/");
        [
            "/v1/status?url=http://near/copy".to_owned(),
            format!("/v1/groups/{group}"),
            "/v1/explain?a=http://near/copy&b=http://w/".to_owned(),
        ]
    }

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
async fn each_answer_has_the_age_of_the_oldest_record_read_for_it() {
    let service = service().await;
    let ways = service.ways();
    for way in &ways {
        let answer = service.get(way).await.json();
        assert!(answer.get("age_ms").is_none(), "owners alone: {answer}");
    }
    service.read_of_a_replica("http://near/copy", 300);
    service.read_of_a_replica("http://w/", 1_200);
    for way in &ways {
        assert_age(&service.get(way).await.json(), 1_200);
    }
    let urls = ["http://near/copy", "http://alone/", "http://w/"];
    let answers = service.post_json("/v1/status", &json!({ "urls": urls })).await.json();
    assert_age(&answers["pages"][0], 1_200);
    assert!(answers["pages"][1].get("age_ms").is_none(), "another page: {answers}");
    assert_age(&answers["pages"][2], 1_200);
    let advice = service.status("http://near/copy").await;
    assert_eq!((&advice["status"], &advice["duplicate_of"]), (&json!("duplicate"), &json!("http://w/")));
    let probe = service.post_json("/v1/probe", &page("http://new/", "t", 2)).await.json();
    assert_age(&probe, 1_200);
    assert_eq!(service.counted().await, 3 + 2 + 1 + 1);
    // What is read of a group for a market is used for the pages after it.
    let answers = service.post_json("/v1/status", &json!({ "urls": urls, "market": "w" })).await.json();
    assert_age(&answers["pages"][2], 1_200);
}

#[tokio::test]
async fn answers_older_than_five_seconds_are_refused() {
    let service = service().await;
    let group = service.tiers.state().group_of("http://w/");
    service.read_of_a_replica("http://w/", 5_001);
    for way in [
        "/v1/status?url=http://near/copy".to_owned(),
        format!("/v1/groups/{group}"),
        "/v1/explain?a=http://near/copy&b=http://w/".to_owned(),
    ] {
        let problem = service.get(&way).await.problem(503);
        assert!(problem["detail"].as_str().unwrap().contains("the limit is 5 s"), "{problem}");
    }
    service.post_json("/v1/status", &json!({"urls": ["http://alone/", "http://w/"]})).await.problem(503);
    assert!(service.status("http://alone/").await.get("age_ms").is_none());
    // An export reads owners only.
    assert_eq!(service.get("/v1/export").await.lines().len(), 3);
    assert_eq!(service.counted().await, 0);
}

impl TestService {
    /// Makes the next reads of a page take these numbers of seconds. Later reads take no time.
    fn read_slowly(&self, url: &str, seconds: &[u64]) {
        let page = PageUrl::parse(url).unwrap().id();
        let times = seconds.iter().map(|seconds| Duration::from_secs(*seconds)).collect();
        self.tiers.state().slow.insert(page, times);
    }

    fn slow_reads_left(&self, url: &str) -> usize {
        self.tiers.state().slow[&PageUrl::parse(url).unwrap().id()].len()
    }
}

/// Maximum seconds that a read may take: with owners that stay, and with owners that may be deposed.
const TIMES: [(bool, u64); 2] = [(false, 4), (true, 0)];

#[tokio::test]
async fn outdated_answers_of_owners_are_read_again() {
    let service = service().await;
    let ways = service.ways();
    for (may_change, most) in TIMES {
        service.tiers.state().may_change = may_change;
        for way in &ways {
            // The first read of the page takes too long, and the second is in time.
            service.read_slowly("http://near/copy", &[most]);
            assert_eq!(service.get(way).await.status, 200);
            assert_eq!(service.slow_reads_left("http://near/copy"), 0);
            service.read_slowly("http://near/copy", &[most + 1]);
            let answer = service.get(way).await.json();
            assert!(answer.get("age_ms").is_none(), "{answer}");
            assert_eq!(service.slow_reads_left("http://near/copy"), 0, "it was read again: {answer}");
            service.read_slowly("http://near/copy", &[most + 1; 100]);
            let problem = service.get(way).await.problem(503);
            assert!(problem["detail"].as_str().unwrap().contains("may have changed"), "{problem}");
            service.read_slowly("http://near/copy", &[]);
        }
    }
}

#[tokio::test]
async fn pages_whose_advice_became_too_old_are_read_again() {
    let service = service().await;
    for (may_change, most) in TIMES {
        service.tiers.state().may_change = may_change;
        let urls = ["http://near/copy", "http://alone/", "http://w/"];
        for market in [Value::Null, json!("w")] {
            let question = json!({ "urls": urls, "market": market });
            service.read_slowly("http://near/copy", &[most + 1]);
            let answers = service.post_json("/v1/status", &question).await.json();
            let statuses: Vec<&str> = answers["pages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|page| page["status"].as_str().unwrap())
                .collect();
            assert_eq!(statuses, ["duplicate", "unique", "winner"]);
            assert_eq!(service.slow_reads_left("http://near/copy"), 0);
            // Each attempt reads the page at most twice: for its own answer, and as the duplicate of the
            // winner.
            service.read_slowly("http://near/copy", &[most + 1; 100]);
            service.post_json("/v1/status", &question).await.problem(503);
            assert!(100 - service.slow_reads_left("http://near/copy") <= 2 * ANSWER_ATTEMPTS as usize);
            service.read_slowly("http://near/copy", &[]);
        }
    }
}

/// The status table answers for the first page before the slow read of the second page's rows.
#[tokio::test]
async fn answers_of_the_table_are_looked_up_again_if_reading_rows_takes_long() {
    let service = Arc::new(service().await);
    let page = |url: &str| PageUrl::parse(url).unwrap();
    let known: doppel_contract::answer::Advice =
        serde_json::from_value(service.status("http://near/copy").await).unwrap();
    service.tiers.state().known.insert(page("http://near/copy"), known);
    let (hold, before) = (service.tiers.gate.close("pages"), service.tiers.gate.count("pages"));
    let asking = tokio::spawn({
        let service = Arc::clone(&service);
        let question = json!({ "urls": ["http://near/copy", "http://alone/"] });
        async move { service.post_json("/v1/status", &question).await.json() }
    });
    service.tiers.gate.begun("pages", before + 1).await;
    // The first page changes meanwhile.
    {
        let mut state = service.tiers.state();
        let mut changed = state.known[&page("http://near/copy")].clone();
        changed.status = doppel_contract::Status::Pending;
        state.known.insert(page("http://near/copy"), changed);
    }
    tokio::time::sleep(Duration::from_millis(5_100)).await;
    drop(hold);
    let answers = asking.await.unwrap();
    assert_eq!(answers["pages"][0]["status"], "pending", "{answers}");
}
