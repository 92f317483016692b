//! Runs every measurement of `doppel-eval` on a small crawl, and checks the properties that must hold.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(unreachable_pub, reason = "shared with the tests of the root package")]
#[path = "../../tests/harness/crawls.rs"]
mod crawls;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crawls::{crawl, crawls};
use serde_json::{Value, json};

/// Runs `doppel-eval` to its end.
fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_doppel-eval")).args(arguments).output().unwrap()
}

/// Like [`run`], but panics with the error output unless the exit code is 0. Returns the standard output.
fn run_ok<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "doppel-eval ended with {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a measurement on files. Returns its JSON and the text of its plot.
fn eval(measure: &str, options: &[&str], files: &[impl AsRef<Path>]) -> (Value, String) {
    let dir = tempfile::tempdir().unwrap();
    let plot = dir.path().join("plot.svg");
    let mut arguments = vec![measure.into(), "--json".into(), "--plot".into()];
    arguments.push(plot.clone().into_os_string());
    arguments.extend(options.iter().map(Into::into));
    arguments.extend(files.iter().map(|file| file.as_ref().into()));
    let report = serde_json::from_str(&run_ok(arguments)).unwrap();
    (report, fs::read_to_string(plot).unwrap())
}

fn numbers<'v>(report: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    report[list].as_array().unwrap().iter()
}

fn write(dir: &Path, name: &str, pages: &[Value]) -> std::path::PathBuf {
    let path = dir.join(name);
    fs::write(&path, pages.iter().map(|page| format!("{page}\n")).collect::<String>()).unwrap();
    path
}

