//! `doppel pilot`: its figures equal those of `doppel dedup`, and those of a slow count over the output of
//! `dedup`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, near_copy, text};
use crate::harness::{lines_of, run, run_ok};
use crate::{code, errors};

/// Writes families of long texts, with copies and near copies on three hosts, and a redirect for each family.
fn crawl(home: &std::path::Path) -> String {
    let page = |n: u64| {
        let (family, member) = (n / 8, n % 8);
        let words = text(family, 300);
        let words = if matches!(member, 3 | 5 | 7) { near_copy(&words, n) } else { words };
        let url = format!("http://site{}.example/{n}", (n + family) % 3);
        if member == 7 {
            return json!({"url": url, "redirect_to": format!("http://site{}.example/{}", (n - 1 + family) % 3, n - 1)});
        }
        json!({"url": url, "text": words.join(" ")})
    };
    let path = home.join("crawl.jsonl");
    fs::write(&path, ndjson(&(0..80).map(page).collect::<Vec<_>>())).unwrap();
    path.to_str().unwrap().to_owned()
}

fn host(url: &Value) -> String {
    url.as_str().unwrap().split('/').nth(2).unwrap().to_owned()
}

/// Counts the removable pages by the hosts of the page and of the kept page, if the hosts differ.
fn slow_mirrors(lines: &[Value]) -> BTreeMap<(String, String), u64> {
    let mut mirrors = BTreeMap::new();
    for line in lines.iter().filter(|line| line["status"] == "duplicate") {
        let pair = (host(&line["url"]), host(&line["duplicate_of"]));
        if pair.0 != pair.1 {
            *mirrors.entry(pair).or_default() += 1;
        }
    }
    mirrors
}

#[test]
fn a_pilot_finds_what_dedup_finds() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let asked = ["jaccard", "by-site:site=host", "simhash"];
    let mut arguments = vec!["pilot", "--json", "--latest"];
    asked.iter().for_each(|policy| arguments.extend(["--policy", policy]));
    arguments.push(&crawl);
    let found: Value = serde_json::from_str(&run_ok(arguments)).unwrap();
    let trials = found["policies"].as_array().unwrap();
    assert_eq!(trials.len(), asked.len());
    for (trial, policy) in trials.iter().zip(asked) {
        let dedup = |options: &[&str]| {
            run_ok(
                ["dedup", "--latest", "--policy", policy]
                    .into_iter()
                    .chain(options.iter().copied())
                    .chain([&*crawl]),
            )
        };
        let summary: Value = serde_json::from_str(&dedup(&["--json"])).unwrap();
        let savings = &trial["savings"];
        let name = policy.split(':').next().unwrap();
        assert!(savings["policy"].as_str().unwrap().starts_with(name), "{savings}");
        assert_eq!(trial["removed"], summary["removed"]["pages"], "{policy}");
        assert_eq!(trial["kept"], summary["kept"]["pages"], "{policy}");
        assert_eq!(savings["all"]["bytes"], summary["removed"]["bytes"], "{policy}");
        let sum = |name: &str| savings[name]["pages"].as_u64().unwrap();
        assert_eq!(sum("copies") + sum("near") + sum("redirects"), sum("all"));
        assert!(sum("copies") > 0 && sum("redirects") > 0, "{savings}");
        assert!(trial["signature_bytes"].as_f64().unwrap() > 0.0 && trial["sign_us"].as_f64().unwrap() > 0.0);
        let mirrors: BTreeMap<(String, String), u64> = savings["mirrors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| {
                (
                    (m["host"].as_str().unwrap().into(), m["of"].as_str().unwrap().into()),
                    m["pages"].as_u64().unwrap(),
                )
            })
            .collect();
        let lines = lines_of(&dedup(&["--out", "-"]));
        assert_eq!(mirrors, slow_mirrors(&lines), "{policy}");
        // Count the pairs of pages in one group that are no redirects. Some of these pairs are linked only
        // through other pages.
        let mut pages: BTreeMap<String, u64> = BTreeMap::new();
        for line in lines.iter().filter(|line| !line["group"].is_null()) {
            let number: u64 = line["url"].as_str().unwrap().rsplit('/').next().unwrap().parse().unwrap();
            *pages.entry(line["group"].to_string()).or_default() += u64::from(number % 8 != 7);
        }
        let pairs: u64 = pages.values().map(|pages| pages * (pages - 1) / 2).sum();
        assert_eq!(trial["pairs"], json!(pairs), "{policy}");
        assert_eq!(trial["pairs_compared"], json!(pairs), "{policy}");
        assert!(pairs > 0 && trial["pairs_unlike"].as_u64().unwrap() < pairs, "{trial}");
    }
    // The near copies have J = 295 / 305.
    let taus = found["taus"].as_array().unwrap();
    assert_eq!(taus.len(), 10);
    let at = |tau: &str| taus.iter().find(|at| at["tau"] == tau).unwrap();
    assert_eq!(at("0.8")["savings"]["all"], trials[0]["savings"]["all"]);
    assert!(taus.windows(2).all(|two| two[0]["removed"].as_u64() >= two[1]["removed"].as_u64()));
}

