//! Attacks on the HTTP interface of `doppel serve`. An attacker sends requests without a token, with a token
//! of a lesser role, from a web page on another host name, with bodies that never end, and with more load
//! than one client may cause. The server must refuse or bound each of them, and must answer other clients
//! meanwhile.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "attacks/flood.rs"]
mod flood;
mod harness;
#[path = "attacks/shares.rs"]
mod shares;
#[path = "attacks/templates.rs"]
mod templates;
#[path = "attacks/tls.rs"]
mod tls;
#[path = "attacks/tokens.rs"]
mod tokens;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doppel_contract::client::builder_without_tls;
use harness::{Server, doppel};
use reqwest::Method;
use reqwest::blocking::{Client, Response};

/// Time limit within which the server must answer every client, whatever others do.
const PATIENCE: Duration = Duration::from_secs(5);

/// A token file, and the tokens in it, one for each role.
struct Tokens {
    file: PathBuf,
    read: String,
    write: String,
    operate: String,
    /// Token of an operator that has expired.
    expired: String,
}

impl Tokens {
    fn new(dir: &Path) -> Self {
        let file = dir.join("tokens");
        let new = |name: &str, role: &str| new_token(&file, name, role);
        let (read, write, operate) = (new("reader", "read"), new("crawler", "write"), new("ann", "operate"));
        let expired = new("old", "operate");
        let text = fs::read_to_string(&file).unwrap();
        let (others, entry) = text.rsplit_once("expires = \"").unwrap();
        let entry = entry.split_once('"').unwrap().1;
        fs::write(&file, format!("{others}expires = \"2020-01-01T00:00:00Z\"{entry}")).unwrap();
        Self { file, read, write, operate, expired }
    }
}