/// Makes a text of 60 words. The last `changed` words differ from the unchanged text.
fn text(kind: &str, changed: usize) -> String {
    let word = |n| if n + changed >= 60 { format!("{kind}{n}x") } else { format!("{kind}{n}") };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_groups_at_rest_equal_those_of_the_baseline() {
    let Some(data) = crawls("doppel-eval accuracy") else { return };
    let options =
        ["--tau", "0.8,0.9", "--partitions", "12", "--rules", "at-once,quiescent", "--milestones", "30,100"];
    let (report, plot) = eval("accuracy", &options, &crawl(&data, "quick"));
    assert_eq!(report["fetches"], 906);
    assert_eq!(numbers(&report, "runs").count(), 4);
    for run in numbers(&report, "runs") {
        for milestone in numbers(run, "milestones") {
            assert!(milestone["baseline_pairs"].as_u64().unwrap() > 0, "{run}");
            if run["rules"] == "quiescent" {
                assert_eq!((&milestone["rep"], &milestone["rer"]), (&json!(0.0), &json!(0.0)), "{run}");
                assert_eq!(milestone["system_pairs"], milestone["baseline_pairs"], "{run}");
            }
        }
        assert!(run["confirmed"].as_f64().unwrap() > 0.3, "{run}");
    }
    assert!(plot.contains("REP, ours, quiescent") && plot.ends_with("</svg>\n"));
}

/// The paper's rules keep a page in a group from which it has drifted away step by step. The measurement must
/// detect this error.
#[test]
fn the_measure_detects_errors_of_the_papers_rules() {
    let dir = tempfile::tempdir().unwrap();
    let page = |path: &str, changed| json!({"url": format!("http://a/{path}"), "text": text("w", changed)});
    let mut rounds = vec![write(dir.path(), "0.jsonl", &[page("still", 0), page("d", 0)])];
    // The page `d` wins because its URL is shorter, so its previous version confirms it at every step. In the
    // end it is no longer a near-duplicate of the other page.
    for (round, changed) in (1..).zip([2, 4, 6, 8, 10, 12]) {
        rounds.push(write(dir.path(), &format!("{round}.jsonl"), &[page("d", changed), page("still", 0)]));
    }
    let options = ["--tau", "0.8", "--partitions", "1", "--milestones", "100"];
    let (report, _) = eval("accuracy", &options, &rounds);
    let error = |rules: &str| {
        let run = numbers(&report, "runs").find(|run| run["rules"] == rules).unwrap();
        run["milestones"][0]["rep"].as_f64().unwrap() + run["milestones"][0]["rer"].as_f64().unwrap()
    };
    assert!(error("quiescent") == 0.0 && error("paper") > 0.5, "{report:#}");
}

#[test]
fn versions_are_replayed_as_crawls_of_one_site() {
    let dir = tempfile::tempdir().unwrap();
    let page = |path: &str, kind, changed| json!({"url": format!("http://a/doc/{path}"), "text": text(kind, changed)});
    let pages = [
        page("stable/x", "x", 4),
        page("1.10/x", "x", 2),
        page("1.9/x", "x", 0),
        page("1.9/gone", "y", 0),
        json!({"url": "http://a/other", "text": "left out"}),
    ];
    let file = write(dir.path(), "pages.jsonl", &pages);
    let options = ["--versions", "http://a/doc/", "--partitions", "1", "--tau", "0.8", "--milestones", "100"];
    let (report, _) = eval("accuracy", &options, &[&file]);
    assert_eq!(report["rounds"], json!(["1.9", "1.10", "stable"]));
    // Four pages, and one page that is dead from 1.10 on.
    assert_eq!((&report["fetches"], &report["updates"]), (&json!(5), &json!(2)));
    assert_eq!(report["runs"][0]["milestones"][0]["pages"], 1);
    let (report, _) = eval("accuracy", &[&options[..], &["--keep-versions"]].concat(), &[&file]);
    assert_eq!(report["fetches"], 9);
    for run in numbers(&report, "runs") {
        let milestone = &run["milestones"][0];
        assert_eq!((&milestone["pages"], &milestone["common_pairs"]), (&json!(5), &json!(6)), "{report:#}");
    }
}

#[test]
fn incremental_work_is_measured_against_work_from_scratch() {
    let Some(data) = crawls("doppel-eval incremental") else { return };
    let options = ["--sizes", "1000,3000", "--batch", "100", "--batches", "2"];
    let (report, plot) = eval("incremental", &options, &crawl(&data, "quick"));
    let sizes: Vec<&Value> = numbers(&report, "sizes").collect();
    assert_eq!(sizes.len(), 2);
    for size in sizes {
        let ms = |name: &str| size[name].as_f64().unwrap();
        assert!(ms("non_incremental") > 0.0 && ms("answered") > 0.0, "{size}");
        assert!(ms("incremental") >= ms("answered"), "{size}");
        assert!(ms("confirmed") > 0.1 && ms("confirmed") < 0.9, "{size}");
        assert!(size["groups"].as_u64().unwrap() > 50, "{size}");
    }
    assert!(report["real_pages"].as_u64().unwrap() > 500);
    assert_eq!(numbers(&report, "rounds").count(), 4, "two rounds with updates, two thresholds");
    assert!(plot.contains("figure 7") && plot.contains("figure 8"));
}

#[test]
fn every_reported_duplicate_is_one_while_updates_stream_in() {
    let Some(data) = crawls("doppel-eval served") else { return };
    let (report, plot) = eval("served", &["--batch", "20"], &crawl(&data, "quick"));
    for answers in [&report["streaming"], &report["quiescent"]] {
        let count = |name: &str| answers[name].as_u64().unwrap();
        assert!(count("duplicates") > 50, "{report:#}");
        assert_eq!(count("wrong"), 0, "{report:#}");
        assert_eq!(count("hold") + count("may_hold"), count("duplicates"), "{report:#}");
    }
    let quiescent = &report["quiescent"];
    assert_eq!((&quiescent["may_hold"], &quiescent["understated"]), (&json!(0), &json!(0)));
    let count = |name: &str| quiescent[name].as_u64().unwrap();
    assert!(count("members") > 50 && count("unlike_winner") < count("members"), "{report:#}");
    // A page that is kept beside the winner is like no kept page, so it is not like the winner.
    assert!(count("unlike_winner") >= count("secondaries"), "{report:#}");
    // The figure of the paper stands only beside the winner check.
    assert!(plot.contains("Winner check") && plot.contains("kept beside the winner"));
    assert_eq!(plot.matches("under 8 %").count(), 1);
}

#[test]
fn mappings_are_measured_on_a_crawl() {
    let Some(data) = crawls("doppel-eval mapping") else { return };
    let options = ["--tau", "0.8,0.9", "--nodes", "2,16", "--dimensions", "1,3", "--splits", "2"];
    let options = [&options[..], &["--partitions-per-node", "1,8", "--rho-sweep", "1,1.3"]].concat();
    let (report, plot) = eval("mapping", &options, &crawl(&data, "quick"));
    let contents = report["contents"].as_u64().unwrap();
    let lengths: u64 = numbers(&report, "lengths").map(|bin| bin["contents"].as_u64().unwrap()).sum();
    assert!(contents > 400 && lengths == contents, "{report:#}");
    // Two numbers of dimensions of the paper's mapping, the control and ours, each with one and with eight
    // partitions per node, on two numbers of nodes, at two thresholds.
    assert_eq!(numbers(&report, "runs").count(), 32);
    for run in numbers(&report, "runs") {
        let figure = |name: &str| run[name].as_f64().unwrap();
        assert!(figure("imbalance") >= 1.0 && (0.0..1.0).contains(&figure("fan_out_saved")), "{run}");
        if run["design"] == "ours" {
            assert!(run["lost"] == 0 && figure("imbalance") < 1.3 && figure("fan_out_saved") > 0.3, "{run}");
        }
    }
    let runs = |design: &'static str, each: u32| {
        let runs = numbers(&report, "runs").filter(move |run| run["design"] == design && run["nodes"] == 16);
        runs.filter(move |run| run["partitions_per_node"] == each)
    };
    let speed_up =
        |design, each| runs(design, each).map(|run| run["speed_up"].as_f64().unwrap()).fold(0.0, f64::max);
    for each in [1, 8] {
        assert!(speed_up("ours", each) > speed_up("paper", each), "{report:#}");
    }
    // One box per node does not show the best balance of the paper's grid.
    let imbalance = |each| {
        let three = runs("paper", each).filter(|run| run["dimensions"] == 3);
        three.map(|run| run["imbalance"].as_f64().unwrap()).fold(0.0, f64::max)
    };
    assert!(imbalance(8) < 0.7 * imbalance(1), "{report:#}");
    // A larger rho never loses more pairs, and never saves more fan-out.
    let sweep: Vec<&Value> = numbers(&report, "sweep").collect();
    assert_eq!(sweep.len(), 8);
    for pair in sweep.chunks(2) {
        let figure = |run: &Value, name: &str| run[name].as_f64().unwrap();
        assert_eq!((&pair[0]["rho"], &pair[1]["rho"]), (&json!(1.0), &json!(1.3)));
        assert!(figure(pair[0], "lost") >= figure(pair[1], "lost"), "{pair:?}");
        assert!(figure(pair[0], "fan_out_saved") > figure(pair[1], "fan_out_saved"), "{pair:?}");
    }
    let tolerances: Vec<&Value> = numbers(&report, "tolerances").collect();
    assert!(tolerances.iter().all(|one| one["dimensions"] != 1 || one["delta"] == 0.0), "{report:#}");
    assert!(
        tolerances.iter().any(|one| one["delta"].as_f64().is_some_and(|delta| delta > 0.1)),
        "{report:#}"
    );
    assert!(numbers(&report, "pairs").all(|pairs| pairs["pairs"].as_u64().unwrap() >= 10));
    assert_eq!(numbers(&report, "later").count(), 16);
    for later in numbers(&report, "later") {
        // A set has about 10 contents for 16 nodes, so even a random distribution is far from even.
        assert!(later["floor"]["imbalance"].as_f64().unwrap() > 1.5, "{later}");
        assert!(later["ours"]["variation"].as_f64().unwrap() > 0.0, "{later}");
    }
    assert!(plot.contains("Figure 1") && plot.contains("Figure 6"));
}

