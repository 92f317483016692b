//! Tests of the load by node, its history, what-if figures, and changes of the partition map.

use std::cell::RefCell;

use doppel_contract::RebalanceProgress;
use doppel_model::signature::Signature;
use doppel_model::{NodeId, Tau};
use doppel_partitioning::{PartitionMap, Plan};
use doppel_protocol::IndexError;

use super::*;

/// Creates a coordinator with pages of many lengths, all on the first of three nodes.
pub(super) async fn with_plan() -> Arc<TestService> {
    let service = TestService::with_mapping();
    let text =
        |n: usize| json!({"url": format!("http://a/{n}"), "text": words(&format!("t{n}x"), 0, 20 + n)});
    service.store(&(0..120).map(text).collect::<Vec<_>>()).await;
    let map = PartitionMap::one(3, Tau::DEFAULT).unwrap();
    service.tiers.state().plan = Some(Plan::on_first(map, 3).unwrap());
    Arc::new(service)
}

fn progress() -> RebalanceProgress {
    RebalanceProgress { plan_version: 1, next_version: 2, copied: 30, contents: 40, changed: 3, seconds: 1.5 }
}

#[tokio::test]
async fn a_rebalance_request_runs_after_its_dry_run() {
    let service = with_plan().await;
    let ask = json!({"action": "balance", "dry_run": true});
    let dry = service.post_json("/v1/rebalance", &ask).await.json();
    assert_eq!((&dry["started"], &dry["contents"]), (&json!(false), &json!(120)));
    assert!(dry["imbalance_before"].as_f64().unwrap() > 2.9, "{dry}");
    assert!(dry["imbalance_after"].as_f64().unwrap() < 1.2, "{dry}");
    assert!(!dry["moves"].as_array().unwrap().is_empty());
    let present = service.get("/v1/rebalance").await.json();
    assert_eq!(
        present,
        json!({"plan_version": 0, "nodes": 3, "drained": [], "progress": null, "request": null, "outcome": null})
    );

    let done = service.post_json("/v1/rebalance", &json!({"action": "balance"})).await.json();
    assert_eq!(done, {
        let mut same = dry.clone();
        same["started"] = true.into();
        same
    });
    assert_eq!(service.get("/v1/rebalance").await.json()["plan_version"], 1);

    let drained = service.post_json("/v1/rebalance", &json!({"action": "drain", "node": 1})).await.json();
    assert!(drained["moves"].as_array().unwrap().iter().any(|one| one["from"] == 1), "{drained}");
    let plan = service.tiers.state().plan.clone().unwrap();
    assert!(plan.assignments().iter().all(|assignment| assignment.node != NodeId(1)));
    assert_eq!(service.get("/v1/rebalance").await.json()["drained"], json!([1]));
    assert_eq!(service.get("/v1/reports/load-balance").await.json()["drained"], json!([1]));
}

#[tokio::test]
async fn invalid_rebalance_requests_are_problems() {
    let service = with_plan().await;
    for (body, field) in [
        (json!({"action": "drain"}), "node"),
        (json!({"action": "join"}), "node"),
        (json!({"action": "balance", "node": 1}), "node"),
        (json!({"action": "drain", "node": 3}), "node"),
        (json!({"action": "drain", "node": 1, "partition": 0}), "partition"),
        (json!({"action": "move", "partition": 0}), "node"),
        (json!({"action": "move", "node": 0}), "partition"),
        (json!({"action": "move", "node": 0, "partition": 99}), "partition"),
        (json!({"action": "join", "node": 4_000_000_000_u32}), "node"),
    ] {
        let problem = service.post_json("/v1/rebalance", &body).await.problem(400);
        assert_eq!(problem["field"], field, "{body}");
    }
    for body in [json!({}), json!({"action": "more"}), json!({"action": "balance", "dry": true}), json!([])] {
        service.post_json("/v1/rebalance", &body).await.problem(400);
    }
    service.tiers.state().progress = Some(progress());
    let busy = service.post_json("/v1/rebalance", &json!({"action": "balance"})).await.problem(409);
    assert!(busy["detail"].as_str().unwrap().contains("plan 2"), "{busy}");

    let bare = TestService::new();
    bare.get("/v1/rebalance").await.problem(404);
    bare.post_json("/v1/rebalance", &json!({"action": "balance"})).await.problem(404);
    bare.get("/v1/reports/load-balance/what-if").await.problem(404);
}

#[tokio::test]
async fn what_if_is_for_policies_that_bound_lengths() {
    for policy in Policy::all().filter(|policy| policy.metric().is_none()) {
        let problem =
            TestService::comparing(policy).get("/v1/reports/load-balance/what-if").await.problem(422);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("the policy {policy} does not bound lengths")), "{problem}");
    }
}

#[tokio::test]
async fn a_change_under_way_is_shown() {
    let service = with_plan().await;
    service.tiers.state().progress = Some(progress());
    let expected = json!({
        "plan_version": 1, "next_version": 2, "copied": 30, "contents": 40, "changed": 3, "seconds": 1.5,
    });
    assert_eq!(service.get("/v1/rebalance").await.json()["progress"], expected);
    assert_eq!(service.get("/v1/reports/load-balance").await.json()["progress"], expected);
    let metrics = service.get("/metrics").await;
    for line in ["doppel_tier2_migration_contents 40", "doppel_tier2_migration_copied_contents 30"] {
        assert!(metrics.text().lines().any(|have| have == line), "{line}");
    }
}

