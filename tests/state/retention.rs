//! The operator chooses how long obsolete data is kept.

use std::ops::Range;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::place::signature_bytes;
use crate::harness::pages::{html, text};
use crate::harness::{OwnServer, PATIENCE, Server, run, wait_until};

#[test]
fn dead_pages_are_kept_as_long_as_configured() {
    let page = |server: &OwnServer| {
        server.push(&[json!({ "url": "http://gone.example/", "dead": true })]);
        server.status("http://gone.example/")["status"].as_str().unwrap().to_owned()
    };
    let forgetful = OwnServer::start(&["--keep-dead", "0s", "--keep-purged", "0s", "--keep-merged", "2h"]);
    let keeping = OwnServer::start(&["--keep-dead", "1d"]);
    assert_eq!(page(&keeping), "dead");
    page(&forgetful);
    wait_until("the dead page to be forgotten", PATIENCE, || {
        (forgetful.status("http://gone.example/")["status"] == "unknown").then_some(())
    });
    // The other server has swept just as often, and must still have the page.
    assert_eq!(keeping.status("http://gone.example/")["status"], "dead");
}

#[test]
fn a_duration_needs_a_number_and_a_unit() {
    let serve = |time: &str| -> Output { run(["serve", "--data", "/nowhere/at/all", "--keep-dead", time]) };
    for bad in ["30", "d", "-1d", "1 week", "99999999d"] {
        let output = serve(bad);
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
    let help = String::from_utf8(run(["serve", "--help"]).stdout).unwrap();
    for default in ["[default: 30d]", "[default: 1d]"] {
        assert!(help.contains(default), "{default} is not in {help}");
    }
}

#[test]
fn a_purge_leaves_no_signature_on_disk() {
    let home = tempfile::tempdir().unwrap();
    let bytes = || signature_bytes(home.path());
    let pages = |host: &str, seeds: Range<u64>| -> Vec<Value> {
        let page =
            |seed| json!({ "url": format!("http://{host}/{seed}"), "html": html("Title", &text(seed, 300)) });
        seeds.map(page).collect()
    };
    let server = Server::start(home.path(), &[]);
    server.push_all(&pages("kept.example", 0..10));
    // Each page has had another content before.
    server.push_all(&pages("gone.example", 100..150));
    server.push_all(&pages("gone.example", 100..150).iter().zip(200..).map(replaced).collect::<Vec<_>>());
    server.flush();
    let before = bytes();
    assert_eq!(server.post_json("/v1/purge", &json!({ "host": "gone.example" })), json!({ "purged": 50 }));
    // A kill right after the purge loses nothing.
    server.kill();
    let server = Server::start(home.path(), &[]);
    wait_until("the signatures to leave the files", PATIENCE, || (bytes() < before / 8).then_some(()));
    assert_eq!(server.status("http://kept.example/3")["status"], "unique");
    assert_eq!(server.status("http://gone.example/103")["status"], "unknown");
    assert!(server.terminate());
    assert!(run([Path::new("check"), home.path()]).status.success());
}

/// A page with the URL of another page and a new content.
fn replaced((page, seed): (&Value, u64)) -> Value {
    json!({ "url": page["url"], "html": html("Title", &text(seed, 300)) })
}