/// The copies of some pages are longer in only one sub-dictionary. The paper's intervals separate some of
/// these pairs.
#[test]
fn lost_pairs_of_a_mapping_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let pages = (0..300).flat_map(|family| {
        let text = (0..70 + family % 50).map(|n| format!("f{family}w{n} ")).collect::<String>();
        ["", "z z z z z"]
            .map(|end| json!({"url": format!("http://a/{family}{end}"), "text": format!("{text}{end}")}))
    });
    let file = write(dir.path(), "pages.jsonl", &pages.collect::<Vec<_>>());
    let options = ["--tau", "0.8", "--nodes", "64", "--dimensions", "4", "--rho", "1", "--splits", "0"];
    let (report, _) = eval("mapping", &options, &[&file]);
    let lost = |design: &str| {
        let runs = numbers(&report, "runs").filter(|run| run["design"] == design);
        runs.map(|run| run["lost"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(report["pairs"][0]["pairs"], 300);
    assert!(lost("paper") > 0 && lost("ours") == 0 && lost("control") == 0, "{report:#}");
}

/// Writes a file of unrelated pages of 20 words and more.
fn pages(dir: &Path, number: usize) -> std::path::PathBuf {
    let text = |page: usize| (0..20 + page).map(|n| format!("p{page}w{n} ")).collect::<String>();
    let page = |page| json!({"url": format!("http://a/{page}"), "text": text(page)});
    write(dir, &format!("{number}.jsonl"), &(0..number).map(page).collect::<Vec<_>>())
}

#[test]
fn tables_of_mappings_fit_a_terminal_and_warn_of_few_contents() {
    let dir = tempfile::tempdir().unwrap();
    let print = |options: &[&str], number| {
        let file = pages(dir.path(), number);
        let arguments = ["mapping", "--tau", "0.8", "--dimensions", "1,3", "--splits", "2"];
        run_ok(arguments.iter().chain(options).copied().chain([file.to_str().unwrap()]))
    };
    let text = print(&[], 250);
    let of_tables = text.lines().filter(|line| !line.starts_with("warning: "));
    let long: Vec<&str> = of_tables.filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "{long:#?}");
    assert!(
        text.contains("warning: 250 contents are fewer than 100 a node on 4, 8, 16, 32, 64 nodes"),
        "{text}"
    );
    assert!(text.contains("warning: 200 contents to learn from are fewer than 100 a node"));
    assert!(
        text.contains("speed-up: all pairs over the work (stored x received) of the busiest node"),
        "{text}"
    );
    // There are no pairs, so none can be lost. One node has no imbalance and saves no fan-out.
    let text = print(&["--nodes", "1", "--partitions-per-node", "8", "--rho-sweep", "1"], 1);
    let rows = text.lines().filter(|line| line.starts_with("0.8") && line.ends_with("  -")).count();
    // Three tables of four mappings, and two tables by rho of the paper's two mappings.
    assert_eq!(rows, 4 * 3 + 2 * 2, "{text}");
    assert!(text.contains("1 distinct content;") && !text.contains("NaN"), "{text}");
    assert!(text.contains("warning: 0 contents to learn from"), "{text}");
}

#[test]
fn a_crawl_without_text_has_no_mapping() {
    let dir = tempfile::tempdir().unwrap();
    let pages = [json!({"url": "http://a/x", "text": "..."}), json!({"url": "http://a/y", "dead": true})];
    let file = write(dir.path(), "pages.jsonl", &pages);
    let output = run(["mapping", file.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(5) && errors.contains("nothing to map"), "{output:?}");
}

#[test]
fn inputs_without_a_page_to_replay_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "pages.jsonl", &[json!({"url": "http://a/x", "text": "x"})]);
    for measure in ["accuracy", "incremental", "mapping", "served"] {
        let path = file.to_str().unwrap();
        let output = run([measure, "--versions", "http://b/", path]);
        assert_eq!(output.status.code(), Some(5), "{measure}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no page to replay"), "{output:?}");
    }
}

