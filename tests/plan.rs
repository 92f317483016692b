//! Runs `doppel plan` on unusual input. Every result is defined, and warnings name everything that makes it
//! doubtful.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

use std::fs;
use std::path::{Path, PathBuf};

use doppel_model::stable_hash64;
use doppel_partitioning::Plan;
use harness::{Server, doppel, run, run_ok};
use serde_json::{Value, json};

/// Writes a file with one page for each text.
fn pages(dir: &Path, name: &str, texts: impl IntoIterator<Item = String>) -> PathBuf {
    let path = dir.join(name);
    let page = |(n, text): (usize, String)| json!({"url": format!("http://a/{n}"), "text": text}).to_string();
    let lines: Vec<String> = texts.into_iter().enumerate().map(page).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    path
}

/// A text of `length` words. Every third word is chosen for this page from 97 words that all pages share.
fn text(kind: &str, number: usize, length: usize) -> String {
    let own = |n: usize| 1_000 + stable_hash64(format!("{number} {n}").as_bytes()) as usize % 97;
    let place = |n| if n % 3 == 0 { own(n) } else { n };
    (0..length).map(|n| format!("{kind}{} ", place(n))).collect()
}

/// The JSON summary of a plan for 4 nodes.
fn plan(options: &[&str], file: &Path) -> Value {
    let options = ["plan", "--json", "--nodes", "4"].iter().chain(options).map(ToString::to_string);
    serde_json::from_str(&run_ok(options.chain([file.display().to_string()]))).unwrap()
}

