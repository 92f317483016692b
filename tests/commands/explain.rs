//! `doppel explain FILE FILE` compares pages on disk without a server.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, text};
use crate::harness::{Server, lines_of, run, run_ok};
use crate::{code, errors};

fn write(home: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = home.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A page with an article in the template of a site.
fn page(article: u64, site: u64) -> String {
    let menu = text(100 + site, 300).join("</a><li><a href=/x>");
    let body = text(article, 150).join(" ");
    format!(
        "<title>Site {site}</title><ul class=site-menu><li><a>{menu}</ul><div>{body}</div><footer>by us</footer>"
    )
}

#[test]
fn parts_outside_the_main_content_are_counted_and_shown() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) =
        (write(home.path(), "one.html", page(1, 1)), write(home.path(), "other.htm", page(1, 2)));
    // The whole pages are no near-duplicates, and the policy does not look at parts of them.
    let whole = run_ok(["explain", &one, &other]);
    assert!(whole.starts_with("no near-duplicates: ") && whole.contains("under jaccard:tau=0.8"), "{whole}");
    assert!(!whole.contains("main content"), "{whole}");
    let main = run_ok(["explain", "--policy", "content", &one, &other]);
    assert!(
        main.starts_with(
            "near-duplicates: they have the same words in the main content (punctuation and case ignored)\n"
        ),
        "{main}"
    );
    let menu = text(101, 300).join(" ");
    for line in [
        "main content of a: the page by the rules, without its title; 150 of 454 tokens taken, 304 left out",
        &format!("  navigation  300 tokens  {}…", menu.chars().take(199).collect::<String>()),
        "  footer      2 tokens    by us",
        "  title       2 tokens    Site 1",
    ] {
        assert!(main.lines().any(|one| one == line), "{line:?} is not in {main}");
    }
    let options = ["explain", "--json", "--policy", "content", "--left-out", "7", &one, &other];
    let json = &lines_of(&run_ok(options))[0];
    assert_eq!(json["duplicate"], json!(true));
    assert_eq!(json["policy"], json!("content:tau=0.8"));
    let expected = json!({
        "part": "page", "page_tokens": 454, "taken_tokens": 150, "left_out_tokens": 304,
        "left_out": [
            {"rule": "title", "tokens": 2, "text": "Site 2"},
            {"rule": "navigation", "tokens": 300, "text": format!("{}…", text(102, 300).join(" ").get(..6).unwrap())},
            {"rule": "footer", "tokens": 2, "text": "by us"},
        ],
    });
    assert_eq!(json["b"]["main_content"], expected);
    assert_eq!(json["b"]["tokens"], json!(150));
    assert_eq!(json["measures"]["same_content"], json!(true));
    // Plain text has no template, so it is compared whole.
    let plain = write(home.path(), "plain.txt", text(1, 150).join("\n"));
    let json = &lines_of(&run_ok(["explain", "--json", "--policy", "content", &one, &plain]))[0];
    assert_eq!(json["duplicate"], json!(true));
    assert_eq!(json["b"]["main_content"], Value::Null);
}

#[test]
fn files_named_as_xhtml_are_read_as_xml() {
    let home = tempfile::tempdir().unwrap();
    // HTML has no empty script element, so as HTML the script swallows the text behind it.
    let words = text(1, 60).join(" ");
    let page = format!(
        "<html xmlns='http://www.w3.org/1999/xhtml'><body><script src='a.js'/><p>{words}</p></body></html>"
    );
    let plain = write(home.path(), "plain.txt", &words);
    for (name, is_xhtml) in [("page.xhtml", true), ("page.XHT", true), ("page.html", false)] {
        let page = write(home.path(), name, &page);
        let compared = &lines_of(&run_ok(["explain", "--json", &page, &plain]))[0];
        assert_eq!(compared["duplicate"], is_xhtml, "{name}: {compared}");
    }
}

#[test]
fn a_pair_of_files_gets_the_same_answer_as_from_a_server() {
    let home = tempfile::tempdir().unwrap();
    let urls = ["http://a.example/1", "http://b.example/2"];
    let html = [page(1, 1), page(1, 2)];
    let pages: Vec<_> = urls.iter().zip(&html).map(|(url, html)| json!({"url": url, "html": html})).collect();
    let crawl = write(home.path(), "crawl.jsonl", ndjson(&pages));
    let other = write(home.path(), "other.html", &html[1]);
    for policy in ["jaccard", "by-site", "content", "copies"] {
        let server = Server::start(&home.path().join(policy), &["--policy", policy]);
        server.push(&pages);
        server.flush();
        let told = server.ask("/v1/explain", &[("a", urls[0]), ("b", urls[1])]);
        for second in [&crawl, &other] {
            let named = ["--url-a", urls[0], "--url-b", urls[1]];
            let options = ["explain", "--json", "--policy", policy, &crawl, second];
            let here = &lines_of(&run_ok(options.into_iter().chain(named)))[0];
            for field in ["policy", "duplicate", "reason", "measures"] {
                assert_eq!(here[field], told[field], "{policy}: {field}");
            }
            for (side, field) in
                ["a", "b"].into_iter().flat_map(|side| ["hash", "tokens", "shingles"].map(|of| (side, of)))
            {
                assert_eq!(
                    here[side].get(field),
                    told[side]["content"].get(field),
                    "{policy}: {side} {field}"
                );
            }
        }
    }
}