/// Writes pages of two hosts, and files with graded and judged pairs of them.
fn labelled(dir: &Path) -> [std::path::PathBuf; 3] {
    let words = |kind: &str, changed: usize| {
        let word = |n| if n < changed { format!("{kind}{n}x") } else { format!("{kind}{n}") };
        (0..300).map(word).collect::<Vec<_>>().join(" ")
    };
    let page = |url: &str, kind: &str, changed: usize| {
        let html = format!("<div>menu of many words</div><article>{}</article>", words(kind, changed));
        json!({"url": url, "html": html})
    };
    let mut pages = vec![
        page("https://numpy.org/a", "a", 0),
        page("https://numpy.org/a2", "a", 0),
        page("https://flink.apache.org/a", "a", 1),
        page("https://numpy.org/c", "a", 150),
    ];
    for host in ["numpy.org", "flink.apache.org"] {
        pages.extend((0..4).map(|n| page(&format!("https://{host}/{n}"), &format!("{}{n}y", &host[..3]), 0)));
    }
    let line = |a: &str, b: &str, label: Value| json!({"a": format!("https://numpy.org/{a}"), "b": b, "label": label, "weight": 2.0});
    let graded = [line("a", "https://numpy.org/a2", json!(3)), line("a", "https://numpy.org/c", json!(0))];
    let judged = [
        line("a", "https://flink.apache.org/a", json!("correct")),
        line("a", "https://numpy.org/c", json!("incorrect")),
        line("a2", "https://numpy.org/c", json!("undecided")),
    ];
    [("pages.jsonl", &pages[..]), ("graded.jsonl", &graded), ("judged.jsonl", &judged)]
        .map(|(name, lines)| write(dir, name, lines))
}