fn warns(summary: &Value, of: &str) -> bool {
    summary["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().contains(of))
}

#[test]
fn unusual_collections_are_mapped_with_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let one_word = pages(dir.path(), "one-word", (1..600).map(|n| "word ".repeat(n)));
    let one_length = pages(dir.path(), "one-length", (0..600).map(|n| text("w", n, 60)));
    let ten = pages(dir.path(), "ten", (0..10).map(|n| text("w", n, 20 + 30 * n)));
    let usual = pages(dir.path(), "usual", (0..600).map(|n| text("w", n, 20 + n)));
    let expected = [
        // A text of one repeated word has at most five shingles, so there are only five different length
        // vectors.
        (
            &one_word,
            599,
            &["times the mean", "595 of the sample's 599 contents have the same length vector"][..],
        ),
        (&one_length, 600, &["dimension 1 of 3"]),
        (&ten, 10, &["10 contents to learn from are fewer than 100 a node on 4 nodes"]),
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

/// The human-readable summary of a plan.
fn summary_text(options: &[&str], file: &Path) -> String {
    run_ok(["plan"].iter().chain(options).copied().chain([file.to_str().unwrap()]))
}

#[test]
fn warnings_explain_why_a_node_stores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let two_lengths = pages(dir.path(), "two-lengths", (0..600).map(|n| text("w", n, 40 + 20 * (n % 2))));
    let short = pages(dir.path(), "short", (0..500).map(|n| text("w", n, 20 + n % 100)));
    let long = pages(dir.path(), "long", (0..500).map(|n| text("w", n, 500 + n % 100)));
    let one = plan(&["--dimensions", "1"], &two_lengths);
    assert_eq!(one["plan"]["partitions"], 2, "{one:#}");
    let reason = "2 of 4 nodes have no partition: the sample has only 2 different length vectors";
    assert!(warns(&one, reason) && !warns(&one, "lie in its partitions"), "{one:#}");
    let later = plan(&["--dimensions", "1", "--learn-from", short.to_str().unwrap()], &long);
    let reason = "3 of 4 nodes have nothing to store: no content has lengths that lie in its partitions";
    assert!(warns(&later, reason) && !warns(&later, "no partition:"), "{later:#}");
    let paper = plan(&["--mapping", "paper", "--dimensions", "1"], &two_lengths);
    assert!(warns(&paper, "2 of 4 nodes have nothing to store: in the paper's grid"), "{paper:#}");
}

#[test]
fn summaries_use_singular_and_plural_and_omit_figures_that_one_node_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let one = pages(dir.path(), "one", [text("w", 0, 30)]);
    let usual = pages(dir.path(), "usual", (0..600).map(|n| text("w", n, 20 + n)));
    let row = |summary_text: &str| {
        let line = summary_text.lines().find(|line| line.starts_with("learned ")).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let alone = summary_text(&["--nodes", "1"], &one);
    assert!(alone.starts_with("1 distinct content on 1 node, tau 0.8\n"), "{alone}");
    assert_eq!(row(&alone), ["learned", "3", "1", "-", "-", "1.0"], "{alone}");
    assert!(!alone.contains("warning") && !alone.contains("imbalance:"), "{alone}");
    let few = summary_text(&["--nodes", "2"], &one);
    assert!(few.contains("warning: 1 content to learn from is fewer than 100 a node"), "{few}");
    let several = summary_text(&["--nodes", "4"], &usual);
    assert!(
        several.starts_with("600 distinct contents on 4 nodes") && !row(&several).contains(&"-".to_owned())
    );
    let line = "\nspeed-up: all pairs over the work (stored x received) of the busiest node\n";
    assert!(several.contains("fan-out saved  speed-up") && several.contains(line), "{several}");
}

#[test]
fn earlier_outputs_survive_a_run_without_contents() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let good = pages(dir.path(), "good.jsonl", [text("w", 0, 30)]);
    let no_text = pages(dir.path(), "no-text.jsonl", ["...".to_owned()]);
    let empty = file("empty.jsonl", "");
    let broken = file("broken.jsonl.gz", "not packed");
    let gone = file("gone.jsonl", "{\"url\": \"http://a/x\", \"dead\": true}\n");
    let missing = dir.path().join("missing.jsonl");
    let (old, map, new) = (file("old", "old"), file("map", "old"), dir.path().join("new"));
    let entries = || fs::read_dir(dir.path()).unwrap().count();
    let before = entries();
    let fails = |learn_from: Option<&Path>, input: &Path, code: i32, message: &str| {
        for assignments in [&old, &new] {
            let mut arguments = vec!["plan".as_ref(), "--assignments".as_ref(), assignments.as_os_str()];
            arguments.extend(["--map".as_ref(), map.as_os_str()]);
            arguments
                .extend(learn_from.into_iter().flat_map(|path| ["--learn-from".as_ref(), path.as_os_str()]));
            arguments.push(input.as_os_str());
            let output = run(arguments);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(code) && errors.contains(message), "{input:?}: {output:?}");
            assert!(output.stdout.is_empty(), "{output:?}");
        }
        for path in [&old, &map] {
            assert_eq!(fs::read_to_string(path).unwrap(), "old", "{input:?}");
        }
        assert_eq!(entries(), before, "the command must create no file, {input:?}");
    };
    fails(None, &no_text, 5, "nothing to map");
    fails(None, &gone, 5, "nothing to map");
    fails(None, &empty, 5, "nothing was read");
    fails(None, &broken, 5, "nothing was read");
    fails(None, &missing, 1, "cannot read");
    fails(Some(&no_text), &good, 5, "--learn-from: no live page");
    fails(Some(&empty), &good, 5, "--learn-from: nothing was read");
    fails(Some(&good), &no_text, 5, "nothing to map");
}

#[test]
fn two_outputs_cannot_be_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    fs::write(path("there"), "old").unwrap();
    std::os::unix::fs::symlink(path("there"), path("link")).unwrap();
    let refused = |assignments: &str, map: &str| {
        // The input does not exist, but the command fails before it notices that.
        let mut command = doppel();
        command.current_dir(dir.path()).args(["plan", "--assignments", assignments, "--map", map, "missing"]);
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (
            output.status.code() == Some(2) && errors.contains("--assignments") && errors.contains("--map"),
            errors,
        )
    };
    for (assignments, map) in [
        ("-", "-"),
        ("x", "x"),
        ("x", "./x"),
        (&path("x"), "x"),
        ("there", "./there"),
        ("there", "link"),
        ("link", &path("there")),
    ] {
        let (refused, errors) = refused(assignments, map);
        assert!(refused, "{assignments} and {map}: {errors}");
    }
    for (assignments, map) in [("x", "y"), ("-", "x"), ("./-", "-"), ("there", "x")] {
        let (refused, errors) = refused(assignments, map);
        assert!(!refused && errors.contains("cannot read missing"), "{assignments} and {map}: {errors}");
    }
    assert_eq!(fs::read_to_string(path("there")).unwrap(), "old");
}

