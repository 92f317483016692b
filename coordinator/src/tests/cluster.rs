//! Tests of a coordinator in a cluster: the cluster's state in JSON, in `/readyz`, and as metrics.

use std::sync::Mutex;

use doppel_contract::answer::{
    Attention, ClusterNode, ClusterRange, ClusterStatus, EngineServer, EngineStatus, EngineStream, NodeRole,
    Standby,
};
use doppel_model::{PartitionId, RangeId};
use doppel_protocol::{CallTraffic, ClusterApi, NodeTraffic, TakeOverError};

use super::*;

/// A cluster whose state the test sets.
pub(super) struct FakeCluster {
    status: Mutex<ClusterStatus>,
    answers: Mutex<bool>,
}

impl ClusterApi for FakeCluster {
    fn status(&self) -> ClusterStatus {
        self.status.lock().unwrap().clone()
    }

    fn has_answering_node(&self) -> bool {
        *self.answers.lock().unwrap()
    }

    fn traffic(&self) -> Vec<NodeTraffic> {
        let calls = vec![CallTraffic { call: "tier1/submit".to_owned(), requests: 2, sent: 30, received: 4 }];
        vec![NodeTraffic { node: "front".to_owned(), calls }]
    }

    fn take_over(&self, _: RangeId, _: &str) -> Result<(), TakeOverError> {
        Err(TakeOverError::NotReplicated)
    }
}

/// Two ranges at two nodes, one node of tier 2, and one log server.
fn well() -> ClusterStatus {
    let node = |name: &str, role| ClusterNode {
        name: name.to_owned(),
        role,
        address: "10.0.0.1:1".to_owned(),
        answers: true,
        reason: None,
        router: false,
        partitions: (role == NodeRole::Tier2).then(|| vec![PartitionId(0), PartitionId(2)]),
        contents: None,
        lag: (role == NodeRole::Tier2).then_some(5),
    };
    let range = |range| ClusterRange {
        range: RangeId(range),
        first_shard: 0,
        last_shard: 0,
        owner: Some("record-1".to_owned()),
        served: true,
        epoch: Some(7),
        standbys: vec![Standby { node: "record-2".to_owned(), follows: true, lag: Some(3), reason: None }],
        replicas: 2,
        live_replicas: 2,
        live: Some(9),
        pending: Some(1),
    };
    let server = EngineServer {
        name: Some("log-1".to_owned()),
        address: "nats://10.0.0.9:4222".to_owned(),
        version: Some("2.9.10".to_owned()),
        answers: true,
        reason: None,
    };
    let stream = EngineStream {
        range: RangeId(0),
        stream: "doppel-0f-range-0".to_owned(),
        bytes: Some(500),
        limit: Some(1_000),
        first: Some(1),
        last: Some(12),
        leader: Some("log-1".to_owned()),
        copies: 3,
        current_copies: Some(2),
        behind: vec!["log-3".to_owned()],
        reason: None,
    };
    ClusterStatus {
        cluster: Some("0f".to_owned()),
        replicated: true,
        nodes: vec![
            node("record-1", NodeRole::Tier1),
            node("record-2", NodeRole::Tier1),
            node("index-1", NodeRole::Tier2),
        ],
        ranges: vec![range(0), range(1)],
        engine: Some(EngineStatus { servers: vec![server], streams: vec![stream] }),
        orders_waiting: Some(4),
        attention: vec![Attention { what: "a copy is behind".to_owned(), remedy: "wait".to_owned() }],
    }
}

pub(super) fn service() -> (TestService, Arc<FakeCluster>) {
    let cluster = Arc::new(FakeCluster { status: Mutex::new(well()), answers: Mutex::new(true) });
    (TestService::in_cluster(Arc::clone(&cluster) as Arc<dyn ClusterApi>), cluster)
}

