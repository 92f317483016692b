//! Processes and requests that do not belong to a cluster. Each role refuses them, says why, and goes on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use doppel_wire::VERSION;
use harness::cluster::Cluster;
use harness::{PATIENCE, Server, all_is_well, wait_until};
use serde_json::{Value, json};

/// Headers with which a request identifies its sender and its receiver.
#[derive(Clone)]
struct RequestIdentity {
    secret: String,
    cluster: String,
    node: String,
    version: String,
}

/// The headers that processes of a cluster send to a node.
fn identity(cluster: &Cluster, node: &str) -> RequestIdentity {
    let text = fs::read_to_string(cluster.file()).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("cluster = \"")).unwrap();
    let secret = fs::read_to_string(cluster.file().with_extension("secret")).unwrap();
    RequestIdentity {
        secret: secret.trim().to_owned(),
        cluster: id.trim_end_matches('"').to_owned(),
        node: node.to_owned(),
        version: VERSION.to_string(),
    }
}

/// Sends a request that declares a body of `length` bytes; `body` may be shorter. Returns the status and the
/// answer.
fn ask(address: &str, call: &str, identity: &RequestIdentity, length: u64, body: &[u8]) -> (u16, String) {
    let RequestIdentity { secret, cluster, node, version } = identity;
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "POST /wire/{call} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {secret}\r\n\
         doppel-cluster: {cluster}\r\ndoppel-node: {node}\r\ndoppel-wire: {version}\r\ndoppel-from: somebody\r\n\
         content-length: {length}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(body).unwrap();
    let mut answer = Vec::new();
    // A refused body is not read, so the connection may end with a reset.
    let _ = connection.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer:?}")).parse().unwrap();
    (status, answer)
}

/// Sends every kind of request that a node must refuse.
fn refuses_strangers(cluster: &Cluster, node: &str, call: &str) {
    let (address, own) = (cluster.address(node), identity(cluster, node));
    let (status, answer) = ask(&address, "traffic", &own, 0, b"");
    assert_eq!(status, 200, "{answer}");
    let older = (VERSION - 1).to_string();
    for (identity, expected, says) in [
        (
            RequestIdentity { secret: "x".repeat(64), ..own.clone() },
            401,
            "the cluster secret is missing or is not the one".to_owned(),
        ),
        (
            RequestIdentity { secret: String::new(), ..own.clone() },
            401,
            "the cluster secret is missing or is not the one".to_owned(),
        ),
        (
            RequestIdentity { cluster: "0".repeat(32), ..own.clone() },
            421,
            format!("{node} belongs to cluster {}", own.cluster),
        ),
        (
            RequestIdentity { node: "another".to_owned(), ..own.clone() },
            421,
            format!("this is {node}, and the request is for"),
        ),
        (
            RequestIdentity { version: older.clone(), ..own.clone() },
            400,
            format!(
                "{node} speaks version {VERSION} of the protocol between roles, the caller version {older:?}"
            ),
        ),
    ] {
        // The node answers without waiting for the body.
        let (status, answer) = ask(&address, call, &identity, 1_000_000, b"");
        assert!(status == expected && answer.contains(&says), "{node}: {answer}");
        assert!(!answer.contains(&own.secret), "{answer}");
    }
    let (status, answer) = ask(&address, call, &own, 1 << 40, b"");
    assert!(status == 413 && answer.contains("the body has more than"), "{node}: {answer}");
    let (status, answer) = ask(&address, call, &own, 3, b"\xff\xff\xff");
    assert!(status == 400 && answer.contains("the body is not a request of"), "{node}: {answer}");
    let (status, answer) = ask(&address, "no/such/call", &own, 0, b"");
    assert!(status == 404 && answer.contains("it has another role"), "{node}: {answer}");
}

/// A process that runs in place of a node. Dropping it kills the process.
struct InPlace(Child);

