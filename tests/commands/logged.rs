//! The log of a server: what was started, and that it ended, as text or as JSON.

use serde_json::{Value, json};

use crate::harness::{Server, run};

#[test]
fn the_log_says_what_was_started_and_that_it_ended() {
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
        assert_eq!((&start["message"], &start["role"]), (&"doppel is starting".into(), &"serve".into()));
        assert_eq!((&start["version"], &start["level"]), (&env!("CARGO_PKG_VERSION").into(), &"INFO".into()));
        assert_eq!(start["directory"], data.to_str().unwrap());
        let open = lines.iter().find(|line| line["message"] == "the collection is open").unwrap();
        assert_eq!(open["pages"], pages);
        assert_eq!(lines.last().unwrap()["message"], "doppel has ended");
    }
    let wrong = run(["serve", "--data", "none", "--log-format", "xml"]);
    assert_eq!(wrong.status.code(), Some(2));
}
