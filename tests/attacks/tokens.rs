//! Tokens: which role each route of the contract demands, and how tokens are revoked.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::flood::bomb;
use super::{Door, new_token};
use crate::harness::{Server, doppel, wait_until};

const ROLES: [&str; 3] = ["read", "write", "operate"];

/// Every operation of the contract: its method, an example path, and the role that the contract states.
fn operations(door: &Door) -> Vec<(Method, String, Option<String>)> {
    let document: Value = door.send(Method::GET, "/openapi.json", None).json().unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "g1-0").replace("{file}", "main.js");
        for (method, operation) in item.as_object().unwrap() {
            let Ok(method) = Method::from_bytes(method.to_uppercase().as_bytes()) else { continue };
            let role = operation["security"][0]["token"][0].as_str().map(str::to_owned);
            operations.push((method, path.clone(), role));
        }
    }
    operations
}

#[test]
fn every_operation_demands_its_role() {
    let door = Door::open(&[]);
    let tokens = &door.tokens;
    let operations = operations(&door);
    assert!(operations.len() > 30, "{operations:?}");
    for role in ROLES {
        assert!(operations.iter().any(|(_, _, of)| of.as_deref() == Some(role)), "none asks for {role}");
    }
    let unknown = format!("doppel_{}", "0".repeat(64));
    let useless = [None, Some(""), Some(&*unknown), Some(&tokens.expired), Some("Bearer"), Some("doppel_")];
    for (method, path, role) in &operations {
        let of = |token: Option<&str>| {
            let response = door.send(method.clone(), path, token);
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            if status == 401 {
                assert_eq!(headers["www-authenticate"], "Bearer");
                let problem: Value = response.json().unwrap();
                assert_eq!(problem["type"], "urn:doppel:problem:unauthorized", "{problem}");
            }
            status
        };
        let Some(role) = role else {
            for token in useless {
                assert!(![401, 403].contains(&of(token)), "{method} {path} is open");
            }
            continue;
        };
        for token in useless {
            assert_eq!(of(token), 401, "{method} {path} with {token:?}");
        }
        let needed = ROLES.iter().position(|name| name == role).unwrap();
        for (at, token) in [&tokens.read, &tokens.write, &tokens.operate].into_iter().enumerate() {
            let status = of(Some(token));
            if at < needed {
                assert_eq!(status, 403, "{method} {path} as {}", ROLES[at]);
            } else {
                assert!(![401, 403].contains(&status), "{method} {path} as {}: {status}", ROLES[at]);
            }
        }
        if method == Method::GET {
            assert_eq!(door.send(Method::HEAD, path, None).status(), 401, "HEAD {path}");
        }
    }
    // The server accepts a token neither in the URL nor in a cookie.
    let path = format!("/v1/groups?token={0}&access_token={0}", tokens.operate);
    assert_eq!(door.send(Method::GET, &path, None).status(), 401);
    let asked = door.http.get(format!("{}/v1/groups", door.server.url)).header("cookie", &tokens.operate);
    assert_eq!(asked.send().unwrap().status(), 401);
    assert_eq!(door.send(Method::GET, "/v1/there/is/none", None).status(), 404);
    assert_eq!(door.send(Method::PUT, "/v1/pages", None).status(), 401);
    assert_eq!(door.send(Method::PUT, "/v1/pages", Some(&tokens.operate)).status(), 405);
    let log = door.server.log();
    for secret in [&tokens.read, &tokens.write, &tokens.operate, &tokens.expired] {
        assert!(!log.contains(&**secret), "the log must not contain a token");
    }
}

#[test]
fn a_repair_is_recorded_under_the_name_of_its_token() {
    let door = Door::open(&[]);
    let text = "one two three four five six seven eight nine ten ".repeat(5);
    for page in ["a", "b"] {
        let body = format!("{{\"url\":\"http://{page}.example/\",\"text\":\"{text}\"}}");
        assert_eq!(door.post("/v1/pages", "application/json", body, &door.tokens.write).status(), 200);
    }
    assert_eq!(door.post("/v1/flush?wait=true", "text/plain", "", &door.tokens.write).status(), 200);
    let status: Value =
        door.send(Method::GET, "/v1/status?url=http://a.example/", Some(&door.tokens.read)).json().unwrap();
    let group = status["group"].as_str().unwrap();
    let repair = |query: &str| {
        door.post(&format!("/v1/groups/{group}/repair{query}"), "text/plain", "", &door.tokens.operate)
    };
    let named = repair("?by=somebody");
    assert_eq!(named.status(), 400);
    assert_eq!(named.json::<Value>().unwrap()["field"], "by");
    assert_eq!(repair("").status(), 200);
    let repairs: Value = door.send(Method::GET, "/v1/repairs", Some(&door.tokens.read)).json().unwrap();
    assert_eq!(repairs["repairs"][0]["by"], "ann", "{repairs}");
    assert!(door.server.log().contains("by=\"ann\""), "{}", door.server.log());
}

