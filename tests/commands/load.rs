//! `doppel load` against servers that start late, refuse pages or do not respond.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};

use super::fake_server::{Responder, fake_server, taken};
use crate::harness::ports::free_port;
use crate::harness::{PATIENCE, Server, doppel, run, wait_until};
use crate::{code, errors, fifo, finished, numbered};

#[test]
fn a_load_reports_that_it_waits_for_the_server() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 5);
    let free = format!("127.0.0.1:{}", free_port());
    let mut command = doppel();
    command.args(["load", "--patience", "60", "--server", &format!("http://{free}")]).arg(&crawl);
    let mut load = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(load.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("no server answers at ") && line.ends_with("trying for 60 s\n"), "{line}");
    let server = Server::start_on(&free, &home.path().join("data"), &[]);
    assert!(wait_until("the load to end", PATIENCE, || load.try_wait().unwrap()).success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "doppel: the server answers\n");
    assert_eq!(server.status("http://a.example/4")["url"], "http://a.example/4");
}

#[test]
fn a_page_too_large_for_the_server_is_named_and_the_others_are_accepted() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 20);
    let url = fake_server(|_, body| {
        let large = body.lines().any(|line| line.contains("/13\""));
        let problem =
            json!({"type": "urn:doppel:problem:too-large", "title": "", "status": 413, "detail": "too long"});
        Some(if large { (413, problem.to_string()) } else { taken(body) })
    });
    let load = |options: &[&str]| {
        let mut command = doppel();
        command.args(["load", "--json", "--lanes", "1", "--server", &url]).args(options).arg(&crawl);
        command.output().unwrap()
    };
    let output = load(&[]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    assert!(errors(&output).contains("http://a.example/13: "), "{}", errors(&output));
    assert!(errors(&output).contains("too long"), "{}", errors(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"pending": 19, "refused": 1}));
    let strict = load(&["--strict"]);
    assert_eq!(code(&strict), 5, "{}", errors(&strict));
    assert!(errors(&strict).contains("1 page was refused"), "{}", errors(&strict));
}

#[test]
fn a_refusal_names_the_first_page_that_was_not_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 500);
    // The lane of page 77 stops at its batch. The other lanes go on until the reader notices.
    let full = |_: &str, body: &str| {
        let stops = body.lines().any(|line| line.contains("/77\""));
        Some(if stops { (507, "{\"detail\":\"the disk is full\"}".to_owned()) } else { taken(body) })
    };
    let url = fake_server(full);
    for (lanes, batch) in [("1", "1000"), ("1", "10"), ("4", "10"), ("4", "300"), ("16", "3")] {
        let noted = home.path().join(format!("noted-{lanes}-{batch}"));
        let options = ["load", "--lanes", lanes, "--batch", batch, "--server", &url, "--acknowledged"];
        let mut command = doppel();
        let output = command.args(options).arg(&noted).arg(&crawl).output().unwrap();
        assert_eq!(code(&output), 4, "{}", errors(&output));
        let acknowledged: HashSet<String> = fs::read_to_string(&noted).unwrap().lines().map(url_of).collect();
        let url = |number: &usize| format!("http://a.example/{number}");
        let first = (0..500).find(|number| !acknowledged.contains(&url(number))).unwrap();
        let named = format!(
            "doppel: the first page that was not acknowledged is {} ({}, line {}); the same command sends all of it \
             again, of which the server takes only what it does not have: the server refused it (507 Insufficient Storage): the disk is full\n",
            url(&first),
            crawl.display(),
            first + 1
        );
        assert_eq!(errors(&output), named, "{lanes} {batch}");
    }
}

fn url_of(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap();
    line["url"].as_str().unwrap().to_owned()
}

#[test]
fn a_load_gives_up_on_a_server_that_does_not_respond() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 1);
    let silent: [Responder; 2] = [|_, _| None, |line, body| line.contains("/v1/pages").then(|| taken(body))];
    for silent in silent {
        let url = fake_server(silent);
        let mut command = doppel();
        command.args(["load", "--flush", "--patience", "1", "--server", &url]).arg(&crawl);
        let load = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = finished(load);
        assert_eq!(code(&output), 3, "{}", errors(&output));
        assert!(errors(&output).contains("no answer came from http://"), "{}", errors(&output));
    }
}

#[test]
fn a_server_whose_writes_wait_is_not_reported_as_unreachable() {
    let home = tempfile::tempdir().unwrap();
    let crawl = numbered(home.path(), 1);
    let url = fake_server(|line, _| {
        let problem = r#"{"detail":"range 1 takes no writes"}"#;
        line.contains("/readyz?ranges=served").then(|| (503, problem.to_owned()))
    });
    let output = run(["load", "--patience", "1", "--server", &url, crawl.to_str().unwrap()]);
    assert_eq!(code(&output), 4, "{}", errors(&output));
    let says =
        "the server has not answered in 1 s; asked whether it takes writes it says: range 1 takes no writes";
    assert!(
        errors(&output).contains(says) && errors(&output).contains("a.example/0 ("),
        "{}",
        errors(&output)
    );
    assert!(!errors(&output).contains("no server answers"), "{}", errors(&output));
}

#[test]
fn acknowledgements_that_cannot_be_written_are_an_error() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, fifo) = (numbered(home.path(), 2_000), fifo(home.path()));
    let url = fake_server(|_, body| Some(taken(body)));
    let mut command = doppel();
    command.args(["load", "--lanes", "1", "--batch", "10", "--server", &url, "--acknowledged"]).arg(&fifo);
    let load = command.arg(&crawl).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    fs::File::open(&fifo).unwrap().read_exact(&mut [0]).unwrap();
    let output = finished(load);
    assert_eq!(code(&output), 1, "{}", errors(&output));
    assert!(errors(&output).contains("cannot write the acknowledged pages"), "{}", errors(&output));
}