#[tokio::test]
async fn a_coordinator_is_ready_while_any_node_answers_and_reports_ranges_on_request() {
    let (service, cluster) = service();
    for path in ["/readyz", "/readyz?ranges=any", "/readyz?ranges=served", "/readyz?ranges=all"] {
        let reply = service.get(path).await;
        assert!(reply.status == 200 && reply.text().starts_with("ready\n"), "{path}: {reply:?}");
    }
    assert_eq!(
        service.get("/readyz?ranges=all").await.text(),
        "ready\n2 ranges are served, with 4 of 4 replicas\n"
    );
    service.get("/readyz?ranges=some").await.problem(400);

    // A standby is lost.
    cluster.status.lock().unwrap().ranges[1].live_replicas = 1;
    assert_eq!(service.get("/readyz?ranges=served").await.status, 200);
    let lacking = service.get("/readyz?ranges=all").await.problem(503);
    assert_eq!(lacking["detail"], "range 1 has 1 of 2 replicas", "{lacking}");

    // A range takes no writes, and one has no owner.
    cluster.status.lock().unwrap().ranges[0].served = false;
    cluster.status.lock().unwrap().ranges[1].epoch = None;
    for asked in ["served", "all"] {
        let lacking = service.get(&format!("/readyz?ranges={asked}")).await.problem(503);
        let detail = "range 0 takes no writes; range 1 has no owner that answers";
        assert_eq!(lacking["detail"], detail, "{lacking}");
    }
    assert_eq!(service.get("/readyz").await.status, 200);
    let quality = service.get("/v1/reports/quality").await.json();
    assert_eq!(quality["not_ready"], "range 0 takes no writes; range 1 has no owner that answers");

    // No node is left to answer.
    *cluster.answers.lock().unwrap() = false;
    let away = service.get("/readyz").await.problem(503);
    assert_eq!(away["detail"], "no node of tier 1 answers", "{away}");
    service.app.drain();
    assert_eq!(service.get("/readyz").await.problem(503)["type"], "urn:doppel:problem:stopping");
}

#[tokio::test]
async fn metrics_report_the_state_of_the_cluster() {
    let (service, cluster) = service();
    let has = async |line: &str| service.get("/metrics").await.text().lines().any(|have| have == line);
    for line in [
        "doppel_cluster_node_up{node=\"record-1\",tier=\"1\"} 1",
        "doppel_cluster_index_node_lag_orders{node=\"index-1\",tier=\"2\"} 5",
        "doppel_cluster_index_node_partitions{node=\"index-1\",tier=\"2\"} 2",
        "doppel_cluster_range_owned{range=\"1\"} 1",
        "doppel_cluster_range_served{range=\"1\"} 1",
        "doppel_cluster_range_epoch{range=\"1\"} 7",
        "doppel_cluster_range_live_replicas{range=\"1\"} 2",
        "doppel_cluster_range_wanted_replicas{range=\"1\"} 2",
        "doppel_cluster_range_live_pages{range=\"1\"} 9",
        "doppel_cluster_range_pending_pages{range=\"1\"} 1",
        "doppel_cluster_standby_lag_records{range=\"1\",node=\"record-2\"} 3",
        "doppel_cluster_log_server_up{address=\"nats://10.0.0.9:4222\"} 1",
        "doppel_cluster_stream_bytes{range=\"0\"} 500",
        "doppel_cluster_stream_limit_bytes{range=\"0\"} 1000",
        "doppel_cluster_stream_last_sequence{range=\"0\"} 12",
        "doppel_cluster_stream_current_copies{range=\"0\"} 2",
        "doppel_cluster_stream_wanted_copies{range=\"0\"} 3",
        "doppel_cluster_waiting_orders 4",
        "doppel_cluster_attention_items 1",
        "doppel_wire_requests_total{node=\"front\",call=\"tier1/submit\"} 2",
        "doppel_wire_bytes_total{node=\"front\",call=\"tier1/submit\",direction=\"sent\"} 30",
        "doppel_wire_bytes_total{node=\"front\",call=\"tier1/submit\",direction=\"received\"} 4",
    ] {
        assert!(has(line).await, "{line} is not in\n{}", service.get("/metrics").await.text());
    }
    // A node dies that owns range 1, and a stream has no leader.
    {
        let mut status = cluster.status.lock().unwrap();
        status.nodes[0].answers = false;
        let range = &mut status.ranges[1];
        (range.served, range.epoch, range.live_replicas) = (false, None, 1);
        let stream = &mut status.engine.as_mut().unwrap().streams[0];
        (stream.bytes, stream.current_copies) = (None, None);
    }
    for line in [
        "doppel_cluster_node_up{node=\"record-1\",tier=\"1\"} 0",
        "doppel_cluster_range_owned{range=\"1\"} 0",
        "doppel_cluster_range_served{range=\"1\"} 0",
        "doppel_cluster_range_live_replicas{range=\"1\"} 1",
        "doppel_cluster_stream_current_copies{range=\"0\"} 0",
    ] {
        assert!(has(line).await, "{line}");
    }
    let text = service.get("/metrics").await.text().to_owned();
    for gone in ["doppel_cluster_range_epoch{range=\"1\"}", "doppel_cluster_stream_bytes{range=\"0\"}"] {
        assert!(!text.contains(gone), "{gone}");
    }
    // A single process has none of these metrics.
    assert!(!TestService::new().get("/metrics").await.text().contains("doppel_cluster"));
}
