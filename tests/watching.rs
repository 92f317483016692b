//! What operators and monitoring see of a replicated cluster while its processes die and come back: status,
//! readiness and metrics.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::thread;
use std::time::Duration;

use harness::metrics::Samples;
use harness::trial::Trial;
use harness::{PATIENCE, Server, all_is_well, run_ok, wait_until};
use serde_json::{Value, json};

/// Waits until a sample of `/metrics` has a value.
fn sample_becomes(front: &Server, name: &str, value: f64) {
    wait_until(&format!("{name} to be {value}"), PATIENCE, || {
        let is_so = Samples::of(front).get(name) == Some(value);
        thread::sleep(Duration::from_millis(100));
        is_so.then_some(())
    });
}

/// The HTTP status and the text of `/readyz`.
fn ready(front: &Server, ranges: &str) -> (u16, String) {
    let response = front.query("/readyz", &[("ranges", ranges)]);
    (response.status().as_u16(), response.text().unwrap())
}

fn attention(front: &Server) -> String {
    front.ask("/v1/cluster", &[])["attention"].to_string()
}

#[test]
fn status_readiness_and_metrics_report_dead_and_returned_processes() {
    let options = [
        "--tier1",
        "2",
        "--tier2",
        "2",
        "--coordinators",
        "1",
        "--ranges",
        "4",
        "--log-max-bytes",
        "67108864",
    ];
    let Some(trial) = Trial::replicated(&options) else { return };
    let front = &trial.coordinators()[0];
    let pages: Vec<Value> = (0..40)
        .map(|n| json!({"url": format!("http://site.example/{n}"), "text": format!("page number {n}")}))
        .collect();
    front.push_patiently(&pages);
    front.flush_patiently();
    all_is_well(front);

    let status = front.ask("/v1/cluster", &[]);
    let engine = &status["engine"];
    let servers = engine["servers"].as_array().unwrap();
    let names: Vec<&str> = servers.iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["log-1", "log-2", "log-3"], "{engine}");
    assert!(servers.iter().all(|one| one["answers"] == true && one["version"].is_string()), "{engine}");
    let streams = engine["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 4);
    for (range, stream) in streams.iter().enumerate() {
        assert_eq!(stream["range"], json!(range), "{stream}");
        assert_eq!(stream["limit"], json!(64 << 20), "{stream}");
        assert_eq!(stream["copies"], json!(3), "{stream}");
        assert_eq!(stream["current_copies"], json!(3), "{stream}");
        assert!(names.contains(&stream["leader"].as_str().unwrap()), "{stream}");
        assert!(stream["bytes"].as_u64() > Some(0) && stream["last"].as_u64() > Some(0), "{stream}");
    }
    assert!(status["ranges"].as_array().unwrap().iter().all(|one| one["live_replicas"] == 2), "{status}");
    let shown = run_ok(["cluster", "status", "--server", &front.url]);
    assert!(shown.contains("log-3") && shown.contains("64.00 MiB") && shown.contains("3 of 3"), "{shown}");
    assert_eq!(ready(front, "all").0, 200, "{:?}", ready(front, "all"));
    // These samples may change from one scrape to the next, so wait for their values.
    sample_becomes(front, "doppel_cluster_index_node_lag_orders{node=\"index-2\",tier=\"2\"}", 0.0);
    sample_becomes(front, "doppel_cluster_attention_items", 0.0);
    let samples = Samples::of(front);
    for (name, value) in [
        ("doppel_cluster_node_up{node=\"record-2\",tier=\"1\"}", 1.0),
        ("doppel_cluster_node_up{node=\"index-2\",tier=\"2\"}", 1.0),
        ("doppel_cluster_range_owned{range=\"3\"}", 1.0),
        ("doppel_cluster_range_live_replicas{range=\"3\"}", 2.0),
        ("doppel_cluster_range_wanted_replicas{range=\"3\"}", 2.0),
        ("doppel_cluster_stream_limit_bytes{range=\"3\"}", 67_108_864.0),
        ("doppel_cluster_stream_current_copies{range=\"3\"}", 3.0),
    ] {
        assert_eq!(samples.get(name), Some(value), "{name}");
    }
    assert!(samples.get("doppel_cluster_stream_bytes{range=\"3\"}").unwrap() > 0.0);
    for node in ["front-1", "record-1", "record-2", "index-1", "index-2"] {
        let node = format!("node=\"{node}\"");
        assert!(samples.sum("doppel_wire_bytes_total", &[&node, "received"]) > 0.0, "{node}");
    }
    for node in ["record-1", "record-2"] {
        let log = [&*format!("node=\"{node}\""), "call=\"log\"", "sent"];
        assert!(samples.sum("doppel_wire_bytes_total", &log) > 1_000.0, "{node}");
    }

    // Kill a server of the log.
    let address = servers[2]["address"].as_str().unwrap();
    let up = format!("doppel_cluster_log_server_up{{address=\"{address}\"}}");
    trial.kill("log-3");
    sample_becomes(front, &up, 0.0);
    assert!(attention(front).contains(address), "{}", attention(front));
    // The leaders of the streams notice the loss after some seconds.
    sample_becomes(front, "doppel_cluster_stream_current_copies{range=\"0\"}", 2.0);
    assert!(attention(front).contains("log server log-3 is away or behind"), "{}", attention(front));
    wait_until("all ranges to be served", PATIENCE, || (ready(front, "all").0 == 200).then_some(()));
    trial.start("log-3");
    sample_becomes(front, &up, 1.0);
    sample_becomes(front, "doppel_cluster_stream_current_copies{range=\"0\"}", 3.0);
    all_is_well(front);

    // Kill a node of tier 1: its ranges get another owner, and have one live replica each.
    trial.kill("record-2");
    sample_becomes(front, "doppel_cluster_node_up{node=\"record-2\",tier=\"1\"}", 0.0);
    wait_until("all ranges to have an owner", PATIENCE, || (ready(front, "served").0 == 200).then_some(()));
    let (code, said) = wait_until("the readiness to report every range", PATIENCE, || {
        let (code, said) = ready(front, "all");
        said.contains("range 3 has 1 of 2 replicas").then_some((code, said))
    });
    assert!(code == 503 && said.contains("range 0 has 1 of 2 replicas"), "{said}");
    assert_eq!(front.get("/readyz").status(), 200);
    for range in 0..4 {
        sample_becomes(front, &format!("doppel_cluster_range_owned{{range=\"{range}\"}}"), 1.0);
        sample_becomes(front, &format!("doppel_cluster_range_live_replicas{{range=\"{range}\"}}"), 1.0);
    }
    assert!(Samples::of(front).get("doppel_cluster_attention_items").unwrap() > 0.0);

    // Kill a node of the index, and then the last node of tier 1.
    trial.kill("index-1");
    sample_becomes(front, "doppel_cluster_node_up{node=\"index-1\",tier=\"2\"}", 0.0);
    assert_eq!(front.get("/readyz").status(), 200);
    trial.kill("record-1");
    sample_becomes(front, "doppel_cluster_node_up{node=\"record-1\",tier=\"1\"}", 0.0);
    let refused = front.get("/readyz");
    assert_eq!(refused.status(), 503);
    assert!(refused.text().unwrap().contains("no node of tier 1 answers"));
    sample_becomes(front, "doppel_cluster_range_owned{range=\"0\"}", 0.0);
    assert_eq!(front.get("/healthz").status(), 200);

    ["record-1", "record-2", "index-1"].iter().for_each(|name| trial.start(name));
    all_is_well(front);
    wait_until("all ranges to be replicated again", PATIENCE, || {
        (ready(front, "all").0 == 200).then_some(())
    });
    sample_becomes(front, "doppel_cluster_attention_items", 0.0);
}
