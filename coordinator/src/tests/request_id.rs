//! Tests of the request id in every answer, in every problem, and in the log.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock};

use tracing_subscriber::fmt::MakeWriter;

use super::*;
use crate::limits::REQUEST_ID_BYTES;

/// Log lines of all tests of this process.
#[derive(Clone, Default)]
struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl Write for CapturedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for CapturedLog {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Captures the log of all threads from the first call on, at the default level of a server.
fn log() -> &'static CapturedLog {
    static LOG: OnceLock<CapturedLog> = OnceLock::new();
    LOG.get_or_init(|| {
        let log = CapturedLog::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer);
        subscriber.with_max_level(tracing::Level::INFO).init();
        log
    })
}

/// Returns the log line about the request with this id that contains this text.
#[track_caller]
fn logged(id: &str, text: &str) -> String {
    let log = log().0.lock().unwrap().clone();
    let log = String::from_utf8(log).unwrap();
    let line = log.lines().find(|line| line.contains(&format!("id=\"{id}\"")) && line.contains(text));
    line.unwrap_or_else(|| panic!("no line has {id} and {text}:\n{log}")).to_owned()
}

/// Sends a request with this id, and returns the answer and the id of the answer.
async fn send(service: &TestService, method: &str, path: &str, id: &[u8]) -> (Reply, String) {
    let request = Request::builder().method(method).uri(path).header("x-request-id", id);
    let reply = service.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.headers.get_all("x-request-id").iter().count(), 1);
    let answered = reply.headers["x-request-id"].to_str().unwrap().to_owned();
    (reply, answered)
}

#[tokio::test]
async fn a_valid_request_id_comes_back() {
    let service = TestService::new();
    let longest = "x".repeat(REQUEST_ID_BYTES);
    for id in ["7", "4bf92f3577b34da6a3ce929d0e0e4736", "a-1_b.2:c/~!\"", &longest] {
        let (reply, answered) = send(&service, "GET", "/v1/groups", id.as_bytes()).await;
        assert_eq!((reply.status.as_u16(), answered.as_str()), (200, id));
        for (method, path, status) in [
            ("GET", "/v1/groups?limit=0", 400),
            ("GET", "/v1/groups/g9-0", 404),
            ("GET", "/nowhere", 404),
            ("PUT", "/v1/groups", 405),
            ("POST", "/v1/pages", 415),
        ] {
            let (reply, answered) = send(&service, method, path, id.as_bytes()).await;
            assert_eq!((&reply.problem(status)["request_id"], answered.as_str()), (&json!(id), id), "{path}");
        }
    }
}

#[tokio::test]
async fn an_invalid_request_id_is_replaced() {
    let service = TestService::new();
    let too_long = "x".repeat(REQUEST_ID_BYTES + 1);
    let mut made = Vec::new();
    for id in [b"".as_slice(), b" ", b"a b", b"a\tb", "\u{e9}".as_bytes(), b"\xff", too_long.as_bytes()] {
        for path in ["/healthz", "/v1/groups?limit=0"] {
            let (_, answered) = send(&service, "GET", path, id).await;
            assert!(answered.as_bytes() != id && !answered.is_empty() && answered.len() <= REQUEST_ID_BYTES);
            made.push(answered);
        }
    }
    made.push(service.get("/metrics").await.headers["x-request-id"].to_str().unwrap().to_owned());
    let all = made.len();
    made.sort();
    made.dedup();
    assert_eq!(made.len(), all, "every id is unique");
}

#[tokio::test]
async fn a_problem_with_a_request_id_has_the_right_length() {
    let service = TestService::new();
    let get = service.get("/v1/groups?limit=0").await;
    get.problem(400);
    if let Some(length) = get.headers.get("content-length") {
        assert_eq!(length.to_str().unwrap(), get.body.len().to_string());
    }
    let (head, _) = send(&service, "HEAD", "/v1/groups?limit=0", b"h").await;
    assert_eq!(head.status, 400);
}

#[tokio::test]
async fn a_panic_and_a_busy_service_name_the_request() {
    let service = TestService::with(Limits { requests: 0, ..Limits::default() });
    let (reply, _) = send(&service, "GET", "/v1/groups", b"busy-1").await;
    assert_eq!(reply.problem(503)["request_id"], "busy-1");
    let service = TestService::new();
    service.tiers.state().panic = true;
    let (reply, _) = send(&service, "GET", "/v1/reports/quality", b"panic-1").await;
    assert_eq!(reply.problem(500)["request_id"], "panic-1");
}

#[tokio::test]
async fn log_lines_of_a_request_have_its_id_on_every_thread() {
    log();
    let service = TestService::new();
    service.store(&[page("http://a/1", "t", 0), page("http://a/2", "t", 2)]).await;
    let group = service.status("http://a/1").await["group"].as_str().unwrap().to_owned();
    // A blocking thread logs repairs.
    let path = format!("/v1/groups/{group}/repair?dry_run=true&by=alice");
    let (reply, _) = send(&service, "POST", &path, b"log-repair").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let line = logged("log-repair", "by=\"alice\"");
    assert!(line.contains("request{"), "{line}");
    // An export breaks off on a thread of its own, after the head of the answer.
    service.tiers.state().damaged = true;
    let (reply, _) = send(&service, "GET", "/v1/export", b"log-export").await;
    reply.problem(500);
    logged("log-export", "damaged");
    let line = logged("log-export", "status=500");
    assert!(line.contains("method=\"GET\"") && line.contains("route=\"/v1/export\""), "{line}");
}