#[tokio::test]
async fn a_change_is_cancelled_once() {
    let service = with_plan().await;
    service.delete("/v1/rebalance").await.problem(409);
    service.tiers.state().progress = Some(progress());
    let ended = service.delete("/v1/rebalance").await.json();
    assert_eq!(
        (&ended["cancelled"], &ended["copied"], &ended["plan_version"]),
        (&json!(true), &json!(30), &json!(1))
    );
    let present = service.get("/v1/rebalance").await.json();
    assert_eq!((&present["outcome"], &present["progress"]), (&ended, &Value::Null));
    service.delete("/v1/rebalance").await.problem(409);
    TestService::new().delete("/v1/rebalance").await.problem(404);
}

#[tokio::test]
async fn an_unavailable_index_is_a_problem_with_retry_after() {
    let service = with_plan().await;
    service.tiers.state().index_error = Some(IndexError::Unavailable("node 1: it is not fed yet".to_owned()));
    let probe = json!({"text": words("p", 0, 40)});
    for reply in [
        service.get("/v1/reports/load-balance").await,
        service.post_json("/v1/flush", &json!({})).await,
        service.post_json("/v1/probe", &probe).await,
    ] {
        assert!(reply.headers.contains_key("retry-after"));
        let problem = reply.problem(503);
        assert_eq!(problem["type"], "urn:doppel:problem:index-unavailable");
        assert!(problem["detail"].as_str().unwrap().contains("node 1"), "{problem}");
    }
    // The other metrics are still reported.
    let metrics = service.get("/metrics").await;
    assert!(
        metrics.text().contains("doppel_tier1_")
            && metrics.text().contains("doppel_tier2_up 0")
            && !metrics.text().contains("doppel_tier2_searches_total")
    );
}

#[tokio::test]
async fn the_report_has_a_row_for_every_node_and_a_history() {
    let service = with_plan().await;
    let load = service.get("/v1/reports/load-balance").await.json();
    let nodes: Vec<u64> =
        load["nodes"].as_array().unwrap().iter().map(|node| node["node"].as_u64().unwrap()).collect();
    // The list contains the nodes of the plan and the nodes of the load report.
    assert_eq!(nodes, [0, 1, 2, 3]);
    assert_eq!(
        (&load["serving_nodes"], &load["node_fan_out"], &load["node_imbalance"]),
        (&json!(3), &json!(12), &json!(2.0))
    );
    assert_eq!((&load["history"], &load["variation"]), (&json!([]), &Value::Null));
    let recording = tokio::spawn(service.app.clone().record_balance_history());
    gate::until(async || {
        let load = service.get("/v1/reports/load-balance").await.json();
        load["history"].as_array().unwrap().len() == 1 && load["variation"] == 0.0
    })
    .await;
    let load = service.get("/v1/reports/load-balance").await.json();
    let point = json!({
        "at": "2027-01-15T08:00:00Z", "plan_version": 4, "contents": 18, "node_imbalance": 2.0,
        "node_imbalance_floor": 1.2, "node_fan_out_saved": 0.6,
    });
    assert_eq!(load["history"], json!([point]));
    service.app.drain();
    recording.await.unwrap();
}

#[tokio::test]
async fn a_sample_consists_of_concatenated_signatures() {
    let service = with_plan().await;
    for (query, contents) in [("", 120), ("?contents=7", 7), ("?contents=100000", 120)] {
        // The permit of the previous sample is returned a moment later.
        let reply = RefCell::new(None);
        gate::until(async || {
            let sample = service.get(&format!("/v1/sample{query}")).await;
            let done = sample.status == 200;
            reply.replace(Some(sample));
            done
        })
        .await;
        let reply = reply.into_inner().unwrap();
        let mut input = &*reply.body;
        let signatures = std::iter::from_fn(|| Signature::read(&mut input).unwrap());
        assert_eq!(signatures.count(), contents, "{query}");
    }
    let problem = service.get("/v1/sample?contents=0").await.problem(400);
    assert_eq!(problem["field"], "contents");
    service.get("/v1/sample?contents=100001").await.problem(400);
    service.get("/v1/sample?limit=1").await.problem(400);
    TestService::new().get("/v1/sample").await.problem(404);
}

#[tokio::test]
async fn a_sample_without_its_client_keeps_its_permit() {
    let service = with_plan().await;
    let closed = service.tiers.gate.close("sample");
    let caller = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/sample").await }
    });
    service.tiers.gate.begun("sample", 1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    for _ in 0..3 {
        service.get("/v1/sample").await.problem(503);
        service.get("/v1/reports/load-balance/what-if").await.problem(503);
    }
    drop(closed);
    gate::until(async || service.get("/v1/sample").await.status == 200).await;
}

#[tokio::test]
async fn what_if_is_made_one_at_a_time() {
    let service = with_plan().await;
    let closed = service.tiers.gate.close("sample");
    let first = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/reports/load-balance/what-if").await }
    });
    service.tiers.gate.begun("sample", 1).await;
    service.get("/v1/reports/load-balance/what-if").await.problem(503);
    service.post_json("/v1/rebalance", &json!({"action": "balance", "dry_run": true})).await.problem(503);
    drop(closed);
    let answer = first.await.unwrap().json();
    assert_eq!(answer["sample"], 120);
    let rows = answer["rows"].as_array().unwrap();
    let of = |row: &Value| (row["dimensions"].as_u64().unwrap(), row["nodes"].as_u64().unwrap());
    let expected: Vec<(u64, u64)> = (1..=4).flat_map(|n| (1..=7).map(move |power| (n, 1 << power))).collect();
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    // All contents are on the first of three nodes.
    let present = &answer["present"];
    assert_eq!((of(present), &present["imbalance"]), ((3, 3), &json!(3.0)));
    assert!((present["fan_out_saved"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{present}");
    assert!(rows.iter().all(|row| row["imbalance"].as_f64().unwrap() >= 1.0));
}
