//! Calls every route of the public API, end to end over HTTP against `doppel serve`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use harness::pages::{html, ndjson, near_copy, rounds, text};
use harness::warc::gzip;
use harness::{OwnServer, Server, crawl, crawls, doppel, json_of, lines_of, meaning, run_ok};
use serde_json::{Value, json};

/// A page of a family. Variant 0 is the original, the others are near copies of it.
fn page(url: &str, family: u64, variant: u64, day: u32) -> Value {
    let base = text(family, 200);
    let words = if variant == 0 { base } else { near_copy(&base, variant) };
    json!({"url": url, "html": html("page", &words), "fetched_at": format!("2024-05-{day:02}T00:00:00Z")})
}

fn dead(url: &str, day: u32) -> Value {
    json!({"url": url, "dead": true, "fetched_at": format!("2024-05-{day:02}T00:00:00Z")})
}

fn redirect(url: &str, to: &str, day: u32) -> Value {
    json!({"url": url, "redirect_to": to, "fetched_at": format!("2024-05-{day:02}T00:00:00Z")})
}

fn outcomes(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["outcome"].as_str().unwrap_or("error")).collect()
}

const A: &str = "http://a.example/";
const B: &str = "http://b.example/copy";
const C: &str = "http://c.example/other";

/// A and B are near-duplicates; C is unique.
fn three() -> OwnServer {
    let server = OwnServer::start(&[]);
    let answers = server.push(&[page(A, 1, 0, 1), page(B, 1, 1, 2), page(C, 2, 0, 1)]);
    assert_eq!(outcomes(&answers), ["pending"; 3]);
    server.flush();
    server
}

#[test]
fn a_page_is_grouped_updated_deleted_and_revived() {
    let server = three();
    let b = server.status(B);
    assert_eq!(b["status"], json!("duplicate"), "{b}");
    assert_eq!(b["winner"], json!(A), "{b}");
    assert_eq!(b["rule"], "day_first_seen");
    let j = b["similarity"].as_f64().unwrap();
    assert!((j - 195.0 / 205.0).abs() < 0.03, "one word of 200 changed: {j}");
    assert_eq!(server.status(A)["status"], "winner");
    assert_eq!(server.status(C)["status"], "unique");
    assert_eq!(server.status("http://d.example/")["status"], "unknown");

    // The same page again, an older version, and a small change.
    let again = server.push(&[page(B, 1, 1, 2), page(B, 2, 0, 1)]);
    assert_eq!(outcomes(&again), ["unchanged", "stale"]);
    // Of several versions in one request, only the newest changes the page.
    let newer = server.push(&[page(B, 2, 0, 1), page(B, 1, 1, 2), page(B, 1, 2, 3)]);
    assert_eq!(outcomes(&newer), ["stale", "stale", "confirmed"]);
    // The page changes completely, and later changes back.
    assert_eq!(outcomes(&server.push(&[page(B, 3, 0, 4)])), ["pending"]);
    server.flush();
    assert_eq!(server.status(B)["status"], "unique");
    assert_eq!(server.status(A)["status"], "unique", "a group with a single page is dissolved");
    server.push(&[page(B, 1, 1, 5)]);
    server.flush();
    assert_eq!(server.status(B)["status"], "duplicate");

    // The winner dies. Later it comes back and wins again.
    let response = json_of(server.delete("/v1/pages", &[("url", A), ("fetched_at", "2024-05-06T00:00:00Z")]));
    assert_eq!(response["url"], A);
    server.flush();
    assert_eq!(server.status(A)["status"], json!("dead"));
    assert_eq!(server.status(B)["status"], json!("unique"));
    server.push(&[page(A, 1, 0, 7)]);
    server.flush();
    assert_eq!(server.status(B)["winner"], A);
}

