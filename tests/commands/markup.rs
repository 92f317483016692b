//! HTML and XHTML pages in `doppel dedup`: which of them are redirects, and which words they have.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::pages::text;
use crate::harness::warc::response;
use crate::harness::{lines_of, run_ok};

/// A response record with a page of this media type.
fn page(number: usize, kind: &str, document: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}; charset=utf-8");
    response(&format!("http://a.example/{number}"), &head, document.as_bytes())
}

fn words(seed: u64, count: usize) -> String {
    text(seed, count).join(" ")
}

/// The status of each page of a WARC file in the order of the URLs, with the page that it duplicates.
fn statuses(home: &Path, pages: &[(&str, String)]) -> Vec<String> {
    let file = home.join("pages.warc");
    let records = pages.iter().enumerate().map(|(number, (kind, document))| page(number, kind, document));
    fs::write(&file, records.collect::<Vec<_>>().concat()).unwrap();
    let mut lines = lines_of(&run_ok(["dedup", "--out", "-", file.to_str().unwrap()]));
    lines.sort_by_key(|line| line["url"].to_string());
    let of = |line: &Value| {
        let original =
            line["duplicate_of"].as_str().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
        format!("{} {original}", line["status"].as_str().unwrap()).trim_end().to_owned()
    };
    lines.iter().map(of).collect()
}

const HTML: &str = "text/html";
const XHTML: &str = "application/xhtml+xml";

#[test]
fn a_page_with_a_refresh_for_browsers_without_scripts_is_a_page() {
    let home = tempfile::tempdir().unwrap();
    let noscript = "<noscript><meta http-equiv='refresh' content='0;url=/0'></noscript>";
    let article =
        |seed| (HTML, format!("<html><head>{noscript}</head><body><p>{}</body></html>", words(seed, 300)));
    let target = (HTML, format!("<p>Please enable scripts. {}", words(9, 40)));
    let pages: Vec<_> = [target].into_iter().chain((1..6).map(article)).collect();
    assert_eq!(statuses(home.path(), &pages), vec!["unique"; 6]);
    let refresh = |words: &str| (HTML, format!("<meta http-equiv=refresh content='0;url=/0'><p>{words}"));
    let pages = [
        (HTML, words(1, 40)),
        refresh(&words(2, 40)),
        refresh(&words(2, 40)),
        refresh("Moved to a new place"),
    ];
    assert_eq!(statuses(home.path(), &pages), ["winner", "winner", "duplicate 1", "duplicate 0"]);
}

#[test]
fn different_xhtml_pages_are_unique() {
    let home = tempfile::tempdir().unwrap();
    for empty in ["<script src='a.js'/>", "<style/>", "<title/>", "<iframe/>", "<textarea/>"] {
        let page = |seed| {
            let html = "<html xmlns='http://www.w3.org/1999/xhtml'>";
            format!(
                "{html}<head/><body>The Site {empty}<p>{}</p><![CDATA[{}]]></body></html>",
                words(seed, 20),
                words(seed + 50, 300)
            )
        };
        let pages: Vec<_> = (0..5).map(|seed| (XHTML, page(seed))).collect();
        assert_eq!(statuses(home.path(), &pages), vec!["unique"; 5], "{empty}");
        let declared = |seed| (HTML, format!("<?xml version='1.0'?>{}", page(seed)));
        // Both are not well-formed, and are still pages.
        let broken = |seed| (XHTML, page(seed).replace("</html>", "<br>"));
        let pages = [(XHTML, page(1)), declared(1), broken(1), declared(2), broken(2), (XHTML, page(3))];
        let expected = ["winner", "duplicate 0", "duplicate 0", "winner", "duplicate 3", "unique"];
        assert_eq!(statuses(home.path(), &pages), expected, "{empty}");
    }
}

#[test]
fn swallowed_words_tell_pages_apart() {
    let home = tempfile::tempdir().unwrap();
    let shown = words(1, 400);
    for open in ["<script>", "<script src='a.js'/>", "<style>", "<!-- ", "<a title=\"", "<title>"] {
        let page = |seed, count| (HTML, format!("<p>{shown}</p>{open}{}", words(seed, count)));
        let pages =
            [page(2, 25), page(3, 25), page(2, 25), (HTML, format!("<p>{shown}")), page(4, 8), page(5, 8)];
        let found = statuses(home.path(), &pages);
        assert_eq!(found[..4], ["winner", "unique", "duplicate 0", "winner"], "{open}");
        assert_eq!(found[4..], ["duplicate 3", "duplicate 3"], "{open}");
    }
}