#[test]
fn every_policy_is_scored_on_every_kind_of_truth() {
    let dir = tempfile::tempdir().unwrap();
    let [pages, graded, judged] = labelled(dir.path()).map(|path| path.to_str().unwrap().to_owned());
    let options = ["--graded", &graded, "--judged", &judged, "--transplants", "10"];
    let (report, plot) = eval("policies", &options, &[&pages]);
    let kinds: Vec<&Value> = numbers(&report, "truths").map(|truth| &truth["kind"]).collect();
    let expected =
        ["graded", "judged_one_host", "judged_two_hosts", "transplants_one_host", "transplants_two_hosts"];
    assert_eq!(kinds, [&expected[..], &["exact_jaccard"]].concat());
    // All policies with their defaults, and two baselines.
    assert_eq!(numbers(&report, "policies").count(), doppel_model::pairwise::Policy::all().count() + 2);
    let jaccard = numbers(&report, "policies").find(|of| of["policy"] == "jaccard:tau=0.8").unwrap();
    let score = |at: usize, name: &str| jaccard["pairs"][at]["f"][name].as_u64().unwrap();
    // F finds the copy, and the near copy on the other host. The text that differs by half is refused.
    assert_eq!((score(0, "found"), score(0, "refused"), score(0, "wrong")), (1, 1, 0));
    assert_eq!((score(1, "refused"), score(1, "wrong"), score(2, "found")), (1, 0, 1));
    // Main contents of 300 words are nearly the whole page, so transplants on one host are told apart.
    assert_eq!((score(3, "found"), score(3, "wrong"), score(4, "missed")), (10, 0, 0));
    // The default policy finds exactly the pairs of exact Jaccard.
    let exact = &numbers(&report, "truths").last().unwrap();
    assert_eq!(
        (score(5, "found"), score(5, "missed"), score(5, "wrong")),
        (exact["same"].as_u64().unwrap(), 0, 0)
    );
    assert!(exact["same"].as_u64() > Some(0) && exact["other"].as_u64() > exact["same"].as_u64(), "{exact}");
    // Groups of transplants include the pages that were made.
    assert!(jaccard["pairs"][3]["grouped"]["found"].as_u64() >= Some(10), "{jaccard}");
    assert!(jaccard["cost"]["signature_bytes"].as_f64().unwrap() > 1_000.0);
    assert!(plot.contains("transplants, two hosts"));
    let missing = run(["policies", "--graded", &judged, "--transplants", "0", &graded]);
    assert!(!missing.status.success());
}

#[test]
fn the_copies_policy_agrees_with_people() {
    let Some(data) = crawls("doppel-eval copies") else { return };
    let (report, plot) = eval("copies", &[], &[data]);
    assert!(plot.contains("<polyline"));
    for (kind, precision, recall) in
        [("graded", 0.95, 0.60), ("judged_one_host", 0.95, 0.75), ("judged_two_hosts", 0.95, 0.60)]
    {
        let is_row = |row: &&Value| row["kind"] == kind && row["method"] == "copies";
        let row = numbers(&report, "rows").find(is_row).unwrap();
        assert!(row["precision"].as_f64().unwrap() >= precision, "{row}");
        assert!(row["recall"].as_f64().unwrap() >= recall, "{row}");
        // Each measure has a threshold that other pairs chose, and figures with intervals.
        let chosen: Vec<_> = numbers(&report, "chosen").filter(|row| row["kind"] == kind).collect();
        assert!(
            chosen.len() == 7 && chosen.iter().all(|row| row["figures"]["precision_interval"].is_array()),
            "{chosen:?}"
        );
    }
}

