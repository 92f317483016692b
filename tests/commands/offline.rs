//! Commands that need no collection: a file of winner rules.

use std::fs;

use serde_json::json;

use crate::harness::{lines_of, run, run_ok};
use crate::{code, errors};

#[test]
fn a_file_of_winner_rules_is_checked_and_tried() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = home.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let rules =
        file("rules.toml", "rules = ['static_url', 'first_seen']\n[markets]\ngerman = ['de', '.at']\n");
    let (long, short) = ("http://a.example/longer", "http://a.example/?q");
    assert_eq!(
        run_ok(["winners", &rules, short, long]),
        format!(
            "rules: static_url, first_seen, url\nmarket german: de, at\nwinner  {long}\n        {short}      behind the winner (without a query string)\n"
        )
    );
    let pages = file(
        "pages.jsonl",
        "{\"url\": \"http://a.example/\", \"text\": \"a\", \"fetched_at\": \"2024-05-02T00:00:00Z\"}\n\
         {\"url\": \"http://b.de/\", \"text\": \"a\", \"fetched_at\": \"2024-05-03T00:00:00Z\"}\n\
         {\"url\": \"http://c.example/\", \"dead\": true, \"fetched_at\": \"2024-05-01T00:00:00Z\"}\n",
    );
    let json = lines_of(&run_ok(["winners", "--json", "--market", "german", &rules, &pages]));
    assert_eq!(
        json,
        [json!({
            "rules": ["static_url", "first_seen", "url"],
            "rules_are_named": true,
            "markets": {"german": ["de", "at"]},
            "pages": [{"url": "http://b.de/", "rule": null}, {"url": "http://a.example/", "rule": "market"}],
        })]
    );
    let usual = run_ok(["winners", &file("empty.toml", ""), &pages]);
    assert!(
        usual.starts_with("rules (the file names none: those of a new directory): popularity, "),
        "{usual}"
    );
    assert!(usual.contains("winner  http://a.example/\n") && !usual.contains("c.example"), "{usual}");

    let wrong = run(["winners", &file("wrong.toml", "\nrules = ['beauty']")]);
    assert_eq!(code(&wrong), 1);
    assert!(
        errors(&wrong).contains("wrong.toml, line 2: \"beauty\" is no rule; the rules are"),
        "{}",
        errors(&wrong)
    );
    let neither = run(["winners", &rules, "no/such/page"]);
    assert_eq!(code(&neither), 2);
    assert!(
        errors(&neither).contains("no/such/page is neither a file nor a page URL"),
        "{}",
        errors(&neither)
    );
    let unknown = run(["winners", &rules, &pages, "--market", "d e"]);
    assert_eq!(code(&unknown), 2, "{}", errors(&unknown));
}
