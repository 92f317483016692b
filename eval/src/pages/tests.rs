//! Reads files written by `doppel-eval pages` in the way `doppel dedup` does, and checks the pages.

use std::collections::HashSet;
use std::path::Path;

use clap::Parser;
use doppel_contract::page::{PageBody, PageItem};
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, Timestamp};
use doppel_text::Extractor;

use super::Pages;
use crate::report::ReportFormat;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    pages: Pages,
}

/// Runs the command and returns the file that it writes.
fn written(arguments: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("pages.jsonl");
    let all = ["pages", "--out", out.to_str().unwrap()].into_iter().chain(arguments.iter().copied());
    Program::parse_from(all).pages.run(ReportFormat::Json).unwrap();
    std::fs::read(&out).unwrap()
}

fn read(lines: &[u8]) -> Vec<(PageItem, String)> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let page = |line| {
        let item = PageItem::parse(line, Timestamp::from_millis(1_700_000_000_000)).unwrap();
        let PageBody::Text(text) = item.body.clone() else { panic!("the body of {} is not text", item.url) };
        (item, text)
    };
    lines.map(page).collect()
}

/// Similarities of all pairs whose similarity is above 0.3.
fn similarities(pages: &[(PageItem, String)]) -> Vec<f64> {
    let mut extractor = Extractor::default();
    let signatures: Vec<Signature> = pages.iter().map(|(_, text)| extractor.text(text).signature).collect();
    let pairs =
        signatures.iter().enumerate().flat_map(|(at, a)| signatures[..at].iter().map(move |b| (a, b)));
    let of = |(a, b): (&Signature, &Signature)| {
        let shared = a.shared_with(b);
        f64::from(shared) / f64::from(a.size() + b.size() - shared)
    };
    pairs.map(of).filter(|similarity| *similarity > 0.3).collect()
}

/// Asserts that families lie around the threshold: one pair of a family in fifteen is at tau or above, and
/// many pairs are near it.
fn assert_similarities_are_around_tau(pages: &[(PageItem, String)]) {
    let tau = Policy::default().metric().unwrap().as_f64();
    let similarities = similarities(pages);
    let pairs = similarities.len();
    assert!((100..2_000).contains(&pairs), "{pairs} pairs");
    let among = |from, to| similarities.iter().filter(|one| (from..=to).contains(*one)).count();
    let above = among(tau, 1.0);
    assert!((pairs / 30..pairs / 8).contains(&above), "{above} of {pairs} pairs are at tau or above");
    let near = among(tau - 0.1, tau + 0.1);
    assert!(near > pairs / 20, "{near} of {pairs} pairs are near tau");
}

fn distinct_urls(pages: &[(PageItem, String)]) -> usize {
    pages.iter().map(|(item, _)| &item.url).collect::<HashSet<&PageUrl>>().len()
}

#[test]
fn a_seed_repeats_made_up_pages_in_families() {
    let arguments = ["--words", "150", "--pages", "700"];
    let lines = written(&arguments);
    assert_eq!(lines, written(&arguments));
    assert_ne!(lines, written(&[&arguments[..], &["--seed", "8"]].concat()));
    let pages = read(&lines);
    assert_eq!((pages.len(), distinct_urls(&pages)), (700, 700));
    assert!(pages.iter().all(|(_, text)| text.split(' ').count() == 150));
    assert!(pages.is_sorted_by_key(|(item, _)| item.fetched_at));
    assert_similarities_are_around_tau(&pages);
}

fn crawl(path: &Path) {
    let mut lines = Vec::new();
    let mut add = |number: u32, date: i64, text: String| {
        let item = PageItem {
            url: PageUrl::parse(&format!("https://a.org/{number}")).unwrap(),
            body: PageBody::Text(text),
            fetched_at: Some(Timestamp::from_millis(date)),
            popularity: None,
            language: None,
        };
        item.to_json_line(&mut lines);
    };
    for page in 0..50 {
        // Newlines are white space like any other.
        add(page, 2, (0..120 + page).map(|word| format!("Word{page}x{word},\n")).collect());
    }
    add(0, 1, "an older version ".repeat(100));
    add(1, 3, "dead by now".to_owned());
    std::fs::write(path, lines).unwrap();
}

#[test]
fn real_pages_come_first_and_the_others_are_made_from_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("crawl.jsonl");
    crawl(&path);
    let from = ["--from", path.to_str().unwrap()];
    let real = read(&written(&from));
    assert_eq!(real.len(), 49, "the newest version of one page is too short");
    assert_eq!(real[0].0.url.as_str(), "https://a.org/0");
    assert!(real[0].1.starts_with("Word0x0, Word0x1, "));
    assert_eq!(real[0].0.fetched_at, Some(Timestamp::from_millis(2)));

    let arguments = [&from[..], &["--pages", "700"]].concat();
    let lines = written(&arguments);
    assert_eq!(lines, written(&arguments));
    let pages = read(&lines);
    assert_eq!((pages.len(), distinct_urls(&pages)), (700, 700));
    assert_eq!(pages[..49], real);
    let known: HashSet<&str> = real.iter().flat_map(|(_, text)| text.split(' ')).collect();
    assert!(pages[49..].iter().flat_map(|(_, text)| text.split(' ')).all(|word| known.contains(word)));
    assert_similarities_are_around_tau(&pages);
    assert_eq!(read(&written(&[&from[..], &["--pages", "7"]].concat())), real[..7]);
}