#[test]
fn the_newest_version_of_a_page_is_compared() {
    let home = tempfile::tempdir().unwrap();
    let at = |date: &str, words: &str| json!({"url": "http://a/1", "text": words, "fetched_at": date});
    let (new, old) = (at("2025-06-01T00:00:00Z", "one two three"), at("2024-06-01T00:00:00Z", "one"));
    // As in `doppel dedup`, the later of two versions with the same date counts.
    let same = at("2025-06-01T00:00:00Z", "one two three four");
    for (versions, tokens) in
        [([&new, &old], 3), ([&old, &new], 3), ([&new, &same], 4), ([&same, &new], 3), ([&new, &new], 3)]
    {
        let file = write(home.path(), "versions.jsonl", ndjson(&versions.map(Value::clone)));
        for named in [&["--url-a", "http://a/1", "--url-b", "http://a/1"][..], &[]] {
            let options = ["explain", "--json", &file, &file].into_iter().chain(named.iter().copied());
            let explained = &lines_of(&run_ok(options))[0];
            assert_eq!(explained["a"]["tokens"], tokens, "{versions:?}");
        }
    }
}

#[test]
fn files_that_cannot_be_compared_are_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let one = write(home.path(), "one.html", page(1, 1));
    let two = [json!({"url": "http://a/1", "text": "a b"}), json!({"url": "http://a/2", "text": "c d"})];
    let gone = [
        json!({"url": "http://a/1", "dead": true}),
        json!({"url": "http://a/2", "redirect_to": "http://b/"}),
    ];
    let gone = write(home.path(), "gone.jsonl", ndjson(&gone));
    let single = write(home.path(), "single.jsonl", ndjson(&two[..1]));
    let two = write(home.path(), "two.jsonl", ndjson(&two));
    let dir = home.path().to_str().unwrap().to_owned();
    let binary = write(home.path(), "binary.txt", [0_u8, 159, 146, 150, 0, 1, 2, 3, 1, 0, 5, 0].repeat(100));
    let moved = write(home.path(), "moved.html", "<meta http-equiv=refresh content='0; url=http://b/'>");
    for (options, ends, says) in [
        (&[&*one, "http://a.example/"][..], 2, "one.html is a file, and http://a.example/ is none"),
        (&["--policy", "copies", "http://a/", "http://b/"], 2, "--policy applies to two files only"),
        (&["--left-out", "9", "http://a/", "http://b/"], 2, "--left-out applies to two files only"),
        (&["--policy", "copies", &one, &one], 2, "say with --url-a where"),
        (&["--policy", "by-site", "--url-a", "http://a/", &one, &one], 2, "say with --url-b where"),
        (
            &["nope1.txt", "nope2.txt"],
            2,
            "nope1.txt does not exist, and is no URL: give two files or two URLs",
        ),
        (&["http://a/", "nope2.txt"], 2, "nope2.txt does not exist, and is no URL"),
        (&[&one, "nope.txt"], 2, "nope.txt does not exist, and is no URL"),
        (&["nope.txt", &one], 2, "nope.txt does not exist, and is no URL"),
        (&[&dir, &dir], 2, "is a directory: give two files or two URLs"),
        (&[&one, &dir], 2, "is a directory: give two files or two URLs"),
        (&[&one, &binary], 5, "binary or compressed data, not text"),
        (&["--url-b", "b", &one, &one], 2, "--url-b b: not an absolute URL"),
        (&["--policy", "imatch", &one, &one], 2, "the policy imatch needs tables"),
        (&["--policy", "simhash", "--tau", "0.9", &one, &one], 2, "the policy simhash has no tau"),
        (&[&one, &two], 2, "two.jsonl: it has several pages: say which with --url-b URL"),
        (
            &["--url-a", "http://a/3", &two, &one],
            5,
            "two.jsonl: http://a/3 is not there, but http://a/1, http://a/2",
        ),
        (&["--url-a", "http://a/11", &single, &one], 5, "http://a/11 is not there, but http://a/1"),
        (&[&one, &gone], 5, "there is no page in"),
        (&["--url-b", "http://a/1", &one, &gone], 5, "http://a/1 is dead"),
        (&["--url-b", "http://a/2", &one, &gone], 5, "http://a/2 redirects to http://b/"),
        (&[&one, &moved], 5, "redirects to http://b/: there is nothing to compare"),
    ] {
        let refused = run(["explain"].iter().chain(options));
        assert_eq!(code(&refused), ends, "{options:?}: {}", errors(&refused));
        assert!(errors(&refused).contains(says), "{options:?}: {}", errors(&refused));
    }
    run_ok(["explain", "--url-b", "http://a/2", &one, &two]);
    run_ok([
        "explain",
        "--url-a",
        "http://x.example/",
        "--url-b",
        "http://y.example/",
        "--policy",
        "copies",
        &one,
        &one,
    ]);
}

#[test]
fn two_empty_pages_are_not_measured() {
    let home = tempfile::tempdir().unwrap();
    let [one, other] = ["one.txt", "other.txt"].map(|name| write(home.path(), name, ""));
    for policy in ["jaccard", "simhash", "overlap"] {
        let human = run_ok(["explain", "--policy", policy, &one, &other]);
        assert!(human.starts_with("no near-duplicates: neither has any text\n"), "{human}");
        assert!(!human.contains("similarity") && !human.contains("asked for"), "{human}");
    }
}

#[test]
fn a_single_token_is_written_in_the_singular() {
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (write(home.path(), "one.txt", "word"), write(home.path(), "other.txt", "two words"));
    let human = run_ok(["explain", &one, &other]);
    assert!(human.starts_with("no near-duplicates: one has 1 token; below 20 only"), "{human}");
}
