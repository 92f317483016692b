//! Inspects and changes the mapping as an operator does: `doppel report load-balance` and `doppel rebalance`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod rebalance {
    mod waiting;
}

use std::fs;
use std::process::Output;

use harness::pages::text;
use harness::{OwnServer, PATIENCE, Server, crawl, crawls, run, run_ok, wait_until};
use serde_json::{Value, json};

fn ask(server: &Server, arguments: &[&str]) -> Output {
    run(arguments.iter().copied().chain(["--server", &server.url]))
}

fn answer(server: &Server, arguments: &[&str]) -> String {
    run_ok(arguments.iter().copied().chain(["--server", &server.url]))
}

fn json(server: &Server, arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(server, arguments)).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Changes the mapping and waits until the change is done. If the service is changing the mapping itself,
/// waits for that first.
fn rebalance(server: &Server, arguments: &[&str]) -> String {
    answer(server, &[&["rebalance", "--wait"], arguments].concat())
}

/// The number of contents on each node, and their total.
fn contents(server: &Server) -> (Vec<u64>, u64) {
    let report = json(server, &["report", "load-balance", "--json"]);
    let nodes = report["nodes"].as_array().unwrap();
    let contents: Vec<u64> = nodes.iter().map(|node| node["contents"].as_u64().unwrap()).collect();
    let partitions = report["partitions"].as_array().unwrap();
    let all = partitions.iter().map(|partition| partition["contents"].as_u64().unwrap()).sum();
    assert_eq!(contents.iter().sum::<u64>(), all, "{report}");
    (contents, all)
}

#[test]
fn a_node_is_drained_and_joined_without_changing_the_groups() {
    let Some(data) = crawls("a_node_is_drained_and_joined_without_changing_the_groups") else { return };
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("data"), &["--index-nodes", "3", "--partitions", "12"]);
    let mut load = vec!["load".into(), "--flush".into(), "--server".into(), server.url.clone()];
    load.extend(crawl(&data, "quick").iter().map(|file| file.display().to_string()));
    run_ok(load);
    // Every node has contents, however the service has rebalanced on its own.
    wait_until("contents on every node", PATIENCE, || {
        contents(&server).0.iter().all(|node| *node > 0).then_some(())
    });
    rebalance(&server, &[]);
    let export = server.export();
    let (before, all) = contents(&server);
    assert!(before.len() == 3 && before.iter().all(|node| *node > 0), "{before:?}");

    let dry = json(&server, &["rebalance", "--drain", "1", "--dry-run", "--wait", "--json"]);
    assert_eq!(dry["started"], Value::Bool(false));
    assert_eq!(dry["contents"], Value::from(all));
    assert_eq!(contents(&server), (before.clone(), all), "a dry run changes nothing");

    rebalance(&server, &["--drain", "1"]);
    let (drained, all_drained) = contents(&server);
    assert_eq!(drained[1], 0, "{drained:?}");
    assert_eq!(all_drained, all, "{drained:?}");
    let again = rebalance(&server, &["--drain", "1"]);
    assert!(again.starts_with("nothing to do: node 1 is drained already"), "{again}");
    assert!(answer(&server, &["report", "load-balance"]).contains("\ndrained: 1\n"));
    assert_eq!(server.export(), export);

    rebalance(&server, &["--join", "1"]);
    let (after, all_after) = contents(&server);
    assert!(after[1] > 0 && all_after == all, "{after:?}");
    assert_eq!(server.export(), export);
}

#[test]
fn the_report_is_plotted_and_includes_what_if_figures() {
    let Some(data) = crawls("the_report_is_plotted_and_includes_what_if_figures") else { return };
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("data"), &["--partitions", "16"]);
    let file = crawl(&data, "quick").remove(0);
    run_ok(["load", "--flush", "--server", &server.url, file.to_str().unwrap()]);
    let plots = home.path().join("plots");
    let svg = ["--svg", plots.to_str().unwrap()];
    // The service may learn a new map between two reports.
    wait_until("a drawing of the present map", PATIENCE, || {
        answer(&server, &[&["report", "load-balance"][..], &svg].concat());
        let drawn = fs::read_to_string(plots.join("load-balance.svg")).unwrap();
        let report = json(&server, &["report", "load-balance", "--json"]);
        (drawn.matches("<rect ").count() == report["partitions"].as_array().unwrap().len()).then_some(())
    });

    let what_if = answer(&server, &[&["report", "load-balance", "--what-if"][..], &svg].concat());
    // One line for the current plan, and seven numbers of nodes for each of four dimensions.
    let rows = what_if.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    assert_eq!(rows.count(), 1 + 28, "{what_if}");
    assert!(what_if.contains("\nspeed-up: ") && what_if.contains("fewer than 100 a node on"), "{what_if}");
    assert!(fs::read_to_string(plots.join("what-if.svg")).unwrap().contains("<polyline "));

    for (arguments, code) in [
        (&["report", "quality", "--what-if"][..], 2),
        (&["report", "groups", "--svg", "x"], 2),
        (&["rebalance", "--drain", "0", "--join", "0"], 2),
        (&["rebalance", "--drain", "0", "--move", "0", "--to", "0"], 2),
        (&["rebalance", "--move", "0"], 2),
        (&["rebalance", "--to", "0"], 2),
        (&["rebalance", "--patience", "9"], 2),
        // There is no node 9, and a drain of node 0 would leave no node.
        (&["rebalance", "--drain", "9"], 4),
        (&["rebalance", "--drain", "0"], 4),
        (&["rebalance", "--move", "999999", "--to", "0"], 4),
    ] {
        let output = ask(&server, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {output:?}");
    }
    let nothing = rebalance(&server, &[]);
    assert!(nothing.starts_with("nothing to do: only one node may have partitions"), "{nothing}");
}