#[test]
fn later_data_is_compared_with_the_sample() {
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
fn the_map_is_written_with_the_sample_that_it_was_learned_from() {
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
    assert_eq!(plan.nodes(), 4);
    assert_eq!(plan.map().partitions(), 32);
    assert_eq!(plan.map().version(), 1);
    let sample = plan.map().sample();
    assert_eq!(sample.contents, 500);
    assert_eq!(sample.features.len(), 3);
    assert_eq!(sample.load.stored.len(), 32);
}

#[test]
fn wrong_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = pages(dir.path(), "pages", [text("w", 0, 30)]);
    for (options, message) in [
        (&["--rho", "0.5"][..], "'--rho <RHO>': rho is a number from 1 to 10, not 0.5"),
        (&["--delta", "0.1"], "--epsilon"),
        (&["--rho", "1.1", "--delta", "0.1", "--epsilon", "0.1"], "cannot be used with"),
        (&["--mapping", "other"], "learned, paper"),
        (&["--dimensions", "9"], "1 to 8 dimensions"),
        (&["--rho", "1.1"], "--rho is for the paper's mapping only; add --mapping paper"),
        (&["--mapping", "learned", "--rho", "1.1"], "--rho is for the paper's mapping only"),
        (&["--delta", "0.1", "--epsilon", "0.1"], "--delta and --epsilon are for the paper's mapping only"),
        (
            &["--mapping", "paper", "--delta", "0.99", "--epsilon", "0.1"],
            "'--delta <SHARE>': a share from 0 to 0.81",
        ),
        (
            &["--mapping", "paper", "--delta", "-0.1", "--epsilon", "0.1"],
            "'--delta <SHARE>': a share from 0 to 0.81",
        ),
        (
            &["--mapping", "paper", "--delta", "0.1", "--epsilon", "NaN"],
            "'--epsilon <SHARE>': a share from 0 to 0.81",
        ),
        (
            &["--mapping", "paper", "--delta", "0.8", "--epsilon", "0.5"],
            "--delta 0.8 and --epsilon 0.5 make a rho",
        ),
    ] {
        let output = run(["plan"].iter().chain(options).copied().chain([file.to_str().unwrap()]));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(message), "{options:?}: {errors}");
    }
    let help = run_ok(["plan", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for range in ["1 to 10. A larger factor", "[default with --mapping paper: 1.1]", "0 to 0.81"] {
        assert!(help.contains(range), "{help}");
    }
}

#[test]
fn the_contents_of_a_server_give_the_same_map_as_the_crawl() {
    let dir = tempfile::tempdir().unwrap();
    let crawl = pages(dir.path(), "usual", (0..600).map(|n| text("w", n, 20 + n)));
    let empty = Server::start(&dir.path().join("empty"), &[]);
    let output = run(["plan", "--from-server", &empty.url]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    drop(empty);
    let server = Server::start(&dir.path().join("data"), &["--partitions", "16"]);
    run_ok(["load", "--flush", "--server", &server.url, crawl.to_str().unwrap()]);
    let of = |source: &[&str]| {
        run_ok(["plan", "--nodes", "4", "--json"].iter().chain(source).chain(["--map", "-"].iter()).copied())
    };
    assert_eq!(of(&["--from-server", &server.url]), of(&[crawl.to_str().unwrap()]));
    for more in [&[crawl.to_str().unwrap()][..], &["--assignments", "x"], &["--learn-from", "x"]] {
        let output = run(["plan", "--from-server", &server.url].iter().chain(more).copied());
        assert_eq!(output.status.code(), Some(2), "{more:?} {output:?}");
    }
}

#[test]
fn an_output_never_replaces_an_input() {
    let dir = tempfile::tempdir().unwrap();
    let file = pages(dir.path(), "pages", (0..20).map(|n| text("w", n, 50)));
    let before = fs::read(&file).unwrap();
    let spelt = dir.path().join(".").join("pages").display().to_string();
    let file = file.to_str().unwrap();
    for command in [
        &["plan", "--map", &spelt, file][..],
        &["plan", "--assignments", file, file],
        &["plan", "--map", file, "--learn-from", file, "other"],
    ] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{command:?} {output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("would replace the input"), "{output:?}");
    }
    assert_eq!(fs::read(file).unwrap(), before);
}
