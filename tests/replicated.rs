//! A cluster whose ranges are replicated through real servers of the shared log. Whatever process dies,
//! another node takes over and nothing is lost.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::pages::{rounds, text};
use harness::ports::free_port;
use harness::trial::Trial;
use harness::{PATIENCE, Server, all_is_well, meaning, of_one_process, run, run_ok, wait_until};
use serde_json::{Value, json};

/// Submits pages in batches to two coordinators in turn, and injects a fault in the middle. Returns when all
/// pages are accepted.
fn push_while(fronts: &[Server], pages: &[Value], fault: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            for (turn, batch) in pages.chunks(30).enumerate() {
                fronts[turn % fronts.len()].push_patiently(batch);
            }
        });
        thread::sleep(Duration::from_millis(100));
        fault();
    });
}

/// The problems that the status lists.
fn attention(front: &Server) -> Value {
    front.ask("/v1/cluster", &[])["attention"].clone()
}

#[test]
fn whatever_dies_another_node_takes_over_and_nothing_is_lost() {
    let rounds = rounds(9, 60, 8);
    let expected = of_one_process(&rounds);
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "2", "--coordinators", "2"]) else {
        return;
    };
    let fronts = trial.coordinators();
    all_is_well(&fronts[0]);
    for (round, pages) in rounds.iter().enumerate() {
        let fault = || match round {
            // `record-2` owns ranges. `record-1` also runs the router of the index.
            1 => trial.kill("record-2"),
            2 => {
                trial.start("record-2");
                trial.kill("record-1");
            }
            // Suspend an owner; another node deposes it meanwhile.
            3 => {
                trial.start("record-1");
                thread::sleep(Duration::from_secs(3));
                trial.signal("record-3", "STOP");
                thread::sleep(Duration::from_secs(6));
                trial.signal("record-3", "CONT");
            }
            // Kill one server of the log, and in the next round all of them.
            4 => trial.kill("log-1"),
            5 => {
                trial.start("log-1");
                thread::sleep(Duration::from_secs(2));
                ["log-1", "log-2", "log-3"].iter().for_each(|name| trial.kill(name));
                ["log-1", "log-2", "log-3"].iter().for_each(|name| trial.start(name));
            }
            // Lose a disk while all ranges have another replica.
            6 => {
                all_is_well(&fronts[1]);
                trial.kill("record-2");
                fs::remove_dir_all(trial.data("record-2")).unwrap();
                trial.start("record-2");
            }
            7 => {
                trial.kill("index-1");
                fs::remove_dir_all(trial.data("index-1")).unwrap();
                trial.start("index-1");
            }
            _ => {}
        };
        push_while(&fronts, pages, fault);
        fronts[round % 2].flush_patiently();
    }
    assert_eq!(meaning(&fronts[0].export()), expected);
    assert_eq!(meaning(&fronts[1].export()), expected);
    for (url, status, _) in expected.0.iter().step_by(17) {
        assert_eq!(fronts[1].status(url)["status"], **status, "{url}");
    }
    all_is_well(&fronts[0]);
    // Beats report the positions of the standbys several times a second.
    let status = wait_until("the standbys to copy all entries", PATIENCE, || {
        let status = fronts[0].ask("/v1/cluster", &[]);
        let is_behind =
            |range: &Value| range["standbys"].as_array().unwrap().iter().any(|standby| standby["lag"] != 0);
        (!status["ranges"].as_array().unwrap().iter().any(is_behind)).then_some(status)
    });
    assert_eq!(status["replicated"], true);
    // If settlement needs a standby, writes go on during a failure only with a third replica.
    let standbys = if trial.settles_by_standby() { 2 } else { 1 };
    for range in status["ranges"].as_array().unwrap() {
        assert_eq!(range["served"], json!(true), "{range}");
        assert_eq!(range["standbys"].as_array().unwrap().len(), standbys, "{range}");
    }
    // The data of every node passes `doppel check` on its own.
    let home = tempfile::tempdir().unwrap();
    let (file, dir) = (home.path().join("backup"), home.path().join("restored"));
    run_ok(["backup", "--server", &fronts[0].url, "--out", file.to_str().unwrap()]);
    run_ok(["restore", "--data", dir.to_str().unwrap(), file.to_str().unwrap()]);
    run_ok(["check", dir.to_str().unwrap()]);
}

