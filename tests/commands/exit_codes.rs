//! Exit codes and error messages of failing commands.

use std::fs;

use serde_json::Value;

use crate::harness::ports::free_port;
use crate::harness::{OwnServer, doppel, run, run_ok};
use crate::{A, ask, code, errors};

#[test]
fn exit_codes_and_messages_tell_the_kinds_of_failure_apart() {
    let wrong = run(["dedup"]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    for (command, takes) in
        [("purge", "<URL|--file <FILE>|--host <HOST>>"), ("delete", "<URL|--file <FILE>>")]
    {
        let wrong = run([command]);
        assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
        assert!(errors(&wrong).contains(takes), "{}", errors(&wrong));
        let wrong = run([command, A, "--file", "none"]);
        assert!(errors(&wrong).contains("cannot be used with"), "{}", errors(&wrong));
    }
    let wrong = run(["token", "new", "ann", "--role", "read", "--expires", "0s", "--tokens", "none/none"]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    assert!(errors(&wrong).contains("must be valid for longer than 0 s"), "{}", errors(&wrong));
    let wrong = run(["status", "--server", "ftp://a.example/", A]);
    assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
    for wrong in
        ["127.0.0.1:7700", "localhost:7700", "http://127.0.0.1:7700/doppel?a=b", "http://a@b/", "https://a#b"]
    {
        let wrong = run(["status", "--server", wrong, A]);
        assert_eq!(code(&wrong), 2, "{}", errors(&wrong));
        assert!(errors(&wrong).contains("a URL such as http://127.0.0.1:7700 "), "{}", errors(&wrong));
    }
    for (option, value, says) in [
        ("--listen", "localhost:80", "an IP address and a port are expected, such as 127.0.0.1:7700"),
        ("--listen", "203.0.113.7:7702", "is reached by other machines"),
        ("--pending-max", "0", "a number of at least 1000 is expected"),
        ("--snapshot-every", "-1s", "a number and a unit are expected, as in 30d, 12h, 5m or 45s"),
        ("--keep-dead", "-1d", "a number and a unit are expected"),
    ] {
        let wrong = run(["serve", "--data", "none", option, value]);
        assert!(errors(&wrong).contains(says), "{}", errors(&wrong));
    }
    let elsewhere = ["serve", "--data", "none", "--no-tokens-on-any-address", "--listen", "203.0.113.7:7702"];
    assert!(errors(&run(elsewhere)).contains("--listen takes an address of this machine"));
    let free = format!("127.0.0.1:{}", free_port());
    let unset = doppel().env("DOPPEL_SERVER", "").args(["group", "nonsense"]).output().unwrap();
    assert!(!errors(&unset).contains("--server"), "{}", errors(&unset));
    let nobody = run(["status", "--server", &format!("http://{free}"), A]);
    assert_eq!(code(&nobody), 3, "{}", errors(&nobody));
    assert!(errors(&nobody).contains("doppel serve --data DIR"), "{}", errors(&nobody));
    let server = OwnServer::start(&[]);
    let refused = ask(&server, &["group", "g999999-0"]);
    assert_eq!(code(&refused), 4);
    assert!(errors(&refused).contains("there is no group g999999-0"), "{}", errors(&refused));
    let refused = ask(&server, &["explain", "nonsense", A]);
    assert!(errors(&refused).contains("nonsense does not exist, and is no URL"), "{}", errors(&refused));
    for (cursor, says) in [("foo", "400"), ("1.2", "410")] {
        let refused = ask(&server, &["changes", "--cursor", cursor]);
        assert!(errors(&refused).contains(says), "{}", errors(&refused));
    }
    let help = run_ok(["--help"]);
    for line in ["Exit codes:", "3  the server cannot be reached", "5  the inputs are at fault"] {
        assert!(help.contains(line), "{help}");
    }
}

#[test]
fn a_failure_is_reported_as_json_with_the_option_json() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("a.jsonl");
    let file = file.to_str().unwrap();
    let failure = |arguments: &[&str], expected: i32, says: &str| {
        let output = run(arguments);
        assert_eq!(code(&output), expected, "{}", errors(&output));
        let last = String::from_utf8(output.stdout.clone()).unwrap();
        let last: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        assert_eq!(last["error"]["code"], expected);
        let message = last["error"]["message"].as_str().unwrap();
        assert!(message.contains(says) && !message.starts_with("error"), "{message}");
        assert!(errors(&output).contains(says), "the message for people must be printed, too");
    };
    let free = format!("http://127.0.0.1:{}", free_port());
    failure(&["status", "--json", "--server", &free, A], 3, "doppel serve --data DIR");
    failure(&["dedup", "--json", file], 1, "cannot read");
    failure(&["dedup", "--json", "--no-such-option"], 2, "unexpected argument");
    fs::write(file, "{}\n").unwrap();
    failure(&["explain", "--json", file, file], 5, "missing");
    // If the command did its work incompletely, its result is the only output.
    let output = run(["dedup", "--json", file]);
    assert_eq!(code(&output), 5, "{}", errors(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["input"]["records"], 0);
    // The error object is not printed behind data, nor where text is asked for.
    for arguments in [
        &["dedup", "--json", "--out", "-", "none"][..],
        &["dedup", "--json", "--report", "-", "none"],
        &["dedup", "--json", "--out", "/dev/stdout", "none"],
        &["dedup", "none"],
        &["dedup", "--", "--json"],
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 1, "{}", errors(&output));
        assert_eq!(output.stdout.len(), 0, "{}", errors(&output));
    }
    assert_eq!(run(["dedup", "--json", "--help"]).status.code(), Some(0));
}

#[test]
fn a_list_that_cannot_be_read_to_its_end_fails_after_its_results() {
    let home = tempfile::tempdir().unwrap();
    let list = home.path().join("list");
    fs::write(&list, b"http://a.example/\n\xff\nhttp://b.example/\n").unwrap();
    let server = OwnServer::start(&[]);
    let output = ask(&server, &["delete", "--json", "--file", list.to_str().unwrap()]);
    assert_eq!(code(&output), 5, "{}", errors(&output));
    let last: Value =
        serde_json::from_slice(output.stdout.trim_ascii().rsplit(|b| *b == b'\n').next().unwrap()).unwrap();
    let message = last["error"]["message"].as_str().unwrap();
    assert!(message.contains("line 2") && message.contains("UTF-8"), "{message}");
}

#[test]
fn a_list_without_any_url_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let list = home.path().join("list");
    fs::write(&list, "\n \n").unwrap();
    let server = OwnServer::start(&[]);
    for command in ["purge", "delete"] {
        let output = ask(&server, &[command, "--file", list.to_str().unwrap()]);
        assert_eq!(code(&output), 0, "{}", errors(&output));
        let says = format!("doppel: there is no URL in {}, so nothing was done\n", list.display());
        assert_eq!(errors(&output), says);
    }
}
