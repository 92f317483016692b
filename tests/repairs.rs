//! The audit trail of repairs, end to end: what it records, how long it keeps entries, and what a purge
//! removes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::BTreeSet;
use std::fs;

use doppel_model::Timestamp;
use doppel_tier1::backup::BackupReader;
use harness::pages::{near_copy, text};
use harness::{OwnServer, PATIENCE, Server, doppel, lines_of, run, wait_until};
use serde_json::{Value, json};

const GROUPS: u64 = 5;

fn url(family: u64, copy: u64) -> String {
    format!("http://a.example/{family}/{copy}")
}

/// Fills the server with groups of three pages that differ a little. Returns the ids of the groups.
fn fill(server: &Server) -> Vec<String> {
    let page = |(family, copy)| {
        let words = near_copy(&text(family, 300), copy);
        json!({ "url": url(family, copy), "text": words.join(" ") })
    };
    let pages = (0..GROUPS).flat_map(|family| (0..3).map(move |copy| (family, copy)));
    server.push(&pages.map(page).collect::<Vec<_>>());
    server.flush();
    let group = |family| server.status(&url(family, 0))["group"].as_str().unwrap().to_owned();
    (0..GROUPS).map(group).collect()
}

fn repair(server: &Server, group: &str, query: &str) -> Value {
    server.post_json(&format!("/v1/groups/{group}/repair?{query}"), &Value::Null)
}

fn trail(server: &Server, query: &[(&str, &str)]) -> Vec<Value> {
    let (mut all, mut before) = (Vec::new(), None::<String>);
    loop {
        let mut query = query.to_vec();
        query.extend(before.as_deref().map(|before| ("before", before)));
        let answer = server.ask("/v1/repairs", &query);
        all.extend(answer["repairs"].as_array().unwrap().clone());
        match answer["next"].as_str() {
            Some(next) => before = Some(next.to_owned()),
            None => return all,
        }
    }
}

fn set(urls: &Value) -> BTreeSet<String> {
    serde_json::from_value(urls.clone()).unwrap()
}

#[test]
fn repairs_that_were_applied_are_on_the_trail_and_survive_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--shards", "3"]);
    let groups = fill(&server);
    assert_eq!(repair(&server, &groups[0], "dry_run=true&by=ann")["applied"], false);
    assert!(trail(&server, &[]).is_empty());
    for group in groups.iter().chain(&groups[..2]) {
        assert_eq!(repair(&server, group, "by=ann")["applied"], true);
    }
    server.post_json("/v1/repair", &json!({ "groups": [groups[0], groups[4]] }));
    let all = trail(&server, &[]);
    let mut named: Vec<_> =
        all.iter().map(|one| (one["group"].as_str().unwrap(), one["by"].as_str().unwrap())).collect();
    let mut expected: Vec<_> = [0, 1, 2, 3, 4, 0, 1].iter().map(|at| (groups[*at].as_str(), "ann")).collect();
    expected.extend([0, 4].map(|at| (groups[at].as_str(), "anonymous")));
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
    let moments: Vec<Timestamp> =
        all.iter().map(|one| one["at"].as_str().unwrap().parse().unwrap()).collect();
    assert!(moments.is_sorted_by(|a, b| a >= b), "{all:?}");
    for limit in ["1", "2", "4", "1000"] {
        assert_eq!(trail(&server, &[("limit", limit)]), all, "{limit}");
        let of_group = trail(&server, &[("limit", limit), ("group", &groups[0])]);
        assert_eq!(of_group.len(), 3, "{limit}");
        assert!(of_group.iter().all(|one| one["group"] == groups[0]));
    }
    let last = all.iter().find(|one| one["group"] == groups[4]).unwrap();
    let id = last["id"].as_str().unwrap().to_owned();
    let shown = server.ask(&format!("/v1/repairs/{id}"), &[]);
    let members: BTreeSet<_> = (0..3).map(|copy| url(4, copy)).collect();
    assert_eq!(set(&shown["before"]), members);
    assert_eq!(set(&shown["components"][0]), members);
    assert_eq!(shown["members"], json!(3));
    assert_eq!(shown["component_count"], json!(1));
    assert_eq!(shown["forgotten"], json!(0));

    server.kill();
    let server = Server::start(data.path(), &[]);
    assert_eq!(trail(&server, &[]), all);
    assert_eq!(server.ask(&format!("/v1/repairs/{id}"), &[]), shown);
    for (path, status) in [
        ("/v1/repairs/r99-0", 404),
        ("/v1/repairs/nonsense", 400),
        ("/v1/repairs?before=1", 400),
        ("/v1/repairs?group=12", 400),
        ("/v1/repairs?limit=0", 400),
    ] {
        assert_eq!(server.get(path).status(), status, "{path}");
    }
    assert!(server.terminate());
    assert!(run(["check".as_ref(), data.path().as_os_str()]).status.success());
}

