//! Clusters of separate processes, one per role and node. Whatever process dies and whatever is lost, a
//! cluster reaches the groups of a single process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use harness::cluster::Cluster;
use harness::pages::rounds;
use harness::ports::free_port;
use harness::{Meaning, PATIENCE, Server, meaning, of_one_process, run, run_ok, wait_until};
use serde_json::{Value, json};

/// Makes a backup through a coordinator, as a file and as a directory, and returns the file. Checks that one
/// process restored from it has the export `expected`.
fn back_up(front: &Server, home: &Path, expected: &Meaning) -> PathBuf {
    let (file, dir) = (home.join("file"), home.join("dir"));
    run_ok(["backup", "--server", &front.url, "--out", file.to_str().unwrap()]);
    run_ok([Path::new("restore"), Path::new("--data"), &dir, &file]);
    run_ok([Path::new("check"), &dir]);
    let restored = Server::start(&dir, &[]);
    restored.flush();
    assert_eq!(meaning(&restored.export()), *expected);
    file
}

/// Submits pages in batches, to two coordinators in turn.
fn push_by_turns(fronts: [&Server; 2], pages: &[Value]) {
    for (turn, batch) in pages.chunks(40).enumerate() {
        fronts[turn % 2].push_all(batch);
    }
}

#[test]
fn groups_equal_those_of_one_process_whatever_process_dies() {
    let rounds = rounds(7, 60, 8);
    let expected = of_one_process(&rounds);
    let mut cluster = Cluster::start(3, &["--ranges", "2"], &["--partitions", "6"]);
    let (first, second) = (cluster.coordinator("front-1"), cluster.coordinator("front-2"));
    for (round, pages) in rounds.iter().enumerate() {
        let (begin, end) = pages.split_at(pages.len() / 2);
        push_by_turns([&first, &second], begin);
        match round {
            1 => cluster.kill("index-1"),
            2 => {
                cluster.kill("index-0");
                fs::remove_dir_all(cluster.data("index-0")).unwrap();
            }
            3 => cluster.kill("record"),
            4 => cluster.signal("index-2", "STOP"),
            5 => ["index-0", "index-1", "index-2", "record"].iter().for_each(|node| cluster.kill(node)),
            6 => assert!(cluster.terminate("record")),
            _ => {}
        }
        match round {
            // No page is accepted before tier 1 is back.
            3 | 6 => cluster.start_node("record"),
            5 => ["record", "index-2", "index-0", "index-1"].iter().for_each(|node| cluster.start_node(node)),
            _ => {}
        }
        push_by_turns([&first, &second], end);
        match round {
            1 => cluster.start_node("index-1"),
            2 => cluster.start_node("index-0"),
            4 => {
                thread::sleep(Duration::from_secs(2));
                cluster.signal("index-2", "CONT");
            }
            _ => {}
        }
        first.flush();
    }
    second.flush();
    assert_eq!(meaning(&first.export()), expected);
    assert_eq!(meaning(&second.export()), expected);
    // The status of a single page agrees with the export.
    for (url, status, _) in expected.0.iter().step_by(17) {
        assert_eq!(second.status(url)["status"], **status, "{url}");
    }
    // A backup through a coordinator restores into one process.
    let home = tempfile::tempdir().unwrap();
    back_up(&first, home.path(), &expected);
    assert!(cluster.terminate("record"));
    run_ok([Path::new("check"), &cluster.data("record").join("collection")]);
}