/// Adds a new token to a file, and returns it.
fn new_token(file: &Path, name: &str, role: &str) -> String {
    let mut command = doppel();
    command.args(["token", "new", name, "--role", role, "--tokens"]).arg(file);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A server that demands tokens, and clients that send them.
struct Door {
    _home: tempfile::TempDir,
    tokens: Tokens,
    server: Server,
    http: Client,
}

impl Door {
    fn open(options: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(home.path());
        let server = Self::serve(&home, &tokens, &tokens.read, options);
        let http = builder_without_tls().timeout(PATIENCE).build().unwrap();
        Self { _home: home, tokens, server, http }
    }

    /// Ends the server with `end`, and starts another one on the same directory. Its default token is that of
    /// the operator.
    fn restarted(self, end: impl FnOnce(Server)) -> Self {
        let Self { _home: home, tokens, server, http } = self;
        end(server);
        let server = Self::serve(&home, &tokens, &tokens.operate, &[]);
        Self { _home: home, tokens, server, http }
    }

    /// Starts a server. Requests carry `token` unless a test names another one.
    fn serve(home: &tempfile::TempDir, tokens: &Tokens, token: &str, options: &[&str]) -> Server {
        let mut command = doppel();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(home.path().join("data"));
        command.arg("--tokens").arg(&tokens.file).args(options);
        Server::start_locked(command, token)
    }

    fn send(&self, method: Method, path: &str, token: Option<&str>) -> Response {
        let request = self.http.request(method, format!("{}{path}", self.server.url));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
        .send()
        .unwrap()
    }

    fn post(
        &self,
        path: &str,
        kind: &str,
        body: impl Into<reqwest::blocking::Body>,
        token: &str,
    ) -> Response {
        let request = self.http.post(format!("{}{path}", self.server.url)).header("content-type", kind);
        request.bearer_auth(token).body(body).send().unwrap()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.url.strip_prefix("http://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends bytes unchanged, and returns the status of the answer. `None` if the server closes the
    /// connection without an answer.
    fn raw(&self, request: &str) -> Option<u16> {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        status(&mut stream)
    }
}

/// Status of the next answer. `None` if the server closes the connection without an answer.
fn status(stream: &mut TcpStream) -> Option<u16> {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let line = String::from_utf8(line).unwrap();
    line.split(' ').nth(1).map(|status| status.parse().unwrap())
}

#[test]
fn a_web_page_on_another_host_name_can_neither_read_nor_change_anything() {
    let door = Door::open(&["--allow-host", "doppel.example"]);
    let address = door.server.url.strip_prefix("http://").unwrap().to_owned();
    let token = &door.tokens.operate;
    let ask = |method: &str, host: &str, more: &str| {
        door.raw(&format!(
            "{method} /v1/status?url=http://a.example/ HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{more}\r\n"
        ))
    };
    assert_eq!(ask("GET", &address, ""), Some(200));
    assert_eq!(ask("GET", "doppel.example", ""), Some(200));
    for name in ["evil.example", "evil.example:80", "doppel.example.evil.example", "127.0.0.1.evil.example"] {
        assert_eq!(ask("GET", name, ""), Some(421), "{name}");
    }
    for more in
        [&format!("host: {address}\r\n"), "x: y\r\nhost: evil.example\r\n", "host : doppel.example\r\n"]
    {
        let status = ask("GET", "doppel.example", more);
        assert!(
            [Some(400), Some(421)].contains(&status),
            "the server answered {status:?} to a request with two host names: {more}"
        );
    }
    let post = |more: &str| {
        door.raw(&format!(
            "POST /v1/flush HTTP/1.1\r\nhost: doppel.example\r\nauthorization: Bearer {token}\r\ncontent-length: 0\r\n{more}\r\n"
        ))
    };
    assert_eq!(post(""), Some(200));
    assert_eq!(post("origin: http://doppel.example\r\n"), Some(200));
    for origin in ["http://evil.example", "http://doppel.example:81", "null", "http://a.doppel.example"] {
        assert_eq!(post(&format!("origin: {origin}\r\n")), Some(403), "{origin}");
    }
    assert_eq!(post("sec-fetch-site: same-site\r\n"), Some(403));
}

#[test]
fn split_smuggled_and_malformed_requests_get_one_answer_or_none() {
    let door = Door::open(&[]);
    let token = door.tokens.write.clone();
    // The server receives the request byte by byte.
    let mut stream = door.connect();
    stream.set_nodelay(true).unwrap();
    let body = "{\"url\":\"http://split.example/\",\"text\":\"a b c\"}";
    let head = format!(
        "POST /v1/pages HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    for byte in (head + body).bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(status(&mut stream), Some(200));
    let auth = format!("authorization: Bearer {token}\r\n");
    for (what, request) in [
        (
            "two lengths",
            format!(
                "POST /v1/flush HTTP/1.1\r\nhost: localhost\r\n{auth}content-length: 0\r\ncontent-length: 5\r\n\r\n"
            ),
        ),
        (
            "an unknown coding",
            format!(
                "POST /v1/flush HTTP/1.1\r\nhost: localhost\r\n{auth}transfer-encoding: chunked, identity\r\n\r\n"
            ),
        ),
        (
            "a bad chunk",
            format!(
                "POST /v1/pages HTTP/1.1\r\nhost: localhost\r\n{auth}content-type: application/json\r\n\
                 transfer-encoding: chunked\r\n\r\nzz\r\n"
            ),
        ),
        ("another protocol", "\x16\x03\x01\x02\x00\x01\x00\x01".to_owned()),
        ("no version", "GET /healthz\r\n\r\n".to_owned()),
        (
            "a line break in a header",
            format!("GET /v1/groups HTTP/1.1\r\nhost: localhost\r\nx: a\rb\r\n{auth}\r\n"),
        ),
        (
            "a head that is too long",
            format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)),
        ),
    ] {
        let mut stream = door.connect();
        // The server may close the connection before it has read the whole request.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{what}: {answer}");
    }
    // With both a length and chunks, the body is read as chunks (RFC 9112, section 6.3), and bytes after it
    // are no request.
    let request = format!(
        "POST /v1/flush HTTP/1.1\r\nhost: localhost\r\n{auth}content-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nX"
    );
    let request = format!("{request}GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut stream = door.connect();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("ok\n"), "the server took bytes behind the body for a request: {answer}");
    assert_eq!(door.send(Method::GET, "/healthz", None).status(), 200);
}
