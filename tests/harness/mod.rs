//! The process harness: runs real `doppel` processes on temporary directories and free ports.
//!
//! The harness writes the standard error of each server to a file in the build's temporary directory. A test
//! that fails prints the end of that file and leaves the file in place. No helper sleeps for a fixed time:
//! [`wait_until`] polls a condition, and panics with a message after a time limit.
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]
#![allow(unreachable_pub, reason = "shared by test binaries")]

pub mod asker;
pub mod cluster;
mod crawls;
mod kills;
pub mod metrics;
pub mod pages;
pub mod ports;
pub mod small_disk;
pub mod trial;
pub mod warc;

pub use crawls::{crawl, crawls};
pub use kills::kill_at_moments;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doppel_contract::client::builder_without_tls;
use reqwest::blocking::{Client, Response};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::Value;
use tempfile::TempDir;

/// The time limit after which a test gives up waiting.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The binary under test.
pub fn doppel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doppel"));
    for variable in ["DOPPEL_SERVER", "DOPPEL_TOKEN", "DOPPEL_TOKENS", "DOPPEL_LISTEN"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs `doppel` with these arguments until it exits. Returns its output, whatever the exit code.
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    doppel().args(arguments).output().unwrap()
}

/// Runs `doppel`, and panics with its messages unless it exits with 0. Returns its stdout.
pub fn run_ok<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "doppel failed with {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Polls until `condition` returns a value. Panics after `limit`.
pub fn wait_until<T>(what: &str, limit: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(begin.elapsed() < limit, "waited {limit:?} in vain for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A new file for the standard error of a process.
fn log_file(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{number}.log", std::process::id()))
}

/// A running `doppel serve` or coordinator. Killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    /// `None` if another process started the server.
    child: Option<Child>,
    /// Standard output of the server after its first line.
    stdout: Option<Mutex<BufReader<ChildStdout>>>,
    /// The base URL, such as `http://127.0.0.1:41234`.
    pub url: String,
    log: PathBuf,
    http: Client,
}

impl Server {
    /// Starts a server on `data` and a free port, and waits until it is ready.
    pub fn start(data: &Path, options: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", data, options)
    }

    /// Like [`start`](Self::start), on the given address.
    pub fn start_on(address: &str, data: &Path, options: &[&str]) -> Self {
        let mut command = doppel();
        command.args(["serve", "--listen", address, "--data"]).arg(data).args(options);
        Self::start_command(command)
    }

    /// Runs a command that prints its URL on its first line, and waits until that server is ready.
    pub fn start_command(command: Command) -> Self {
        Self::start_as(command, builder_without_tls().timeout(PATIENCE).build().unwrap())
    }

    /// Like [`start_command`](Self::start_command), for a server with tokens. Requests carry `token`.
    pub fn start_locked(command: Command, token: &str) -> Self {
        let token = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
        let headers = HeaderMap::from_iter([(AUTHORIZATION, token)]);
        Self::start_as(
            command,
            builder_without_tls().timeout(PATIENCE).default_headers(headers).build().unwrap(),
        )
    }

    /// Like [`start_command`](Self::start_command), but sends requests with the client `http`.
    pub fn start_as(mut command: Command, http: Client) -> Self {
        let log = log_file("serve");
        command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let stdout = Mutex::new(stdout);
        let mut server = Self { child: Some(child), stdout: Some(stdout), url: String::new(), log, http };
        match line.split_whitespace().find(|word| word.starts_with("http")) {
            Some(url) => url.clone_into(&mut server.url),
            None => panic!(
                "doppel printed {line:?} instead of a line with its address; its log:\n{}",
                server.log()
            ),
        }
        // The server answers before its index is complete again, so wait for the index too.
        let has_index = || server.get("/v1/reports/load-balance").status().is_success();
        wait_until("the index to be complete", PATIENCE, || has_index().then_some(()));
        server
    }

    /// A server at `url` that another process started. Dropping this value does not stop the server.
    pub fn at(url: &str) -> Self {
        let http = builder_without_tls().timeout(PATIENCE).build().unwrap();
        Self { child: None, stdout: None, url: url.to_owned(), log: log_file("none"), http }
    }

    /// URL of the listener for operators, which the server prints on its second line. Call it at most once.
    pub fn operators_url(&self) -> String {
        let mut line = String::new();
        self.stdout.as_ref().unwrap().lock().unwrap().read_line(&mut line).unwrap();
        line.split_whitespace().find(|word| word.starts_with("http")).unwrap().to_owned()
    }

    /// The text that the server has written to its standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills the process immediately, as `kill -9` does.
    pub fn kill(mut self) {
        let child = self.child.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Sends SIGTERM and waits. Returns whether the process exited with 0.
    pub fn terminate(mut self) -> bool {
        self.signal("TERM");
        self.wait()
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Waits until the process exits. Returns whether it exited with 0.
    pub fn wait(&mut self) -> bool {
        let status =
            wait_until("the server to end", PATIENCE, || self.child.as_mut().unwrap().try_wait().unwrap());
        status.success()
    }

    /// The peak memory of the process in bytes; `None` if the system does not provide it.
    pub fn peak_memory(&self) -> Option<u64> {
        let id = self.child.as_ref()?.id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(peak.trim().strip_suffix(" kB")?.parse::<u64>().unwrap() << 10)
    }

    /// Sends `POST path` with an encoded body. Returns the response whatever its status.
    pub fn post_encoded(&self, path: &str, content_type: &str, encoding: &str, body: Vec<u8>) -> Response {
        let request = self.http.post(format!("{}{path}", self.url)).header("content-type", content_type);
        request.header("content-encoding", encoding).body(body).send().unwrap()
    }

    /// Sends `GET path`. Returns the response whatever its status.
    pub fn get(&self, path: &str) -> Response {
        self.http.get(format!("{}{path}", self.url)).send().unwrap()
    }

    /// Sends `GET path` with a query. Returns the response whatever its status.
    pub fn query(&self, path: &str, query: &[(&str, &str)]) -> Response {
        self.http.get(self.with_query(path, query)).send().unwrap()
    }

    /// Sends `GET path` with a query. Expects a 200 and returns its JSON.
    pub fn ask(&self, path: &str, query: &[(&str, &str)]) -> Value {
        json_of(self.query(path, query))
    }

    /// Sends `DELETE path` with a query. Returns the response whatever its status.
    pub fn delete(&self, path: &str, query: &[(&str, &str)]) -> Response {
        self.http.delete(self.with_query(path, query)).send().unwrap()
    }

    /// Sends `POST path` with a body. Returns the response whatever its status.
    pub fn post(&self, path: &str, content_type: &str, body: impl Into<reqwest::blocking::Body>) -> Response {
        let request = self.http.post(format!("{}{path}", self.url)).header("content-type", content_type);
        request.body(body).send().unwrap()
    }

    /// Sends `POST path` with a JSON value. Expects a 200 and returns its JSON.
    pub fn post_json(&self, path: &str, value: &Value) -> Value {
        json_of(self.post(path, "application/json", value.to_string()))
    }

    /// Submits pages as one NDJSON batch. Returns one answer per page.
    pub fn push(&self, pages: &[Value]) -> Vec<Value> {
        let body: String = pages.iter().map(|page| format!("{page}\n")).collect();
        let response = self.post("/v1/pages", "application/x-ndjson", body);
        assert_eq!(response.status(), 200, "{}", response.text().unwrap());
        lines_of(&response.text().unwrap())
    }

    /// Submits pages until the server accepts all of them. Sends a page again if the answer is the error
    /// `retry`.
    pub fn push_all(&self, pages: &[Value]) {
        let mut left = pages.to_vec();
        while !left.is_empty() {
            let answers = self.push(&left);
            let refused = |answer: &Value| answer["error"]["code"] == "retry";
            left = left.into_iter().zip(answers).filter(|(_, a)| refused(a)).map(|(page, _)| page).collect();
        }
    }

    /// Like [`push_all`](Self::push_all), but also sends a batch again if the server refuses it as a whole.
    pub fn push_patiently(&self, pages: &[Value]) {
        let mut left = pages.to_vec();
        while !left.is_empty() {
            let body: String = left.iter().map(|page| format!("{page}\n")).collect();
            let response = self.post("/v1/pages", "application/x-ndjson", body);
            // 503: the range of these pages has no owner. 429: too many pages wait to be decided.
            if [503, 429].contains(&response.status().as_u16()) {
                thread::sleep(Duration::from_millis(200));
                continue;
            }
            assert_eq!(response.status(), 200, "{}", response.text().unwrap());
            let answers = lines_of(&response.text().unwrap());
            let refused = |answer: &Value| answer["error"]["code"] == "retry";
            left = left.into_iter().zip(answers).filter(|(_, a)| refused(a)).map(|(page, _)| page).collect();
        }
    }

    /// Waits until every accepted page is decided.
    pub fn flush(&self) {
        self.flush_within(PATIENCE);
    }

    /// Like [`flush`](Self::flush), but also waits while some pages have no owner.
    pub fn flush_patiently(&self) {
        wait_until("everything to be decided", PATIENCE * 2, || {
            let response = self.post("/v1/flush?wait=true", "application/json", "");
            let is_away = response.status() == 503;
            (!is_away && json_of(response)["done"] == true).then_some(())
        });
    }

    /// Like [`flush`](Self::flush), with the time limit `limit`.
    pub fn flush_within(&self, limit: Duration) {
        wait_until("everything to be decided", limit, || {
            let flushed = json_of(self.post("/v1/flush?wait=true", "application/json", ""));
            (flushed["done"] == true).then_some(())
        });
    }

    /// The status of one URL.
    pub fn status(&self, url: &str) -> Value {
        self.ask("/v1/status", &[("url", url)])
    }

    /// The complete export.
    pub fn export(&self) -> String {
        let response = self.get("/v1/export");
        assert_eq!(response.status(), 200);
        response.text().unwrap()
    }

    fn with_query(&self, path: &str, query: &[(&str, &str)]) -> reqwest::Url {
        let mut url = reqwest::Url::parse(&format!("{}{path}", self.url)).unwrap();
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let end = &lines[lines.len().saturating_sub(40)..];
            eprintln!("the server's log, kept in {}:\n{}", self.log.display(), end.join("\n"));
        } else {
            let _ = fs::remove_file(&self.log);
        }
    }
}

/// A server on its own temporary directory.
#[derive(Debug)]
pub struct OwnServer {
    server: Server,
    _data: TempDir,
}

impl OwnServer {
    /// Starts the server.
    pub fn start(options: &[&str]) -> Self {
        let data = tempfile::tempdir().unwrap();
        Self { server: Server::start(data.path(), options), _data: data }
    }
}

impl std::ops::Deref for OwnServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

/// Expects a 200 and returns its JSON.
pub fn json_of(response: Response) -> Value {
    let (status, url) = (response.status(), response.url().clone());
    let text = response.text().unwrap();
    assert_eq!(status, 200, "{url}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{url}: {e}: {text}"))
}

/// Parses NDJSON.
pub fn lines_of(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// Meaning of an export: URL, status, winner and `duplicate_of` of each page, and each group as a set of
/// URLs.
pub type Meaning = (Vec<(String, String, [Option<String>; 2])>, Vec<Vec<String>>);

/// The meaning of the export of a single process that received these rounds of pages.
pub fn of_one_process(rounds: &[Vec<Value>]) -> Meaning {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    for round in rounds {
        server.push_all(round);
    }
    server.flush();
    meaning(&server.export())
}

/// The first few pages and groups in which two exports differ.
pub fn differences(is: &Meaning, expected: &Meaning) -> Vec<String> {
    let missing = |of: &Meaning, from: &Meaning, what: &str| {
        let (pages, groups): (HashSet<_>, HashSet<_>) = (from.0.iter().collect(), from.1.iter().collect());
        let pages = of.0.iter().filter(|page| !pages.contains(page)).map(|page| format!("{what} {page:?}"));
        let groups =
            of.1.iter().filter(|group| !groups.contains(group)).map(|group| format!("{what} {group:?}"));
        pages.take(20).chain(groups.take(20)).collect::<Vec<_>>()
    };
    [missing(expected, is, "missing"), missing(is, expected, "not expected")].concat()
}

/// Waits until the status of a cluster lists no problem under `attention`.
pub fn all_is_well(front: &Server) {
    let began = Instant::now();
    loop {
        let response = front.query("/v1/cluster", &[]);
        let is_answer = response.status().is_success();
        let problems = is_answer.then(|| response.json::<Value>().unwrap()["attention"].clone());
        if problems == Some(Value::Array(Vec::new())) {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "the cluster still lists problems after {PATIENCE:?}: {problems:#?}"
        );
        thread::sleep(Duration::from_millis(200));
    }
}

/// Extracts the meaning of an export. Leaves out the ids of groups, which depend on the order of arrival.
pub fn meaning(export: &str) -> Meaning {
    let mut pages = Vec::new();
    let mut groups = std::collections::BTreeMap::<String, Vec<String>>::new();
    for line in lines_of(export) {
        let text = |field: &str| line[field].as_str().map(str::to_owned);
        let url = text("url").unwrap();
        if let Some(group) = text("group") {
            groups.entry(group).or_default().push(url.clone());
        }
        pages.push((url, text("status").unwrap(), [text("winner"), text("duplicate_of")]));
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort();
    (pages, groups)
}