#[test]
fn a_coordinator_that_starts_first_says_what_it_waits_for() {
    let mut cluster = Cluster::start(1, &[], &[]);
    cluster.kill("record");
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}");
    let mut command = cluster.command("coordinator", "front-1");
    let operators = free_port();
    command.args(["--listen", &format!("127.0.0.1:{port}")]).stdout(Stdio::piped()).stderr(Stdio::null());
    command.args(["--operate-listen", &format!("127.0.0.1:{operators}")]);
    let mut front = Running(command.spawn().unwrap());
    let client = Server::at(&url);
    wait_until("the coordinator to listen", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).ok());
    wait_until("the coordinator to say that it waits for tier 1", PATIENCE, || {
        let ready = client.get("/readyz");
        assert_eq!(ready.status(), 503);
        assert!(ready.headers().contains_key("retry-after"));
        ready.text().unwrap().contains("waiting for tier 1").then_some(())
    });
    assert_eq!(client.get("/healthz").status(), 200);
    let waits = Server::at(&format!("http://127.0.0.1:{operators}")).get("/readyz");
    assert_eq!(waits.status(), 503, "operators must also learn that the coordinator waits");
    assert!(waits.text().unwrap().contains("waiting for tier 1"));
    let asked = client.query("/v1/status", &[("url", "http://a.example/")]);
    assert_eq!(asked.status(), 503);
    cluster.start_node("record");
    // Each connection gets an answer. A connection that is kept open may end between two requests, so each
    // request opens a new one.
    wait_until("the coordinator to be ready", PATIENCE, || {
        let status = Server::at(&url).get("/readyz").status();
        assert!(status == 200 || status == 503, "{status}");
        (status == 200).then_some(())
    });
    assert_eq!(Server::at(&url).status("http://a.example/")["status"], "unknown");
    assert!(front.end());
}

#[test]
fn ranges_on_several_nodes_reach_the_groups_of_one_process() {
    let rounds = rounds(5, 60, 7);
    let expected = of_one_process(&rounds);
    let records = ["record-0", "record-1", "record-2"];
    let mut cluster = Cluster::start_spread(&records, 3, &["--shards", "12"], &["--partitions", "6"]);
    let (first, second) = (cluster.coordinator("front-1"), cluster.coordinator("front-2"));
    let mut feed = Feed::default();
    for (round, pages) in rounds.iter().enumerate() {
        let (begin, end) = pages.split_at(pages.len() / 2);
        push_by_turns([&first, &second], begin);
        feed.follow([&second, &first][round % 2]);
        match round {
            // `record-1` only owns ranges. `record-0` also runs the router of the index.
            1 => cluster.kill("record-1"),
            2 => cluster.kill("record-0"),
            3 => records.iter().for_each(|node| cluster.kill(node)),
            4 => ["record-2", "index-1"].iter().for_each(|node| cluster.kill(node)),
            5 => cluster.signal("record-2", "STOP"),
            6 => assert!(cluster.terminate("record-0") && cluster.terminate("record-1")),
            _ => {}
        }
        match round {
            1 => cluster.start_node("record-1"),
            2 => cluster.start_node("record-0"),
            3 => records.iter().rev().for_each(|node| cluster.start_node(node)),
            4 => ["record-2", "index-1"].iter().for_each(|node| cluster.start_node(node)),
            5 => {
                thread::sleep(Duration::from_secs(2));
                cluster.signal("record-2", "CONT");
            }
            6 => ["record-1", "record-0"].iter().for_each(|node| cluster.start_node(node)),
            _ => {}
        }
        push_by_turns([&first, &second], end);
        first.flush();
    }
    second.flush();
    assert_eq!(meaning(&first.export()), expected);
    assert_eq!(meaning(&second.export()), expected);
    // Statuses of single pages agree with the export, and so do the events of the change feed.
    feed.follow(&first);
    for (url, status, _) in expected.0.iter().step_by(7) {
        assert_eq!(second.status(url)["status"], **status, "{url}");
        assert_eq!(feed.last[url]["status"], **status, "{url}");
    }
    // Any coordinator answers for all ranges, and repairs and purges reach the ranges that they concern.
    let groups = second.ask("/v1/groups", &[("limit", "1000")])["groups"].as_array().unwrap().clone();
    assert!(groups.len() > 20, "{}", groups.len());
    for group in groups.iter().take(20) {
        let id = group["group"].as_str().unwrap();
        let repaired = first.post_json(&format!("/v1/groups/{id}/repair"), &json!({}));
        assert_eq!(repaired["components"].as_array().unwrap().len(), 1, "{repaired}");
    }
    first.flush();
    assert_eq!(meaning(&second.export()), expected);
    let repairs = second.ask("/v1/repairs", &[("limit", "100")])["repairs"].as_array().unwrap().len();
    assert_eq!(repairs, 20);
    let purged: Vec<&String> = expected.0.iter().map(|(url, _, _)| url).take(10).collect();
    for url in &purged {
        assert_eq!(first.post_json("/v1/purge", &json!({"url": url}))["purged"], 1, "{url}");
    }
    second.flush();
    assert!(purged.iter().all(|url| second.status(url)["status"] == "unknown"));
    // A backup of all nodes shows one moment, and restores into one process.
    let before = meaning(&second.export());
    let home = tempfile::tempdir().unwrap();
    let file = back_up(&first, home.path(), &before);
    // The backup also restores into all nodes, each of which takes its own ranges.
    first.push_all(&[
        json!({"url": "http://later.example/", "text": "this page arrives after the backup and is lost"}),
    ]);
    for node in records {
        cluster.kill(node);
        fs::remove_dir_all(cluster.data(node)).unwrap();
        let data = cluster.data(node).join("collection");
        run_ok([Path::new("restore"), Path::new("--data"), &data, &file]);
        cluster.start_node(node);
    }
    first.flush();
    assert_eq!(meaning(&first.export()), before);
    let gone = second.query("/v1/changes", &[("cursor", &feed.cursor.unwrap())]);
    assert_eq!(gone.status(), 410, "a cursor from before the restore must be refused");
}