#[test]
fn a_copy_that_arrives_as_the_original_changes_joins_the_others() {
    let server = OwnServer::start(&[]);
    let families = 0..100;
    let copy = |n: u64, k: u64, day| page(&format!("http://a.example/{n}/{k}"), n, 0, day);
    server.push(&families.clone().flat_map(|n| [copy(n, 1, 1), copy(n, 2, 1)]).collect::<Vec<_>>());
    server.flush();
    let gone = |n| dead(&format!("http://a.example/{n}/1"), 2);
    server.push(&families.flat_map(|n| [copy(n, 3, 2), gone(n)]).collect::<Vec<_>>());
    server.flush();
    let alone = lines_of(&server.export()).into_iter().filter(|line| line["status"] == "unique").count();
    assert_eq!(
        alone, 0,
        "the remaining two pages of each family have the same text, so they must share a group"
    );
}

#[test]
fn redirects_follow_their_targets() {
    let server = three();
    server.push(&[
        redirect("http://r.example/1", "http://r.example/2", 1),
        redirect("http://r.example/2", A, 1),
        redirect("http://r.example/lost", "http://nowhere.example/", 1),
        redirect("http://r.example/x", "http://r.example/y", 1),
        redirect("http://r.example/y", "http://r.example/x", 1),
    ]);
    server.flush();
    let one = server.status("http://r.example/1");
    assert_eq!(one["status"], json!("duplicate"), "{one}");
    assert_eq!(one["winner"], json!(A), "{one}");
    assert_eq!(server.status("http://r.example/lost")["reason"], "unknown_target");
    assert_eq!(server.status("http://r.example/x")["reason"], "loop");
    // The target of one redirect becomes known, and the target of another redirect changes.
    server.push(&[page("http://nowhere.example/", 2, 1, 2), redirect("http://r.example/2", C, 2)]);
    server.flush();
    let group = |url: &str| server.status(url)["group"].clone();
    assert_eq!(group("http://r.example/lost"), group(C));
    assert_eq!(group("http://r.example/1"), group(C));
    assert_ne!(group("http://r.example/1"), group(A));
    server.push(&[dead(C, 3), dead("http://nowhere.example/", 3)]);
    server.flush();
    assert_eq!(server.status("http://r.example/1")["reason"], "dead_target");
}

#[test]
fn bodies_may_be_compressed() {
    let server = OwnServer::start(&[]);
    let body = ndjson(&[page(A, 1, 0, 1), page(B, 1, 1, 2)]);
    let packed = [("gzip", gzip(body.as_bytes())), ("zstd", zstd::encode_all(body.as_bytes(), 3).unwrap())];
    for ((encoding, body), expected) in packed.into_iter().zip(["pending", "unchanged"]) {
        let response = server.post_encoded("/v1/pages", "application/x-ndjson", encoding, body);
        assert_eq!(response.status(), 200);
        assert_eq!(outcomes(&lines_of(&response.text().unwrap())), [expected; 2], "{encoding}");
        server.flush();
    }
}

#[test]
fn the_status_of_many_pages_is_queried_at_once() {
    let server = three();
    let answer = server.post_json("/v1/status", &json!({"urls": [C, "nonsense", B, "http://x.example/"]}));
    let pages = answer["pages"].as_array().unwrap();
    let statuses: Vec<_> = pages.iter().map(|page| page["status"].as_str().unwrap_or("error")).collect();
    assert_eq!(statuses, ["unique", "error", "duplicate", "unknown"]);
    let too_many: Vec<String> = (0..1001).map(|n| format!("http://a.example/{n}")).collect();
    let response = server.post("/v1/status", "application/json", json!({ "urls": too_many }).to_string());
    assert_eq!(response.status(), 400);
}

#[test]
fn a_market_has_its_own_winner() {
    let server = three();
    server.push(&[page("http://shop.de/copy", 1, 3, 9)]);
    server.flush();
    assert_eq!(server.ask("/v1/status", &[("url", B), ("market", "de")])["winner"], "http://shop.de/copy");
    assert_eq!(server.status(B)["winner"], A);
    assert_eq!(server.query("/v1/status", &[("url", B), ("market", "d e")]).status(), 400);
}

