//! `--policy`: collections under each, and what is refused.

use std::fs;

use serde_json::json;

use crate::harness::pages::{ndjson, text};
use crate::harness::{Server, meaning, run, run_ok};
use crate::{code, errors};

const POLICIES: [&str; 8] =
    ["jaccard", "supershingle", "projection", "combined", "by-site", "simhash", "content", "copies"];

/// Those whose signatures are of shingles, so that lengths say where to search.
const OF_SHINGLES: [&str; 3] = ["jaccard", "content", "copies"];

/// Families of long texts that differ in a word or two, each text on two sites.
fn crawl(home: &std::path::Path) -> String {
    let page = |n: u64| {
        let (family, member) = (n / 6, n % 6);
        let mut words = text(family, 400);
        (0..member / 2).for_each(|at| words[100 * at as usize + 7] = format!("changed{member}"));
        json!({"url": format!("http://site{}.example/{n}", n % 2), "text": words.join(" ")})
    };
    let path = home.join("crawl.jsonl");
    fs::write(&path, ndjson(&(0..60).map(page).collect::<Vec<_>>())).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_policy_groups_at_once_as_page_by_page_and_as_a_server_does() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    for policy in POLICIES {
        let dedup = |options: &[&str]| {
            run_ok(
                ["dedup", "--out", "-", "--policy", policy]
                    .into_iter()
                    .chain(options.iter().copied())
                    .chain([&*crawl]),
            )
        };
        let at_once = dedup(&[]);
        assert!(at_once.contains("\"duplicate\""), "{policy}");
        assert_eq!(meaning(&dedup(&["--incremental"])), meaning(&at_once), "{policy}");
        let data = home.path().join(policy);
        let server = Server::start(&data, &["--policy", policy, "--index-nodes", "2", "--partitions", "4"]);
        let lines = fs::read_to_string(&crawl).unwrap();
        let pages: Vec<_> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        server.push_all(&pages);
        server.flush();
        assert_eq!(meaning(&server.export()), meaning(&at_once), "{policy}");
        let pair = [("a", "http://site0.example/0"), ("b", "http://site1.example/1")];
        let explained = server.ask("/v1/explain", &pair);
        assert_eq!(explained["duplicate"], true, "{explained}");
        assert!(explained["policy"].as_str().unwrap().starts_with(policy), "{explained}");
        // The same text is one content, but where F reads the site.
        assert_eq!(
            explained["measures"]["same_content"],
            !["by-site", "copies"].contains(&policy),
            "{explained}"
        );
        for of_shingles in [&explained["measures"]["shingles"], &explained["a"]["content"]["shingles"]] {
            assert_eq!(of_shingles.is_null(), !OF_SHINGLES.contains(&policy), "{explained}");
        }
        let what_if = server.query("/v1/reports/load-balance/what-if", &[]).status();
        assert_eq!(what_if, if OF_SHINGLES.contains(&policy) { 200 } else { 404 }, "{policy}");
        if policy != "jaccard" {
            let refused = run(["plan", "--from-server", &server.url]);
            assert!(code(&refused) == 1 && errors(&refused).contains("policy jaccard"), "{refused:?}");
        }
    }
}

#[test]
fn what_is_no_policy_or_another_is_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, data) = (crawl(home.path()), home.path().join("data"));
    let data = data.to_str().unwrap();
    let refused = |options: &[&str]| {
        let output =
            run(["dedup", "--data", data].into_iter().chain(options.iter().copied()).chain([&*crawl]));
        assert_ne!(code(&output), 0, "{options:?}");
        errors(&output)
    };
    for (options, says) in [
        (&["--policy", "minhash"][..], "there are jaccard, supershingle"),
        (&["--policy", "projection:tau=0.8"], "it has agreeing"),
        (&["--policy", "projection:agreeing=400"], "a number from 361 to 384"),
        (&["--policy", "by-site:site=page"], "one of registrable, host, parent"),
        (&["--policy", "simhash", "--tau", "0.9"], "the policy simhash has no tau"),
        (&["--policy", "copies", "--tau", "0.9"], "the policy copies has no tau"),
        (&["--policy", "content", "--tau", "0.9"], "say --policy content:tau=0.9"),
        (&["--policy", "copies:within=1"], "a decimal from 0.5"),
        (&["--policy", "jaccard:tau=0.7", "--tau", "0.9"], "two values for tau"),
        (&["--policy", "jaccard:tau=0.8", "--tau", "0.9"], "two values for tau"),
    ] {
        let error = refused(options);
        assert!(error.contains(says), "{options:?}: {error}");
    }
    run_ok(["dedup", "--data", data, "--policy", "simhash:differing=4", &crawl]);
    let error = refused(&["--policy", "simhash"]);
    assert!(error.contains("made with --policy simhash:differing=4, not simhash:differing=3"), "{error}");
    let error = refused(&["--tau", "0.8"]);
    assert!(error.contains("made with --policy simhash:differing=4, not jaccard:tau=0.8"), "{error}");
    run_ok(["dedup", "--data", data, "--policy", "simhash:differing=4", &crawl]);
}

/// The same article in two templates, and other articles in one of them.
#[test]
fn main_contents_are_compared_whatever_is_around_them() {
    let home = tempfile::tempdir().unwrap();
    let article = |n: u64| text(n, 150).join(" ");
    let menu = |site: u64| text(100 + site, 2_500).join("</a><li><a href=/x>");
    let page = |url: &str, site: u64, body: String| {
        let html = format!(
            "<title>t</title><ul class=site-menu><li><a>{}</ul><div>{body}</div><footer>{url}</footer>",
            menu(site)
        );
        json!({"url": url, "html": html})
    };
    let pages = [
        page("http://a.example/1", 1, article(1)),
        page("http://a.example/2", 1, article(2)),
        page("http://a.example/copy", 2, article(1)),
        page("http://b.example/1", 3, article(1)),
        json!({"url": "http://b.example/1.txt", "text": article(1)}),
    ];
    let crawl = home.path().join("crawl.jsonl");
    fs::write(&crawl, ndjson(&pages)).unwrap();
    let crawl = crawl.to_str().unwrap();
    for (policy, groups) in
        [("jaccard", vec![vec!["a.example/1", "a.example/2"]]), ("content", copies()), ("copies", copies())]
    {
        let out = run_ok(["dedup", "--out", "-", "--policy", policy, crawl]);
        let url = |url: &String| url.trim_start_matches("http://").to_owned();
        let groups_of =
            |(_, groups): crate::harness::Meaning| groups.into_iter().filter(|group| group.len() > 1);
        let mut found: Vec<Vec<String>> =
            groups_of(meaning(&out)).map(|group| group.iter().map(url).collect()).collect();
        found.iter_mut().for_each(|group| group.sort());
        assert_eq!(found, groups, "{policy}: {out}");
    }
}

/// The group of the article.
fn copies() -> Vec<Vec<&'static str>> {
    vec![vec!["a.example/1", "a.example/copy", "b.example/1", "b.example/1.txt"]]
}
