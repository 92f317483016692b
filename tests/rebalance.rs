//! The mapping as an operator sees and changes it: `doppel report load-balance` and `doppel rebalance`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::process::Output;

use harness::{Server, crawl, crawls, run, run_ok};
use serde_json::Value;

fn ask(server: &Server, arguments: &[&str]) -> Output {
    run(arguments.iter().copied().chain(["--server", &server.url]))
}

fn answer(server: &Server, arguments: &[&str]) -> String {
    run_ok(arguments.iter().copied().chain(["--server", &server.url]))
}

fn json(server: &Server, arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(server, arguments)).unwrap()
}

/// Changes the mapping to the end, as soon as the service's own change of it is done.
fn rebalance(server: &Server, arguments: &[&str]) {
    let all = ["rebalance", "--wait", "--server", &server.url];
    harness::wait_until("a turn to rebalance", harness::PATIENCE, || {
        let output = run(all.iter().chain(arguments));
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_busy = errors.contains("409") || errors.contains("503");
        assert!(output.status.success() || is_busy, "{errors}");
        output.status.success().then_some(())
    });
}

/// Contents of every node, and of all.
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
fn a_node_is_drained_and_joined_and_the_groups_stay() {
    let Some(data) = crawls("a_node_is_drained_and_joined_and_the_groups_stay") else { return };
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("data"), &["--index-nodes", "3", "--partitions", "12"]);
    let mut load = vec!["load".into(), "--flush".into(), "--server".into(), server.url.clone()];
    load.extend(crawl(&data, "quick").iter().map(|file| file.display().to_string()));
    run_ok(load);
    // Even, whatever the load has done by itself.
    harness::wait_until("contents on every node", harness::PATIENCE, || {
        contents(&server).0.iter().all(|node| *node > 0).then_some(())
    });
    rebalance(&server, &[]);
    let export = server.export();
    let (before, all) = contents(&server);
    assert!(before.len() == 3 && before.iter().all(|node| *node > 0), "{before:?}");

    let dry = json(&server, &["rebalance", "--drain", "1", "--dry-run", "--json"]);
    assert_eq!((&dry["started"], &dry["contents"]), (&Value::Bool(false), &Value::from(all)));
    assert_eq!(contents(&server), (before.clone(), all), "a dry run changes nothing");

    // A round may leave some for the next one, which follows by itself.
    rebalance(&server, &["--drain", "1"]);
    harness::wait_until("node 1 to be empty", harness::PATIENCE, || {
        (contents(&server).0[1] == 0).then_some(())
    });
    assert_eq!(contents(&server).1, all);
    assert!(answer(&server, &["report", "load-balance"]).contains("\ndrained: 1\n"));
    assert_eq!(server.export(), export);

    rebalance(&server, &["--join", "1"]);
    let (after, all_after) = contents(&server);
    assert!(after[1] > 0 && all_after == all, "{after:?}");
    assert_eq!(server.export(), export);
}

#[test]
fn the_report_is_drawn_and_says_what_would_be() {
    let Some(data) = crawls("the_report_is_drawn_and_says_what_would_be") else { return };
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("data"), &[]);
    let file = crawl(&data, "quick").remove(0);
    run_ok(["load", "--flush", "--server", &server.url, file.to_str().unwrap()]);
    let plots = home.path().join("plots");
    let svg = ["--svg", plots.to_str().unwrap()];
    answer(&server, &[&["report", "load-balance"][..], &svg].concat());
    let drawn = fs::read_to_string(plots.join("load-balance.svg")).unwrap();
    let partitions =
        json(&server, &["report", "load-balance", "--json"])["partitions"].as_array().unwrap().len();
    assert_eq!(drawn.matches("<rect ").count(), partitions);

    let what_if = answer(&server, &[&["report", "load-balance", "--what-if"][..], &svg].concat());
    // A line about the sample, a heading, the present plan, and seven numbers of nodes for each of four dimensions.
    assert_eq!(what_if.lines().count(), 3 + 28, "{what_if}");
    assert!(fs::read_to_string(plots.join("what-if.svg")).unwrap().contains("<polyline "));

    for (arguments, code) in [
        (&["report", "quality", "--what-if"][..], 2),
        (&["report", "groups", "--svg", "x"], 2),
        (&["rebalance", "--drain", "0", "--join", "0"], 2),
        (&["rebalance", "--dry-run", "--wait"], 2),
        // There is no node 9, and node 0 is the last one.
        (&["rebalance", "--drain", "9"], 4),
        (&["rebalance", "--drain", "0"], 4),
    ] {
        let output = ask(&server, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {output:?}");
    }
}
