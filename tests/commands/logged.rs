//! The log of a server records its start and its end, as text or as JSON.

use doppel_contract::client::builder_without_tls;
use serde_json::{Value, json};

use crate::harness::{Server, doppel, run};

#[test]
fn the_log_records_the_start_and_the_end_of_a_server() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    for (format, pages) in [("text", 0), ("json", 1)] {
        let mut server = Server::start(&data, &["--log-format", format]);
        server.post_json("/v1/pages", &json!({"url": "http://a.example/", "text": "a b c"}));
        server.signal("TERM");
        assert!(server.wait());
        let log = server.log();
        let of = |what: &str| log.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{log}"));
        let (start, open, end) =
            (of("doppel is starting"), of("the collection is open"), of("doppel has ended"));
        if format == "text" {
            assert!(start.contains("role=\"serve\"") && start.contains(env!("CARGO_PKG_VERSION")), "{start}");
            assert!(start.contains(data.to_str().unwrap()) && start.contains("--log-format"), "{start}");
            assert!(open.contains("pages=0") && end.contains("seconds="), "{open}\n{end}");
            continue;
        }
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let start = &lines[0];
        assert_eq!(start["message"], "doppel is starting");
        assert_eq!(start["role"], "serve");
        assert_eq!(start["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(start["level"], "INFO");
        assert_eq!(start["directory"], data.to_str().unwrap());
        let open = lines.iter().find(|line| line["message"] == "the collection is open").unwrap();
        assert_eq!(open["pages"], pages);
        assert_eq!(lines.last().unwrap()["message"], "doppel has ended");
    }
    let wrong = run(["serve", "--data", "none", "--log-format", "xml"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn the_log_records_why_a_process_ends() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let failed = |format: &str| {
        let options =
            ["serve", "--log-format", format, "--listen", "127.0.0.1:0", "--operate-listen", &taken];
        let output = doppel().args(options).arg("--data").arg(&data).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let reason = format!(
        "cannot listen on {taken}; is another server running? --operate-listen chooses another address: Address already in use (os error 98)"
    );
    let said = failed("json");
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., error, end] = &lines[..] else { panic!("{said}") };
    assert_eq!(end["message"], "doppel has ended");
    assert_eq!(error["level"], json!("ERROR"));
    assert_eq!(error["error"], json!(reason));
    assert_eq!(error["role"], json!("serve"));
    let said = failed("text");
    let lines: Vec<&str> = said.lines().collect();
    let [.., error, end, last] = &lines[..] else { panic!("{said}") };
    assert!(error.contains("ERROR") && error.contains(&reason) && end.contains("doppel has ended"), "{said}");
    assert_eq!(*last, format!("doppel: {reason}"));
}

#[test]
fn a_logged_event_contains_the_id_of_its_request_once() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &["--log-format", "json"]);
    let purge = builder_without_tls().build().unwrap().post(format!("{}/v1/purge", server.url));
    let purge = purge.header("x-request-id", "nightly-17").json(&json!({"url": "http://a.example/"}));
    assert_eq!(purge.send().unwrap().status(), 200);
    let log = server.log();
    let event = log.lines().find(|line| line.contains("\"purge\"")).unwrap_or_else(|| panic!("{log}"));
    assert_eq!(event.matches("nightly-17").count(), 1, "{event}");
    assert_eq!(serde_json::from_str::<Value>(event).unwrap()["spans"][0]["id"], "nightly-17");
}