#[test]
fn without_options_all_policies_are_tried_and_shown_in_a_table() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let human = run_ok(["pilot", "--top", "1", &crawl]);
    for policy in doppel_model::pairwise::Policy::all() {
        let lines: Vec<_> = human.lines().filter(|line| line.starts_with(&policy.to_string())).collect();
        if policy.name() == "content" {
            let says = "no record has markup, so the main content is the whole text: it would give the same groups as jaccard:tau=0.8";
            assert!(lines.len() == 1 && lines[0].contains(says), "{human}");
        } else {
            assert!(lines.len() >= 2, "{human}");
        }
    }
    let named = run_ok(["pilot", "--policy", "jaccard", "--policy", "content", &crawl]);
    assert!(named.lines().filter(|line| line.starts_with("content:tau=0.8 ")).count() == 2, "{named}");
    assert!(
        human.contains("jaccard, by its threshold") && human.contains("which hosts mirror which"),
        "{human}"
    );
    let tables = home.path().join("tables").to_str().unwrap().to_owned();
    run_ok(["policy-tables", "--policy", "imatch", "--out", &tables, &crawl]);
    let of = |options: &[&str]| {
        let arguments = [&["pilot", "--json", "--policy", "imatch"], options, &[&*crawl]].concat();
        let found: Value = serde_json::from_str(&run_ok(arguments)).unwrap();
        (found["policies"][0]["tables"].clone(), found["policies"][0]["savings"].clone())
    };
    let (given, learnt) = (of(&["--policy-tables", &tables]), of(&[]));
    assert_eq!([&given.0["learnt"], &learnt.0["learnt"]], [false, true]);
    assert_eq!(given.0["hash"], learnt.0["hash"]);
    assert_eq!(given.1, learnt.1);
    let refused = run(["pilot", "--policy", "jaccard", "--policy-tables", &tables, &crawl]);
    assert!(
        code(&refused) == 2 && errors(&refused).contains("the policy imatch, which is not tried"),
        "{refused:?}"
    );
    // The pilot uses the pages that it can read.
    let bad = home.path().join("bad.jsonl");
    fs::write(&bad, "no page\n").unwrap();
    let output = run(["pilot", "--strict", "--policy", "jaccard", bad.to_str().unwrap(), &crawl]);
    let tried = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(code(&output) == 5 && tried.contains("jaccard:tau=0.8"), "{output:?}");
    let refused = run(["pilot", "--policy", "nonsense", &crawl]);
    assert_eq!(code(&refused), 2);
    assert!(errors(&refused).contains("is not a policy"), "{}", errors(&refused));
}

#[test]
fn pages_that_a_policy_refuses_are_counted_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let crawl = home.path().join("crawl.jsonl");
    let page = |url: &str, words: &str| json!({"url": url, "text": words});
    let pages = [page("http://a.example/", "one two"), page("file:///x", "three"), page("file:///y", "four")];
    fs::write(&crawl, ndjson(&pages)).unwrap();
    let crawl = crawl.to_str().unwrap();
    let asked = ["jaccard", "by-site", "imatch"].map(|policy| ["--policy", policy]).concat();
    let human = run_ok([&["pilot"], &*asked, &[crawl]].concat());
    let says = "2 pages refused: no host in the URL, which by-site needs";
    assert!(human.contains(says) && human.contains(": not tried: no word is in two"), "{human}");
    let strict = run([&["pilot", "--json", "--strict"], &*asked, &[crawl]].concat());
    assert!(code(&strict) == 5 && errors(&strict).contains("2 pages were refused"), "{strict:?}");
    let found: Value = serde_json::from_slice(&strict.stdout).unwrap();
    assert_eq!(found["policies"][1]["refused"], json!({"no host in the URL, which by-site needs": 2}));
    assert!(found["policies"][0].get("refused").is_none(), "{found}");
    assert!(found["not_tried"][0]["policy"].as_str().unwrap().starts_with("imatch:"), "{found}");
    let nothing = run(["pilot", "--policy", "imatch", crawl]);
    assert!(code(&nothing) == 5 && errors(&nothing).contains("no word is in two contents"), "{nothing:?}");
}

