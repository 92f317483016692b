//! `doppel dedup`: its data directory, its summary, and the files that an interrupted run leaves.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::pages::{ndjson, rounds, text};
use crate::harness::{PATIENCE, Server, doppel, meaning, run, run_ok, wait_until};
use crate::{A, code, errors, finished, interrupt};

/// Writes a crawl of two rounds, one file for each.
fn crawl_files(home: &Path) -> Vec<String> {
    let write = |(round, pages): (usize, &Vec<Value>)| {
        let path = home.join(format!("round-{round}.jsonl"));
        fs::write(&path, ndjson(pages)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    rounds(5, 80, 2).iter().enumerate().map(write).collect()
}

#[test]
fn a_collection_outlives_its_commands() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let data = home.path().join("data");
    let dedup = |options: &[&str], inputs: &[&String]| {
        let mut arguments = vec!["dedup", "--latest", "--out", "-"];
        arguments.extend(options);
        arguments.extend(inputs.iter().map(|path| path.as_str()));
        run_ok(arguments)
    };
    let whole = dedup(&[], &[&files[0], &files[1]]);
    let kept = ["--data", data.to_str().unwrap(), "--shards", "2"];
    dedup(&kept, &[&files[0]]);
    let kept = &kept[..2];
    let after = dedup(kept, &[&files[1]]);
    assert_eq!(meaning(&after), meaning(&whole));
    let again = [kept, &["--read-again"]].concat();
    assert_eq!(dedup(&again, &[&files[0], &files[1]]), after, "the same files again change nothing");
    let server = Server::start(&data, &[]);
    assert_eq!(server.export(), after);
}

#[test]
fn the_language_of_a_kept_page_is_detected_only_on_request() {
    let english = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
        foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light";
    for (options, detected) in [(&[][..], Value::Null), (&["--detect-language"], json!("eng"))] {
        let home = tempfile::tempdir().unwrap();
        let (data, input) = (home.path().join("data"), home.path().join("pages.jsonl"));
        fs::write(&input, ndjson(&[json!({"url": A, "text": english})])).unwrap();
        let mut command = vec!["dedup", "--data", data.to_str().unwrap(), input.to_str().unwrap()];
        command.extend(options);
        run_ok(command);
        let server = Server::start(&data, &[]);
        let answer = server.ask("/v1/explain", &[("a", A), ("b", A)]);
        assert_eq!(answer["a"]["content"]["language"], detected, "{options:?}: {answer}");
    }
}

#[test]
fn grouping_at_once_equals_grouping_page_by_page_and_is_deterministic() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let dedup = |options: &[&str]| {
        let inputs = files.iter().map(String::as_str);
        run_ok(["dedup", "--latest", "--out", "-"].into_iter().chain(options.iter().copied()).chain(inputs))
    };
    for tau in ["0.8", "0.6"] {
        let at_once = dedup(&["--tau", tau]);
        assert_eq!(dedup(&["--tau", tau]), at_once);
        assert_eq!(meaning(&dedup(&["--tau", tau, "--incremental"])), meaning(&at_once));
    }
    let quarantined = dedup(&["--group-members-max", "2"]);
    assert_ne!(meaning(&quarantined), meaning(&dedup(&[])));
    assert_eq!(meaning(&dedup(&["--group-members-max", "2", "--incremental"])), meaning(&quarantined));
}

