//! `doppel overlap`: its report, its pairs of pages, and the options that it refuses.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, text};
use crate::harness::{run, run_ok};
use crate::{code, errors};

/// Writes a crawl with these pages: two hosts with the same ten pages, one of which has two more lines at the
/// end; two pages that share 20 chunks of four lines; and three pages that have changed, died or become a
/// redirect.
fn crawl(home: &Path) -> String {
    let lines = |seed: u64, lines: usize| -> Vec<String> {
        text(seed, 5 * lines).chunks(5).map(|words| words.join(" ")).collect()
    };
    let html = |lines: &[String]| lines.iter().map(|line| format!("<p>{line}</p>")).collect::<String>();
    let mut pages = Vec::new();
    for page in 0..10 {
        let own = lines(page, 80);
        pages.push(json!({"url": format!("http://a.example/{page}"), "html": html(&own)}));
        pages.push(json!({"url": format!("http://b.example/{page}"), "text": own.join("\n")}));
    }
    let longer = [lines(9, 80), vec!["one more".to_owned(), "and one".to_owned()]].concat();
    pages.push(json!({"url": "http://b.example/9", "text": longer.join("\n")}));
    let halves = |second: u64| [lines(50, 80), lines(second, 80)].concat().join("\n");
    pages.push(json!({"url": "http://c.example/1", "text": halves(51)}));
    pages.push(json!({"url": "http://c.example/2", "text": halves(52)}));
    pages.push(json!({"url": "http://c.example/3", "text": halves(53)}));
    pages.push(json!({"url": "http://c.example/3", "text": "another page by now"}));
    pages.push(json!({"url": "http://c.example/4", "text": halves(54)}));
    pages.push(json!({"url": "http://c.example/4", "dead": true}));
    pages.push(json!({"url": "http://c.example/5", "redirect_to": "http://c.example/1"}));
    let path = home.join("crawl.jsonl");
    fs::write(&path, ndjson(&pages)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn values(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn both_algorithms_report_the_same_copies_pairs_and_mirrors() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, temporary) = (crawl(home.path()), home.path().join("temporary"));
    fs::create_dir(&temporary).unwrap();
    let file = home.path().join("pairs.jsonl");
    let (pairs, dir) = (file.to_str().unwrap(), temporary.to_str().unwrap());
    let mut written = Vec::new();
    for by in ["sort", "coarse", "both"] {
        let options = [
            "overlap",
            "--by",
            by,
            "--memory",
            "96MiB",
            "--temp-dir",
            dir,
            "--pairs",
            pairs,
            "--json",
            &crawl,
        ];
        let report: Value = serde_json::from_str(&run_ok(options)).unwrap();
        // Nine pages are copies, and one page is nearly a copy.
        assert_eq!(report["whole"]["pages"], 23, "{report}");
        assert_eq!(report["whole"]["saved_pages"], 9, "{report}");
        assert_eq!(report["whole"]["replicas"][1]["pages"], 18, "{report}");
        let [four, two] = &report["chunks"].as_array().unwrap()[..] else { panic!("{report}") };
        for (chunks, lines, shared) in [(four, 4, 15), (two, 2, 25)] {
            assert_eq!(chunks["lines"], json!(lines));
            assert_eq!(chunks["shared"], json!(shared));
            assert_eq!(chunks["pairs"], json!(2), "{report}");
            assert_eq!(chunks["saved_pages"], json!(11), "{report}");
            let mirror = &chunks["mirrors"][0];
            assert_eq!(mirror["a"], json!("a.example"), "{report}");
            assert_eq!(mirror["b"], json!("b.example"), "{report}");
            assert_eq!(mirror["share"], json!(1.0), "{report}");
            assert_eq!(mirror["of_a"], json!(800 / lines), "{report}");
            let ways: Vec<&str> =
                chunks["ways"].as_array().unwrap().iter().map(|way| way["by"].as_str().unwrap()).collect();
            assert_eq!(ways, if by == "both" { vec!["sort", "coarse"] } else { vec![by] });
        }
        assert_eq!(report["most_replicated"][0]["hosts"], 2, "{report}");
        assert!(fs::read_dir(&temporary).unwrap().next().is_none());
        written.push(fs::read_to_string(&file).unwrap());
    }
    assert!(written.windows(2).all(|two| two[0] == two[1]));
    let found = values(&written[0]);
    assert_eq!(found[0], json!({"lines": null, "a": "http://a.example/0", "b": "http://b.example/0"}));
    let (a, b) = ("http://a.example/9", "http://b.example/9");
    // The incomplete chunk at the end of a page counts, too.
    let near = json!({"lines": 4, "a": a, "b": b, "shared": 20, "of_a": 20, "of_b": 21});
    let (a, b) = ("http://c.example/1", "http://c.example/2");
    let half = json!({"lines": 4, "a": a, "b": b, "shared": 20, "of_a": 40, "of_b": 40});
    assert_eq!(found[9..11], [near, half]);
    assert_eq!(found.len(), 9 + 2 + 2);
    // With `--every-version`, each version counts as a page.
    let every = run_ok(["overlap", "--every-version", "--chunks", "4:15", "--json", &crawl]);
    let every: Value = serde_json::from_str(&every).unwrap();
    assert_eq!(every["whole"]["pages"], json!(26), "{every}");
    assert_eq!(every["chunks"][0]["pairs"], json!(7), "{every}");
}

#[test]
fn large_pages_of_short_lines_stay_within_the_memory() {
    let home = tempfile::tempdir().unwrap();
    let site = home.path().join("site");
    fs::create_dir(&site).unwrap();
    for (seed, name) in [(1_u64, "a.txt"), (2, "b.txt")] {
        let mut random = seed;
        let mut letter = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            b'a' + (random >> 40) as u8 % 26
        };
        let lines: Vec<u8> = (0..6 << 20).flat_map(|_| [letter(), b'\n']).collect();
        fs::write(site.join(name), lines).unwrap();
    }
    let site = site.to_str().unwrap();
    let report: Value =
        serde_json::from_str(&run_ok(["overlap", "--memory", "300MB", "--json", site])).unwrap();
    assert_eq!(report["whole"]["pages"], 2, "{report}");
    if let Some(bytes) = report["process_memory_bytes"].as_u64() {
        assert!(bytes <= 300_000_000, "{bytes} bytes");
    }
    let refused = run(["overlap", "--memory", "96MiB", site]);
    let says = errors(&refused);
    assert!(
        code(&refused) == 1 && says.contains("a.txt") && says.contains("give more, such as --memory "),
        "{says}"
    );
}