#[test]
fn a_probe_stores_nothing() {
    let server = three();
    let words = near_copy(&text(1, 200), 9);
    let near = server.post_json("/v1/probe", &json!({"text": words.join(" ")}));
    assert_eq!(near["winner"], A, "{near}");
    let far = server.post_json("/v1/probe", &json!({"html": html("x", &text(77, 100))}));
    assert_eq!(far["status"], "unique", "{far}");
    assert_eq!(server.export().lines().count(), 3);
}

#[test]
fn a_probe_of_a_redirect_finds_its_target_in_any_spelling() {
    let server = OwnServer::start(&["--shards", "3"]);
    // In order: another spelling; one before it in byte order; the normal form; the target as it was sent.
    let names = ["http://b.example", "HTTP://b.example", "http://b.example/", "http://b.example:80"];
    let probe = || {
        let html = format!("<meta http-equiv=refresh content='0; url={}'>", names[3]);
        server.post_json("/v1/probe", &json!({"html": html, "url": "http://from.example/"}))
    };
    assert_eq!(probe()["reason"], "unknown_target");
    for (name, family) in names.into_iter().zip(1..) {
        server.push(&[page(name, family, 0, 1)]);
        server.flush();
        let advice = probe();
        assert_eq!(advice["status"], json!("duplicate"));
        assert_eq!(advice["duplicate_of"], json!(name));
    }
}

#[test]
fn the_feed_can_be_resumed_and_waits() {
    let server = three();
    let first = server.ask("/v1/changes", &[("limit", "2")]);
    assert_eq!(first["changes"].as_array().unwrap().len(), 2);
    assert_eq!(first["at_end"], false);
    let rest = server.ask("/v1/changes", &[("cursor", first["cursor"].as_str().unwrap())]);
    assert_eq!(rest["at_end"], true);
    let urls = |answer: &Value| -> Vec<String> {
        answer["changes"].as_array().unwrap().iter().map(|c| c["url"].as_str().unwrap().to_owned()).collect()
    };
    let all: BTreeSet<String> = urls(&first).into_iter().chain(urls(&rest)).collect();
    assert_eq!(all, [A, B, C].map(str::to_owned).into());

    let cursor = rest["cursor"].as_str().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| server.ask("/v1/changes", &[("cursor", cursor), ("wait", "30")]));
        server.push(&[dead(C, 9)]);
        let news = waiting.join().unwrap();
        assert_eq!(news["changes"][0]["status"], "dead", "{news}");
    });
    for (cursor, status) in [("1.2.3", 410), ("not a cursor", 400)] {
        assert_eq!(server.query("/v1/changes", &[("cursor", cursor)]).status(), status, "{cursor}");
    }
}

