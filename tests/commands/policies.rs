//! `--policy`: collections under each, and what is refused.

use std::fs;

use serde_json::json;

use crate::harness::pages::{ndjson, text};
use crate::harness::{Server, meaning, run, run_ok};
use crate::{code, errors};

const POLICIES: [&str; 7] =
    ["jaccard", "supershingle", "projection", "combined", "by-site", "simhash", "overlap"];

/// Families of long texts that differ in a word or two, each text on two sites.
fn crawl(home: &std::path::Path) -> String {
    let page = |n: u64| {
        let (family, member) = (n / 6, n % 6);
        let mut words = text(family, 400);
        (0..member / 2).for_each(|at| words[100 * at as usize + 7] = format!("changed{member}"));
        json!({"url": format!("http://site{}.example/{n}", n % 2), "text": words.join("\n")})
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
        assert_eq!(explained["measures"]["same_content"], policy != "by-site", "{explained}");
        for of_shingles in [&explained["measures"]["shingles"], &explained["a"]["content"]["shingles"]] {
            assert_eq!(of_shingles.is_null(), policy != "jaccard", "{explained}");
        }
        if policy != "jaccard" {
            assert_eq!(server.query("/v1/reports/load-balance/what-if", &[]).status(), 404, "{policy}");
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
