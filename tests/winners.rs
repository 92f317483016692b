//! Winner rules and named markets, end to end: the policy file, the manifest and the answers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::path::{Path, PathBuf};

use harness::pages::{ndjson, near_copy, text};
use harness::{Server, lines_of, meaning, run, run_ok};
use serde_json::{Value, json};

const OLD: &str = "http://old.example/the/first/of/all?page";
const SECURE: &str = "https://secure.example/later";
const GERMAN: &str = "http://shop.de/copy/of/a/copy";
const AUSTRIAN: &str = "http://shop.at/copy";

/// Near-duplicates. Different rules elect different winners among them.
fn pages() -> Vec<Value> {
    let base = text(1, 200);
    let page = |url: &str, variant: u64, day: u32| {
        let words = if variant == 0 { base.clone() } else { near_copy(&base, variant) };
        json!({"url": url, "text": words.join(" "), "fetched_at": format!("2024-05-{day:02}T00:00:00Z")})
    };
    vec![page(OLD, 0, 1), page(SECURE, 1, 2), page(GERMAN, 2, 3), page(AUSTRIAN, 3, 4)]
}

/// A data directory, and a file with winner rules and markets beside it.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Starts to serve the directory, expects that to fail, and returns the message.
    fn refused(&self, file: &str) -> String {
        let data = self.data();
        let output = run([
            Path::new("serve"),
            Path::new("--listen"),
            Path::new("127.0.0.1:0"),
            Path::new("--data"),
            &data,
            Path::new("--winners"),
            Path::new(file),
        ]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn other_rules_elect_another_winner_and_the_answer_names_the_rule() {
    let place = Place::new();
    for (rules, winner, rule) in [
        (None, OLD, "day_first_seen"),
        (Some("['https', 'popularity']"), SECURE, "https"),
        (Some("['static_url', 'shorter_url']"), AUSTRIAN, "static_url"),
        (Some("[]"), OLD, "url"),
    ] {
        let file = rules.map(|rules| place.file("winners.toml", &format!("rules = {rules}\n")));
        let options: Vec<&str> = file.iter().flat_map(|file| ["--winners", file]).collect();
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), &options);
        server.push(&pages());
        server.flush();
        assert_eq!(server.status(winner)["status"], "winner");
        let loser = if winner == OLD { AUSTRIAN } else { OLD };
        let answer = server.status(loser);
        assert_eq!(answer["winner"], winner, "{answer}");
        // In byte order, `http://old` comes before `http://shop`, and `http:` before `https:`.
        assert_eq!(answer["rule"], rule, "{answer}");
        let shown = server.ask("/v1/winners", &[]);
        assert_eq!(shown["rules"].as_array().unwrap().last().unwrap(), "url");
        let explained = run_ok(["explain", "--server", &server.url, winner, loser]);
        assert!(explained.contains(&format!("kept before b: {winner}, ")), "{explained}");
    }
}

#[test]
fn rules_are_stored_in_the_directory_and_markets_come_from_the_file() {
    let place = Place::new();
    let file = place.file("first.toml", "rules = ['https']\n[markets]\ngerman = ['.de', '.at']\n");
    let server = Server::start(&place.data(), &["--winners", &file]);
    server.push(&pages());
    server.flush();
    let ask = |server: &Server, market: &str| server.ask("/v1/status", &[("url", OLD), ("market", market)]);
    let german = ask(&server, "german");
    assert_eq!(german["winner"], json!(AUSTRIAN));
    assert_eq!(german["rule"], json!("market"));
    assert_eq!(ask(&server, "de")["winner"], GERMAN);
    let bad = server.query("/v1/status", &[("url", OLD), ("market", "south_german")]);
    assert_eq!(bad.status(), 400);
    assert!(bad.text().unwrap().contains("(german)"));
    let line = run_ok(["status", "--server", &server.url, "--market", "german", OLD]);
    assert!(line.contains(AUSTRIAN) && line.contains("in the market"), "{line}");
    assert!(server.terminate());

    // Without a file, the directory keeps its rules and has no named markets.
    let server = Server::start(&place.data(), &[]);
    assert_eq!(server.ask("/v1/winners", &[]), json!({"rules": ["https", "url"], "markets": {}}));
    assert_eq!(server.status(OLD)["winner"], SECURE);
    assert_eq!(
        ask(&server, "german")["winner"],
        SECURE,
        "an unknown market name is a suffix, and no host has it"
    );
    assert!(server.terminate());

    // A file with other markets is accepted, whether it repeats the rules or leaves them out.
    for rules in ["rules = ['https', 'url']", ""] {
        let file = place.file("other.toml", &format!("{rules}\n[markets]\nalps = ['at', 'ch']\n"));
        let server = Server::start(&place.data(), &["--winners", &file]);
        let expected = json!({"rules": ["https", "url"], "markets": {"alps": ["at", "ch"]}});
        assert_eq!(server.ask("/v1/winners", &[]), expected);
        assert_eq!(ask(&server, "alps")["winner"], AUSTRIAN);
        assert!(server.terminate());
    }

    let other = place.file("other.toml", "rules = ['popularity']");
    let message = place.refused(&other);
    assert!(message.contains("elects its winners by https, url, not by popularity, url;"), "{message}");
    let usual = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/winners.toml");
    assert!(place.refused(usual).contains("by https, url, not by popularity, day_first_seen, "));
}