#[test]
fn a_policy_that_can_use_no_page_fails_with_exit_code_5() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, url: &str| {
        let path = home.path().join(name);
        let page = |n: u64| json!({"url": format!("{url}{n}"), "text": text(n, 30).join(" ")});
        fs::write(&path, ndjson(&[page(1), page(2)])).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (files, hosts) = (file("files.jsonl", "file:///"), file("hosts.jsonl", "http://a.example/"));
    let output = run(["pilot", "--policy", "jaccard", "--policy", "copies", &files]);
    let says = "no page could be compared: 2 pages refused: no host in the URL, which copies needs";
    assert!(code(&output) == 5 && errors(&output).contains(says), "{output:?}");
    // The table of the other policies is printed.
    let human = String::from_utf8_lossy(&output.stdout);
    assert!(
        human.lines().any(|line| line.split_whitespace().take(2).eq(["jaccard:tau=0.8", "2"])),
        "{human}"
    );
    for asked in [&["--policy", "copies", &files, &hosts][..], &["--policy", "jaccard", &files]] {
        run_ok(["pilot"].iter().chain(asked));
    }
}

#[test]
fn pages_that_quarantine_keeps_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let options = ["--latest", "--policy", "jaccard", "--group-members-max", "2", &crawl];
    let found: Value = serde_json::from_str(&run_ok(["pilot", "--json"].iter().chain(&options))).unwrap();
    let summary: Value = serde_json::from_str(&run_ok(["dedup", "--json"].iter().chain(&options))).unwrap();
    // Seven pages of each family have one of three contents; the eighth redirects.
    let trial = &found["policies"][0];
    assert_eq!(trial["quarantined"], json!(10), "{trial}");
    assert_eq!(trial["quarantined_pages"], json!(70), "{trial}");
    assert_eq!(trial["quarantined"], summary["groups"]["quarantined"], "{summary}");
    assert_eq!(trial["kept"], trial["quarantined_pages"]);
    let human = run_ok(["pilot"].iter().chain(&options));
    let says = "jaccard:tau=0.8: all 70 pages with content kept in 10 groups quarantined for their contents";
    assert!(human.lines().any(|line| line == says), "{human}");
}

#[test]
fn parameters_of_jaccard_are_printed() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let human = run_ok(["pilot", "--policy", "jaccard:words=3", &crawl]);
    assert!(human.contains("\njaccard:words=3, by its threshold\n"), "{human}");
    let refused = run(["pilot", "--tau", "0.9", &crawl]);
    assert!(code(&refused) == 2 && errors(&refused).contains("use --policy jaccard:tau=0.9"), "{refused:?}");
}

#[test]
fn for_crawl_files_in_a_directory_the_command_that_reads_them_is_named() {
    let home = tempfile::tempdir().unwrap();
    crawl(home.path());
    // Without a page, the directory is read as a directory of crawl files.
    fs::write(home.path().join("index.html"), text(1, 40).join(" ")).unwrap();
    let dir = home.path().to_str().unwrap();
    let output = run(["pilot", dir]);
    let says = format!("1 crawl file in directories not read: `doppel pilot {dir}/*.jsonl` reads them");
    assert!(code(&output) == 0 && errors(&output).contains(&says), "{}", errors(&output));
}