#[test]
fn a_token_is_revoked_by_removing_it_and_sending_sighup() {
    let door = Door::open(&[]);
    let file = &door.tokens.file;
    let asks = |token: &str| door.send(Method::GET, "/v1/groups", Some(token)).status().as_u16();
    let bob = new_token(file, "bob", "read");
    assert_eq!(asks(&bob), 401);
    assert_eq!(asks(&door.tokens.read), 200);
    door.server.signal("HUP");
    wait_until("the new token to be taken", Duration::from_secs(20), || (asks(&bob) == 200).then_some(()));
    // A token file that cannot be read changes nothing.
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, format!("{text}[[token]]\n")).unwrap();
    door.server.signal("HUP");
    wait_until("the log to report the broken file", Duration::from_secs(20), || {
        door.server.log().contains("the tokens stay as they were").then_some(())
    });
    assert_eq!(asks(&bob), 200);
    fs::write(file, text.split_once("\n[[token]]\nname = \"bob\"").unwrap().0).unwrap();
    door.server.signal("HUP");
    wait_until("the token to be refused", Duration::from_secs(20), || (asks(&bob) == 401).then_some(()));
    assert_eq!(asks(&door.tokens.read), 200);
    // The server also obeys an empty file: it revokes every token.
    fs::write(file, "").unwrap();
    door.server.signal("HUP");
    wait_until("the last token to be refused", Duration::from_secs(20), || {
        (asks(&door.tokens.read) == 401).then_some(())
    });
    wait_until("the log to warn", Duration::from_secs(20), || {
        door.server.log().contains("no token is taken any more").then_some(())
    });
    let log = door.server.log();
    assert!(log.contains("tokens are taken tokens=3 read=1 write=1 operate=1 expired=1"), "{log}");
}

/// The samples of `doppel_token_expires_seconds`, by the name of the token.
fn expiries(door: &Door, token: &str) -> BTreeMap<String, f64> {
    let metrics = door.send(Method::GET, "/metrics", Some(token)).text().unwrap();
    let samples = metrics.lines().filter_map(|line| line.strip_prefix("doppel_token_expires_seconds{"));
    let sample = |line: &str| {
        let name = line.split("name=\"").nth(1).unwrap().split('"').next().unwrap();
        (name.to_owned(), line.rsplit(' ').next().unwrap().parse().unwrap())
    };
    samples.map(sample).collect()
}

#[test]
fn the_metric_of_expiring_tokens_follows_the_file() {
    const DAY: f64 = 86_400.0;
    let door = Door::open(&[]);
    let before = expiries(&door, &door.tokens.read);
    assert_eq!(before.keys().collect::<Vec<_>>(), ["ann", "crawler", "old", "reader"]);
    assert!(before["old"] < -1_000.0 * DAY, "{before:?}");
    assert!((89.9 * DAY..90.0 * DAY).contains(&before["ann"]), "{before:?}");
    let mut command = doppel();
    command
        .args(["token", "new", "soon", "--role", "read", "--expires", "2d", "--tokens"])
        .arg(&door.tokens.file);
    assert!(command.output().unwrap().status.success());
    door.server.signal("HUP");
    let soon = wait_until("the metric to show the new token", Duration::from_secs(20), || {
        expiries(&door, &door.tokens.read).get("soon").copied()
    });
    assert!((1.9 * DAY..2.0 * DAY).contains(&soon), "{soon}");
    // A server without tokens has no such metric.
    let home = tempfile::tempdir().unwrap();
    let open = Server::start(&home.path().join("data"), &[]);
    assert!(!open.get("/metrics").text().unwrap().contains("doppel_token"));
}

#[test]
fn a_new_token_is_printed_with_its_expiry() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("tokens");
    let says = |name: &str, options: &[&str]| {
        let mut command = doppel();
        command.args(["token", "new", name, "--role", "read", "--tokens"]).arg(&file).args(options);
        let output = command.output().unwrap();
        assert!(output.status.success());
        // Standard output has only the token, so that scripts can use it.
        let token = String::from_utf8(output.stdout).unwrap();
        assert!(
            options.contains(&"--out") || token.starts_with("doppel_") && token.lines().count() == 1,
            "{token}"
        );
        String::from_utf8(output.stderr).unwrap()
    };
    let expires = |at: usize| {
        let text = fs::read_to_string(&file).unwrap();
        text.split("expires = \"").nth(at).unwrap().split('"').next().unwrap().to_owned()
    };
    let unasked = says("ann", &[]);
    assert!(
        unasked
            .contains(&format!("until {} (90d, since --expires was not given), and is refused", expires(1))),
        "{unasked}"
    );
    let out = home.path().join("out").to_str().unwrap().to_owned();
    let asked = says("bob", &["--expires", "7d", "--out", &out]);
    assert!(asked.contains(&format!("until {}, and is refused", expires(2))), "{asked}");
}