#[test]
fn a_change_feed_goes_on_after_a_takeover() {
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let front = &trial.coordinators()[0];
    let page =
        |n: usize| json!({"url": format!("http://site.example/{n}"), "text": format!("page number {n}")});
    let pages: Vec<Value> = (0..40).map(page).collect();
    front.push_patiently(&pages[..20]);
    front.flush_patiently();
    let first = front.ask("/v1/changes", &[("limit", "1000")]);
    let cursor = first["cursor"].as_str().unwrap();
    trial.kill("record-1");
    front.push_patiently(&pages[20..]);
    front.flush_patiently();
    let then = wait_until("the feed to go on", PATIENCE, || {
        let answer = front.query("/v1/changes", &[("limit", "1000"), ("cursor", cursor)]);
        answer.status().is_success().then(|| answer.json::<Value>().unwrap())
    });
    let urls = |answer: &Value| {
        let changes = answer["changes"].as_array().unwrap().iter();
        changes
            .map(|change| change["url"].as_str().unwrap().to_owned())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(urls(&first).len(), 20);
    assert_eq!(urls(&then).len(), 20);
    // Two of three nodes are left, and the status says so.
    let said = attention(front);
    assert!(said.to_string().contains("record-1"), "{said}");
}

#[test]
fn an_increment_of_one_node_follows_the_backup_of_another() {
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let (front, rounds) = (&trial.coordinators()[0], rounds(12, 30, 2));
    let home = tempfile::tempdir().unwrap();
    let of = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (full, increment, dir) = (of("full"), of("increment"), of("restored"));
    front.push_patiently(&rounds[0]);
    front.flush_patiently();
    run_ok(["backup", "--server", &front.url, "--out", &full]);
    // The coordinator made the first backup from this node.
    trial.kill("record-1");
    front.push_patiently(&rounds[1]);
    front.flush_patiently();
    let url = rounds[1][0]["url"].as_str().unwrap();
    assert_eq!(front.post_json("/v1/purge", &json!({ "url": url }))["purged"], 1);
    front.flush_patiently();
    run_ok(["backup", "--server", &front.url, "--out", &increment, "--since", &full]);
    run_ok(["restore", &full, &increment, "--data", &dir]);
    let restored = Server::start(dir.as_ref(), &[]);
    restored.flush();
    assert_eq!(meaning(&restored.export()), meaning(&front.export()));
    assert_eq!(restored.status(url)["status"], "unknown");
}

#[test]
fn an_operator_moves_the_ownership_of_a_range_to_a_node() {
    let Some(trial) = Trial::replicated(&["--tier1", "2", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let front = &trial.coordinators()[0];
    let pages: Vec<Value> = (0..20)
        .map(|n| json!({"url": format!("http://site.example/{n}"), "text": format!("page number {n}")}))
        .collect();
    front.push_patiently(&pages);
    let owner = || front.ask("/v1/cluster", &[])["ranges"][0]["owner"].as_str().unwrap().to_owned();
    let other = if owner() == "record-1" { "record-2" } else { "record-1" };
    run_ok(["cluster", "takeover", "--range", "0", "--to", other, "--server", &front.url]);
    assert_eq!(owner(), other);
    front.push_patiently(&pages);
    front.flush_patiently();
    for page in &pages {
        assert_eq!(front.status(page["url"].as_str().unwrap())["status"], "unique");
    }
    let refused = |range: &str, to: &str| {
        let refused = run(["cluster", "takeover", "--range", range, "--to", to, "--server", &front.url]);
        assert!(!refused.status.success());
        String::from_utf8(refused.stderr).unwrap()
    };
    assert!(refused("99", other).contains("there is no range 99"));
    let said = refused("0", "index-1");
    assert!(said.contains("index-1 has no replica of range 0"), "{said}");
}

/// Load report of the router of the index. Waits until there is a router.
fn load(front: &Server) -> Value {
    wait_until("the router to report its load", PATIENCE, || {
        let report = front.query("/v1/reports/load-balance", &[]);
        report.status().is_success().then(|| report.json::<Value>().unwrap())
    })
}

/// The plan of the index: its version, the node of each partition, and the drained nodes.
fn plan(front: &Server) -> Value {
    let report = load(front);
    let partitions = report["partitions"].as_array().unwrap().iter();
    let places: Vec<Value> = partitions.map(|one| json!([one["partition"], one["node"]])).collect();
    json!({"version": report["plan_version"], "places": places, "drained": report["drained"]})
}

/// Like [`plan`], but waits until the plan has not changed for a while.
fn plan_at_rest(front: &Server) -> Value {
    wait_until("the plan to stop changing", PATIENCE, || {
        let before = plan(front);
        thread::sleep(Duration::from_secs(2));
        (plan(front) == before).then_some(before)
    })
}

fn contents_by_node(front: &Server) -> Vec<u64> {
    let report = load(front);
    report["nodes"].as_array().unwrap().iter().map(|node| node["contents"].as_u64().unwrap()).collect()
}

#[test]
fn the_plan_and_open_requests_of_the_index_survive_the_death_of_its_router() {
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "3", "--coordinators", "1"]) else {
        return;
    };
    let front = &trial.coordinators()[0];
    let page = |n: u64| json!({"url": format!("http://site.example/{n}"), "text": text(n, 20 + n as usize % 90).join(" ")});
    let pages: Vec<Value> = (0..1_500).map(page).collect();
    pages.chunks(100).for_each(|batch| front.push_patiently(batch));
    front.flush_patiently();
    wait_until("contents on every node", PATIENCE, || {
        let contents = contents_by_node(front);
        (contents.len() == 3 && contents.iter().all(|node| *node > 0)).then_some(())
    });
    run_ok(["rebalance", "--wait", "--server", &front.url]);
    run_ok(["rebalance", "--wait", "--drain", "1", "--server", &front.url]);
    let before = plan_at_rest(front);
    assert_eq!(before["drained"], json!([1]));
    assert_eq!(contents_by_node(front)[1], 0);
    let router = || front.ask("/v1/cluster", &[])["ranges"][0]["owner"].as_str().unwrap().to_owned();
    all_is_well(front);
    let first = router();
    trial.kill(&first);
    front.flush_patiently();
    let second = router();
    assert_ne!(second, first);
    assert_eq!(plan_at_rest(front), before);
    let contents = contents_by_node(front);
    assert_eq!(contents[1], 0, "{contents:?}");
    assert_eq!(contents.iter().sum::<u64>(), 1_500, "{contents:?}");

    // A request that concerns an unresponsive node is still open when the router dies, and the next router
    // completes it.
    trial.start(&first);
    all_is_well(front);
    trial.signal("index-2", "STOP");
    let joined = front.post_json("/v1/rebalance", &json!({"action": "join", "node": 1}));
    assert_eq!(joined["started"], true, "{joined}");
    trial.kill(&second);
    thread::sleep(Duration::from_secs(3));
    trial.signal("index-2", "CONT");
    front.flush_patiently();
    wait_until("the request to be done", PATIENCE, || {
        let present = front.query("/v1/rebalance", &[]);
        let present = present.status().is_success().then(|| present.json::<Value>().unwrap())?;
        let is_done = present["request"].is_null() && present["progress"].is_null();
        (is_done && present["drained"] == json!([])).then_some(())
    });
    let after = plan_at_rest(front);
    assert!(after["version"].as_u64() > before["version"].as_u64(), "{after}");
    let contents = contents_by_node(front);
    assert!(contents[1] > 0 && contents.iter().sum::<u64>() == 1_500, "{contents:?}");
    for page in pages.iter().step_by(50) {
        assert_eq!(front.status(page["url"].as_str().unwrap())["status"], "unique");
    }
}

/// A page of maximal length. Its signature is longer than the longest message of the log, so the log carries
/// its record in parts. In the end the other nodes have the record.
#[test]
fn a_record_longer_than_a_message_of_the_log_is_replicated_in_parts() {
    const WORDS: usize = 1_990_000;
    let options = ["--tier1", "3", "--replicas", "3", "--tier2", "1", "--coordinators", "1"];
    let Some(trial) = Trial::replicated(&options) else { return };
    let front = &trial.coordinators()[0];
    all_is_well(front);
    let page = |n: usize, changed: usize| {
        let mut words: Vec<String> = (0..WORDS).map(|word| format!("{word:07}")).collect();
        words[WORDS / 2] = format!("changed{changed}");
        let text = words.join(" ");
        assert!((15 << 20..16 << 20).contains(&text.len()), "{}", text.len());
        json!({"url": format!("http://long.example/{n}"), "text": text, "fetched_at": "2026-01-01T00:00:00Z"})
    };
    let streams = || -> u64 {
        let status = front.ask("/v1/cluster", &[]);
        let streams = status["engine"]["streams"].as_array().unwrap();
        streams.iter().map(|stream| stream["bytes"].as_u64().unwrap()).sum()
    };
    let before = streams();
    front.push_patiently(&[page(0, 0)]);
    front.flush_patiently();
    let written = streams() - before;
    assert!(written > 4 << 20, "{written} bytes of records");
    assert_eq!(front.status("http://long.example/0")["status"], "unique");
    all_is_well(front);
    // Whichever node owned the page, the others have its signature and compare new pages with it.
    for (copy, name) in [(1, "record-1"), (2, "record-2"), (3, "record-3")] {
        trial.kill(name);
        front.push_patiently(&[page(copy, copy)]);
        front.flush_patiently();
        let copy = front.status(&format!("http://long.example/{copy}"));
        assert_eq!(copy["duplicate_of"], "http://long.example/0", "{copy}");
        trial.start(name);
        all_is_well(front);
    }
}

/// The streams hold fewer bytes than the test writes, so they are trimmed. A node that lost its disk
/// therefore copies its ranges from another replica.
#[test]
fn streams_are_trimmed_and_a_lost_disk_is_copied_from_another_node() {
    const STREAM_BYTES: u64 = 16 << 20;
    let nodes = ["--tier1", "3", "--replicas", "3", "--tier2", "1", "--coordinators", "1"];
    let log = ["--ranges", "3", "--log-max-bytes", &STREAM_BYTES.to_string()];
    let Some(trial) = Trial::replicated(&[&nodes[..], &log[..]].concat()) else { return };
    let front = &trial.coordinators()[0];
    all_is_well(front);
    // Each page has a signature of about 25 kB.
    let page = |n: usize| {
        let words: Vec<String> = (0..5_000).map(|word| format!("{n}x{word}")).collect();
        json!({"url": format!("http://site.example/{n}"), "text": words.join(" "),
            "fetched_at": "2026-01-01T00:00:00Z"})
    };
    let pages: Vec<Value> = (0..2_000).map(page).collect();
    pages.chunks(50).for_each(|batch| front.push_patiently(batch));
    front.flush_patiently();
    all_is_well(front);
    trial.kill("record-2");
    fs::remove_dir_all(trial.data("record-2")).unwrap();
    trial.start("record-2");
    // Writes go on while the range is copied.
    let more: Vec<Value> = (2_000..2_040).map(page).collect();
    front.push_patiently(&more);
    all_is_well(front);
    let said = fs::read_to_string(trial.data("record-2").with_extension("log")).unwrap();
    assert!(said.contains("the range was copied from its owner"), "{said}");
    trial.kill("record-1");
    front.flush_patiently();
    for n in (0..2_040).step_by(97) {
        assert_eq!(front.status(&format!("http://site.example/{n}"))["status"], "unique", "{n}");
    }
}

#[test]
fn the_status_says_why_writes_wait_for_the_log() {
    let Some(trial) = Trial::replicated(&["--tier1", "2", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let front = &trial.coordinators()[0];
    all_is_well(front);
    let pages: Vec<Value> = (0..20)
        .map(|n| json!({"url": format!("http://site.example/{n}"), "text": format!("page number {n}")}))
        .collect();
    // One server of three still serves its clients, but cannot accept entries.
    ["log-1", "log-2"].iter().for_each(|name| trial.kill(name));
    thread::scope(|scope| {
        scope.spawn(|| front.push_patiently(&pages));
        wait_until("the owner to say why it waits", PATIENCE, || {
            attention(front).to_string().contains("writes of range").then_some(())
        });
        ["log-1", "log-2"].iter().for_each(|name| trial.start(name));
    });
    front.flush_patiently();
    all_is_well(front);
}

/// Counts of the answers to questions about pages while something is broken.
#[derive(Default)]
struct Answers {
    longest: Duration,
    slow: u32,
    owners: u32,
    replicas: u32,
    oldest: u64,
}

/// Asks about pages one after another for a while. Each answer must be the expected one; only its age may
/// differ.
fn ask_for(front: &Server, expected: &[Value], time: Duration) -> Answers {
    let (began, mut answers) = (Instant::now(), Answers::default());
    for page in expected.iter().cycle() {
        if began.elapsed() > time {
            break;
        }
        let asked = Instant::now();
        let answer = front.query("/v1/status", &[("url", page["url"].as_str().unwrap())]);
        let took = asked.elapsed();
        let status = answer.status();
        let mut answer = answer.json::<Value>().unwrap();
        assert_eq!(status, 200, "after {:?}: {answer}", began.elapsed());
        match answer.as_object_mut().unwrap().remove("age_ms") {
            Some(age) => {
                answers.replicas += 1;
                answers.oldest = answers.oldest.max(age.as_u64().unwrap());
            }
            None => answers.owners += 1,
        }
        assert_eq!(answer, *page);
        answers.longest = answers.longest.max(took);
        answers.slow += u32::from(took > Duration::from_millis(300));
    }
    let Answers { longest, slow, owners, replicas, oldest } = &answers;
    println!(
        "{owners} by owners, {replicas} by replicas at most {oldest} ms old, {slow} slow, {longest:?} the longest"
    );
    answers
}

#[test]
fn questions_are_answered_by_replicas_while_a_range_has_no_owner() {
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let front = &trial.coordinators()[0];
    // Three of every five pages form a group.
    let words = |n: u64| text(if n % 5 < 3 { n / 5 } else { 1_000 + n }, 40);
    let page = |n: u64| {
        let more = if n.is_multiple_of(2) { "" } else { " more" };
        json!({"url": format!("http://site.example/{n}"), "text": words(n).join(" ") + more,
            "fetched_at": "2026-01-01T00:00:00Z"})
    };
    let pages: Vec<Value> = (0..100).map(page).collect();
    front.push_patiently(&pages);
    front.flush_patiently();
    all_is_well(front);
    let urls: Vec<&Value> = pages.iter().map(|page| &page["url"]).collect();
    let expected = front.post_json("/v1/status", &json!({ "urls": urls }));
    let expected = expected["pages"].as_array().unwrap();
    let duplicates = expected.iter().filter(|answer| answer["status"] == "duplicate").count();
    assert!((20..=40).contains(&duplicates), "{duplicates}");
    let groups = || {
        let ids = expected.iter().filter_map(|answer| answer["group"].as_str());
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    let group = |id: &str| {
        let answer = front.query(&format!("/v1/groups/{id}"), &[]);
        assert_eq!(answer.status(), 200, "{id}");
        let mut answer = answer.json::<Value>().unwrap();
        (answer.as_object_mut().unwrap().remove("age_ms").is_some(), answer)
    };
    let members: Vec<Value> = groups().into_iter().map(|id| group(id).1).collect();

    trial.kill("record-1");
    let old = groups().into_iter().zip(&members).filter(|(id, expected)| {
        let (is_old, answer) = group(id);
        assert_eq!(answer, **expected);
        is_old
    });
    assert!(old.count() > 0, "no group was answered by a replica");
    let answers = ask_for(front, expected, Duration::from_secs(4));
    assert!(answers.replicas > 5 && answers.longest < Duration::from_secs(8));
    assert!(
        answers.oldest <= 5_000,
        "an answer is {} ms old, but at most 5,000 ms are promised",
        answers.oldest
    );
    trial.start("record-1");
    all_is_well(front);
    let answers = ask_for(front, expected, Duration::from_secs(1));
    assert!(
        answers.owners > 5 && answers.replicas * 2 < answers.owners,
        "the owners must give most answers again, not {} of replicas beside {} of owners",
        answers.replicas,
        answers.owners
    );

    // For a suspended node, the coordinator and each node wait a moment once, and then no more.
    trial.signal("record-2", "STOP");
    let answers = ask_for(front, expected, Duration::from_secs(4));
    assert!(answers.replicas > 5 && answers.longest < Duration::from_secs(8));
    // If each question waited for that node, all questions about its pages would be slow, and they would be
    // most of the few questions.
    assert!(answers.slow * 3 < answers.owners + answers.replicas, "{} slow", answers.slow);
    trial.signal("record-2", "CONT");
    all_is_well(front);

    // Without the log no node can take over a range, and the data of the replicas gets old.
    let began = Instant::now();
    ["log-1", "log-2", "log-3"].iter().for_each(|name| trial.kill(name));
    trial.kill("record-3");
    let (mut refused, mut oldest) = (vec![false; expected.len()], 0);
    while refused.contains(&false) && began.elapsed() < PATIENCE {
        for (page, refused) in expected.iter().zip(&mut refused) {
            let asked = Instant::now();
            let answer = front.query("/v1/status", &[("url", page["url"].as_str().unwrap())]);
            assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
            if answer.status() == 200 {
                let mut answer = answer.json::<Value>().unwrap();
                let age =
                    answer.as_object_mut().unwrap().remove("age_ms").map_or(0, |age| age.as_u64().unwrap());
                assert!(!*refused && answer == *page && age <= 5_000, "{answer}, {age} ms old");
                oldest = oldest.max(age);
            } else {
                assert_eq!(answer.status(), 503);
                assert!(answer.headers().contains_key("retry-after"));
                assert!(
                    began.elapsed() > Duration::from_secs(3),
                    "{:?}: {}",
                    began.elapsed(),
                    answer.text().unwrap()
                );
                *refused = true;
            }
        }
    }
    assert!(!refused.contains(&false) && oldest > 1_000, "{oldest}");
    let metrics = front.query("/metrics", &[]).text().unwrap();
    let count =
        metrics.lines().find_map(|line| line.strip_prefix("doppel_coordinator_replica_answers_total "));
    assert!(count.unwrap().parse::<u64>().unwrap() > 10, "{count:?}");
    ["log-1", "log-2", "log-3", "record-3"].iter().for_each(|name| trial.start(name));
    all_is_well(front);
}

#[test]
fn a_cluster_is_created_only_if_its_log_answers() {
    let Some(program) = harness::trial::log_server() else { return };
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("cluster.toml");
    let refused = harness::doppel()
        .args(["init", "--tier1", "a=127.0.0.1:1", "--tier1", "b=127.0.0.1:2", "--tier2", "c=127.0.0.1:3"])
        .args(["--log", "nats://127.0.0.1:9"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(!refused.status.success() && !file.exists(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("127.0.0.1:9"), "{refused:?}");

    // A server that looks for its cluster elects no leader, and creates no stream.
    let [clients, routes] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let configuration = home.path().join("log.conf");
    let text = format!(
        "server_name: log-1\nlisten: \"{clients}\"\njetstream {{ store_dir: \"{}\" }}\n\
         cluster {{ name: log, listen: \"{routes}\", routes: [\"nats://{routes}\"] }}\n",
        home.path().join("log").display()
    );
    fs::write(&configuration, text).unwrap();
    let mut server =
        Command::new(program).arg("-c").arg(configuration).stderr(Stdio::null()).spawn().unwrap();
    let refused = harness::doppel()
        .args(["init", "--tier1", "a=127.0.0.1:1", "--tier1", "b=127.0.0.1:2", "--tier2", "c=127.0.0.1:3"])
        .args(["--log", &format!("nats://{clients}")])
        .arg(&file)
        .output();
    server.kill().unwrap();
    server.wait().unwrap();
    let refused = refused.unwrap();
    assert!(!refused.status.success() && !file.exists(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no `cluster` block"), "{refused:?}");
}