#[test]
fn other_papers_are_reproduced_on_a_small_crawl() {
    let dir = tempfile::tempdir().unwrap();
    let [pages, _, judged] = labelled(dir.path()).map(|path| path.to_str().unwrap().to_owned());
    let (report, plot) = eval("henzinger", &["--judged", &judged, "--transplants", "5"], &[&pages]);
    // The copy is the same content as its original.
    assert_eq!(report["contents"], 11);
    let pairs = |at: usize| report["algorithms"][at]["graph"]["pairs"].as_u64().unwrap();
    assert_eq!(numbers(&report, "by_b").map(|row| row["pairs"].as_u64().unwrap()).sum::<u64>(), pairs(0));
    assert_eq!(numbers(&report, "by_c").map(|row| row["pairs"].as_u64().unwrap()).sum::<u64>(), pairs(1));
    assert!(pairs(2) <= pairs(0) && pairs(3) <= pairs(0));
    assert!(plot.contains("precision against recall"));
    // Each kind of truth has rows and halves. All reasons have pairs, including the undecided ones.
    let truths: Vec<&Value> = numbers(&report, "truths").collect();
    assert_eq!(truths.len(), 3);
    for truth in &truths {
        let halves = &truth["halves"];
        let pairs = halves["pairs"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
        let all = &truth["found"][0]["score"];
        let count = |name: &str| all[name].as_u64().unwrap();
        assert!(count("found") + count("missed") + count("wrong") + count("refused") <= pairs, "{truth}");
        assert_eq!(halves["training"].as_array().unwrap().len(), 385);
    }
    let reasons: Vec<&Value> = numbers(&report, "reasons").map(|of| &of["reason"]).collect();
    assert!(reasons.contains(&&json!("form")) && reasons.contains(&&json!("message_id")), "{reasons:?}");
    let by_reason = numbers(&report, "truths").last().unwrap();
    assert!(by_reason["found"][0]["score"]["undecided"].as_u64() > Some(0), "{by_reason}");

    let options = ["--judged", &judged, "--transplants", "5", "--stored", "20000", "--batch", "100"];
    let (report, plot) = eval("manku", &options, &[&pages]);
    assert_eq!(numbers(&report, "buckets").map(|n| n.as_u64().unwrap()).sum::<u64>(), 11);
    let tables: Vec<&Value> = numbers(&report, "online").map(|run| &run["tables"]).collect();
    assert_eq!(tables, [4, 10, 16, 20]);
    let pairs: Vec<&Value> = numbers(&report, "batches").map(|run| &run["pairs"]).collect();
    assert!(pairs.len() == 2 && pairs[0] == pairs[1] && pairs[0].as_u64() >= Some(50), "{pairs:?}");
    assert!(plot.contains("Distribution of the leading 7 bits"));
    assert_eq!(numbers(&report, "leading").map(|at| at["pairs"].as_u64().unwrap()).sum::<u64>(), 10);
    assert!(plot.contains("Leading 1 in the XOR of neighbours"));
    // Unlike in the product, short pages have fingerprints.
    let short = write(dir.path(), "short.jsonl", &[json!({"url": "http://h/", "text": "one two"})]);
    let options = ["--transplants", "0", "--stored", "1000", "--batch", "10"];
    assert_eq!(eval("manku", &options, &[&short]).0["contents"], 1);
    assert_eq!(eval("henzinger", &["--transplants", "0"], &[&short]).0["contents"], 1);

    let (report, _) = eval("popular", &[], &[&pages]);
    let rows: Vec<&Value> = numbers(&report, "rows").collect();
    // The copy and the near copy are removed.
    assert_eq!((&report["pages"], &rows[rows.len() - 1]["removed"]), (&json!(12), &json!(2)), "{report}");
}

#[test]
fn more_lexicons_find_more_copies() {
    let dir = tempfile::tempdir().unwrap();
    // A word is drawn from 4,000 words, the first ones more often.
    let word = |page: usize, n: usize| {
        let drawn = (page * 7_919 + n * n * 31 + n * 104_729) % 1_000_003;
        format!("word{}", drawn % (1 + drawn % 4_000))
    };
    let page = |page: usize| {
        let text = (0..6_000).map(|n| word(page, n)).collect::<Vec<_>>().join(" ");
        json!({"url": format!("http://a/{page}"), "text": text})
    };
    let pages: Vec<Value> =
        (0..4).map(page).chain([json!({"url": "http://a/short", "text": "too short"})]).collect();
    let file = write(dir.path(), "pages.jsonl", &pages);
    let options = ["--texts", "60", "--seeds", "2", "--changed", "20"];
    let (report, plot) = eval("multi-simhash", &options, &[&file]);
    let real = report["real"].as_u64().unwrap();
    assert!(real >= 10 && report["recombined"] == json!(60 - real), "{report:#}");
    let recall = |of: &Value| of["thresholds"][3]["recall"]["mean"].as_f64().unwrap();
    let by_lexicons: Vec<&Value> = numbers(&report, "by_lexicons").collect();
    assert_eq!((by_lexicons.len(), numbers(&report, "by_words").count()), (10, 5));
    assert!(by_lexicons.windows(2).all(|two| recall(two[0]) <= recall(two[1])), "{report:#}");
    assert!(recall(by_lexicons[9]) > recall(by_lexicons[0]), "{report:#}");
    assert_eq!(report["by_words"][1], report["by_lexicons"][0]);
    // A distance below 0 does not exist. A distance below 31 finds nearly every text.
    let thresholds = by_lexicons[0]["thresholds"].as_array().unwrap();
    assert_eq!((thresholds.len(), &thresholds[0]["precision"]), (32, &Value::Null));
    assert!(thresholds[31]["recall"]["least"].as_f64() > Some(0.99));
    assert_eq!(report["baselines"][0]["policy"], "supershingle:equal=2,words=5");
    assert!(plot.contains("Figure 2: words of a feature") && plot.contains("the source, five queries"));
    let (alone, _) = eval("multi-simhash", &[&options[..], &["--only-pieces"]].concat(), &[&file]);
    assert_eq!((&alone["real"], &alone["recombined"]), (&json!(real), &json!(0)));

    let few = write(dir.path(), "few.jsonl", &pages[4..]);
    let output = run(["multi-simhash", few.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(5) && errors.contains("10 are needed"), "{output:?}");
}

#[test]
fn both_ways_find_the_same_shared_chunks() {
    let dir = tempfile::tempdir().unwrap();
    // 80 lines are 20 chunks of four lines and 40 of two. The first `changed` lines differ.
    let text = |kind: &str, changed: usize| {
        let line =
            |n| if n < changed { format!("{kind} new line {n}\n") } else { format!("{kind} line {n}\n") };
        (0..80).map(line).collect::<String>()
    };
    let page = |url: &str, text: String| json!({"url": url, "text": text});
    let pages = [
        page("http://a/1", text("x", 0)),
        page("http://b/1", text("x", 0)),
        // Shares 15 chunks of four lines and 30 of two with the first page.
        page("http://a/2", text("x", 20)),
        // Shares 13 chunks of four lines and 26 of two with the first page.
        page("http://a/3", text("x", 28)),
        page("http://b/2", text("y", 0)),
    ];
    let file = write(dir.path(), "pages.jsonl", &pages);
    let (report, plot) = eval("overlap", &[], &[&file]);
    let measures: Vec<&Value> = numbers(&report, "measures").collect();
    let saved = |at: usize| &measures[at]["replication"]["saved_pages"];
    assert_eq!((saved(0), saved(1), saved(2)), (&json!(1), &json!(2), &json!(3)), "{report:#}");
    let alone = |at: usize| &measures[at]["replication"]["replicas"][0]["pages"];
    assert_eq!((alone(0), alone(1), alone(2)), (&json!(3), &json!(1), &json!(1)), "{report:#}");
    for measured in &measures[1..] {
        let pairs = |way: &str| measured["ways"][way]["pairs"].as_u64().unwrap();
        assert!(pairs("sort") == pairs("coarse") && pairs("sort") > 0, "{measured:#}");
    }
    assert_eq!(
        (&report["most_replicated"][0]["hosts"], &report["mirrors"][0]["a"]),
        (&json!(2), &json!("a"))
    );
    assert!(report["maps"]["url_bytes"].as_u64() >= Some(5 * 10), "{report:#}");
    assert!(plot.contains("Figure 1: replicas of a page") && plot.contains("the source, whole pages: 64 %"));
    let printed = run_ok(["overlap", file.to_str().unwrap()]);
    assert!(printed.contains("7:14 h") && printed.contains("both ways found the same pairs"), "{printed}");
    let refused = run(["overlap", "--memory", "12", file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("at least 96MiB"), "{refused:?}");
}
