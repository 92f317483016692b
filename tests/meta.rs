//! The description of a cluster, which is stored in its shared log. Nodes are added and removed, processes
//! with an old copy are shut out, and the mode of settlement must fit the log servers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use harness::pages::rounds;
use harness::ports::free_port;
use harness::trial::{Trial, log_server};
use harness::{PATIENCE, Server, doppel, meaning, run, run_ok, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A child process. Dropping it kills the process.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn attention(front: &Server) -> String {
    front.ask("/v1/cluster", &[])["attention"].to_string()
}

/// Waits until the status lists no problem and every replica has copied all entries.
fn all_is_well(front: &Server) {
    wait_until("the status to list no problem", PATIENCE * 2, || {
        let status = front.ask("/v1/cluster", &[]);
        let has_all = |range: &Value| {
            let mut standbys = range["standbys"].as_array().unwrap().iter();
            range["served"] == true && standbys.all(|one| one["follows"] == true && one["lag"] == 0)
        };
        let is_well = status["attention"] == json!([]);
        (is_well && status["ranges"].as_array().unwrap().iter().all(has_all)).then_some(())
    });
}

/// Waits until every range is served, and `node` owns or follows all ranges that it should. Other nodes may
/// have to be restarted before that happens.
fn follows(front: &Server, node: &str) {
    wait_until(&format!("{node} to own or follow its ranges"), PATIENCE, || {
        let status = front.ask("/v1/cluster", &[]);
        let is_well = |range: &Value| {
            let mut standbys = range["standbys"].as_array().unwrap().iter();
            range["served"] == true && standbys.all(|one| one["node"] != node || one["follows"] == true)
        };
        status["ranges"].as_array().unwrap().iter().all(is_well).then_some(())
    });
}

/// A trial cluster whose description the test shows and changes.
struct DescribedCluster<'t> {
    trial: &'t Trial,
    front: Server,
}