#[test]
fn the_temporary_directory_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let output = doppel().env("TMPDIR", &temporary).arg("dedup").args(&files).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn an_interrupted_run_removes_the_temporary_directory() {
    let home = tempfile::tempdir().unwrap();
    let crawl = home.path().join("crawl.jsonl");
    let page = |n: u64| json!({"url": format!("http://a.example/{n}"), "text": text(n, 200).join(" ")});
    fs::write(&crawl, ndjson(&(0..20_000).map(page).collect::<Vec<_>>())).unwrap();
    let temporary = home.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    // Under `nohup`, SIGHUP stays ignored.
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0").trim();
    let hangs_up = u64::from_str_radix(ignored, 16).unwrap() & 1 == 0;
    for signal in if hangs_up { &["INT", "HUP"][..] } else { &["INT"] } {
        let mut dedup = doppel()
            .env("TMPDIR", &temporary)
            .args(["dedup", "--latest", "--incremental"])
            .arg(&crawl)
            .spawn()
            .unwrap();
        // Wait until the storage engine writes its files.
        wait_until("the engine to open", PATIENCE, || {
            let made = fs::read_dir(&temporary).unwrap().next()?.unwrap().path();
            made.join("tier2").is_dir().then_some(())
        });
        interrupt(&dedup, signal);
        let status = wait_until("the run to end", PATIENCE, || dedup.try_wait().unwrap());
        assert_eq!(status.code(), Some(130));
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
    let data = home.path().join("data");
    let mut command = doppel();
    command.args(["dedup", "--incremental", "--data"]).arg(&data).arg(&crawl).stderr(Stdio::piped());
    let dedup = command.spawn().unwrap();
    wait_until("the engine to open", PATIENCE, || data.join("tier2").is_dir().then_some(()));
    // The command installs its signal handlers slightly later, so wait for its first records.
    wait_until("the first signatures to be recorded", PATIENCE, || {
        let signatures = data.join("tier1/range-0/signatures/00000000.sig");
        let size = fs::metadata(signatures).map_or(0, |file| file.len());
        (size > 10_000).then_some(())
    });
    interrupt(&dedup, "INT");
    let output = finished(dedup);
    assert_eq!(code(&output), 130);
    assert_eq!(errors(&output).as_str(), "doppel: interrupted; the same command goes on\n");
}

#[test]
fn a_directory_is_opened_only_with_the_options_it_was_created_with() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let data = home.path().join("data");
    let dedup = |options: &[&str]| {
        run(["dedup", "--data", data.to_str().unwrap()].iter().chain(options).chain([&files[0].as_str()]))
    };
    assert_eq!(code(&dedup(&["--tau", "0.9"])), 0);
    let other = dedup(&["--tau", "0.8"]);
    assert_eq!(code(&other), 1);
    assert!(
        errors(&other).contains("was made with --policy jaccard:tau=0.9, not jaccard:tau=0.8"),
        "{}",
        errors(&other)
    );
    let other = dedup(&["--shards", "7"]);
    assert!(errors(&other).contains("was made with --shards 16, not 7"), "{}", errors(&other));
    let other = dedup(&["--ranges", "2"]);
    assert!(errors(&other).contains("was made with --ranges 1, not 2"), "{}", errors(&other));
    let many = run(["dedup", "--latest", "--incremental", "--shards", "2", "--ranges", "3", &files[0]]);
    assert_eq!(code(&many), 1);
    assert!(errors(&many).contains("3 ranges for 2 shards"), "{}", errors(&many));

    let manifest = data.join("manifest.json");
    let sound = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, sound.replace("0.9", "0.7")).unwrap();
    let damaged = dedup(&[]);
    assert_eq!(code(&damaged), 1);
    assert!(errors(&damaged).contains("manifest.json is damaged"), "{}", errors(&damaged));
    fs::remove_file(&manifest).unwrap();
    let foreign = dedup(&[]);
    assert!(errors(&foreign).contains("is not empty and has no manifest.json"), "{}", errors(&foreign));
}

