//! Tests `doppel rebalance --wait` against a scripted server that is busy, unavailable, refuses or continues,
//! as the test requires.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::harness::{doppel, run};

/// One step of the script: the expected beginning of the request, and the response to it.
type Step = (&'static str, ScriptedResponse);

/// The response to a request.
#[derive(Clone)]
enum ScriptedResponse {
    Says(u16, String),
    /// No response: the connection is closed.
    HangUp,
}

impl ScriptedResponse {
    fn of(status: u16, body: &Value) -> Self {
        Self::Says(status, body.to_string())
    }
}

/// A server that responds according to a script, with one request per connection.
struct ScriptedServer {
    url: String,
    thread: JoinHandle<()>,
}

impl ScriptedServer {
    fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let steps: Vec<Step> = steps.into_iter().collect();
        let serve = move || {
            for (request, answer) in steps {
                let stream = loop {
                    let stream = listener.accept().unwrap().0;
                    if !begins_tls(&stream) {
                        break stream;
                    }
                };
                respond_once(&stream, request, answer);
            }
        };
        Self { url, thread: thread::spawn(serve) }
    }

    /// Checks that the script was run to its end, and that every request was the expected one.
    fn ended(self) {
        self.thread.join().unwrap();
    }
}

/// Whether a client begins a TLS handshake. A client whose connection broke off does so to find out whether
/// the server speaks TLS.
fn begins_tls(stream: &TcpStream) -> bool {
    const HANDSHAKE: u8 = 0x16;
    let mut first = [0];
    stream.peek(&mut first).unwrap();
    first[0] == HANDSHAKE
}

fn respond_once(mut stream: &TcpStream, request: &str, answer: ScriptedResponse) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    assert!(head.starts_with(request), "{request}: {head}");
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    if let ScriptedResponse::Says(status, body) = answer {
        let head = format!("HTTP/1.1 {status} Scripted\r\nContent-Length: {}\r\n", body.len());
        stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).unwrap();
    }
}

const REQUEST: &str = "POST /v1/rebalance ";
const PRESENT: &str = "GET /v1/rebalance ";

fn errors(stderr: &[u8]) -> String {
    String::from_utf8_lossy(stderr).into_owned()
}

/// Response with the state of the mapping.
fn present(plan_version: u64, progress: &Value, outcome: &Value) -> ScriptedResponse {
    let (nodes, drained, request) = (2, json!([]), Value::Null);
    let present = json!({
        "plan_version": plan_version, "nodes": nodes, "drained": drained, "progress": progress, "request": request, "outcome": outcome,
    });
    ScriptedResponse::of(200, &present)
}

/// Response with the load of the nodes.
fn load(imbalance: f64) -> ScriptedResponse {
    ScriptedResponse::of(
        200,
        &json!({
            "plan_version": 5, "dimensions": 3, "partitions": [], "searches": 0, "fan_out": 0, "imbalance": 1.0,
            "imbalance_floor": 1.0, "fan_out_saved": null, "serving_nodes": 2, "node_fan_out": 0, "node_imbalance": imbalance,
            "node_imbalance_floor": 1.0, "node_fan_out_saved": null, "file_bytes": 0, "nodes": [], "drained": [],
            "progress": null, "history": [], "variation": null, "shard_map_version": 1, "shards": [],
        }),
    )
}

/// Response with the progress of a change.
fn in_progress(copied: u64) -> ScriptedResponse {
    let progress = json!({"plan_version": 4, "next_version": 5, "copied": copied, "contents": 30, "changed": 0, "seconds": 0.1});
    present(4, &progress, &Value::Null)
}

fn at_rest(plan_version: u64) -> ScriptedResponse {
    present(plan_version, &Value::Null, &Value::Null)
}

fn ended(plan_version: u64, failed: Option<&str>) -> ScriptedResponse {
    let outcome = json!({"action": "balance", "failed": failed, "plan_version": plan_version, "copied": 30, "seconds": 0.1});
    present(plan_version, &Value::Null, &outcome)
}

fn refused(status: u16, detail: &str) -> ScriptedResponse {
    ScriptedResponse::of(
        status,
        &json!({"type": "about:blank", "title": "", "status": status, "detail": detail}),
    )
}