impl DescribedCluster<'_> {
    fn file(&self) -> String {
        self.trial.data("cluster.toml").display().to_string()
    }

    fn try_to(&self, what: &[&str]) -> Output {
        run([&["cluster", what[0], "--cluster", &self.file(), "--json"], &what[1..]].concat())
    }

    fn change(&self, what: &[&str]) -> Value {
        let output = self.try_to(what);
        assert!(output.status.success(), "{what:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, what: &[&str], says: &str) {
        let output = self.try_to(what);
        assert!(!output.status.success() && said(&output).contains(says), "{what:?}: {}", said(&output));
    }

    fn shown(&self) -> Value {
        self.change(&["show"])["description"].clone()
    }

    fn start(&self, name: &str, log: &Path) -> Running {
        let mut command = doppel();
        command.args(["tier1", "--cluster", &self.file(), "--name", name, "--data"]);
        command.arg(self.trial.data(name)).stdout(Stdio::piped()).stderr(File::create(log).unwrap());
        let mut running = Running(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = fs::read_to_string(log).unwrap_or_default();
        assert!(
            line.contains("is listening for its peers"),
            "node {name} printed {line:?} instead of its address; its log:\n{log}"
        );
        running
    }

    fn restart(&self, names: &[&str]) {
        for name in names {
            self.trial.kill(name);
            self.trial.start(name);
            if name.starts_with("record") {
                follows(&self.front, name);
            }
        }
    }

    fn take_over(&self, range: &str, node: &str) {
        run_ok(["cluster", "takeover", "--range", range, "--to", node, "--server", &self.front.url]);
    }

    /// The ranges that a node owns, each with the nodes that follow it.
    fn owned(&self, node: &str) -> Vec<(String, Vec<String>)> {
        let status = self.front.ask("/v1/cluster", &[]);
        let owned = status["ranges"].as_array().unwrap().iter().filter(|range| range["owner"] == node);
        let standbys = |range: &Value| {
            let all = range["standbys"].as_array().unwrap().iter();
            all.map(|one| one["node"].as_str().unwrap().to_owned()).collect()
        };
        owned.map(|range| (range["range"].to_string(), standbys(range))).collect()
    }
}

#[test]
fn adding_a_node_and_removing_another_loses_no_page() {
    let Some(trial) = Trial::replicated(&["--tier1", "3", "--tier2", "2", "--coordinators", "1"]) else {
        return;
    };
    let cluster = DescribedCluster { trial: &trial, front: trial.coordinators().remove(0) };
    let front = &cluster.front;
    all_is_well(front);
    let pages = rounds(7, 60, 2);
    front.push_patiently(&pages[0]);
    front.flush_patiently();
    let file = fs::read_to_string(trial.data("cluster.toml")).unwrap();
    assert!(!file.contains("tier1") && !file.contains("policy"), "{file}");

    // The new node starts, takes over a range, and the others restart.
    let told = cluster.change(&["add", "--tier1", &format!("record-4={}", free_address())]);
    assert_eq!(told["version"], 2, "{told:#}");
    assert!(told["steps"][0].as_str().unwrap().contains("start the new node: doppel tier1"), "{told:#}");
    let log = trial.data("record-4.err");
    let mut fourth = cluster.start("record-4", &log);
    wait_until("the coordinator to name the nodes with an older description", PATIENCE, || {
        let said = attention(front);
        let all = ["record-1", "record-2", "record-3", "index-1", "index-2", "front-1"];
        let of =
            |name: &&str| said.contains(&format!("{name} runs with version 1 of the cluster's description"));
        (all.iter().all(of) && !said.contains("record-4 runs")).then_some(())
    });
    cluster.restart(&["front-1", "record-1", "record-2", "record-3", "index-1", "index-2"]);
    all_is_well(front);
    let shown = cluster.shown();
    let follows = shown["tier1"][3]["standby"].as_array().unwrap().clone();
    assert!(!follows.is_empty(), "{shown:#}");
    cluster.take_over(&follows[0].to_string(), "record-4");
    front.push_patiently(&pages[1]);
    front.flush_patiently();

    // An index node that has partitions cannot be removed.
    let drain =
        |node: &str| ["rebalance", "--drain", node, "--wait", "--server", &front.url].map(str::to_owned);
    run_ok(drain("0"));
    cluster.refused(&["remove", "index-2"], "of the partitions of the index; have it emptied before");
    run_ok(["rebalance", "--join", "0", "--wait", "--server", &front.url]);

    // A node is removed after it owns no range, and each of its ranges has two other replicas.
    cluster.refused(&["remove", "record-9"], "there is no node record-9 in the cluster; it has record-1");
    let shown = cluster.shown();
    let range = shown["tier1"][1]["ranges"][0].to_string();
    let owns_it = || cluster.owned("record-2").iter().any(|(owned, _)| *owned == range);
    if !owns_it() {
        cluster.take_over(&range, "record-2");
    }
    wait_until("record-2 to own a range", PATIENCE, || owns_it().then_some(()));
    cluster.refused(&["remove", "record-2"], "record-2 owns range");
    cluster.refused(&["replicas", "--range", &range, "--nodes", "record-9"], "no tier-1 node record-9");
    let of = |node: &Value, list: &str| node[list].as_array().cloned().unwrap_or_default();
    let nodes = shown["tier1"].as_array().unwrap();
    let mut is_changed = false;
    for range in 0..6 {
        let has = |node: &&Value| [of(node, "ranges"), of(node, "standby")].concat().contains(&json!(range));
        let mut have: Vec<&str> =
            nodes.iter().filter(has).map(|node| node["name"].as_str().unwrap()).collect();
        if have.contains(&"record-2") && have.len() < 3 {
            let other = nodes.iter().find(|node| !has(node)).unwrap();
            have.push(other["name"].as_str().unwrap());
            let nodes = have.join(",");
            cluster.change(&["replicas", "--range", &range.to_string(), "--nodes", &nodes]);
            is_changed = true;
        }
    }
    if is_changed {
        drop(fourth);
        fourth = cluster.start("record-4", &log);
        cluster.restart(&["front-1", "record-1", "record-2", "record-3"]);
    }
    all_is_well(front);
    for (range, standbys) in cluster.owned("record-2") {
        cluster.take_over(&range, standbys.iter().find(|node| *node != "record-2").unwrap());
    }
    wait_until("the beats of record-2 to name no range of its own", PATIENCE, || {
        cluster.owned("record-2").is_empty().then_some(())
    });
    cluster.change(&["remove", "record-2"]);
    wait_until("the coordinator to say that the node has to end", PATIENCE, || {
        attention(front).contains("record-2 runs, and is not in the cluster any more").then_some(())
    });
    trial.kill("record-2");
    let refused = run(["dev-cluster", "start", "record-2", "--dir", trial.data("").to_str().unwrap()]);
    let refused = said(&refused);
    let says = "there is no tier-1 node record-2 in the cluster; it has record-1, record-3, record-4";
    assert!(refused.contains(says), "{refused}");
    cluster.restart(&["record-1", "record-3", "index-1", "index-2", "front-1"]);
    drop(fourth);
    let _fourth = cluster.start("record-4", &log);
    all_is_well(front);
    let status = front.ask("/v1/cluster", &[]);
    assert_eq!(status["nodes"].as_array().unwrap().len(), 5, "{status:#}");

    // The groups equal those of a single process.
    let home = tempfile::tempdir().unwrap();
    let one = Server::start(home.path(), &[]);
    pages.iter().for_each(|pages| one.push_all(pages));
    one.flush();
    front.flush_patiently();
    assert_eq!(meaning(&front.export()), meaning(&one.export()));
}

#[test]
fn of_concurrent_changes_each_is_made_or_reported_as_refused() {
    let Some(trial) = Trial::replicated(&["--tier1", "2", "--tier2", "1", "--coordinators", "1"]) else {
        return;
    };
    let cluster = DescribedCluster { trial: &trial, front: trial.coordinators().remove(0) };
    let added: Vec<(String, bool)> = thread::scope(|scope| {
        let add = |n: usize| {
            let cluster = &cluster;
            scope.spawn(move || {
                let name = format!("index-{n}");
                let output = cluster.try_to(&["add", "--tier2", &format!("{name}={}", free_address())]);
                let is_told = said(&output).contains("another change of the cluster came first");
                assert!(output.status.success() || is_told, "{}", said(&output));
                (name, output.status.success())
            })
        };
        let adding: Vec<_> = (2..6).map(add).collect();
        adding.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let shown = cluster.change(&["show"]);
    let there = shown["description"]["tier2"].as_array().unwrap();
    for (name, is_made) in &added {
        assert_eq!(there.iter().any(|node| node["name"] == **name), *is_made, "{name}: {shown:#}");
    }
    let made = added.iter().filter(|(_, is_made)| *is_made).count();
    assert!(made > 0 && shown["version"] == made + 1, "{shown:#}");
    // The added nodes have no partitions, so the last one can be removed again.
    let last = there.last().unwrap()["name"].as_str().unwrap();
    let told = cluster.change(&["remove", last]);
    assert_eq!(told["version"], made + 2, "{told:#}");
    // The monitor of one server says nothing about three log servers.
    let log = &shown["description"]["log"];
    if log["settlement"] == "log" {
        let monitor = log["monitors"][0].as_str().unwrap();
        let says = "the log server log-2 at nats://";
        cluster.refused(&["log", "--settlement", "log", "--log-monitor", monitor], says);
    }
    // Without `--json` the description is TOML.
    let text = run_ok(["cluster", "show", "--cluster", &cluster.file()]);
    assert!(text.starts_with(&format!("# version {}", made + 2)) && text.contains("[[tier2]]"), "{text}");
}

/// A log server that runs alone, and which the test restarts with other settings.
struct LogServer {
    program: PathBuf,
    home: TempDir,
    address: String,
    monitor: String,
    running: Option<Running>,
}

impl LogServer {
    fn new() -> Option<Self> {
        let (program, home) = (log_server()?, tempfile::tempdir().unwrap());
        Some(Self { program, home, address: free_address(), monitor: free_address(), running: None })
    }

    /// Whether this version of the server can sync what it acknowledges.
    fn syncs(&self) -> bool {
        let version = Command::new(&self.program).arg("--version").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap();
        !["v2.9.", "v2.10.", "v2.11."].iter().any(|old| version.contains(old))
    }

    /// Ends the server, and starts it with `sync` in its configuration.
    fn start(&mut self, sync: &str, has_monitor: bool) {
        self.running = None;
        let monitor = if has_monitor { format!("http: \"{}\"\n", self.monitor) } else { String::new() };
        let (address, store) = (&self.address, self.home.path().join("store"));
        let config = format!(
            "server_name: alone\nlisten: \"{address}\"\n{monitor}jetstream {{\n  store_dir: {store:?}\n{sync}}}\n"
        );
        let path = self.home.path().join("conf");
        fs::write(&path, config).unwrap();
        let log = File::create(self.home.path().join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(path).stdout(Stdio::null()).stderr(log);
        self.running = Some(Running(command.spawn().unwrap()));
        let answers = || TcpStream::connect(address).is_ok().then_some(());
        wait_until("the log server", PATIENCE, answers);
    }

    fn init(&self, file: &Path, more: &[&str]) -> Output {
        let (log, max) = (format!("nats://{}", self.address), (16 << 20).to_string());
        let mut arguments = vec!["init", "--log", &log, "--log-max-bytes", &max];
        let nodes: Vec<String> = ["a", "b", "c"].map(|name| format!("{name}={}", free_address())).to_vec();
        arguments.extend(["--tier1", &nodes[0], "--tier1", &nodes[1], "--tier2", &nodes[2]]);
        arguments.extend(more);
        arguments.push(file.to_str().unwrap());
        run(arguments)
    }

    /// Deletes a stream of the log, as an operator may do by mistake.
    fn delete(&self, stream: &str) {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB $JS.API.STREAM.DELETE.{stream} answer 0\r\n\r\nPING\r\n"
        );
        connection.write_all(request.as_bytes()).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut answer = String::new();
        while !answer.contains("\"success\":true") {
            let mut bytes = [0; 4_096];
            let count = connection.read(&mut bytes).unwrap();
            answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
            assert!(count > 0 && !answer.contains("error"), "{answer}");
        }
    }
}

#[test]
fn a_log_that_does_not_sync_requires_settlement_by_a_standby() {
    let Some(mut server) = LogServer::new() else { return };
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(format!("{name}.toml"));
    let monitor = format!("http://{}", server.monitor);
    let asks = ["--log-monitor", &monitor];
    server.start("", true);
    let refused = server.init(&file("refused"), &[&asks[..], &["--settlement", "log"]].concat());
    assert!(!refused.status.success() && !file("refused").exists(), "{}", said(&refused));
    for says in ["the log server alone at http://", "`sync_interval: always`"] {
        assert!(said(&refused).contains(says), "{}", said(&refused));
    }
    // Without the option, `init` chooses the mode of settlement that fits such servers.
    let made = server.init(&file("standby"), &asks);
    assert!(
        made.status.success() && said(&made).contains("settlement is `standby`, for `log`"),
        "{}",
        said(&made)
    );
    let made = server.init(&file("unknown"), &[]);
    assert!(made.status.success() && said(&made).contains("for no --log-monitor says"), "{}", said(&made));
    assert!(said(&made).contains("streams, the names of which begin with doppel-"), "{}", said(&made));
    // `init` creates no stream if it cannot write its files.
    let blocked = home.path().join("blocked");
    fs::write(&blocked, "").unwrap();
    let refused = server.init(&blocked.join("cluster.toml"), &[]);
    assert!(
        said(&refused).contains("cannot write") && !said(&refused).contains("making"),
        "{}",
        said(&refused)
    );
    fs::write(file("left").with_extension("secret"), "").unwrap();
    let refused = server.init(&file("left"), &[]);
    assert!(said(&refused).contains("left.secret is there without"), "{}", said(&refused));
    let refused = server.init(&file("alone"), &["--replicas", "1"]);
    assert!(said(&refused).contains("--replicas 2 at least"), "{}", said(&refused));
    let away = format!("http://{}", free_address());
    let refused = server.init(&file("away"), &["--log-monitor", &away]);
    assert!(said(&refused).contains("no monitor of a log server answers at http://"), "{}", said(&refused));
    let for_clients = format!("http://{}", server.address);
    let refused = server.init(&file("clients"), &["--log-monitor", &for_clients]);
    assert!(said(&refused).contains("as it does on the port for its clients"), "{}", said(&refused));
    if !server.syncs() {
        return;
    }
    server.start("  sync_interval: always\n", true);
    let made = server.init(&file("log"), &asks);
    assert!(
        made.status.success() && said(&made).contains("settlement `log`: a write counts"),
        "{}",
        said(&made)
    );

    // A node starts only while the servers fit the mode of settlement, or cannot be asked.
    let start = |data: &str| {
        let mut command = doppel();
        command.args(["tier1", "--name", "a", "--cluster", file("log").to_str().unwrap(), "--data"]);
        command.arg(home.path().join(data));
        command
    };
    server.start("  sync_interval: \"10s\"\n", true);
    let refused = start("one").output().unwrap();
    assert!(
        !refused.status.success() && said(&refused).contains("acknowledges what is not on its disk"),
        "{}",
        said(&refused)
    );
    server.start("  sync_interval: always\n", false);
    let log = home.path().join("node.log");
    let mut command = start("two");
    command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
    let mut running = Running(command.spawn().unwrap());
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said_then = fs::read_to_string(&log).unwrap();
    assert!(
        line.contains("is listening") && said_then.contains("how it is set is not known"),
        "{line} {said_then}"
    );
    drop(running);

    // A deleted description is not created again.
    let shown = run_ok(["cluster", "show", "--json", "--cluster", file("log").to_str().unwrap()]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let id = &shown["description"]["cluster"].as_str().unwrap()[..12];
    server.delete(&format!("doppel-{id}-meta"));
    let mut command = start("three");
    command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
    let _running = Running(command.spawn().unwrap());
    let is_said = || fs::read_to_string(&log).unwrap().contains("-meta is not there").then_some(());
    wait_until("the node to say what is missing", PATIENCE, is_said);
    let refused = run(["cluster", "show", "--cluster", file("log").to_str().unwrap()]);
    assert!(!refused.status.success() && said(&refused).contains("-meta is not there"), "{}", said(&refused));
    // The message names the likelier cause first: a wrong cluster name in the file.
    let refused = said(&refused);
    let name = refused.find(&format!("`cluster` in {}", file("log").display())).unwrap();
    assert!(name < refused.find("the stream is lost").unwrap(), "{refused}");
    assert!(
        refused.contains("waiting for the description of the cluster from the log servers nats://"),
        "{refused}"
    );
}

#[test]
fn a_command_that_waits_for_log_servers_says_so_at_once() {
    let home = tempfile::tempdir().unwrap();
    let (file, servers) = (home.path().join("c.toml"), [free_address(), free_address()]);
    let servers = servers.map(|address| format!("nats://{address}"));
    let id = "0123456789abcdef0123456789abcdef";
    fs::write(&file, format!("cluster = '{id}'\nsecret = 'c.secret'\n[log]\nservers = {servers:?}\n"))
        .unwrap();
    fs::write(home.path().join("c.secret"), "s".repeat(64)).unwrap();
    for what in [&["show"][..], &["remove", "record-1"], &["log", "--log-window", "5"]] {
        let mut command = doppel();
        command.arg("cluster").args(what).arg("--cluster").arg(&file);
        let began = Instant::now();
        let mut running = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(running.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
        // The limit is the first second, plus time for the program to start.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}: {line}", began.elapsed());
        let says = format!("from the log servers {}, for 20 s at most", servers.join(", "));
        assert!(line.contains(&says), "{line}");
    }
}