#[test]
fn a_directory_that_is_in_use_or_damaged_says_what_to_do() {
    let home = tempfile::tempdir().unwrap();
    let files = crawl_files(home.path());
    let data = home.path().join("data");
    let dedup = || run(["dedup", "--data", data.to_str().unwrap(), &files[0]]);
    assert_eq!(code(&dedup()), 0);
    let server = Server::start(&data, &[]);
    let serve = || run(["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    for used in [dedup(), serve()] {
        assert_eq!(code(&used), 1);
        let (data, url, process) = (data.display(), &server.url, server.id());
        let named = format!("doppel: {data} is open in the server at {url} (process {process}): ");
        // A server also logs that it starts and that it ends.
        let all = errors(&used);
        let [says] = all.lines().filter(|line| line.starts_with("doppel: ")).collect::<Vec<_>>()[..] else {
            panic!("{all}")
        };
        assert!(says.starts_with(&named), "{says}");
        let cause = format!("cannot open {data}: another process uses it: ");
        assert!(says.contains(&cause), "{says}");
    }
    assert!(server.terminate());
    let database = data.join("tier1/range-0/db");
    let mut bytes = fs::read(&database).unwrap();
    bytes.fill(0xaa);
    fs::write(&database, bytes).unwrap();
    let damaged = dedup();
    let said = errors(&damaged);
    assert_eq!(code(&damaged), 1, "{said}");
    let expected = format!("the database {} is damaged (", data.join("tier1/range-0").display());
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("restore it from a backup"), "{said}");
    // An empty collection must not silently replace one that was lost.
    fs::remove_dir_all(data.join("tier1")).unwrap();
    fs::create_dir(data.join("tier1")).unwrap();
    let emptied = dedup();
    assert_eq!(code(&emptied), 1);
    let lost = format!("doppel: {} has lost its pages: restore ", data.join("tier1").display());
    assert!(errors(&emptied).starts_with(&lost), "{}", errors(&emptied));
    fs::remove_dir_all(data.join("tier1")).unwrap();
    let lost = dedup();
    assert_eq!(code(&lost), 1);
    let missing = format!("{} is missing: restore", data.join("tier1").display());
    assert!(errors(&lost).contains(&missing), "{}", errors(&lost));
    assert!(!data.join("tier1").exists());
}

#[test]
fn pages_whose_file_is_gone_are_reported_and_pruned() {
    let home = tempfile::tempdir().unwrap();
    let (site, data) = (home.path().join("site"), home.path().join("data"));
    fs::create_dir_all(site.join("sub")).unwrap();
    let same = text(1, 100).join(" ");
    for name in ["a.txt", "sub/b.txt", "sub/c.txt"] {
        fs::write(site.join(name), &same).unwrap();
    }
    // This file is not in the directory, although its URL has the same prefix.
    let beside = home.path().join("site.txt");
    fs::write(&beside, &same).unwrap();
    let dedup = |options: &[&str], inputs: &[&Path]| -> (Value, String) {
        let arguments = ["dedup", "--data", data.to_str().unwrap()];
        let inputs = inputs.iter().map(|path| path.to_str().unwrap());
        let options = arguments.iter().chain(options).copied();
        let human = run_ok(options.clone().chain(inputs.clone()));
        let json = run_ok(options.chain(["--json"]).chain(inputs));
        (serde_json::from_str(&json).unwrap(), human)
    };
    dedup(&[], &[&site, &beside]);
    fs::remove_file(site.join("a.txt")).unwrap();
    fs::remove_dir_all(site.join("sub")).unwrap();
    fs::remove_file(&beside).unwrap();
    fs::write(site.join("sub"), "not a directory any more").unwrap();
    let (summary, human) = dedup(&[], &[&site]);
    assert_eq!([&summary["gone"], &summary["pruned"]], [&json!(3), &json!(false)], "{summary}");
    assert_eq!(summary["pages"]["live"], 5);
    assert!(human.contains("they stay live, --prune records them as dead"), "{human}");
    // An empty directory prunes nothing, because it may be one that is not mounted.
    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let options = ["dedup", "--prune", "--data", data.to_str().unwrap(), empty.to_str().unwrap()];
    assert_eq!(code(&run(options)), 5);
    let (summary, human) = dedup(&["--prune"], &[&site]);
    assert!(human.contains("their files have gone: dead now"), "{human}");
    assert_eq!([&summary["pages"]["live"], &summary["pages"]["dead"]], [2, 3], "{summary}");
    assert_eq!(summary["gone"], 0, "the first of the two runs has pruned them");
    assert_eq!(
        code(&run(["dedup", "--prune", site.to_str().unwrap()])),
        2,
        "without --data there is nothing to prune"
    );
}

