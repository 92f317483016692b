//! `doppel plan` on odd input: every result is defined, and what should make one doubt it is said.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::path::{Path, PathBuf};

use doppel_common::mapping::Plan;
use doppel_common::model::stable_hash64;
use harness::{run, run_ok};
use serde_json::{Value, json};

/// A file of pages, one for each text.
fn pages(dir: &Path, name: &str, texts: impl IntoIterator<Item = String>) -> PathBuf {
    let path = dir.join(name);
    let page = |(n, text): (usize, String)| json!({"url": format!("http://a/{n}"), "text": text}).to_string();
    let lines: Vec<String> = texts.into_iter().enumerate().map(page).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

/// `length` words of a kind. Those of every third place are of a page's own choice among 97 that all share.
fn text(kind: &str, number: usize, length: usize) -> String {
    let own = |n: usize| 1_000 + stable_hash64(format!("{number} {n}").as_bytes()) as usize % 97;
    let place = |n| if n % 3 == 0 { own(n) } else { n };
    (0..length).map(|n| format!("{kind}{} ", place(n))).collect()
}

/// The summary of a plan for 4 nodes.
fn plan(options: &[&str], file: &Path) -> Value {
    let options = ["plan", "--json", "--nodes", "4"].iter().chain(options).map(ToString::to_string);
    serde_json::from_str(&run_ok(options.chain([file.display().to_string()]))).unwrap()
}

fn warns(summary: &Value, of: &str) -> bool {
    summary["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().contains(of))
}

#[test]
fn odd_collections_are_mapped_with_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = pages(dir.path(), "nothing", ["...".to_owned()]);
    let one_word = pages(dir.path(), "one-word", (1..600).map(|n| "word ".repeat(n)));
    let one_length = pages(dir.path(), "one-length", (0..600).map(|n| text("w", n, 60)));
    let ten = pages(dir.path(), "ten", (0..10).map(|n| text("w", n, 20 + 30 * n)));
    let usual = pages(dir.path(), "usual", (0..600).map(|n| text("w", n, 20 + n)));
    let expected = [
        (&nothing, 0, &["no contents to learn from"][..]),
        // One word gives five shingles at most, so five different vectors.
        (&one_word, 599, &["times the mean"]),
        (&one_length, 600, &["dimension 1 of 3"]),
        (&ten, 10, &["10 contents to learn from are fewer than 100 a node"]),
        (&usual, 600, &[]),
    ];
    for (file, contents, warnings) in expected {
        for mapping in [&["--mapping", "learned"][..], &["--mapping", "paper", "--rho", "1.2"]] {
            let summary = plan(mapping, file);
            assert_eq!(summary["contents"], contents, "{summary:#}");
            assert_eq!(summary["load"]["stored"].as_array().unwrap().len(), 4);
            if mapping.len() == 2 {
                assert!(warnings.iter().all(|warning| warns(&summary, warning)), "{summary:#}");
                assert_eq!(
                    summary["warnings"].as_array().unwrap().is_empty(),
                    warnings.is_empty(),
                    "{summary:#}"
                );
            } else {
                assert!(warns(&summary, "may lose pairs"), "{summary:#}");
            }
        }
    }
}

#[test]
fn later_data_are_held_against_the_sample() {
    let dir = tempfile::tempdir().unwrap();
    let short = pages(dir.path(), "short", (0..500).map(|n| text("w", n, 20 + n % 100)));
    let alike = pages(dir.path(), "alike", (500..1_000).map(|n| text("w", n, 20 + n % 100)));
    let long = pages(dir.path(), "long", (0..500).map(|n| text("v", n, 90 + n % 200)));
    let learn_from = ["--learn-from", short.to_str().unwrap()];
    let (like, unlike) = (plan(&learn_from, &alike), plan(&learn_from, &long));
    assert!(!warns(&like, "unlike") && like["sample"] == 500, "{like:#}");
    assert!(warns(&unlike, "unlike") && unlike["drift"]["distance"].as_f64().unwrap() > 0.3, "{unlike:#}");
}

#[test]
fn the_map_is_a_document_with_its_sample() {
    let dir = tempfile::tempdir().unwrap();
    let file = pages(dir.path(), "pages", (0..500).map(|n| text("w", n, 20 + n)));
    let map = dir.path().join("map.json");
    let of = || {
        plan(&["--map", map.to_str().unwrap()], &file);
        fs::read_to_string(&map).unwrap()
    };
    let document = of();
    assert_eq!(document, of(), "the same input gives the same map");
    let plan: Plan = serde_json::from_str(&document).unwrap();
    assert_eq!((plan.nodes(), plan.map().partitions(), plan.map().epoch()), (4, 32, 1));
    let sample = plan.map().sample();
    assert_eq!((sample.contents, sample.features.len(), sample.load.stored.len()), (500, 3, 32));
}

#[test]
fn wrong_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = pages(dir.path(), "pages", [text("w", 0, 30)]);
    for (options, message) in [
        (&["--rho", "0.5"][..], "rho is a number from 1 to 10, not 0.5"),
        (&["--delta", "0.1"], "--epsilon"),
        (&["--rho", "1.1", "--delta", "0.1", "--epsilon", "0.1"], "cannot be used with"),
        (&["--mapping", "other"], "learned, paper"),
        (&["--dimensions", "9"], "1 to 8 dimensions"),
    ] {
        let output = run(["plan"].iter().chain(options).copied().chain([file.to_str().unwrap()]));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(message), "{errors}");
    }
    let paper = ["plan", "--mapping", "paper", "--delta", "0.99", "--epsilon", "0.1", file.to_str().unwrap()];
    let output = run(paper);
    assert!(String::from_utf8_lossy(&output.stderr).contains("rho is a number"), "{output:?}");
}
