//! Commands that query a server: their output for people and for programs.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::pages::{html, ndjson, text};
use crate::harness::{OwnServer, doppel, lines_of};
use crate::{A, answer, ask, code, errors};

const B: &str = "http://b.example/copy";

/// A server with the page A, its copy B, a unique page, and a redirect that does not resolve.
fn loaded() -> OwnServer {
    let server = OwnServer::start(&[]);
    let copy = html("page", &text(1, 100));
    let crawl = ndjson(&[
        json!({"url": A, "html": copy, "fetched_at": "2024-05-01T00:00:00Z"}),
        json!({"url": B, "html": copy, "fetched_at": "2024-05-02T00:00:00Z"}),
        json!({"url": "http://c.example/", "html": html("page", &text(2, 100))}),
        json!({"url": "http://d.example/", "redirect_to": "http://nowhere.example/"}),
    ]);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("crawl.jsonl");
    fs::write(&path, crawl).unwrap();
    let summary: Value =
        serde_json::from_str(&answer(&server, &["load", "--flush", "--json", path.to_str().unwrap()]))
            .unwrap();
    assert_eq!(summary["outcomes"], json!({"pending": 4}), "{summary}");
    let again = answer(&server, &["load", path.to_str().unwrap()]);
    assert!(again.contains("unchanged"), "{again}");
    server
}

#[test]
fn queries_are_answered_for_people_and_programs() {
    let server = loaded();
    let output = ask(&server, &["status", A, B, "http://d.example/", "nonsense"]);
    assert_eq!(code(&output), 5);
    assert!(
        errors(&output).starts_with("doppel: nonsense is no page URL: not an abs"),
        "{}",
        errors(&output)
    );
    let several = errors(&ask(&server, &["status", "nonsense", A, "more"]));
    assert!(several.starts_with("doppel: 2 are no page URLs, the first of them nonsense: "), "{several}");
    let human = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = human.lines().collect();
    assert!(lines[0].starts_with("winner ") && lines[0].contains(A), "{human}");
    assert!(
        lines[1].starts_with("duplicate ")
            && lines[1].contains(&format!("of {A} (seen on an earlier day), similarity 1.000")),
        "{human}"
    );
    let leads = "redirects to http://nowhere.example/, and the redirect chain ends at an unknown page";
    assert!(lines[2].starts_with("unresolved ") && lines[2].ends_with(leads), "{human}");
    assert!(lines[3].starts_with("error ") && lines[3].contains("not an absolute URL"), "{human}");
    let json = lines_of(&answer(&server, &["status", "--json", A, B]));
    assert_eq!(json[0]["status"], json!("winner"));
    assert_eq!(json[1]["winner"], json!(A));
    assert_eq!(json[0], server.status(A), "the command must print the server's answer unchanged");

    let group = json[0]["group"].as_str().unwrap();
    let human = answer(&server, &["group", group]);
    assert!(human.starts_with(&format!("{group}: 2 pages with content, winner {A}\n")), "{human}");
    let json = lines_of(&answer(&server, &["group", "--json", group]));
    assert_eq!(json[0]["pages"].as_array().unwrap().len(), 2);

    let human = answer(&server, &["report", "savings"]);
    assert!(
        human.contains("  the same words (punctuation and case ignored)") && human.contains("b.example"),
        "{human}"
    );
    let json = lines_of(&answer(&server, &["report", "savings", "--json"]));
    assert_eq!(json[0]["copies"]["pages"], json!(1), "{}", json[0]);
    assert_eq!(json[0]["all"]["pages"], json!(1), "{}", json[0]);
    assert_eq!(json[0]["mirrors"][0]["host"], json!("b.example"));
    assert_eq!(json[0]["across_hosts"], json!(1));

    let human = answer(&server, &["repair", "--dry-run", group]);
    assert!(human.contains("2 pages in 1 component; nothing was changed"), "{human}");
    let json = lines_of(&answer(&server, &["repair", "--json", "--by", "tests", group]));
    assert_eq!(json[0]["applied"].as_bool(), Some(true));
    assert_eq!(json[0]["components"][0].as_array().unwrap().len(), 2);

    let human = answer(&server, &["explain", A, B]);
    assert!(
        human.starts_with("near-duplicates: they have the same words (punctuation and case ignored)\n"),
        "{human}"
    );
    assert_eq!(lines_of(&answer(&server, &["explain", "--json", A, B]))[0]["duplicate"], true);

    for (report, word) in [("load-balance", "imbalance"), ("quality", "live pages"), ("groups", "largest")] {
        let human = answer(&server, &["report", report]);
        assert!(human.contains(word), "{human}");
        let json = lines_of(&answer(&server, &["report", "--json", report]));
        assert!(json[0].is_object());
    }

    let output = ask(&server, &["changes"]);
    let human = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(human.lines().count(), 4, "{human}");
    assert!(human.lines().all(|line| line.contains("fetched 20")), "{human}");
    let said = errors(&output);
    let cursor = said.trim_end().strip_prefix("doppel: continue with --cursor ").unwrap();
    assert_eq!(answer(&server, &["changes", "--cursor", cursor]), "");
    let json = lines_of(&answer(&server, &["changes", "--json"]));
    let cursor = json[0]["cursor"].as_str().unwrap();
    assert_eq!(answer(&server, &["changes", "--cursor", cursor]), "");
    let export = answer(&server, &["export"]);
    assert_eq!(export, server.export());
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out.jsonl");
    answer(&server, &["export", "--out", out.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(out).unwrap(), export);
}

#[test]
fn changes_are_followed() {
    let server = loaded();
    let mut command = doppel();
    command.env("DOPPEL_SERVER", &server.url).args(["changes", "--follow"]).stdout(Stdio::piped());
    let mut follow = command.spawn().unwrap();
    let mut out = follow.stdout.take().unwrap();
    let mut seen = String::new();
    let mut read_until = |word: &str| {
        let mut buffer = [0; 4096];
        while !seen.contains(word) {
            let read = out.read(&mut buffer).unwrap();
            assert!(read > 0, "`changes --follow` ended after {seen} events");
            seen.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
    };
    read_until("http://d.example/");
    server.push(&[json!({"url": "http://new.example/", "dead": true})]);
    read_until("http://new.example/");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let server = OwnServer::start(&[]);
    let page = |n| json!({"url": format!("http://a.example/{n}/{}", "x".repeat(200)), "text": "a"});
    server.push(&(0..2_000).map(page).collect::<Vec<_>>());
    let mut command = doppel();
    command.env("DOPPEL_SERVER", &server.url).arg("export").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut export = command.spawn().unwrap();
    let mut first = [0; 100];
    export.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    assert_eq!(code(&output), 0);
    assert_eq!(errors(&output).as_str(), "");
}