#[test]
fn a_market_gets_the_same_answer_at_once_page_by_page_and_from_a_server() {
    let place = Place::new();
    let file = place.file("winners.toml", "rules = ['https']\n[markets]\ngerman = ['.de', '.at']\n");
    let input = place.file("pages.jsonl", &ndjson(&pages()));
    let dedup = |options: &[&str]| {
        let market = ["dedup", "--latest", "--market", "german", "--winners", &file, "--out", "-"];
        run_ok(market.iter().chain(options).chain([&input.as_str()]))
    };
    let at_once = dedup(&[]);
    assert_eq!(meaning(&dedup(&["--incremental"])), meaning(&at_once));
    let data = place.data();
    assert_eq!(meaning(&dedup(&["--data", data.to_str().unwrap()])), meaning(&at_once));
    let server = Server::start(&data, &["--winners", &file]);
    let exported = run_ok(["export", "--server", &server.url, "--market", "german"]);
    assert_eq!(meaning(&exported), meaning(&at_once));
    for line in exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let expected = if line["url"] == AUSTRIAN { Value::Null } else { json!(AUSTRIAN) };
        assert_eq!(line["winner"], json!(AUSTRIAN), "{line}");
        assert_eq!(line["duplicate_of"], expected, "{line}");
    }
    assert!(
        server.export().contains(&format!("\"winner\":\"{SECURE}\"")),
        "the server must not store the winner of a market"
    );
    let refused = run(["dedup", "--market", "south_german", "--winners", &file, &input]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("--market south_german: "), "{message}");
}

#[test]
fn a_bad_file_of_rules_is_named_and_no_directory_is_created() {
    let place = Place::new();
    let file = place.file("winners.toml", "rules = [\n  'https',\n  'beauty',\n]\n");
    let message = place.refused(&file);
    assert!(
        message.contains(&format!("{file}, line 3: \"beauty\" is no rule; the rules are popularity, ")),
        "{message}"
    );
    assert!(place.refused("no/such/file").contains("cannot read no/such/file"));
    assert!(!place.data().exists());
}

#[test]
fn backups_and_checks_use_the_rules_of_the_directory() {
    let place = Place::new();
    let file = place.file("winners.toml", "rules = ['https', 'shorter_url']\n");
    let crawl = place.file("crawl.jsonl", &ndjson(&pages()));
    let data = place.data();
    let of = |name: &str| place.home.path().join(name).to_str().unwrap().to_owned();
    let (dir, backup, restored) = (data.to_str().unwrap(), of("backup"), of("restored"));
    let export = run_ok(["dedup", "--data", dir, "--winners", &file, "--out", "-", &crawl]);
    assert!(lines_of(&export).iter().all(|line| line["winner"] == SECURE), "{export}");
    // The default rules would elect another winner than the stored one.
    let checked: Value = serde_json::from_str(&run_ok(["check", "--json", dir])).unwrap();
    assert_eq!(checked["sound"], json!(true));
    assert_eq!(checked["winners"], json!(["https", "shorter_url", "url"]));
    assert!(run_ok(["check", dir]).contains("winners by https, shorter_url, url\n"));
    run_ok(["backup", "--data", dir, "--out", &backup]);
    run_ok(["restore", &backup, "--data", &restored]);
    let server = Server::start(Path::new(&restored), &[]);
    server.flush();
    assert_eq!(server.ask("/v1/winners", &[])["rules"], json!(["https", "shorter_url", "url"]));
    server.push(&[json!({"url": SECURE, "dead": true, "fetched_at": "2024-06-01T00:00:00Z"})]);
    server.flush();
    assert_eq!(server.status(OLD)["winner"], AUSTRIAN, "the shortest of the remaining URLs wins");
}

