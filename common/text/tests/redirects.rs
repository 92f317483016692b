//! Compares redirects inside pages with two independent answers. The first is what the sources of the crawls
//! say about their own redirect stubs. The second is the rule of docs/reference/text.md on the tree that html5ever
//! builds.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use doppel_model::PageUrl;
use doppel_text::{Extraction, Extractor};
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Deserialize;

use crate::crawl::Html;

mod crawl;

/// Implementation of the rule of docs/reference/text.md on the tree that html5ever builds.
#[allow(dead_code, reason = "the tests of the program use all of it")]
#[path = "../../../tests/oracle"]
mod oracle {
    pub(crate) mod dom;
    pub(crate) mod redirect;
    pub(crate) mod script;
}

/// Line of the description of a crawl: a fetched URL, and its target if it is a redirect.
#[derive(Deserialize)]
struct Fetch {
    #[serde(default)]
    round: u32,
    url: String,
    to: Option<String>,
}

fn fetches(file: &Path) -> Vec<Fetch> {
    let mut text = String::new();
    let bytes = std::fs::read(file).unwrap();
    if file.extension().is_some_and(|e| e == "gz") {
        MultiGzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns a URL as the descriptions write it: without a fragment, and with the directory instead of its
/// index page.
fn described(url: &str) -> String {
    let url = PageUrl::parse(url).unwrap().join("").unwrap();
    let directory = url.as_str().strip_suffix("index.html").filter(|directory| directory.ends_with('/'));
    directory.unwrap_or(url.as_str()).to_owned()
}

/// Reads all `pages` and compares their redirects with `truth`. Returns the number of correct redirects, and
/// the differences.
fn check(pages: &[Html], truth: &HashMap<&str, &str>) -> (usize, Vec<String>) {
    let mut extractor = Extractor::default();
    let mut right = 0;
    let mut differences = Vec::new();
    for page in pages {
        let found = match extractor.html(&page.url, &page.bytes, page.charset.as_deref()) {
            Extraction::Redirect(target) => Some(described(target.as_str())),
            Extraction::Page(_) => None,
        };
        let expected = truth.get(page.url.as_str()).map(|to| described(to));
        if found == expected {
            right += usize::from(found.is_some());
        } else {
            differences.push(format!("{}: found {found:?}, described {expected:?}", page.url));
        }
    }
    (right, differences)
}

#[test]
fn redirect_stubs_of_the_mid_crawl_are_found() {
    let Some(data) = crawl::data() else { return };
    let pages = crawl::html(&["mid/mid-00", "mid/mid-01"]).unwrap();
    let lines = fetches(&data.join("mid/mid.redirects.jsonl"));
    let truth = lines.iter().filter_map(|l| Some((l.url.as_str(), l.to.as_deref()?))).collect();
    let (right, differences) = check(&pages, &truth);
    println!("mid: {right} of {} right", truth.len());
    // This stub shows 20 words: "Redirecting to" and a URL of 18 words.
    let long = "https://doc.rust-lang.org/1.63.0/edition-guide/rust-next/alloc.html: found None";
    assert!(matches!(&*differences, [one] if one.starts_with(long)), "{differences:#?}");
}

#[test]
fn redirect_stubs_of_the_repeated_crawls_are_found() {
    let Some(data) = crawl::data() else { return };
    for (name, file) in [("quick", "quick/quick.jsonl"), ("trace", "trace/trace.jsonl.gz")] {
        let lines = fetches(&data.join(file));
        for round in 0..=lines.iter().map(|l| l.round).max().unwrap() {
            let pages = crawl::html(&[&format!("{name}/round-{round:02}")]).unwrap();
            let of_round = lines.iter().filter(|l| l.round == round);
            let truth = of_round.filter_map(|l| Some((l.url.as_str(), l.to.as_deref()?))).collect();
            let (right, differences) = check(&pages, &truth);
            println!("{name} round {round}: {right} of {} right", truth.len());
            assert_eq!(differences, Vec::<String>::new());
        }
    }
}

/// Markup around other pieces, which replace `{}`.
const AROUND: [&str; 21] = [
    "<div>{}</div>",
    "<p>{}</p>",
    "<p>{}",
    "<ul><li>{}<li>{}</ul>",
    "<div hidden>{}</div>",
    "<p hidden>{}",
    "<p style='color: red; Display: NONE'>{}</p>",
    "<span style='visibility:hidden'>{}</span>",
    "<div style='display:none;display:block'>{}</div>",
    "<div style='display:none !important;display:flex'>{}</div>",
    "<div style='visibility:hidden;Visibility:visible'>{}</div>",
    "<div style='display:none;visibility:visible'>{}</div>",
    "<div style='/*a*/display:/*b*/none'>{}</div>",
    "<div aria-hidden=true hidden=until-found>{}</div>",
    "<noscript>{}</noscript>",
    "<template>{}</template>",
    "<iframe>{}</iframe>",
    "<textarea>{}</textarea>",
    "<title>{}</title>",
    "<!-- {} -->",
    "<table><tr hidden><td>{}<tr><td>{}</table>",
];

const PIECES: [&str; 24] = [
    "<base href='/b/'>",
    "<base target=x>",
    "<meta http-equiv=refresh content='0;x'>",
    "<meta http-equiv=Refresh content='1;url=y#z'>",
    "<meta http-equiv=refresh content='5;url=http://c.org/'>",
    "<meta http-equiv=refresh content='10;x'>",
    "<meta http-equiv=refresh content='11;x'>",
    "<meta http-equiv=refresh content='0;javascript:x'>",
    "<meta http-equiv=refresh content='0'>",
    "<meta http-equiv=refresh content='x'>",
    "<a href=x>on</a>",
    "<a href='http://c.org/#top'>on</a>",
    "See c.org. ",
    "http://a.org/d/x ",
    "日本語の文",
    "word ",
    "four words of text ",
    "<script>location = 'x'</script>",
    "<script>if (a)\nlocation = 'y'</script>",
    "<script>function f() { location = 'y' }\nwindow.location.href = 'z';</script>",
    "<script>location.replace('y' + location.search)</script>",
    "<script src=y>location = 'x'</script>",
    "<script type=text/x>location = 'x'</script>",
    "<script>var a = 1, b = /[/']/; // location = 'y'\ntop.location = \"x\\/y\"</script>",
];

fn page() -> impl Strategy<Value = String> {
    let piece = select(&PIECES[..]).prop_map(str::to_owned);
    let nested = piece.prop_recursive(3, 12, 4, |inner| {
        (select(&AROUND[..]), prop::collection::vec(inner, 0..4))
            .prop_map(|(around, inner)| around.replace("{}", &inner.concat()))
    });
    prop::collection::vec(nested, 0..8).prop_map(|pieces| format!("<!doctype html>{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_pages_are_redirects_exactly_by_the_rule(html in page()) {
        let url = PageUrl::parse("http://a.org/d/e?q=1").unwrap();
        let found = match Extractor::default().html(&url, html.as_bytes(), Some("utf-8")) {
            Extraction::Redirect(target) => Some(target.as_str().to_owned()),
            Extraction::Page(_) => None,
        };
        prop_assert_eq!(found, oracle::redirect::target(url.as_str(), &html), "{}", html);
    }
}