#[test]
fn groups_are_listed_shown_and_repaired() {
    let server = three();
    let group = server.status(A)["group"].as_str().unwrap().to_owned();
    let list = server.ask("/v1/groups", &[]);
    assert_eq!(list["groups"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["groups"][0]["group"], *group);
    assert_eq!(server.ask("/v1/groups", &[("suspicious", "1")])["groups"], json!([]));

    let path = format!("/v1/groups/{group}");
    let shown = server.ask(&path, &[]);
    assert_eq!(shown["members"], json!(2));
    assert_eq!(shown["winner"], json!(A));
    let first = server.ask(&path, &[("limit", "1")]);
    let next = first["next"].as_str().unwrap();
    let second = server.ask(&path, &[("limit", "1"), ("after", next)]);
    assert_ne!(first["pages"][0]["url"], second["pages"][0]["url"]);
    assert_eq!(server.get("/v1/groups/g999999-0").status(), 404);
    assert_eq!(server.get("/v1/groups/nonsense").status(), 400);

    let dry = server.post_json(&format!("{path}/repair?dry_run=true&by=tests"), &Value::Null);
    let components = |repair: &Value| -> Vec<BTreeSet<String>> {
        serde_json::from_value(repair["components"].clone()).unwrap()
    };
    let one = [BTreeSet::from([A, B].map(str::to_owned))];
    assert_eq!(dry["applied"].as_bool(), Some(false), "{dry}");
    assert_eq!(components(&dry).as_slice(), &one[..], "{dry}");
    let repaired = server.post_json("/v1/repair", &json!({"groups": [group, "g999999-0"], "by": "tests"}));
    assert_eq!(components(&repaired["repairs"][0]), one, "{repaired}");
    assert_eq!(repaired["unknown"], json!(["g999999-0"]), "{repaired}");
}

#[test]
fn merged_groups_name_the_group_they_were_merged_into() {
    let server = OwnServer::start(&[]);
    // Two texts that share too little, and a text between them that is a near-duplicate of both.
    let left = text(5, 300);
    let mut right = left.clone();
    let mut middle = left.clone();
    for at in (10..280).step_by(30) {
        right[at] = format!("right{at}");
        if at < 140 {
            middle[at] = format!("right{at}");
        }
    }
    let page = |url: &str, words: &[String]| json!({"url": url, "text": words.join(" ")});
    server.push(&[page("http://l.example/1", &left), page("http://l.example/2", &left)]);
    server.push(&[page("http://r.example/1", &right), page("http://r.example/2", &right)]);
    server.flush();
    let group = |url: &str| server.status(url)["group"].as_str().unwrap().to_owned();
    let (l, r) = (group("http://l.example/1"), group("http://r.example/1"));
    assert_ne!(l, r, "J of the two ends is 255/345");
    server.push(&[page("http://m.example/", &middle)]);
    server.flush();
    assert_eq!(group("http://l.example/1"), group("http://r.example/1"));
    let survivor = group("http://m.example/");
    let merged = if survivor == l { r } else { l };
    let answer = server.ask(&format!("/v1/groups/{merged}"), &[]);
    assert_eq!(answer["merged_into"], *survivor, "{answer}");
}

#[test]
fn a_language_is_shown_where_it_is_given_and_detected_only_on_request() {
    let english = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
        foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light";
    for (options, detected) in [(&[][..], Value::Null), (&["--detect-language"], json!("eng"))] {
        let server = OwnServer::start(options);
        server.push(&[
            json!({"url": A, "text": english}),
            json!({"url": B, "text": english, "language": "en"}),
        ]);
        server.flush();
        let answer = server.ask("/v1/explain", &[("a", A), ("b", B)]);
        let language = |side: &str| &answer[side]["content"]["language"];
        assert_eq!(language("a"), &detected, "{options:?}: {answer}");
        assert_eq!(language("b"), &json!("en"), "{options:?}: {answer}");
    }
}

#[test]
fn pairs_are_explained() {
    let server = three();
    let near = server.ask("/v1/explain", &[("a", A), ("b", B)]);
    assert_eq!(near["duplicate"], true, "{near}");
    let (measures, criterion) = (&near["measures"], &near["measures"]["criteria"][0]);
    let [shared, of] = ["shared", "of"].map(|name| criterion[name].as_f64().unwrap());
    let [only_a, only_b] = ["only_a", "only_b"].map(|name| measures["shingles"][name].as_f64().unwrap());
    assert_eq!(of, shared + only_a + only_b, "{near}");
    assert!((measures["similarity"].as_f64().unwrap() - shared / of).abs() < 1e-9, "{near}");
    let far = server.ask("/v1/explain", &[("a", A), ("b", C)]);
    assert_eq!(far["duplicate"], json!(false), "{far}");
    assert_eq!(far["measures"]["criteria"][0]["shared"], json!(0), "{far}");
    assert_eq!(server.query("/v1/explain", &[("a", A), ("b", "http://x.example/")]).status(), 404);
}

/// Four programs with the same words. The second has other operators, the third has another case, and the
/// fourth has other white space than the first.
#[test]
fn programs_are_told_apart_by_a_policy_that_reads_code() {
    let statement = |n: usize| format!("if (a{n} <= b{n}) {{ total{n} += x; }}");
    let program: String = (0..12).map(|n| statement(n) + "\n").collect();
    let operators = program.replace("<=", ">").replace("+=", "-=");
    let (case, space) = (program.to_uppercase(), program.replace(' ', "\n  "));
    let names = ["operators", "case", "space"].map(|name| format!("http://a.example/{name}"));
    let server = |options: &[&str]| {
        let server = OwnServer::start(options);
        let texts = [&program, &operators, &case, &space];
        let urls = std::iter::once(A).chain(names.iter().map(String::as_str));
        server
            .push(&urls.zip(texts).map(|(url, text)| json!({"url": url, "text": text})).collect::<Vec<_>>());
        server.flush();
        server
    };
    let explained = |server: &Server, name: &str| server.ask("/v1/explain", &[("a", A), ("b", name)]);
    let words = server(&[]);
    for name in &names {
        let status = words.status(name);
        assert_eq!(status["status"], json!("duplicate"), "{name}");
        assert_eq!(status["duplicate_of"], json!(A), "{name}");
        let reason = explained(&words, name)["reason"].clone();
        assert_eq!(reason, "they have the same words (punctuation and case ignored)", "{name}");
    }
    for policy in ["jaccard:tokens=code", "supershingle:tokens=code"] {
        let code = server(&["--policy", policy]);
        for name in &names[..2] {
            assert_eq!(code.status(name)["status"], "unique", "{policy}: {name}");
            let answer = explained(&code, name);
            assert_eq!(answer["duplicate"], json!(false));
            assert_eq!(answer["measures"]["same_content"], json!(false));
            assert!(answer["reason"].as_str().unwrap().contains("are in both, which is not "), "{answer}");
        }
        let status = code.status(&names[2]);
        assert_eq!(status["status"], json!("duplicate"), "{policy}");
        assert_eq!(status["duplicate_of"], json!(A), "{policy}");
        assert_eq!(explained(&code, &names[2])["reason"], "they have the same tokens (white space ignored)");
        // Texts below 20 tokens are duplicates only if their tokens are equal.
        let probe = |text: &str| code.post_json("/v1/probe", &json!({"text": text}))["status"].clone();
        code.push(&[json!({"url": B, "text": "x++"}), json!({"url": C, "text": "x--"})]);
        code.flush();
        assert_eq!(probe("x + +"), json!("duplicate"), "{policy}");
        assert_eq!(probe("X++"), json!("unique"), "{policy}");
        assert_eq!(
            code.ask("/v1/explain", &[("a", B), ("b", C)])["reason"],
            "one has 3 tokens; below 20 only the same tokens make a duplicate"
        );
    }
}

#[test]
fn the_figures_of_reports_agree_with_the_pages() {
    let server = three();
    server.push(&[page("http://d.example/", 1, 0, 5), redirect("http://e.example/", A, 5), dead(C, 6)]);
    server.flush();
    let quality = server.ask("/v1/reports/quality", &[]);
    let counters = &quality["counters"];
    let counts =
        ["live", "redirects", "dead", "groups", "winners", "duplicates"].map(|name| counters[name].as_u64());
    assert_eq!(counts, [4, 1, 1, 1, 1, 3].map(Some), "{quality}");
    assert_eq!(quality["quiescent"], true);
    let load = server.ask("/v1/reports/load-balance", &[]);
    let sum = |name: &str| -> u64 {
        load["partitions"].as_array().unwrap().iter().map(|p| p[name].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("contents"), 2, "{load}");
    assert_eq!(sum("pages"), 3, "{load}");
    let groups = server.ask("/v1/reports/groups", &[]);
    assert_eq!(groups["groups"], json!(1), "{groups}");
    assert_eq!(groups["largest"][0]["winner"], json!(A), "{groups}");
}

#[test]
fn pages_and_hosts_can_be_purged() {
    let server = three();
    assert_eq!(server.post_json("/v1/purge", &json!({"url": A})), json!({"purged": 1}));
    server.flush();
    assert_eq!(server.status(A)["status"], json!("unknown"));
    assert_eq!(server.status(B)["status"], json!("unique"));
    assert_eq!(server.post_json("/v1/purge", &json!({"host": "b.example"})), json!({"purged": 1}));
    assert_eq!(server.post_json("/v1/purge", &json!({"host": "b.example"})), json!({"purged": 0}));
    server.flush();
    assert_eq!(server.export().lines().count(), 1);
    // Nothing is remembered about the page, so an older version is accepted.
    assert_eq!(outcomes(&server.push(&[page(A, 1, 0, 1)])), ["pending"]);
}

#[test]
fn health_readiness_metrics_and_the_contract_are_served() {
    let server = three();
    assert_eq!(server.get("/healthz").text().unwrap(), "ok\n");
    assert_eq!(server.get("/readyz").status(), 200);
    let metrics = server.get("/metrics").text().unwrap();
    assert!(metrics.contains("doppel_") && metrics.trim_end().ends_with("# EOF"), "{metrics}");
    assert!(server.get("/").text().unwrap().contains("<html"));
    let document = server.ask("/openapi.json", &[]);
    let paths: BTreeSet<&str> = document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    for path in
        ["/v1/pages", "/v1/status", "/v1/changes", "/v1/groups/{id}", "/v1/export", "/v1/reports/quality"]
    {
        assert!(paths.contains(path), "{path} is not among {paths:?}");
    }
    for (path, status) in [("/nowhere", 404), ("/v1/repair", 405)] {
        let response = server.get(path);
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
}

#[test]
fn a_restart_changes_nothing() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--shards", "3"]);
    for pages in rounds(3, 60, 2) {
        server.push(&pages);
        server.flush();
    }
    let (export, feed) = (server.export(), server.ask("/v1/changes", &[("limit", "10000")]));
    assert!(server.terminate(), "the server must exit with 0 on SIGTERM");
    let server = Server::start(data.path(), &[]);
    assert_eq!(server.export(), export);
    assert_eq!(server.ask("/v1/changes", &[("limit", "10000")]), feed);
    for pages in rounds(3, 60, 2) {
        assert!(
            outcomes(&server.push(&pages)).iter().all(|outcome| matches!(*outcome, "unchanged" | "stale"))
        );
    }
    server.flush();
    assert_eq!(server.export(), export, "the same pages again change nothing");
}

#[test]
fn sigint_also_ends_the_server_cleanly() {
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start(data.path(), &[]);
    server.signal("INT");
    assert!(server.wait());
}

/// Replays the change feed and compares the result with the export. Only the feed contains dead pages.
fn check_replay(server: &Server) {
    let mut states = BTreeMap::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("limit", "97")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = server.ask("/v1/changes", &query);
        for change in answer["changes"].as_array().unwrap() {
            let fields = ["url", "status", "group", "winner", "duplicate_of", "similarity"];
            let state: Vec<Value> = fields.iter().map(|field| change[*field].clone()).collect();
            states.insert(change["url"].as_str().unwrap().to_owned(), state);
        }
        if answer["at_end"] == true {
            break;
        }
        cursor = Some(answer["cursor"].as_str().unwrap().to_owned());
    }
    states.retain(|_, state| state[1] != "dead");
    let export = lines_of(&server.export());
    assert_eq!(states.len(), export.len());
    for (line, state) in export.iter().zip(states.values()) {
        let fields = ["url", "status", "group", "winner", "duplicate_of", "similarity"];
        assert_eq!(fields.map(|field| line[field].clone()).as_slice(), state.as_slice());
    }
}

#[test]
fn a_replay_of_the_feed_gives_the_export() {
    let server = OwnServer::start(&[]);
    for pages in rounds(11, 100, 4) {
        server.push(&pages);
        server.flush();
    }
    check_replay(&server);
}

#[test]
fn loading_real_crawls_gives_the_same_result_as_dedup() {
    let Some(data) = crawls("loading real crawls") else { return };
    let server = OwnServer::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("dedup.jsonl");
    let mut dedup = vec!["dedup".into(), "--latest".into(), "--out".into(), out.clone().into_os_string()];
    let files = crawl(&data, "quick");
    dedup.extend(files.iter().map(|file| file.clone().into_os_string()));
    run_ok(&dedup);
    for file in &files {
        run_ok([
            "load".as_ref(),
            "--flush".as_ref(),
            "--server".as_ref(),
            server.url.as_ref(),
            file.as_os_str(),
        ]);
    }
    check_replay(&server);
    assert_eq!(meaning(&server.export()), meaning(&std::fs::read_to_string(out).unwrap()));
}

#[test]
fn a_small_queue_slows_down_the_loader_and_loses_nothing() {
    let server = OwnServer::start(&["--pending-max", "1000"]);
    let home = tempfile::tempdir().unwrap();
    let crawl = home.path().join("crawl.jsonl");
    let pages: Vec<Value> =
        (0..6_000).map(|n| page(&format!("http://a.example/{n}"), n / 3, n % 3, 1)).collect();
    std::fs::write(&crawl, ndjson(&pages)).unwrap();
    let summary = run_ok(["load", "--flush", "--json", "--server", &server.url, crawl.to_str().unwrap()]);
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let outcomes = summary["outcomes"].as_object().unwrap();
    assert_eq!(outcomes.values().map(|n| n.as_u64().unwrap()).sum::<u64>(), 6_000, "{summary}");
    assert!(!outcomes.contains_key("refused"), "{summary}");
    let lines = lines_of(&server.export());
    assert_eq!(lines.len(), 6_000);
    assert!(lines.iter().all(|line| !line["group"].is_null()), "every page has two copies");
}

#[test]
fn a_second_server_on_one_directory_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &[]);
    let second =
        doppel().args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data.path()).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{}", String::from_utf8_lossy(&second.stderr));
    assert!(server.terminate());
}

