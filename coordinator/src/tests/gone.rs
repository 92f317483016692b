//! Tests of clients that disconnect before their answer, or are refused: work that they leave behind still
//! counts against the limits (guarantee G6).

use std::time::Duration;

use doppel_model::{GroupId, ShardId};
use doppel_protocol::GroupSummary;

use super::*;
use crate::limits::{HEAVY_CALLS, LIST};
use gate::until;

#[tokio::test]
async fn an_export_without_its_client_keeps_its_permit() {
    let service = Arc::new(TestService::new());
    let closed = service.tiers.gate.close("scan");
    for _ in 0..HEAVY_CALLS {
        service.ask_and_go("GET", "/v1/export", "scan").await;
    }
    let one_more = tokio::time::timeout(Duration::from_secs(5), service.get("/v1/export")).await;
    one_more.expect("it is refused at once").problem(503);
    drop(closed);
    until(async || service.get("/v1/export").await.status == 200).await;
}

#[tokio::test]
async fn a_call_without_its_client_keeps_its_permit_and_health_checks_have_their_own() {
    let service = Arc::new(TestService::with(Limits { requests: 1, ..Limits::default() }));
    let closed = service.tiers.gate.close("pages");
    service.ask_and_go("GET", "/v1/status?url=http://a/", "pages").await;
    service.get("/v1/groups").await.problem(503);
    assert_eq!(service.get("/readyz").await.status, 200);
    assert_eq!(service.get("/metrics").await.status, 200);
    drop(closed);
    until(async || service.get("/v1/groups").await.status == 200).await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_gets_503_and_keeps_its_permit() {
    let limits = Limits { requests: 1, call_time: Duration::from_millis(50), ..Limits::default() };
    let service = TestService::with(limits);
    let closed = service.tiers.gate.close("pages");
    let problem = service.get("/v1/status?url=http://a/").await.problem(503);
    assert_eq!(problem["type"], "urn:doppel:problem:timeout");
    service.get("/v1/groups").await.problem(503);
    assert_eq!(service.get("/readyz").await.status, 200);
    drop(closed);
    until(async || service.get("/v1/groups").await.status == 200).await;
}

/// Reports that read the whole collection, each with its first call to tier 1.
const REPORTS: [(&str, &str); 2] = [("/v1/reports/groups", "groups"), ("/v1/reports/savings", "scan")];

#[tokio::test]
async fn a_report_without_its_client_is_cached_for_the_next_client() {
    for (path, call) in REPORTS {
        let service = Arc::new(TestService::new());
        let closed = service.tiers.gate.close(call);
        service.ask_and_go("GET", path, call).await;
        drop(closed);
        until(async || service.get(path).await.status == 200).await;
        assert_eq!(service.tiers.gate.count(call), 1, "{path} was made once");
    }
}

#[tokio::test]
async fn no_client_waits_for_a_report_that_another_client_makes() {
    for (path, call) in REPORTS {
        let service = Arc::new(TestService::with(Limits { requests: 3, ..Limits::default() }));
        let closed = service.tiers.gate.close(call);
        service.ask_and_go("GET", path, call).await;
        let ask = async || {
            let answer = tokio::time::timeout(Duration::from_secs(5), service.get(path)).await;
            answer.unwrap_or_else(|_| panic!("{path} waits"))
        };
        // No report exists yet.
        for _ in 0..5 {
            assert_eq!(ask().await.problem(503)["type"], "urn:doppel:problem:busy");
        }
        drop(closed);
        until(async || service.get(path).await.status == 200).await;
        let old = Duration::from_secs(100);
        service.app.reports().groups.grow_old(old);
        service.app.reports().savings.grow_old(old);
        let closed = service.tiers.gate.close(call);
        service.ask_and_go("GET", path, call).await;
        // The previous report is returned with its age, and the permits of the other requests are free.
        for _ in 0..5 {
            let age = ask().await.json()["age_ms"].as_u64().unwrap_or_else(|| panic!("{path} has no age"));
            assert!(age >= 100_000, "{path} is {age} ms old");
        }
        assert_eq!(service.get("/v1/reports/quality").await.status, 200);
        drop(closed);
        until(async || service.get(path).await.json()["age_ms"].as_u64().is_none_or(|age| age < 100_000))
            .await;
    }
}

#[tokio::test]
async fn a_report_ends_when_the_service_stops() {
    for (path, call) in REPORTS {
        let service = Arc::new(TestService::new());
        service.store(&[page("http://a/0", "a", 0), page("http://a/1", "a", 0)]).await;
        {
            let mut state = service.tiers.state();
            let (summary, members) = state.groups.values().next().cloned().unwrap();
            // The collection has more groups than one call reads.
            for group in (1..=LIST as u64).map(|n| GroupId::new(1_000 + n, ShardId(0))) {
                state.groups.insert(group, (GroupSummary { group, ..summary.clone() }, members.clone()));
            }
        }
        let closed = service.tiers.gate.close(call);
        let asking = tokio::spawn({
            let service = Arc::clone(&service);
            async move { service.get(path).await }
        });
        service.tiers.gate.begun(call, 1).await;
        service.app.drain();
        drop(closed);
        assert_eq!(asking.await.unwrap().problem(503)["type"], "urn:doppel:problem:stopping", "{path}");
        assert_eq!(service.tiers.gate.count(call), 1, "{path} goes on");
    }
}

#[tokio::test]
async fn a_repair_without_its_client_keeps_its_permit() {
    let service =
        Arc::new(TestService::with(Limits { repair_wait: Duration::from_millis(20), ..Limits::default() }));
    let closed = service.tiers.gate.close("repair");
    service.ask_and_go("POST", "/v1/groups/g1-0/repair", "repair").await;
    let many = json!({"groups": ["g1-0"]});
    for (path, body) in [("/v1/groups/g1-0/repair", &Value::Null), ("/v1/repair", &many)] {
        let one_more = tokio::time::timeout(Duration::from_secs(5), service.post_json(path, body)).await;
        one_more.expect("it is refused after a while").problem(503);
    }
    assert_eq!(service.tiers.gate.count("repair"), 1);
    drop(closed);
    until(async || service.post_json("/v1/repair", &many).await.status == 200).await;
}