/// Two pairs of pages: the pages of one pair share half of their lines; in the other pair all lines are
/// shifted by one.
#[test]
fn pairs_on_which_a_policy_differs_from_the_first_one_are_shown() {
    let home = tempfile::tempdir().unwrap();
    let lines =
        |seed: u64| -> Vec<String> { text(seed, 400).chunks(5).map(|words| words.join(" ")).collect() };
    let page = |url: &str, lines: &[String]| json!({"url": url, "text": lines.join("\n")});
    let shifted = [vec!["one".to_owned()], lines(3)].concat();
    let pages = [
        page("http://half.example/1", &[lines(1), lines(11)].concat()),
        page("http://half.example/2", &[lines(1), lines(12)].concat()),
        page("http://shifted.example/1", &lines(3)),
        page("http://shifted.example/2", &shifted),
        page("http://copy.example/1", &lines(4)),
        page("http://copy.example/2", &lines(4)),
    ];
    let crawl = home.path().join("crawl.jsonl");
    fs::write(&crawl, ndjson(&pages)).unwrap();
    let pilot = |options: &[&str]| {
        let asked = ["pilot", "--policy", "jaccard", "--policy", "overlap"];
        run_ok([&asked[..], options, &[crawl.to_str().unwrap()]].concat())
    };
    let found: Value = serde_json::from_str(&pilot(&["--json"])).unwrap();
    assert!(found["policies"][0].get("examples").is_none(), "{found}");
    let of = |host: &str, pairs: &Value| {
        let pair = &pairs[0];
        let mut both = [&pair["url"], &pair["duplicate_of"]].map(|url| url.as_str().unwrap().to_owned());
        both.sort();
        assert_eq!(both, [1, 2].map(|page| format!("http://{host}.example/{page}")));
        assert_eq!(pairs.as_array().unwrap().len(), 1);
    };
    let examples = &found["policies"][1]["examples"];
    of("half", &examples["only_here"]);
    // A line at the beginning shifts all chunks behind it.
    of("shifted", &examples["only_first"]);
    let human = pilot(&[]);
    assert!(
        human.contains("\noverlap:lines=4,shared=15, not jaccard:tau=0.8\n  http://half.example/"),
        "{human}"
    );
    assert!(
        human.contains("\njaccard:tau=0.8, not overlap:lines=4,shared=15\n  http://shifted.example/"),
        "{human}"
    );
    assert!(!human.contains("http://copy.example/"), "{human}");
}

#[test]
fn large_inputs_are_sampled_deterministically() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, from: u64, rows: u64| {
        let row = |n: u64| json!({"url": format!("http://h{}.example/{n}", n % 7), "text": text(n / 2, 30).join(" ")});
        let path = home.path().join(name).to_str().unwrap().to_owned();
        fs::write(&path, ndjson(&(from..from + rows).map(row).collect::<Vec<_>>())).unwrap();
        path
    };
    let (large, small) = (write("large.jsonl", 0, 20_050), write("small.jsonl", 50_000, 100));
    let pilot = |options: &[&str], inputs: &[&str]| -> Value {
        let arguments = [&["pilot", "--json", "--policy", "supershingle"], options, inputs].concat();
        serde_json::from_str(&run_ok(arguments)).unwrap()
    };
    let found = pilot(&[], &[&large]);
    assert_eq!(found["input"]["records"], json!(20_000), "{found}");
    assert_eq!(found["sample"]["cut_off"], json!(1), "{found}");
    assert_eq!(found["policies"][0]["removed"], 10_000);
    // The small file is read whole. Its unused share of the sample goes to the large file behind it.
    let both = pilot(&[], &[&small, &large]);
    assert_eq!(both["input"]["records"], json!(20_000));
    assert_eq!(both["sample"]["inputs"], json!(2));
    let (first, second) = (pilot(&[], &[&large, &small]), pilot(&[], &[&large, &small]));
    assert_eq!(first["input"]["records"], 10_000 + 100);
    assert_eq!(first["policies"][0]["savings"], second["policies"][0]["savings"]);
    let whole = pilot(&["--whole"], &[&large]);
    assert_eq!(whole["input"]["records"], json!(20_050));
    assert_eq!(whole["sample"], Value::Null);
    assert_eq!(pilot(&[], &[&small])["sample"], Value::Null);
    let human = run_ok(["pilot", "--policy", "supershingle", &large]);
    assert!(
        human.contains("A sample: the first records of 1 file with ") && human.contains("--whole"),
        "{human}"
    );
}