#[test]
fn all_roles_use_the_policy_of_the_cluster() {
    // Coordinators make signatures with the sites of the pages, the index finds candidates, and tier 1 makes
    // the groups. All of them must use the policy.
    let policy = ["--policy", "by-site:site=host,across=380"];
    let rounds = rounds(2, 60, 11);
    let home = tempfile::tempdir().unwrap();
    let one = Server::start(&home.path().join("one"), &policy);
    rounds.iter().for_each(|pages| one.push_all(pages));
    one.flush();
    let expected = meaning(&one.export());
    assert!(
        expected != of_one_process(&rounds),
        "the test needs a policy whose groups differ from those of the default policy"
    );
    let records = ["record-0", "record-1"];
    let cluster = Cluster::start_spread(&records, 2, &policy, &["--partitions", "4"]);
    let (first, second) = (cluster.coordinator("front-1"), cluster.coordinator("front-2"));
    rounds.iter().for_each(|pages| push_by_turns([&first, &second], pages));
    second.flush();
    assert_eq!(meaning(&first.export()), expected);
    back_up(&first, home.path(), &expected);
}

#[test]
fn while_a_node_of_tier_1_is_away_only_its_own_pages_are_refused() {
    let page = |n: usize| format!("http://p{n}.example/");
    let pages: Vec<Value> =
        (0..60).map(|n| json!({"url": page(n), "text": format!("page {n} has words of its own")})).collect();
    let mut cluster = Cluster::start_spread(&["record-0", "record-1"], 1, &[], &[]);
    let front = cluster.coordinator("front");
    front.push_all(&pages);
    front.flush();
    cluster.kill("record-1");
    let again: Vec<Value> =
        (0..60).map(|n| json!({"url": page(n), "text": format!("another text of page {n} comes")})).collect();
    let answers = front.push(&again);
    let (taken, refused): (Vec<usize>, Vec<usize>) =
        (0..60).partition(|n| answers[*n]["outcome"].is_string());
    assert!(taken.len() > 10 && refused.len() > 10, "{answers:?}");
    assert!(refused.iter().all(|n| answers[*n]["error"]["code"] == "retry"), "{answers:?}");
    for n in &taken {
        assert!(front.status(&page(*n))["status"].is_string());
    }
    let away = front.query("/v1/status", &[("url", &page(refused[0]))]);
    assert_eq!(away.status().as_u16(), 503);
    assert!(away.headers().contains_key("retry-after"));
    cluster.start_node("record-1");
    front.push_all(&again);
    front.flush();
    for n in 0..60 {
        assert_eq!(front.status(&page(n))["status"], "unique");
    }
}

