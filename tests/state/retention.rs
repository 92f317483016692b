//! The operator chooses how long obsolete data are kept.

use std::process::Output;

use serde_json::json;

use crate::harness::{OwnServer, PATIENCE, run, wait_until};

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
    // The other server has swept just as often in the meantime.
    assert_eq!(keeping.status("http://gone.example/")["status"], "dead");
}

#[test]
fn a_time_has_a_number_and_a_unit() {
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