#[test]
fn the_summary_counts_stale_and_unchanged_pages() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let crawl = |name: &str, date: &str| {
        let path = home.path().join(name);
        fs::write(&path, ndjson(&[json!({"url": A, "text": format!("from {date}"), "fetched_at": date})]))
            .unwrap();
        path
    };
    let (new, old) = (crawl("new.jsonl", "2024-05-02T00:00:00Z"), crawl("old.jsonl", "2024-05-01T00:00:00Z"));
    let options = ["dedup", "--read-again", "--data", data.to_str().unwrap()];
    let dedup = |input: &Path| run_ok(options.into_iter().chain([input.to_str().unwrap()]));
    let first = dedup(&new);
    assert!(!first.contains("stale") && !first.contains("unchanged"), "{first}");
    assert!(dedup(&old).contains("stale         1  older than what is on record: not taken"));
    assert!(dedup(&new).contains("unchanged     1  as on record"));
}

#[test]
fn the_summary_names_quarantined_groups_of_which_every_page_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("crawl.jsonl");
    let page = |n: u32| {
        let mut words = text(1, 100);
        words[n as usize] = "another".to_owned();
        json!({"url": format!("http://a.example/{n}"), "text": words.join(" ")})
    };
    fs::write(&path, ndjson(&(0..4).map(page).collect::<Vec<_>>())).unwrap();
    for way in [&[][..], &["--latest", "--incremental"]] {
        let options = ["dedup", "--group-members-max", "3"].iter().chain(way);
        let human = run_ok(options.clone().copied().chain([path.to_str().unwrap()]));
        assert!(
            human.contains("quarantined    1  groups with more contents than --group-members-max"),
            "{human}"
        );
        assert!(human.contains("kept 4") && human.contains("removed 0"), "{human}");
        for json in [&[][..], &["--json"]] {
            let output = run(options.clone().chain(json).copied().chain([path.to_str().unwrap()]));
            assert_eq!(code(&output), 0);
            let told = errors(&output);
            let warning =
                "1 group is quarantined: all 4 pages with content are kept, near-duplicates among them";
            let last = told.lines().last().unwrap_or_default();
            assert!(last.starts_with(&format!("doppel: WARNING: {warning}")), "{told}");
            assert!(last.contains("then pass a larger number") && !last.contains("doppel repair"), "{told}");
            if let Ok(summary) = serde_json::from_slice::<Value>(&output.stdout) {
                assert!(summary["warnings"][0].as_str().unwrap().starts_with(warning), "{summary}");
            }
        }
    }
    // A larger limit does not end the quarantine of groups that a collection already has.
    let data = home.path().join("collection");
    for most in ["3", "3", "9"] {
        let options = ["dedup", "--read-again", "--group-members-max", most, "--data"];
        let output = run(options.into_iter().chain([&data, &path].map(|path| path.to_str().unwrap())));
        let told = errors(&output);
        let last = told.lines().last().unwrap_or_default();
        assert!(last.starts_with("doppel: WARNING: 1 group is quarantined: all 4 pages"), "{most}: {told}");
        let repair = format!("`doppel serve --data {}`", data.display());
        assert!(last.contains(&repair) && last.contains("`doppel repair ID`"), "{most}: {told}");
        assert!(!last.contains("pass a larger number"), "{most}: {told}");
    }
}

#[test]
fn equal_texts_count_as_one_content_of_a_group() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("equal.jsonl");
    let (one, mut other) = (text(1, 100), text(1, 100));
    other[50] = "another".to_owned();
    let page = |n: usize| {
        let text = if n < 4 { &one } else { &other };
        json!({"url": format!("http://a.example/{n}"), "text": text.join(" ")})
    };
    fs::write(&path, ndjson(&(0..9).map(page).collect::<Vec<_>>())).unwrap();
    for way in [&[][..], &["--latest", "--incremental"]] {
        let options = ["dedup", "--json", "--group-members-max", "2"].iter().chain(way);
        let output = run(options.copied().chain([path.to_str().unwrap()]));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["groups"]["quarantined"], json!(0), "{summary}");
        assert_eq!(summary["kept"]["pages"], json!(1), "{summary}");
        assert!(summary.get("warnings").is_none() && !errors(&output).contains("WARNING"), "{summary}");
    }
}

