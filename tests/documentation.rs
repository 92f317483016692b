//! The documentation holds: its commands print what the pages show, and its links lead somewhere.
//!
//! Every fenced block of the languages `console`, `sh` and `bash` in README.md and below docs/ runs, in order. Each page runs in one
//! shell, in a directory and on ports of its own. `documentation/page.rs` says how a page marks what cannot run.
//!
//! `DOPPEL_PAGES=docs/start cargo test --test documentation` runs the pages whose path begins so.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

mod documentation {
    pub(crate) mod fixtures;
    pub(crate) mod links;
    pub(crate) mod page;
    pub(crate) mod session;
}

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use documentation::page::Page;
use documentation::{links, page, session};

/// Pages outside docs/ whose links are checked.
const BESIDE: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// Pages that run at the same time. Most of them wait for servers.
const AT_ONCE: usize = 4;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Paths of all files below a folder that have one of these endings, sorted.
fn files_below(folder: &str, endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.iter().any(|ending| path.to_str().is_some_and(|path| path.ends_with(ending))) {
                found.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn pages_below_docs() -> Vec<String> {
    files_below("docs", &[".md"])
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The pages whose blocks run.
fn pages_that_run() -> Vec<Page> {
    let below = pages_below_docs();
    let paths = std::iter::once("README.md").chain(below.iter().map(String::as_str));
    paths.map(|path| page::parse(path, &read(path))).collect()
}

#[test]
fn every_command_prints_what_its_page_shows() {
    let chosen = std::env::var("DOPPEL_PAGES").unwrap_or_default();
    let pages = pages_that_run().into_iter().filter(|page| page.path.starts_with(&chosen));
    let queue: Mutex<VecDeque<Page>> = Mutex::new(pages.filter(Page::has_commands).collect());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some(page) = next else { break };
                    wrong.lock().unwrap().extend(session::run(&page));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_block_says_what_it_is() {
    let wrong: Vec<String> = pages_that_run().iter().flat_map(Page::faults).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let below = pages_below_docs();
    let paths = BESIDE.into_iter().chain(below.iter().map(String::as_str));
    let wrong: Vec<String> = paths.flat_map(|path| links::broken(root(), path)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_page_is_reached_from_the_map() {
    let reached = links::reached(root(), "docs/README.md");
    let missed: Vec<String> = pages_below_docs().into_iter().filter(|path| !reached.contains(path)).collect();
    assert!(missed.is_empty(), "docs/README.md does not lead to:\n{}", missed.join("\n"));
}

#[test]
fn every_page_that_a_source_names_is_there() {
    let endings = [".rs", ".py", ".toml", ".yml", ".service", ".html", ".js", "Dockerfile"];
    let folders = ["cli", "common", "tier1", "tier2", "coordinator", "eval", "deploy", "python"];
    let mut wrong = Vec::new();
    for source in folders.iter().flat_map(|folder| files_below(folder, &endings)) {
        let text = read(&source);
        for (at, _) in text.match_indices("docs/") {
            let named = &text[at..];
            let end = named
                .find(|c: char| !c.is_ascii_alphanumeric() && !"/-_.".contains(c))
                .unwrap_or(named.len());
            let page = named[..end].trim_end_matches('.');
            if page.ends_with(".md") && !root().join(page).is_file() {
                wrong.push(format!("{source}: there is no {page}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