#[test]
fn the_report_for_people_shows_the_figures() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let report = run_ok(["overlap", "--by", "both", &crawl]);
    for says in [
        "23 pages",
        "whole pages",
        "15 of 4 lines",
        "25 of 2 lines",
        "a.example",
        "39.1 %",
        "coarse",
        "1,000 and more",
    ] {
        assert!(report.contains(says), "{says}: {report}");
    }
    // If the pairs go to standard output, the report goes to standard error.
    let both = run(["overlap", "--pairs", "-", &crawl]);
    assert_eq!(values(&String::from_utf8(both.stdout.clone()).unwrap()).len(), 13);
    assert!(errors(&both).contains("39.1 %"), "{both:?}");
    let both = run(["overlap", "--json", "--pairs", "-", &crawl]);
    assert_eq!(values(&String::from_utf8(both.stdout.clone()).unwrap()).len(), 13);
    assert_eq!(values(&errors(&both))[0]["whole"]["pages"], 23, "{both:?}");
}

#[test]
fn unusable_inputs_and_options_are_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let pairs = home.path().join("pairs.jsonl");
    let pairs = pairs.to_str().unwrap();
    for (options, exit, says) in [
        (&["--memory", "12"][..], 2, "at least 96MiB"),
        (&["--memory", "much"], 2, "a size such as 512MB"),
        (&["--chunks", "4"], 2, "1 to 64 lines and 1 to 255 shared chunks"),
        (&["--pairs", &crawl], 2, "would replace the input"),
        (&["--temp-dir", "/nowhere"], 1, "temporary file in /nowhere"),
    ] {
        let mut arguments = vec!["overlap", "--pairs", pairs];
        if options[0] == "--pairs" {
            arguments.truncate(1);
        }
        arguments.extend(options);
        arguments.push(&crawl);
        let refused = run(arguments);
        assert_eq!(code(&refused), exit, "{options:?}: {refused:?}");
        assert!(errors(&refused).contains(says), "{options:?}: {}", errors(&refused));
        assert!(!Path::new(pairs).exists());
    }
}