impl InPlace {
    /// Starts a process with the cluster file `file` that listens on `address`.
    fn start(role: &str, name: &str, file: &Path, address: &str, data: &Path) -> Self {
        let mut command = harness::doppel();
        command
            .arg(role)
            .arg("--cluster")
            .arg(file)
            .args(["--name", name, "--listen", address, "--data"])
            .arg(data);
        let log = File::create(data.with_extension("log")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self(child)
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the status says that a node does not answer, and gives the reason.
fn is_missed(front: &Server, node: &str, says: &str) {
    let mut last = Value::Null;
    for _ in 0..300 {
        let status = front.ask("/v1/cluster", &[]);
        last = status["nodes"].as_array().unwrap().iter().find(|one| one["name"] == node).unwrap().clone();
        let reason = last["reason"].as_str().unwrap_or_default();
        if last["answers"] == false && reason.contains(says) {
            assert!(status["attention"].to_string().contains(node), "{status}");
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("the status does not report {node} as away because of {says:?}: {last}");
}

#[test]
fn every_role_refuses_foreign_requests_and_keeps_serving() {
    let cluster = Cluster::start(1, &[], &[]);
    let front = cluster.coordinator("front");
    refuses_strangers(&cluster, "record", "tier1/submit");
    refuses_strangers(&cluster, "index-0", "index-node/apply");
    // A coordinator answers only clients, and limits the bodies that they send.
    let address = front.url.strip_prefix("http://").unwrap();
    let (status, answer) = ask(address, "tier1/submit", &identity(&cluster, "front"), 0, b"");
    assert_eq!(status, 404, "{answer}");
    let mut connection = TcpStream::connect(address).unwrap();
    let head = "POST /v1/pages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
                content-length: 1000000000000\r\n\r\n";
    connection.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
    front.push_all(&[json!({"url": "http://a.example/", "text": "it goes on"})]);
    front.flush();
    assert_eq!(front.status("http://a.example/")["status"], "unique");
}

#[test]
fn a_process_of_another_cluster_is_refused_and_reported() {
    let mut cluster = Cluster::start(1, &[], &[]);
    let other = Cluster::start(1, &[], &[]);
    let front = cluster.coordinator("front");
    all_is_well(&front);
    let home = tempfile::tempdir().unwrap();
    // First the same cluster with another secret, then another cluster with the same secret.
    let file = |name: &str, of: &Cluster, secret: &str| {
        let dir = home.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::copy(of.file(), dir.join("cluster.toml")).unwrap();
        // The copied secret file must be readable by its owner alone.
        fs::copy(of.file().with_extension("secret"), dir.join("cluster.secret")).unwrap();
        fs::write(dir.join("cluster.secret"), secret).unwrap();
        dir.join("cluster.toml")
    };
    let secret = identity(&cluster, "record").secret;
    let files = [
        (
            file("unknown", &cluster, &"x".repeat(64)),
            "the cluster secret is missing or is not the one of this cluster".to_owned(),
        ),
        (
            file("other", &other, &secret),
            format!("belongs to cluster {}, the caller to", identity(&other, "record").cluster),
        ),
    ];
    for (role, node) in [("tier2", "index-0"), ("tier1", "record")] {
        let address = cluster.address(node);
        cluster.kill(node);
        for (number, (file, says)) in files.iter().enumerate() {
            let data = home.path().join(format!("{node}-{number}"));
            let _process = InPlace::start(role, node, file, &address, &data);
            is_missed(&front, node, says);
            let log = fs::read_to_string(data.with_extension("log")).unwrap();
            assert!(log.contains("a request between roles is refused") && log.contains("front"), "{log}");
        }
        // A process of an older release.
        let listener = wait_until("the address to be free", PATIENCE, || TcpListener::bind(&address).ok());
        let older = VERSION - 1;
        let says = format!("{node} speaks version {older} of the protocol between roles");
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\ndoppel-wire: {older}\r\ndoppel-refusal: version\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{says}",
            says.len()
        );
        let (end, ended) = std::sync::mpsc::channel::<()>();
        thread::scope(|scope| {
            listener.set_nonblocking(true).unwrap();
            scope.spawn(move || {
                while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    if let Ok((mut connection, _)) = listener.accept() {
                        connection.set_nonblocking(false).unwrap();
                        let _ = connection.read(&mut [0; 4_096]);
                        let _ = connection.write_all(answer.as_bytes());
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
            is_missed(&front, node, &says);
            drop(end);
        });
        cluster.start_node(node);
        all_is_well(&front);
    }
    front.push_all(&[json!({"url": "http://a.example/", "text": "it goes on"})]);
    front.flush();
    assert_eq!(front.status("http://a.example/")["status"], "unique");
}