/// Starts a server at rest with two nodes that both have contents.
fn two_nodes() -> OwnServer {
    let server = OwnServer::start(&["--index-nodes", "2"]);
    let page =
        |n: u64| json!({"url": format!("http://a/{n}"), "text": text(n, 20 + n as usize % 90).join(" ")});
    for some in (0..4_000).collect::<Vec<u64>>().chunks(500) {
        server.push_all(&some.iter().map(|n| page(*n)).collect::<Vec<_>>());
    }
    server.flush();
    rebalance(&server, &[]);
    server
}

#[test]
fn a_change_of_the_mapping_waits_for_another_one() {
    let server = two_nodes();
    // The other change may end before the command looks, so try several times.
    let waited = (0..50).any(|_| {
        rebalance(&server, &["--join", "1"]);
        let other = server.post_json("/v1/rebalance", &json!({"action": "drain", "node": 1}));
        assert_eq!(other["started"], true, "{other}");
        let output = ask(&server, &["rebalance", "--join", "1", "--wait"]);
        assert!(output.status.success(), "{}", errors(&output));
        assert!(contents(&server).0[1] > 0);
        let said = errors(&output);
        let waits = "doppel: another change of the plan is under way; waiting for its end\n";
        if said.contains(waits) {
            assert_eq!(said.matches("waiting for its end").count(), 1, "{said}");
            let printed = String::from_utf8(output.stdout).unwrap();
            assert!(printed.contains("joining node 1: ") && printed.contains("\ndone in "), "{printed}");
            return true;
        }
        false
    });
    assert!(waited, "in 50 attempts, no command met another change that was still running");
}

#[test]
fn a_partition_is_moved() {
    let server = two_nodes();
    let report = json(&server, &["report", "load-balance", "--json"]);
    let partitions = report["partitions"].as_array().unwrap();
    let partition = partitions.iter().find(|one| one["node"] == 0 && one["contents"] != 0).unwrap();
    let id = partition["partition"].to_string();
    let there = json(&server, &["rebalance", "--move", &id, "--to", "0", "--json"]);
    assert_eq!(there["nothing_to_do"], format!("partition {id} is on node 0 already"));

    let printed = answer(&server, &["rebalance", "--move", &id, "--to", "1", "--wait", "--json"]);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let moved =
        json!({"partition": partition["partition"], "from": 0, "to": 1, "contents": partition["contents"]});
    assert_eq!(printed["started"], json!(true));
    assert_eq!(printed["moves"], json!([moved]));
    // The service may have moved the partition back in the meantime.
    assert!(printed["done"]["plan_version"].as_u64() > printed["plan_version"].as_u64(), "{printed}");
    assert!(
        printed["done"]["imbalance"].as_f64().unwrap() >= 1.0 && printed["done"]["seconds"].is_f64(),
        "{printed}"
    );
    let text = answer(&server, &["rebalance", "--move", &id, "--to", "1", "--wait", "--dry-run"]);
    assert!(text.starts_with("nothing to do") || text.starts_with("a dry run of moving"), "{text}");
}

#[test]
fn learning_the_map_anew_keeps_the_groups() {
    let server = two_nodes();
    let (before, all) = contents(&server);
    let plan_version = json(&server, &["report", "load-balance", "--json"])["plan_version"].as_u64().unwrap();
    let export = server.export();
    let dry = answer(&server, &["rebalance", "--learn", "--wait", "--dry-run"]);
    assert!(dry.starts_with("a dry run of learning the map anew: 4,000 contents to copy, "), "{dry}");
    assert_eq!(contents(&server), (before, all));
    let printed = rebalance(&server, &["--learn"]);
    assert!(
        printed.starts_with("learning the map anew: 4,000 contents") && printed.contains("\ndone in "),
        "{printed}"
    );
    assert!(
        json(&server, &["report", "load-balance", "--json"])["plan_version"].as_u64().unwrap() > plan_version
    );
    let (after, all_after) = contents(&server);
    assert!(all_after == all && after.iter().all(|node| *node * 3 > all), "{after:?}");
    assert_eq!(server.export(), export);
}
