//! The server's log contains no URL of a purged page.

use serde_json::json;

use crate::harness::pages::{html, text};
use crate::harness::{PATIENCE, Server, doppel, wait_until};
use crate::{answer, ask};

#[test]
fn a_purge_leaves_no_url_in_the_log() {
    let data = tempfile::tempdir().unwrap();
    let mut command = doppel();
    command.env("RUST_LOG", "debug").args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--keep-purged",
        "0s",
        "--data",
    ]);
    command.arg(data.path());
    let server = Server::start_command(command);
    let page = |url: &str, seed| json!({"url": url, "html": html("page", &text(seed, 100))});
    let (secret, copy) = ("http://private.example/secret-name", "http://private.example/secret-copy");
    let by_host = "http://hidden.example/secret-too";
    server.push(&[page(secret, 1), page(copy, 1), page(by_host, 2), page("http://stays.example/", 1)]);
    server.flush();
    // Run every command that names the page, before and after the purge.
    for arguments in
        [&["status", secret][..], &["explain", secret, copy], &["delete", copy], &["purge", secret, copy]]
    {
        answer(&server, arguments);
    }
    answer(&server, &["purge", "--host", "hidden.example"]);
    ask(&server, &["purge", "--host", "Hidden.example"]);
    ask(&server, &["explain", secret, by_host]);
    server.flush();
    let is_logged = |word: &str| server.log().contains(word);
    wait_until("the purges to be in the log", PATIENCE, || {
        (server.log().matches("purge of=\"page\" purged=1").count() == 2).then_some(())
    });
    assert!(is_logged("purge of=\"host\" purged=1"), "{}", server.log());
    assert!(is_logged("request{id="), "a request is found by its id: {}", server.log());
    for word in ["secret", "private.example", "hidden.example", "Hidden.example"] {
        assert!(!is_logged(word), "{word} is in the log");
    }
}