#[test]
fn the_summary_counts_what_was_found() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("crawl.jsonl");
    let copy = text(1, 100);
    let mut near = copy.clone();
    near[50] = "another".to_owned();
    let other = text(2, 100).join(" ");
    let page = |url: &str, text: String| json!({"url": url, "text": text});
    let pages = [
        page("http://a.example/1", copy.join(" ")),
        page("http://a.example/2", near.join(" ")),
        page("http://b.example/1", other.clone()),
        page("http://b.example/2", other.clone()),
        page("http://b.example/3", other),
        page("http://c.example/1", text(3, 100).join(" ")),
        page("http://d.example/1", text(4, 100).join(" ")),
        json!({"url": "http://d.example/2", "redirect_to": "http://d.example/1"}),
        json!({"url": "http://e.example/", "dead": true}),
        json!({"url": "http://f.example/"}),
    ];
    fs::write(&path, ndjson(&pages)).unwrap();
    let summary: Value = serde_json::from_str(&run_ok(["dedup", "--json", path.to_str().unwrap()])).unwrap();
    assert_eq!(
        summary["groups"],
        json!({"exact": 1, "near": 1, "redirects": 1, "quarantined": 0}),
        "{summary}"
    );
    assert_eq!(summary["policy"], "jaccard:tau=0.8", "{summary}");
    // The redirect and the death count as kept.
    let records = json!({"read": 10, "kept": 6, "removed": {"duplicate": 3}, "bad": 1, "skipped": 0});
    assert_eq!(summary["records"], records);
    assert_eq!(summary["input"]["records"], 9);
    assert_eq!(summary["input"]["bad"], json!({"JSON line that is no page": 1}));
    let pages = &summary["pages"];
    assert_eq!([&pages["live"], &pages["duplicates"], &pages["dead"]], [8, 4, 1], "{summary}");
    let largest = &summary["largest"][0];
    assert_eq!(
        [&largest["pages"], &largest["winner"]],
        [&json!(3), &json!("http://b.example/1")],
        "{summary}"
    );
    let human = run_ok(["dedup", path.to_str().unwrap()]);
    for line in [
        "read       10  records, ",
        "  kept     6",
        "  removed  3   3 duplicate",
        "  bad      1",
        "\npolicy jaccard:tau=0.8\n",
        "judged        8",
        "exact groups  1  all members have the same words (punctuation and case ignored)\n",
        "near groups   1  some members have other words, and the policy links them\n",
        "3 pages  exact  http://b.example/1",
    ] {
        assert!(human.contains(line), "{line}: {human}");
    }
    for (policy, named, content) in [
        ("simhash", "simhash:differing=3", "words (punctuation and case ignored)"),
        ("content", "content:tau=0.8", "words in the main content (punctuation and case ignored)"),
        (
            "by-site:site=host",
            "by-site:across=372,equal=2,agreeing=355,site=host",
            "words on one site (punctuation and case ignored)",
        ),
        (
            "overlap",
            "overlap:lines=4,shared=15",
            "words (punctuation and case ignored), from 20 words on in the same lines",
        ),
        ("jaccard:tokens=code", "jaccard:tau=0.8,tokens=code", "tokens (white space ignored)"),
    ] {
        let dedup = |options: &[&str]| {
            run_ok([&["dedup", "--policy", policy], options, &[path.to_str().unwrap()]].concat())
        };
        let (human, json) = (dedup(&[]), dedup(&["--json", "--latest", "--incremental"]));
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["policy"], named);
        assert!(human.contains(&format!("\n\npolicy {named}\n")), "{human}");
        assert!(human.contains(&format!("all members have the same {content}\n")), "{human}");
    }
}