#[test]
fn no_answer_names_a_winner_whose_content_has_changed() {
    let server = OwnServer::start(&["--ranges", "3"]);
    let copies: Vec<String> = (0..6).map(|copy| format!("http://copy.example/of/a/{copy}")).collect();
    let pages = copies.iter().zip(1..).map(|(url, variant)| page(url, 1, variant, 2));
    server.push(&[page(A, 1, 0, 1)].into_iter().chain(pages).collect::<Vec<_>>());
    server.flush();
    // `turn` is odd while the winner has a content that no other page has.
    let (turn, ended, told) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
    let names_winner = |answer: &Value| answer["status"] == "duplicate" && answer["winner"] == A;
    thread::scope(|scope| {
        for batch in [false, true] {
            let (server, turn, ended, told, copies) = (&server, &turn, &ended, &told, &copies);
            scope.spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    let before = turn.load(Ordering::SeqCst);
                    let answers = if batch {
                        let answer = server.post_json("/v1/status", &json!({"urls": copies}));
                        answer["pages"].as_array().unwrap().clone()
                    } else {
                        vec![server.status(&copies[before as usize % copies.len()])]
                    };
                    let is_told = answers.iter().any(names_winner);
                    let after = turn.load(Ordering::SeqCst);
                    assert!(!is_told || before != after || before.is_multiple_of(2), "{before}: {answers:?}");
                    told.fetch_add(u64::from(is_told), Ordering::SeqCst);
                }
            });
        }
        for day in 2..12 {
            server.push(&[page(A, 9, 0, 2 * day)]);
            turn.fetch_add(1, Ordering::SeqCst);
            assert!(!copies.iter().any(|copy| names_winner(&server.status(copy))));
            server.flush();
            turn.fetch_add(1, Ordering::SeqCst);
            server.push(&[page(A, 1, 0, 2 * day + 1)]);
            server.flush();
            assert!(copies.iter().all(|copy| names_winner(&server.status(copy))));
        }
        ended.store(true, Ordering::SeqCst);
    });
    assert!(told.into_inner() > 0);
}
