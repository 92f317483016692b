//! Compares the text of HTML with that of a full HTML parser, on generated and on real pages.
#![allow(clippy::unwrap_used)]

use doppel_model::{ContentHash, PageUrl, RawContent};
use doppel_text::{Extraction, Extractor, PageText, decode};
use proptest::prelude::*;

#[path = "../crawl/mod.rs"]
mod crawl;
mod generator;
mod oracle;

/// Returns the content hashes of the product's text and of the oracle's text. `None` for a redirect.
fn contents(extractor: &mut Extractor, html: &[u8], charset: Option<&str>) -> Option<[ContentHash; 2]> {
    let url = PageUrl::parse("http://example.org/").unwrap();
    let text = oracle::text(decode(html, charset, &mut String::new()));
    // Swallowed words change the content hash of a page, so both texts are hashed as plain text.
    let read = match extractor.page_text(&url, RawContent::Html { bytes: html, charset }) {
        PageText::Text(text) => text.into_owned(),
        PageText::Redirect(_) => return None,
    };
    Some([read, text].map(|text| extractor.text(&text).signature.content()))
}

#[track_caller]
fn check(html: &str) {
    let mut extractor = Extractor::default();
    if let Some([read, expected]) = contents(&mut extractor, html.as_bytes(), Some("utf-8")) {
        assert_eq!(read, expected, "{html}\noracle: {:?}", oracle::text(html));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_html_has_the_text_that_the_parser_finds(html in generator::html()) {
        check(&html);
    }
}

#[test]
fn real_pages_have_the_text_that_the_parser_finds() {
    let mut files =
        ["mid/mid-00", "mid/mid-01", "cross/cross-00", "labelled/refetch.train"].map(str::to_owned).to_vec();
    files.extend((0..3).map(|round| format!("quick/round-{round:02}")));
    files.extend([0, 4, 9].map(|round| format!("trace/round-{round:02}")));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let Some(pages) = crawl::html(&files) else { return };
    let mut extractor = Extractor::default();
    let mut differ = Vec::new();
    for page in &pages {
        let contents = contents(&mut extractor, &page.bytes, page.charset.as_deref());
        if contents.is_some_and(|[read, expected]| read != expected) {
            differ.push(page.url.as_str());
        }
    }
    println!("{} of {} pages differ", differ.len(), pages.len());
    assert_eq!(differ, Vec::<&str>::new());
}

#[test]
fn deep_nesting_takes_linear_time() {
    for tag in ["div", "b", "svg", "a", "table", "template", "svg><foreignObject"] {
        let html = format!("{}deep", format!("<{tag}>").repeat(200_000));
        let url = PageUrl::parse("http://example.org/").unwrap();
        let Extraction::Page(page) = Extractor::default().html(&url, html.as_bytes(), None) else {
            panic!("unexpected redirect")
        };
        assert_eq!(page.signature.tokens(), 1);
    }
}