/// The response that accepts a request.
fn accepted() -> ScriptedResponse {
    let moves = [json!({"partition": 7, "from": 0, "to": 1, "contents": 20})];
    ScriptedResponse::of(
        200,
        &json!({
            "plan_version": 4, "started": true, "nothing_to_do": null, "splits": 0, "joins": 0, "moves": moves, "contents_moved": 20,
            "contents": 100, "imbalance_before": 1.4, "imbalance_after": 1.1,
        }),
    )
}

#[test]
fn waiting_continues_through_restarts_and_busy_answers() {
    let server = ScriptedServer::start([
        (REQUEST, refused(503, "another plan is being made")),
        (PRESENT, at_rest(3)),
        (REQUEST, refused(409, "a change of the mapping is under way")),
        (PRESENT, in_progress(0)),
        (PRESENT, at_rest(4)),
        (REQUEST, accepted()),
        (PRESENT, in_progress(10)),
        (PRESENT, ScriptedResponse::HangUp),
        (PRESENT, refused(503, "starting")),
        (PRESENT, in_progress(20)),
        (PRESENT, ended(5, None)),
        ("GET /v1/reports/load-balance", load(1.25)),
    ]);
    let output = run(["rebalance", "--wait", "--json", "--server", &server.url]);
    let said = errors(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["contents_moved"], json!(20), "{told}");
    assert_eq!(told["done"]["copied"], json!(30), "{told}");
    assert_eq!(told["done"]["plan_version"], json!(5), "{told}");
    assert_eq!(told["done"]["imbalance"], json!(1.25), "{told}");
    for (words, times) in [
        ("the server is busy, mostly with another plan; waiting for its end", 1),
        ("waiting for its end", 1),
        ("changing to plan 5: 10 of 30 contents copied", 1),
        ("no server answers", 1),
        ("the server answers", 1),
    ] {
        assert_eq!(said.matches(words).count(), times, "{words}: {said}");
    }
    server.ended();
}

#[test]
fn waiting_ends_with_a_reason() {
    let busy = || (REQUEST, refused(409, "a change is under way"));
    let gone = (0..20).map(|_| (PRESENT, ScriptedResponse::HangUp));
    for (steps, arguments, code, words) in [
        (vec![busy()], &[][..], 4, "a change is under way; with --wait this command waits for its turn"),
        (vec![busy()], &["--dry-run"], 4, "with --wait this command waits for its turn"),
        (
            [busy(), (PRESENT, at_rest(4))].into_iter().cycle().take(20).collect(),
            &["--wait", "--patience", "1"],
            4,
            "no turn within 1 s: the server refused it (409 Conflict)",
        ),
        (
            [(REQUEST, accepted())].into_iter().chain(gone).collect(),
            &["--wait", "--patience", "1"],
            3,
            "gave up waiting; the server carries it out when it goes on again: no server answers",
        ),
        (
            vec![(REQUEST, accepted()), (PRESENT, in_progress(30)), (PRESENT, at_rest(4))],
            &["--wait"],
            1,
            "plan 4 is still served: it was not carried out",
        ),
        (
            vec![(REQUEST, accepted()), (PRESENT, ended(6, Some("there is no node 3")))],
            &["--wait"],
            1,
            "it was not carried out: there is no node 3",
        ),
    ] {
        let server = ScriptedServer::start(steps);
        let output = run(["rebalance", "--server", &server.url].iter().chain(arguments));
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {output:?}");
        assert!(errors(&output.stderr).contains(words), "{words}: {}", errors(&output.stderr));
    }
}

#[test]
fn an_interrupted_wait_says_that_the_server_continues() {
    let before = vec![(REQUEST, refused(409, "a change is under way"))];
    let meanwhile = vec![(REQUEST, accepted())];
    for (steps, sign, words) in [
        (
            before,
            "waiting for its end",
            "interrupted before its turn: the server goes on with the other change",
        ),
        (meanwhile, "changing to plan 5", "interrupted; the server goes on with what it has accepted"),
    ] {
        let server =
            ScriptedServer::start(steps.into_iter().chain((0..1_000).map(|_| (PRESENT, in_progress(10)))));
        let mut command = doppel();
        command.args(["rebalance", "--wait", "--server", &server.url]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains(sign), "{line}");
        let interrupted = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
        assert!(interrupted.success());
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
        assert!(rest.contains(words), "{rest}");
    }
}