/// The pages of a chain: each is near only its neighbours, and the first page has the earliest date.
fn chain() -> Vec<Value> {
    let words = text(9, 400);
    let page = |step: usize| {
        let host = if step == 4 { "chain.de" } else { "chain.example" };
        let text = words[12 * step..12 * step + 200].join(" ");
        json!({"url": format!("http://{host}/{step}"), "text": text, "fetched_at": format!("2024-05-{:02}T00:00:00Z", step + 1)})
    };
    (0..6).map(page).collect()
}

#[test]
fn in_a_chain_every_other_page_is_kept_and_a_probe_says_so() {
    let place = Place::new();
    let server = Server::start(&place.data(), &[]);
    let pages = chain();
    let url = |step: usize| pages[step]["url"].as_str().unwrap();
    server.push(&pages);
    server.flush();
    for (step, page) in pages.iter().enumerate() {
        let (kept, probe) = (step / 2 * 2, server.post_json("/v1/probe", &json!({"text": page["text"]})));
        assert_eq!(probe["status"], json!("duplicate"), "{step}");
        assert_eq!(probe["duplicate_of"], json!(url(kept)), "{step}");
        let advice = server.status(url(step));
        let status = [["winner", "secondary"][usize::from(step > 0)], "duplicate"][step % 2];
        assert_eq!(advice["status"], json!(status), "{step}");
        assert_eq!(advice["winner"], json!(url(0)), "{step}");
        // The winner of the market is no near-duplicate of this page, so the answer names the page that
        // covers it.
        let german = server.ask("/v1/status", &[("url", url(step)), ("market", "de")]);
        assert_eq!(german["duplicate_of"], advice["duplicate_of"]);
        assert_eq!(german["rule"], advice["rule"]);
        assert!(german["note"].as_str().unwrap().starts_with(url(4)), "{german}");
    }
    let group = server.status(url(0))["group"].as_str().unwrap().to_owned();
    let before = meaning(&server.export());
    run_ok(["repair", "--server", &server.url, &group]);
    server.flush();
    assert_eq!(meaning(&server.export()), before);
    let sizes = run_ok(["report", "groups", "--server", &server.url]);
    assert!(sizes.contains("most pages kept beside the winner") && sizes.contains("2 of 6"), "{sizes}");
}

/// At any moment, export and groups tell nobody to drop a page in favour of a page that is not kept any more.
#[test]
fn export_and_groups_name_only_pages_that_are_kept_at_that_moment() {
    let place = Place::new();
    let server = Server::start(&place.data(), &[]);
    let pages = chain();
    let url = |step: usize| pages[step]["url"].as_str().unwrap();
    for round in 0..20 {
        server.push(&pages);
        server.flush();
        let group = server.status(url(2))["group"].as_str().unwrap().to_owned();
        let gone = if round % 2 == 0 { url(2) } else { url(0) };
        let listed = |server: &Server| match round % 4 {
            0 | 1 => lines_of(&server.export()),
            _ => server.ask(&format!("/v1/groups/{group}"), &[])["pages"].as_array().unwrap().clone(),
        };
        match round % 3 {
            0 => drop(server.delete("/v1/pages", &[("url", gone)])),
            1 => drop(server.push(&[json!({"url": gone, "text": text(round, 100).join(" ")})])),
            _ => drop(server.push(&[json!({"url": gone, "redirect_to": "http://elsewhere.example/"})])),
        }
        let lines = listed(&server);
        let stale = lines.iter().find(|line| line["status"] == "duplicate" && line["duplicate_of"] == gone);
        assert_eq!(stale, None, "round {round}: an answer still names {gone}, which is not kept any more");
        server.flush();
        server.post_json("/v1/purge", &json!({"url": gone}));
    }
}