#[test]
fn a_server_without_usable_tokens_does_not_start() {
    let home = tempfile::tempdir().unwrap();
    let (file, data) = (home.path().join("tokens"), home.path().join("data"));
    let expired = |name: &str| {
        let hash = if name == "ann" { "0" } else { "1" }.repeat(64);
        format!(
            "[[token]]\nname = \"{name}\"\nrole = \"operate\"\nexpires = \"2020-01-01T00:00:00Z\"\nsha256 = \"{hash}\"\n"
        )
    };
    for (text, says) in [
        (String::new(), "has no token that is taken: "),
        (expired("ann"), "has no token that is taken (1 has expired): "),
        (expired("ann") + &expired("bob"), "has no token that is taken (2 have expired): "),
    ] {
        fs::write(&file, text).unwrap();
        let mut command = doppel();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).arg("--tokens").arg(&file);
        let refused = command.output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.contains("doppel token new NAME --role ROLE --tokens"), "{said}");
    }
    assert!(!data.exists(), "nothing was created");
}

#[test]
fn operations_are_answered_only_by_the_listener_for_operators() {
    let door = Door::open(&["--operate-listen", "127.0.0.1:0"]);
    let operators = door.server.operators_url();
    for (method, path, role) in operations(&door) {
        if role.as_deref() != Some("operate") {
            continue;
        }
        assert_eq!(door.send(method.clone(), &path, Some(&door.tokens.operate)).status(), 403, "{path}");
        let there = door.http.request(method, format!("{operators}{path}")).bearer_auth(&door.tokens.operate);
        assert_ne!(there.send().unwrap().status(), 403, "{path}");
    }
    let there = door.http.get(format!("{operators}/v1/groups"));
    assert_eq!(there.send().unwrap().status(), 401, "the listener for operators must demand a token, too");
}

#[test]
fn one_client_leaves_room_for_others() {
    let door =
        Door::open(&["--client-requests", "3", "--client-long-polls", "2", "--client-body-memory", "8MiB"]);
    let cursor: Value = door.send(Method::GET, "/v1/changes", Some(&door.tokens.read)).json().unwrap();
    let poll = format!("/v1/changes?wait=3&cursor={}", cursor["cursor"].as_str().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(door.send(Method::GET, &poll, Some(&door.tokens.read)).status(), 200));
        }
        std::thread::sleep(Duration::from_millis(500));
        let refused = door.send(Method::GET, &poll, Some(&door.tokens.read));
        assert_eq!(refused.status(), 429);
        assert!(refused.headers().contains_key("retry-after"));
        assert_eq!(refused.json::<Value>().unwrap()["type"], "urn:doppel:problem:client-limit");
        assert_eq!(
            door.send(Method::GET, "/v1/groups", Some(&door.tokens.read)).status(),
            200,
            "a third request"
        );
        assert_eq!(
            door.send(Method::GET, "/v1/groups", Some(&door.tokens.write)).status(),
            200,
            "another client"
        );
    });
    // A body may take half of the memory that one client may have.
    let kind = "application/x-ndjson";
    // The body is compressed, because a server that refuses a long body need not read it. A client that still
    // sends the body might then miss the answer.
    let large = door.http.post(format!("{}/v1/pages", door.server.url)).header("content-type", kind);
    let large = large.header("content-encoding", "gzip").body(bomb(5 << 20)).bearer_auth(&door.tokens.write);
    assert_eq!(large.send().unwrap().status(), 413);
    let small = format!("{}{{\"url\":\"http://a.example/\",\"dead\":true}}", " ".repeat(3 << 20));
    assert_eq!(door.post("/v1/pages", kind, small, &door.tokens.write).status(), 200);
}

#[test]
fn a_server_without_tokens_does_not_listen_on_other_addresses() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let serve = |options: &[&str]| {
        let mut command = doppel();
        command.arg("serve").arg("--data").arg(&data).args(options);
        command
    };
    for options in
        [&["--listen", "0.0.0.0:0"][..], &["--listen", "[::]:0"], &["--operate-listen", "0.0.0.0:0"]]
    {
        let refused = serve(options).output().unwrap();
        let says = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{options:?}: {says}");
        assert!(says.contains("doppel token new") && says.contains("--no-tokens-on-any-address"), "{says}");
    }
    assert!(!data.exists(), "nothing was created");
    let mut coordinator = doppel();
    coordinator
        .args(["coordinator", "--listen", "0.0.0.0:0", "--cluster"])
        .arg(home.path().join("none.toml"));
    let refused = coordinator.output().unwrap();
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && says.contains("doppel token new"), "{says}");
    Server::start_command(serve(&["--listen", "0.0.0.0:0", "--no-tokens-on-any-address"])).terminate();
    let tokens = home.path().join("tokens");
    let token = new_token(&tokens, "ann", "operate");
    let tokens = tokens.display().to_string();
    let open = serve(&["--listen", "0.0.0.0:0", "--tokens", &tokens]);
    assert!(Server::start_locked(open, &token).terminate());
}
