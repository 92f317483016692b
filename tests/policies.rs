//! Loads real crawls into `doppel serve` under policies that read sites, main contents and tables. Pages
//! change, move and die. At every stop, and after a kill, the groups are the connected components of the
//! policy's F and of redirects.
//!
//! Signatures and F are those of the product; the test `reference` of `doppel-text` compares them with slow
//! implementations. This test computes everything else in the most direct way, and compares every pair of
//! contents. All groups stay far below the size at which a group is quarantined.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;
mod oracle;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::tables::Tables;
use doppel_model::{ContentHash, PageUrl, UnionFind};
use doppel_text::{Extraction, Extractor};
use harness::{Server, crawl, crawls, meaning, run_ok};
use oracle::crawl::FetchOutcome;
use oracle::{Collection, Crawl, Resolution};

/// Rounds after which the test compares the groups. It kills the process after the first of them.
const STOPS: [usize; 2] = [6, 12];

/// The rounds to load: first the pages of many hosts, then rounds in which pages of a few hosts change.
fn rounds(data: &Path) -> Vec<PathBuf> {
    let rounds = crawl(data, "quick").into_iter().chain(crawl(data, "trace"));
    rounds.collect()
}

/// The tables of a policy, learnt from the first rounds, and the options that pass them to a server. Both are
/// empty if the policy reads no tables.
fn tables(policy: Policy, home: &Path, rounds: &[PathBuf]) -> (Option<Arc<Tables>>, Vec<String>) {
    if !policy.reads_tables() {
        return (None, Vec::new());
    }
    let path = home.join("tables").to_str().unwrap().to_owned();
    let learn = ["policy-tables", "--policy", policy.name(), "--out", &path];
    run_ok(learn.into_iter().chain(rounds[..4].iter().map(|round| round.to_str().unwrap())));
    let tables = Tables::from_file(&std::fs::read(&path).unwrap()).unwrap();
    (Some(Arc::new(tables)), vec!["--policy-tables".to_owned(), path])
}

/// The distinct contents of all pages, and the content of each page.
#[derive(Default)]
struct Contents<'c> {
    numbers: HashMap<ContentHash, usize>,
    signatures: Vec<Signature>,
    of_pages: HashMap<&'c str, usize>,
}

/// The groups with several live pages, and the number of near-duplicate pairs of contents.
fn groups(crawl: &Crawl, mut extractor: Extractor, policy: Policy) -> (Vec<Vec<String>>, usize) {
    let collection = Collection::new(crawl);
    let mut contents = Contents::default();
    for (url, found) in crawl.newest() {
        let (FetchOutcome::Html(html), Ok(page)) = (found, PageUrl::parse(url)) else { continue };
        let Extraction::Page(page) = extractor.html(&page, html.as_bytes(), Some("utf-8")) else { continue };
        let next = contents.signatures.len();
        let number = *contents.numbers.entry(page.signature.content()).or_insert(next);
        if number == next {
            contents.signatures.push(page.signature);
        }
        contents.of_pages.insert(url, number);
    }
    let mut components = UnionFind::new(contents.signatures.len());
    let mut pairs = 0;
    for (a, first) in contents.signatures.iter().enumerate() {
        for (b, second) in contents.signatures[..a].iter().enumerate() {
            if policy.similar(first, second) {
                components.union(a, b);
                pairs += 1;
            }
        }
    }
    let mut groups: BTreeMap<(usize, Option<&str>), Vec<String>> = BTreeMap::new();
    for url in collection.pages.keys() {
        if let Resolution::At(at, _) = collection.resolve(url) {
            let content = contents.of_pages[at];
            // A page without words forms a group only with the redirects to it.
            let is_empty = contents.signatures[content].tokens() == 0;
            let group = (components.root(content), is_empty.then_some(at));
            groups.entry(group).or_default().push(url.clone());
        }
    }
    let mut groups: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort();
    (groups, pairs)
}

/// The groups with several pages that a server exports.
fn served(server: &Server) -> Vec<Vec<String>> {
    let (_, mut groups) = meaning(&server.export());
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort();
    groups
}

fn groups_are_components(policy: &str) {
    let Some(data) = crawls("groups_are_components") else { return };
    let home = tempfile::tempdir().unwrap();
    let rounds = rounds(&data);
    let policy: Policy = policy.parse().unwrap();
    let (tables, options) = tables(policy, home.path(), &rounds);
    let signer = match tables {
        Some(tables) => Signer::with_tables(policy, tables).unwrap(),
        None => Signer::new(policy),
    };
    let name = policy.to_string();
    let options: Vec<&str> = ["--policy", &name, "--index-nodes", "2", "--partitions", "6"]
        .into_iter()
        .chain(options.iter().map(String::as_str))
        .collect();
    let data = home.path().join("collection");
    let mut server = Server::start(&data, &options);
    let mut crawl = Crawl::default();
    for (number, round) in rounds.iter().enumerate() {
        run_ok(["load", "--server", &server.url, round.to_str().unwrap()]);
        crawl.read_on(round).unwrap();
        if !STOPS.contains(&number) {
            continue;
        }
        if number == STOPS[0] {
            server.kill();
            server = Server::start(&data, &options);
        }
        server.flush();
        let (expected, pairs) = groups(&crawl, Extractor::signing(signer.clone()), policy);
        println!("{policy}, round {number}: {pairs} pairs, {} groups", expected.len());
        assert!(expected.len() > 100, "{} groups", expected.len());
        let served = served(&server);
        let differing: Vec<_> = served.iter().filter(|group| !expected.contains(group)).take(5).collect();
        assert!(
            served == expected,
            "{policy}, round {number}: the server has {} groups; not expected are {differing:#?}",
            served.len()
        );
    }
}

#[test]
fn under_by_site_groups_are_the_components_of_f() {
    groups_are_components("by-site:site=host");
}

#[test]
fn under_copies_groups_are_the_components_of_f() {
    groups_are_components("copies");
}

#[test]
fn under_multi_simhash_groups_are_the_components_of_f() {
    groups_are_components("multi-simhash");
}
