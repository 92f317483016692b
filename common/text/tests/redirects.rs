//! Redirects in content, against what the sources of the crawls say about their own stubs.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use doppel_model::PageUrl;
use doppel_text::{Extracted, Extractor};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::crawl::Html;

mod crawl;

/// A line of the crawls' descriptions.
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

/// A URL as the descriptions write it: an index page as its directory, and without a fragment.
fn described(url: &str) -> String {
    let url = PageUrl::parse(url).unwrap().join("").unwrap();
    let directory = url.as_str().strip_suffix("index.html").filter(|directory| directory.ends_with('/'));
    directory.unwrap_or(url.as_str()).to_owned()
}

/// Reads all `pages`. Returns the number of correct redirects, and the differences.
fn check(pages: &[Html], truth: &HashMap<&str, &str>) -> (usize, Vec<String>) {
    let mut extractor = Extractor::default();
    let mut right = 0;
    let mut differences = Vec::new();
    for page in pages {
        let found = match extractor.html(&page.url, &page.bytes, page.charset.as_deref()) {
            Extracted::Redirect(target) => Some(described(target.as_str())),
            Extracted::Page(_) => None,
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
fn stubs_of_mid() {
    let Some(data) = crawl::data() else { return };
    let pages = crawl::html(&["mid/mid-00", "mid/mid-01"]).unwrap();
    let lines = fetches(&data.join("mid/mid.redirects.jsonl"));
    let truth = lines.iter().filter_map(|l| Some((l.url.as_str(), l.to.as_deref()?))).collect();
    let (right, differences) = check(&pages, &truth);
    println!("mid: {right} of {} right", truth.len());
    // It shows 20 words: "Redirecting to" and a URL of 18.
    let long = "https://doc.rust-lang.org/1.63.0/edition-guide/rust-next/alloc.html: found None";
    assert!(matches!(&*differences, [one] if one.starts_with(long)), "{differences:#?}");
}

#[test]
fn stubs_of_the_re_crawls() {
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