#[test]
fn the_command_shows_the_trail_to_people_and_programs() {
    let server = OwnServer::start(&[]);
    let ask = |arguments: &[&str]| -> String {
        let output = doppel().env("DOPPEL_SERVER", &server.url).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&["repairs"]), "no repair was applied, and no group was quarantined\n");
    let groups = fill(&server);
    ask(&["repair", "--by", "ann", &groups[0]]);
    ask(&["repair", "--by", "bob", &groups[1]]);
    let table = ask(&["repairs"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["when", "by", "group", "before", "after", "id"], "{table}");
    assert_eq!(lines[1][1..7], ["bob", &groups[1], "3", "pages", "1", "component"], "{table}");
    assert_eq!(lines[2][1..3], ["ann", &groups[0]], "{table}");
    assert_eq!(ask(&["repairs", "--limit", "1"]).lines().count(), 2);
    // Columns are as wide as their content, and times can have a different number of digits.
    let of_group = ask(&["repairs", "--group", &groups[0]]);
    let rows: Vec<Vec<&str>> = of_group.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [&lines[0][..], &lines[2]]);
    let json = lines_of(&ask(&["repairs", "--json"]));
    assert_eq!(json, [server.ask("/v1/repairs", &[("limit", "50")])]);
    let id = json[0]["repairs"][0]["id"].as_str().unwrap();
    let shown = ask(&["repairs", id]);
    assert!(shown.starts_with(&format!("{id}: {} by bob, 20", groups[1])), "{shown}");
    assert!(shown.contains(&format!("  {}\n", url(1, 2))), "{shown}");
    assert_eq!(lines_of(&ask(&["repairs", "--json", id])), [server.ask(&format!("/v1/repairs/{id}"), &[])]);
}

#[test]
fn quarantines_are_on_the_trail_with_the_repair_that_ends_them() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--group-members-max", "2"]);
    let group = &fill(&server)[0];
    repair(&server, group, "by=ann");
    let told = |server: &Server| -> Vec<Value> {
        let entries = trail(server, &[("group", group)]);
        entries.iter().map(|entry| json!([entry["event"], entry["by"], entry["members"]])).collect()
    };
    let expected =
        [json!(["released", null, 3]), json!(["repair", "ann", 3]), json!(["quarantined", null, 3])];
    assert_eq!(told(&server), expected);
    let id = trail(&server, &[("group", group)])[0]["id"].as_str().unwrap().to_owned();
    let shown = server.ask(&format!("/v1/repairs/{id}"), &[]);
    assert_eq!(shown["before"], json!([]));
    assert_eq!(shown["forgotten"], json!(0));
    server.kill();
    let server = Server::start(data.path(), &[]);
    assert_eq!(told(&server), expected);
    let output = doppel().args(["repairs", "--group", group, "--server", &server.url]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("3 pages  quarantined  "), "{table}");
}

#[test]
fn the_trail_is_kept_as_long_as_configured() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let groups = fill(&server);
    repair(&server, &groups[0], "by=ann");
    assert_eq!(trail(&server, &[]).len(), 1);
    assert!(server.terminate());
    let server = Server::start(data.path(), &["--keep-audit", "1s"]);
    wait_until("the repair to be dropped", PATIENCE, || trail(&server, &[]).is_empty().then_some(()));
    assert!(server.terminate());
    let server = Server::start(data.path(), &["--keep-audit", "0d"]);
    assert_eq!(repair(&server, &groups[0], "by=ann")["applied"], true);
    assert!(trail(&server, &[]).is_empty());
    assert!(server.terminate());
    assert!(run(["check".as_ref(), data.path().as_os_str()]).status.success());
}

#[test]
fn a_purge_removes_the_page_from_the_trail() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--keep-purged", "0s"]);
    let groups = fill(&server);
    repair(&server, &groups[0], "by=ann");
    let path = format!("/v1/repairs/{}", trail(&server, &[])[0]["id"].as_str().unwrap());
    server.post_json("/v1/purge", &json!({ "url": url(0, 1) }));
    let shown = server.ask(&path, &[]);
    assert_eq!(set(&shown["before"]).len(), 2);
    assert_eq!(shown["forgotten"], json!(1));
    assert_eq!(shown["members"], json!(3));
    assert!(!shown.to_string().contains(&url(0, 1)), "{shown}");
    server.post_json("/v1/purge", &json!({ "host": "a.example" }));
    let shown = server.ask(&path, &[]);
    assert_eq!(shown["before"], json!([]));
    assert_eq!(shown["components"], json!([[]]));
    assert_eq!(shown["forgotten"], json!(3));
    // No file contains the URL either, as a backup shows.
    let file = data.path().join("backup");
    wait_until("every row to forget the purged URL", PATIENCE, || {
        let output = doppel().args(["backup", "--server", &server.url, "--out"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut backup = fs::File::open(&file).unwrap();
        let mut reader = BackupReader::open(&mut backup).unwrap();
        let mut named = 0;
        while let Some(writes) = reader.writes().unwrap() {
            let values = writes.iter().filter_map(|(_, value)| value.as_ref());
            named += values.filter(|value| value.windows(9).any(|part| part == b"a.example")).count();
        }
        (named == 0).then_some(())
    });
    assert!(server.terminate());
    assert!(run(["check".as_ref(), data.path().as_os_str()]).status.success());
}