#[test]
fn wrong_options_are_refused_before_the_inputs_are_read() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (foreign, made, winners) = (file("foreign"), file("made"), file("winners.toml"));
    let text = file("page.txt");
    fs::write(&text, "some words").unwrap();
    fs::create_dir(&foreign).unwrap();
    fs::write(home.path().join("foreign/another.txt"), "").unwrap();
    run_ok(["dedup", "--data", &made, "--policy", "simhash", &text]);
    fs::write(&winners, "nonsense").unwrap();
    for (options, says) in [
        (&["--out", "/none/such/out"][..], "cannot write /none/such/out"),
        (&["--data", &foreign], "is not empty and has no manifest.json"),
        (&["--data", &foreign, "--incremental"], "is not empty and has no manifest.json"),
        (&["--data", &text], "is a file, not a directory"),
        (&["--data", &made], "made with --policy simhash:differing=3, not imatch"),
        (&["--winners", &winners], "winners.toml"),
        (&["--market", "no market"], "--market no market"),
        (&["--data", &file("new"), "--ranges", "9", "--shards", "3"], "9 ranges for 3 shards"),
        (&["--latest", "--incremental", "--ranges", "9", "--shards", "3"], "9 ranges for 3 shards"),
    ] {
        let mut command = doppel();
        command.args(["dedup", "--policy", "imatch"]).args(options).arg("-");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut command = command.spawn().unwrap();
        // Standard input never ends here, so a command that reads it would hang.
        let _input = command.stdin.take().unwrap();
        let refused = finished(command);
        assert!(code(&refused) != 0 && errors(&refused).contains(says), "{options:?}: {refused:?}");
    }
    assert!(!home.path().join("new").exists());
}

#[test]
fn a_directory_with_an_unreadable_part_is_reported_as_incomplete() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let site = home.path().join("site");
    fs::create_dir_all(site.join("sub")).unwrap();
    for name in ["a.txt", "sub/b.txt"] {
        fs::write(site.join(name), text(1, 40).join(" ")).unwrap();
    }
    for closed in ["a.txt", "sub"].map(|name| site.join(name)) {
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        // The superuser can read the directory in spite of its permissions.
        let is_closed = fs::File::open(&closed).is_err();
        let output = run(["dedup", "--json", site.to_str().unwrap()]);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        if is_closed {
            assert_eq!(code(&output), 5, "{}", errors(&output));
            let text = String::from_utf8(output.stdout).unwrap();
            let summary: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            assert_eq!(summary["input"]["incomplete"], json!([site.to_str().unwrap()]));
            assert_eq!(summary["input"]["records"], 1);
        }
    }
}

#[test]
fn options_that_have_no_effect_are_named() {
    let home = tempfile::tempdir().unwrap();
    let input = home.path().join("pages.jsonl").to_str().unwrap().to_owned();
    fs::write(&input, ndjson(&[json!({"url": A, "text": "one two three"})])).unwrap();
    let data = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let says = |options: &[&str]| {
        let output = run([&["dedup"], options, &[&*input]].concat());
        assert_eq!(code(&output), 0, "{}", errors(&output));
        errors(&output)
    };
    let index = ["--dimensions", "3", "--partitions", "4", "--index-nodes", "2"];
    let listed = "--index-nodes, --partitions and --dimensions have no effect, because all pages are grouped at once. \
                  They count with --incremental, and in `doppel serve`";
    assert!(says(&index).contains(listed));
    let (made, recorded) = (data("made"), data("recorded"));
    assert!(
        says(&[&index[..], &["--data", &made]].concat())
            .contains("--index-nodes and --partitions have no effect"),
        "a new directory gets an index of one node with the default partitions"
    );
    assert!(
        !says(&[&index[..], &["--data", &made]].concat()).contains("no effect"),
        "the options are those of the existing directory"
    );
    assert!(!says(&[&index[..], &["--data", &recorded, "--incremental"]].concat()).contains("no effect"));
    assert!(!says(&[&index[..], &["--latest", "--incremental"]].concat()).contains("no effect"));
    let one = says(&["--detect-language"]);
    assert!(
        one.contains("--detect-language has no effect")
            && one.contains("It counts with --data or --incremental"),
        "{one}"
    );
    assert!(!says(&["--detect-language", "--shards", "2", "--data", &data("third")]).contains("no effect"));
    for option in [
        "--keep-dead=1d",
        "--keep-purged=1d",
        "--keep-merged=1d",
        "--keep-audit=1d",
        "--pending-max=1000",
        "--low-cohesion-percent=5",
        "--snapshot-every=1s",
    ] {
        let name = option.split('=').next().unwrap();
        assert!(says(&[option]).contains(&format!("{name} has no effect")), "{option}");
    }
    assert!(
        !says(&["--group-members-max", "9", "--tau", "0.7"]).contains("no effect"),
        "these options have an effect"
    );
}