#[test]
fn dev_cluster_starts_reports_a_killed_node_restarts_it_and_ends() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("try");
    let dir = dir.to_str().unwrap();
    let start = |tier1: &str| {
        let mut command = harness::doppel();
        command.args([
            "dev-cluster",
            "--dir",
            dir,
            "--tier1",
            tier1,
            "--tier2",
            "2",
            "--coordinators",
            "1",
            "--log-servers",
            "0",
            "--json",
        ]);
        Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap())
    };
    let ready = |trial: &mut Running| -> Value {
        let mut line = String::new();
        BufReader::new(trial.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let mut running = start("2");
    let processes = ready(&mut running);
    let named = |role: &str, at: usize| processes[role][at]["name"].as_str().unwrap().to_owned();
    assert_eq!(named("tier1", 1), "record-2");
    assert_eq!(named("tier2", 1), "index-2");
    let url = processes["coordinators"][0]["url"].as_str().unwrap();
    let front = Server::at(url);
    front.push_all(&[json!({"url": "http://a.example/", "text": "one page"})]);
    front.flush();
    let status = || front.ask("/v1/cluster", &[]);
    let whole = wait_until("every node to report its ranges", PATIENCE, || {
        let status = status();
        (status["attention"] == json!([])).then_some(status)
    });
    assert_eq!(whole["nodes"].as_array().unwrap().len(), 4);
    assert_eq!(whole["ranges"].as_array().unwrap().len(), 4);
    assert!(whole["ranges"].as_array().unwrap().iter().all(|range| range["served"] == true), "{whole}");
    assert_eq!(whole["nodes"][2]["lag"], 0, "{whole}");

    // Kill a node from outside; the cluster reports the loss, and the node comes back.
    run_ok(["dev-cluster", "kill", "record-2", "--dir", dir]);
    let broken = wait_until("the loss to be noticed", PATIENCE, || {
        let status = status();
        (status["attention"] != json!([])).then_some(status)
    });
    let lost = |range: &&Value| range["owner"] == "record-2" && range["served"] == false;
    let lost = broken["ranges"].as_array().unwrap().iter().filter(lost).count();
    assert_eq!(broken["nodes"][1]["answers"], json!(false), "{broken}");
    assert_eq!(lost, 2, "{broken}");
    assert!(broken["attention"][0]["remedy"].as_str().unwrap().contains("--name record-2"), "{broken}");
    let shown = run(["cluster", "status", "--server", url]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("record-2  1") && shown.contains("not served"), "{shown}");
    let refused = run(["dev-cluster", "kill", "record-2", "--dir", dir]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("record-2 does not run"));
    run_ok(["dev-cluster", "start", "record-2", "--dir", dir]);
    wait_until("the status to list no problem", PATIENCE, || {
        (status()["attention"] == json!([])).then_some(())
    });
    assert!(!start("2").0.wait().unwrap().success(), "a second cluster must not start on the same directory");
    assert!(running.end());
    assert!(reqwest::blocking::get(format!("{url}/healthz")).is_err(), "every process must have ended");

    // The directory keeps the cluster after its processes end.
    let refused = run(["dev-cluster", "start", "record-2", "--dir", dir]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no cluster runs in"), "{refused:?}");
    assert!(
        !start("1").0.wait().unwrap().success(),
        "the directory must not start with other numbers of nodes"
    );
    let mut running = start("2");
    ready(&mut running);
    assert_eq!(front.status("http://a.example/")["status"], "unique");
    assert!(running.end());
}

/// A child process. Dropping it ends the process.
struct Running(Child);

impl Running {
    /// Ends the process as Ctrl-C does. Returns whether it exited with 0.
    fn end(&mut self) -> bool {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        self.0.wait().unwrap().success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            self.end();
        }
    }
}

/// A consumer that follows the change feed.
#[derive(Default)]
struct Feed {
    cursor: Option<String>,
    /// The latest event of every URL.
    last: HashMap<String, Value>,
}

impl Feed {
    /// Reads the feed to its end.
    fn follow(&mut self, front: &Server) {
        loop {
            let cursor = self.cursor.clone().unwrap_or_default();
            let query: &[(&str, &str)] = if cursor.is_empty() { &[] } else { &[("cursor", &cursor)] };
            let answer = front.ask("/v1/changes", query);
            let changes = answer["changes"].as_array().unwrap();
            self.cursor = Some(answer["cursor"].as_str().unwrap().to_owned());
            if changes.is_empty() {
                return;
            }
            for change in changes {
                self.last.insert(change["url"].as_str().unwrap().to_owned(), change.clone());
            }
        }
    }
}

/// After the restore, the index still has contents and plans that are newer than the backup. They must not
/// count.
#[test]
fn a_lost_system_of_record_is_restored_from_a_backup_while_index_nodes_run_on() {
    let rounds = rounds(11, 40, 3);
    let mut cluster = Cluster::start(2, &[], &["--partitions", "4"]);
    let front = cluster.coordinator("front");
    front.push_all(&rounds[0]);
    front.flush();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    run_ok(["backup", "--server", &front.url, "--out", file.to_str().unwrap()]);
    let before = meaning(&front.export());
    // Pages that arrive after the backup are lost.
    front.push_all(&rounds[1]);
    front.flush();
    assert_ne!(meaning(&front.export()), before);
    for _ in 0..2 {
        cluster.kill("record");
        fs::remove_dir_all(cluster.data("record")).unwrap();
        fs::create_dir(cluster.data("record")).unwrap();
        run_ok([
            Path::new("restore"),
            Path::new("--data"),
            &cluster.data("record").join("collection"),
            &file,
        ]);
        cluster.start_node("record");
        front.flush();
        assert_eq!(meaning(&front.export()), before);
    }
    front.push_all(&rounds[2]);
    front.flush();
    let expected = of_one_process(&[rounds[0].clone(), rounds[2].clone()]);
    assert_eq!(meaning(&front.export()), expected);
}

#[test]
fn while_a_node_of_the_index_is_away_pages_and_questions_are_accepted() {
    let rounds = rounds(3, 20, 1);
    let mut cluster = Cluster::start(2, &[], &["--partitions", "4"]);
    let front = cluster.coordinator("front");
    front.push_all(&rounds[0]);
    front.flush();
    let before = meaning(&front.export());
    cluster.kill("index-1");
    let new =
        json!({"url": "http://new.example/", "text": "a page that comes while a node of the index is away"});
    assert_eq!(front.push(std::slice::from_ref(&new))[0]["outcome"], "pending");
    assert_eq!(front.status("http://new.example/")["status"], "pending");
    let (known, status, _) = &before.0[0];
    assert_eq!(front.status(known)["status"], **status);
    assert_eq!(front.post("/v1/flush?wait=true&timeout=1", "application/json", "").status(), 200);
    assert_eq!(front.status("http://new.example/")["status"], "pending");
    cluster.start_node("index-1");
    front.flush();
    assert_eq!(front.status("http://new.example/")["status"], "unique");

    // Without the system of record, requests fail with 503, and nothing is lost.
    cluster.kill("record");
    let refused = front.post("/v1/pages", "application/json", new.to_string());
    assert_eq!(refused.status().as_u16(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(front.query("/v1/status", &[("url", known)]).status(), 503);
    let other = json!({"url": "http://other.example/", "text": "another"});
    cluster.start_node("record");
    wait_until("the system of record to answer", PATIENCE, || {
        front.query("/v1/status", &[("url", known)]).status().is_success().then_some(())
    });
    front.push_all(&[other]);
    front.flush();
    assert_eq!(front.status("http://other.example/")["status"], "unique");
    assert_eq!(front.status("http://new.example/")["status"], "unique");
}

#[test]
fn processes_of_other_clusters_are_refused() {
    let mut cluster = Cluster::start(1, &[], &[]);
    let mut other = Cluster::start(1, &[], &[]);
    let message = |output: std::process::Output| {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    // A data directory belongs to one node.
    cluster.kill("index-0");
    other.kill("index-0");
    let refused = message(other.fails_to_start("tier2", "index-0", &cluster.data("index-0")));
    assert!(refused.contains("belongs to tier-2 node index-0 of cluster"), "{refused}");
    let refused = message(cluster.fails_to_start("tier2", "record", &cluster.data("new")));
    assert!(refused.contains("there is no tier-2 node record in the cluster; it has index-0"), "{refused}");
    let serve = |dir: &Path| {
        run([Path::new("serve"), Path::new("--listen"), Path::new("127.0.0.1:0"), Path::new("--data"), dir])
    };
    let refused = message(serve(&cluster.data("record")));
    assert!(refused.contains("is not empty and has no manifest.json"), "{refused}");
    let refused = message(serve(&cluster.data("record").join("collection")));
    assert!(refused.contains("another process uses it"), "{refused}");
    cluster.start_node("index-0");

    // A process that does not know the secret gets no information.
    let secret = cluster.file().with_extension("secret");
    let known = fs::read_to_string(&secret).unwrap();
    fs::write(&secret, "x".repeat(64)).unwrap();
    let refused =
        message(cluster.command("coordinator", "front").args(["--listen", "127.0.0.1:0"]).output().unwrap());
    assert!(refused.contains("the cluster secret is missing or is not the one of this cluster"), "{refused}");
    assert!(!refused.contains("xxxx") && !refused.contains(known.trim()), "{refused}");
    assert!(cluster.log("record").contains("a request between roles is refused from=\"front\""));
    fs::write(&secret, known).unwrap();

    // A second `init` does not replace the files.
    let file = cluster.file();
    let arguments = ["init", file.to_str().unwrap(), "--tier1", "a=127.0.0.1:1", "--tier2", "b=127.0.0.1:2"];
    let refused = message(run(arguments));
    assert!(refused.contains("is there already, and is not replaced"), "{refused}");
    let front = cluster.coordinator("front");
    front.push_all(&[json!({"url": "http://a.example/", "text": "still there"})]);
    front.flush();
}

#[test]
fn a_coordinator_starts_only_with_the_policy_tables_of_its_cluster() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (crawl, tables, others) = (file("crawl.jsonl"), file("tables"), file("others"));
    let pages = rounds(11, 60, 1).remove(0);
    fs::write(&crawl, harness::pages::ndjson(&pages)).unwrap();
    let learn = ["policy-tables", "--policy", "multi-simhash", "--out"];
    run_ok(learn.iter().copied().chain([&*tables, &*crawl]));
    fs::write(file("other.txt"), "some other words than those").unwrap();
    fs::write(file("another.txt"), "some other words again").unwrap();
    let learnt = run_ok(learn.iter().copied().chain([&*others, &*file("other.txt"), &*file("another.txt")]));
    let init = ["--policy", "multi-simhash", "--policy-tables", &tables];
    let cluster = Cluster::start(1, &init, &[]);
    for (options, says) in [
        (&[][..], "the policy multi-simhash of this cluster reads tables"),
        (&["--policy-tables", &*others], "and those of --policy-tables are"),
    ] {
        let refused = cluster
            .command("coordinator", "front")
            .args(["--listen", "127.0.0.1:0"])
            .args(options)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && errors.contains(says), "{options:?}: {errors}");
    }
    // A cluster file that was edited after the collection was created is refused, too.
    let text = fs::read_to_string(cluster.file()).unwrap();
    let (_, hash) = text.split_once("tables = \"").unwrap();
    let other = learnt.lines().find_map(|line| line.strip_prefix("hash ")).unwrap();
    let own = &hash[..other.len()];
    // The edited file lies beside the original, because the secret is there.
    let changed = cluster.file().with_file_name("changed.toml").to_str().unwrap().to_owned();
    fs::write(&changed, text.replace(own, other)).unwrap();
    let options = ["--name", "front", "--listen", "127.0.0.1:0", "--policy-tables", &others];
    let refused = run(["coordinator", "--cluster", &changed].iter().chain(&options));
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("was made with the tables"), "{errors}");
    assert!(errors.contains(own) && errors.contains(other), "{errors}");
    let mut front = cluster.command("coordinator", "front");
    front.args(["--listen", "127.0.0.1:0", "--policy-tables", &tables, "--temp"]).arg(home.path());
    let front = Server::start_command(front);
    front.push_all(&pages);
    front.flush();
    let dedup = run_ok(["dedup", "--latest", "--out", "-", "--policy", "multi-simhash", &crawl]);
    assert_eq!(meaning(&front.export()), meaning(&dedup));
}
