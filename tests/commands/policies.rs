//! `--policy`: collections under each policy, and options that are refused.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::harness::pages::{ndjson, text};
use crate::harness::{Server, doppel, kill_at_moments, meaning, run, run_ok};
use crate::{code, errors};

const POLICIES: [&str; 11] = [
    "jaccard",
    "supershingle",
    "projection",
    "combined",
    "by-site",
    "simhash",
    "imatch",
    "multi-simhash",
    "overlap",
    "content",
    "copies",
];

/// Policies with signatures of shingles. Only for these, lengths narrow down where to search.
const OF_SHINGLES: [&str; 3] = ["jaccard", "content", "copies"];

/// The policies that need tables.
const WITH_TABLES: [&str; 2] = ["imatch", "multi-simhash"];

/// Learns the tables of a policy. Returns the path of the file.
fn tables(home: &Path, policy: &str, crawl: &str) -> String {
    let path = home.join(format!("{policy}.tables")).to_str().unwrap().to_owned();
    run_ok(["policy-tables", "--policy", policy, "--out", &path, crawl]);
    path
}

/// Writes families of long texts that differ in a word or two. Each text is on two sites.
fn crawl(home: &Path) -> String {
    let page = |n: u64| {
        let (family, member) = (n / 6, n % 6);
        let mut words = text(family, 400);
        (0..member / 2).for_each(|at| words[100 * at as usize + 7] = format!("changed{member}"));
        json!({"url": format!("http://site{}.example/{n}", n % 2), "text": words.join("\n")})
    };
    let path = home.join("crawl.jsonl");
    fs::write(&path, ndjson(&(0..60).map(page).collect::<Vec<_>>())).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_policy_groups_at_once_as_page_by_page_and_as_a_server_does() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    for policy in POLICIES {
        let dedup = |options: &[&str]| {
            run_ok(
                ["dedup", "--latest", "--out", "-", "--policy", policy]
                    .into_iter()
                    .chain(options.iter().copied())
                    .chain([&*crawl]),
            )
        };
        let at_once = dedup(&[]);
        assert!(at_once.contains("\"duplicate\""), "{policy}");
        assert_eq!(meaning(&dedup(&["--incremental"])), meaning(&at_once), "{policy}");
        let data = home.path().join(policy);
        let mut options = vec!["--policy", policy, "--index-nodes", "2", "--partitions", "4"];
        let tables = WITH_TABLES.contains(&policy).then(|| tables(home.path(), policy, &crawl));
        if let Some(tables) = &tables {
            // The tables are those that `dedup` learns on its own.
            assert_eq!(meaning(&dedup(&["--policy-tables", tables])), meaning(&at_once), "{policy}");
            options.extend(["--policy-tables", tables]);
        }
        let server = Server::start(&data, &options);
        let lines = fs::read_to_string(&crawl).unwrap();
        let pages: Vec<_> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        server.push_all(&pages);
        server.flush();
        assert_eq!(meaning(&server.export()), meaning(&at_once), "{policy}");
        let pair = [("a", "http://site0.example/0"), ("b", "http://site1.example/1")];
        let explained = server.ask("/v1/explain", &pair);
        assert_eq!(explained["duplicate"], true, "{explained}");
        assert!(explained["policy"].as_str().unwrap().starts_with(policy), "{explained}");
        // Pages with the same text share one content, unless F depends on the site.
        assert_eq!(
            explained["measures"]["same_content"],
            !["by-site", "copies"].contains(&policy),
            "{explained}"
        );
        for of_shingles in [&explained["measures"]["shingles"], &explained["a"]["content"]["shingles"]] {
            assert_eq!(of_shingles.is_null(), !OF_SHINGLES.contains(&policy), "{explained}");
        }
        let what_if = server.query("/v1/reports/load-balance/what-if", &[]).status();
        assert_eq!(what_if, if OF_SHINGLES.contains(&policy) { 200 } else { 422 }, "{policy}");
        if policy != "jaccard" {
            let refused = run(["plan", "--from-server", &server.url]);
            assert!(code(&refused) == 1 && errors(&refused).contains("policy jaccard"), "{refused:?}");
        }
    }
}

#[test]
fn unknown_and_different_policies_are_refused_with_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, data) = (crawl(home.path()), home.path().join("data"));
    let data = data.to_str().unwrap();
    let refused = |options: &[&str]| {
        let output =
            run(["dedup", "--data", data].into_iter().chain(options.iter().copied()).chain([&*crawl]));
        assert_ne!(code(&output), 0, "{options:?}");
        if options.len() > 1 && !Path::new(data).exists() {
            assert_eq!(code(&output), 2, "{options:?}");
        }
        errors(&output)
    };
    for (options, says) in [
        (&["--policy", "minhash"][..], "there are jaccard, supershingle"),
        (&["--policy", "projection:tau=0.8"], "it has agreeing"),
        (&["--policy", "projection:agreeing=400"], "a number from 361 to 384"),
        (&["--policy", "by-site:site=page"], "one of registrable, host, parent"),
        (&["--policy", "combined:tokens=terms"], "one of words, source"),
        (&["--policy", "overlap:tokens=source"], "no parameter \"tokens\""),
        (&["--policy", "simhash", "--tau", "0.9"], "the policy simhash has no tau"),
        (&["--policy", "copies", "--tau", "0.9"], "the policy copies has no tau"),
        (&["--policy", "content", "--tau", "0.9"], "give --policy content:tau=0.9"),
        (&["--policy", "copies:within=1"], "a decimal from 0.3"),
        (&["--policy", "jaccard:tau=0.7", "--tau", "0.9"], "two values for tau"),
        (&["--policy", "jaccard:tau=0.8", "--tau", "0.9"], "two values for tau"),
    ] {
        let error = refused(options);
        assert!(error.contains(says), "{options:?}: {error}");
    }
    run_ok(["dedup", "--data", data, "--policy", "simhash:differing=4", &crawl]);
    let error = refused(&["--policy", "simhash"]);
    assert!(error.contains("made with --policy simhash:differing=4, not simhash:differing=3"), "{error}");
    let error = refused(&["--tau", "0.8"]);
    assert!(
        error.contains("made with --policy simhash:differing=4, not jaccard:tau=0.8; leave --tau away"),
        "{error}"
    );
    run_ok(["dedup", "--data", data, "--policy", "simhash:differing=4", &crawl]);
}

/// Two pages have the same text and different images.
#[test]
fn policies_that_read_the_source_tell_pages_with_different_images_apart() {
    let home = tempfile::tempdir().unwrap();
    let words = text(1, 30).join(" ");
    let page = |n: u32| {
        let images: String = (0..30).map(|image| format!("<img src=/{n}/{n}-{image}.gif>")).collect();
        json!({"url": format!("http://a.example/{n}"), "html": format!("<b>{words}</b>{images}")})
    };
    let crawl = home.path().join("crawl.jsonl");
    fs::write(&crawl, ndjson(&[page(1), page(2)])).unwrap();
    let (crawl, data) = (crawl.to_str().unwrap(), home.path().join("data"));
    let data = data.to_str().unwrap();
    for policy in ["supershingle", "projection", "combined", "by-site"] {
        let duplicates = |policy: &str, options: &[&str]| {
            let dedup = ["dedup", "--latest", "--out", "-", "--policy", policy]
                .into_iter()
                .chain(options.iter().copied());
            run_ok(dedup.chain([crawl])).matches("\"duplicate\"").count()
        };
        let source = format!("{policy}:tokens=source");
        for options in [&[][..], &["--incremental"]] {
            assert_eq!(duplicates(policy, options), 1, "{policy}");
            assert_eq!(duplicates(&source, options), 0, "{policy}");
        }
    }
    run_ok(["dedup", "--data", data, "--policy", "projection:tokens=source", crawl]);
    run_ok(["dedup", "--data", data, "--policy", "projection:tokens=source", crawl]);
    let refused = errors(&run(["dedup", "--data", data, "--policy", "projection", crawl]));
    let says = "made with --policy projection:agreeing=372,tokens=source, not projection:agreeing=372";
    assert!(refused.contains(says), "{refused}");
}

#[test]
fn a_collection_keeps_the_tables_it_was_created_with() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, data) = (crawl(home.path()), home.path().join("data"));
    let (tables, data) = (tables(home.path(), "multi-simhash", &crawl), data.to_str().unwrap());
    let ends = |arguments: &[&str], with: i32| {
        let output = run(arguments);
        assert_eq!(code(&output), with, "{arguments:?}");
        errors(&output)
    };
    let (refused, wrong) = (|arguments: &[&str]| ends(arguments, 1), |arguments: &[&str]| ends(arguments, 2));
    // A server needs the option `--policy-tables` to create a collection.
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data", data];
    let error = wrong(&[&serve[..], &["--policy", "multi-simhash"]].concat());
    assert!(error.contains("doppel policy-tables INPUT... --policy multi-simhash --out FILE"), "{error}");
    let error = wrong(&[&serve[..], &["--policy-tables", &tables]].concat());
    assert!(error.contains("the policy jaccard reads no tables"), "{error}");
    let error = wrong(&[&serve[..], &["--policy", "imatch", "--policy-tables", &tables]].concat());
    let says = format!("{tables} has tables of multi-simhash, not of imatch; learn others with");
    assert!(error.contains(&says) && !error.contains("the tables are"), "{error}");
    assert!(!Path::new(data).exists());
    // A collection that was created with tables opens only with the same tables, and no longer needs the
    // file.
    let made = ["dedup", "--data", data, "--policy", "multi-simhash", "--policy-tables", &tables, &crawl];
    run_ok(made);
    run_ok(["dedup", "--data", data, &crawl]);
    run_ok(made);
    let other = home.path().join("other.jsonl");
    let page = |n: u32| json!({"url": format!("http://a.example/{n}"), "text": format!("some other words than {n}")});
    fs::write(&other, ndjson(&[page(1), page(2)])).unwrap();
    let others = home.path().join("others").to_str().unwrap().to_owned();
    let learnt =
        run_ok(["policy-tables", "--policy", "multi-simhash", "--out", &others, other.to_str().unwrap()]);
    let error = refused(&["dedup", "--data", data, "--policy-tables", &others, &crawl]);
    let hash = learnt.lines().find_map(|line| line.strip_prefix("hash ")).unwrap();
    assert!(error.contains("was made with the tables ") && error.contains(hash), "{error}");
    // If the stored tables are lost or damaged, only the same tables are accepted in their place.
    let kept = Path::new(data).join("policy-tables");
    let sound = fs::read(&kept).unwrap();
    assert_eq!(sound, fs::read(&tables).unwrap());
    let mut damaged = sound.clone();
    damaged[100] ^= 1;
    let own = tables_hash(&run_ok(["check", "--json", data]));
    assert!(own.is_null());
    for (put, says) in [
        (None, "policy-tables is missing,"),
        (Some(&damaged[..]), "policy-tables cannot be used (it is damaged: "),
        (Some(b"no tables"), "policy-tables cannot be used (it is no file of tables"),
    ] {
        fs::remove_file(&kept).unwrap();
        put.inspect(|bytes| fs::write(&kept, bytes).unwrap());
        let error = refused(&["dedup", "--data", data, &crawl]);
        assert!(error.contains(says), "{error}");
        let error = refused(&["dedup", "--data", data, "--policy-tables", &others, &crawl]);
        assert!(error.contains(" needs the tables ") && error.contains(hash), "{error}");
        // The collection loses no page without its tables.
        let checked = run(["check", data]);
        assert_eq!(code(&checked), i32::from(put.is_some()));
        let says = "tables of the policy: none; a start needs --policy-tables with ";
        assert_eq!(String::from_utf8_lossy(&checked.stdout).contains(says), put.is_none());
        assert_eq!(
            tables_hash(&String::from_utf8_lossy(&run(["check", "--json", data]).stdout)).is_string(),
            put.is_none()
        );
        run_ok(made);
        assert_eq!(fs::read(&kept).unwrap(), sound);
    }
    fs::write(&tables, &damaged).unwrap();
    let error = refused(&made);
    assert!(error.contains("multi-simhash.tables: it is damaged: the checksum does not match"), "{error}");
}

/// The hash of the tables that a start needs, from the JSON output of a command.
fn tables_hash(json: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(json).unwrap()["tables_needed"].take()
}

#[test]
fn tables_without_words_are_refused_and_learnt_tables_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, data) = (crawl(home.path()), home.path().join("data"));
    let (dead, one, out) =
        (home.path().join("dead.jsonl"), home.path().join("one.jsonl"), home.path().join("out"));
    fs::write(&dead, ndjson(&[json!({"url": "http://a.example/", "dead": true})])).unwrap();
    fs::write(&one, ndjson(&[json!({"url": "http://a.example/", "text": "the zebra"})])).unwrap();
    let (data_arg, out_arg) = (data.to_str().unwrap(), out.to_str().unwrap());
    for (input, says) in [(&dead, "no page of the input has a word"), (&one, "no word is in two contents")] {
        for options in [
            &["dedup"][..],
            &["dedup", "--data", data_arg],
            &["dedup", "--data", data_arg, "--incremental"],
            &["policy-tables", "--out", out_arg],
        ] {
            let refused = run(options.iter().chain(&["--policy", "imatch", input.to_str().unwrap()]));
            assert!(code(&refused) == 5 && errors(&refused).contains(says), "{options:?}: {refused:?}");
            assert!(errors(&refused).contains("give more pages, or tables that were learnt before with"));
            assert!(errors(&refused).contains("or take a policy without tables, such as jaccard"));
            assert!(!data.exists() && !out.exists(), "{options:?}");
        }
    }
    let nothing_kept = run_ok(["dedup", "--policy", "imatch", &crawl]);
    assert!(nothing_kept.contains("tables learnt from 60 pages (") && !nothing_kept.contains("never change"));
    let summary = run_ok(["dedup", "--policy", "imatch", "--json", "--data", data_arg, &crawl]);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let kept = data.join("policy-tables");
    assert_eq!(summary["tables"]["kept"], kept.to_str().unwrap(), "{summary}");
    assert!(nothing_kept.contains(&format!("hash {}", summary["tables"]["hash"].as_str().unwrap())));
    fs::remove_dir_all(&data).unwrap();
    let text = run_ok(["dedup", "--policy", "imatch", "--data", data_arg, "--incremental", &crawl]);
    assert!(text.contains(&format!("kept in {}; they never change", kept.display())), "{text}");
    // The collection now stores the tables.
    assert!(!run_ok(["dedup", "--data", data_arg, &crawl]).contains("tables learnt"));
}

#[test]
fn a_backup_names_the_tables_and_a_restore_puts_them_in_place() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    let (crawl, data, backup, restored) =
        (crawl(home.path()), file("data"), file("backup"), file("restored"));
    run_ok(["dedup", "--policy", "imatch", "--data", &data, &crawl]);
    let (kept, others) = (format!("{data}/policy-tables"), tables(home.path(), "multi-simhash", &crawl));
    let said = run_ok(["backup", "--data", &data, "--out", &backup]);
    assert!(
        said.contains("not in it: the tables ") && said.contains(&format!("copy {kept} beside")),
        "{said}"
    );
    let json = run_ok(["backup", "--data", &data, "--out", &backup, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let hash = json["tables_not_in_it"].as_str().unwrap();
    assert!(said.contains(hash));
    let restore = ["restore", &*backup, "--data", &restored];
    let refused = run(restore.iter().chain(&["--policy-tables", &*others]));
    assert!(
        code(&refused) == 1 && errors(&refused).contains(&format!("needs the tables {hash}; {others} has "))
    );
    assert!(!Path::new(&restored).exists());
    let said = run_ok(restore);
    let says = format!("before its first start `doppel serve` needs --policy-tables FILE with hash {hash}");
    assert!(said.contains(&says), "{said}");
    fs::remove_dir_all(&restored).unwrap();
    assert_eq!(tables_hash(&run_ok(restore.iter().chain(&["--json"]))), *hash);
    fs::remove_dir_all(&restored).unwrap();
    let said = run_ok(restore.iter().chain(&["--policy-tables", &*kept]));
    assert!(!said.contains("policy-tables"), "{said}");
    assert_eq!(fs::read(&kept).unwrap(), fs::read(format!("{restored}/policy-tables")).unwrap());
    run_ok(["dedup", "--data", &restored, &crawl]);
}

#[test]
fn a_node_of_a_cluster_needs_no_tables() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, node) = (crawl(home.path()), home.path().join("node"));
    let data = node.join("collection").to_str().unwrap().to_owned();
    run_ok(["dedup", "--policy", "imatch", "--data", &data, &crawl]);
    fs::remove_file(format!("{data}/policy-tables")).unwrap();
    let check = |options: &[&str]| run_ok([&["check"], options, &[&*data]].concat());
    assert!(check(&[]).contains("tables of the policy: none; a start needs"));
    // The file `node.json` makes this the directory of a node. Only coordinators read tables.
    fs::write(node.join("node.json"), "{}").unwrap();
    assert!(!check(&[]).contains("tables"), "{}", check(&[]));
    assert!(tables_hash(&check(&["--json"])).is_null());
}

/// A first run may be killed at any moment, or run out of disk space. The same command must then resume.
#[test]
fn a_first_run_that_ends_early_leaves_no_collection_without_its_tables() {
    let home = tempfile::tempdir().unwrap();
    let (crawl, data) = (crawl(home.path()), home.path().join("data"));
    let arguments = ["dedup", "--policy", "imatch", "--data", data.to_str().unwrap(), "--out", "-"];
    let page_by_page = || arguments.into_iter().chain(["--incremental", &crawl]);
    let at_once = || arguments.into_iter().chain([&*crawl]);
    let expected = meaning(&run_ok(page_by_page()));
    let tables = fs::read(data.join("policy-tables")).unwrap();
    let begin = |files: &[(&str, &[u8])]| {
        fs::remove_dir_all(&data).unwrap();
        fs::create_dir(&data).unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(data.join(name), bytes).unwrap());
    };
    // These files exist between two steps of a run, or after a run on another crawl.
    for files in [
        &[("policy-tables.newAbCdEf", &tables[..50])][..],
        &[("policy-tables", &tables)],
        &[("policy-tables", &tables), ("manifest.json.newAbCdEf", b"{")],
        &[("policy-tables", b"others")],
    ] {
        begin(files);
        assert_eq!(meaning(&run_ok(page_by_page())), expected);
        assert_eq!(fs::read(data.join("policy-tables")).unwrap(), tables);
        let names = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.filter(|name| name.to_str().unwrap().contains(".new")).count(), 0);
        let mode = |name: &str| fs::metadata(data.join(name)).unwrap().permissions().mode();
        assert_eq!(mode("policy-tables"), mode("manifest.json"));
        begin(files);
        assert_eq!(meaning(&run_ok(at_once())), expected);
    }
    // A policy without tables refuses a directory that has some.
    begin(&[("policy-tables", &tables)]);
    let refused = run(["dedup", "--data", data.to_str().unwrap(), &crawl]);
    assert!(code(&refused) == 1 && errors(&refused).contains("is not empty"), "{refused:?}");
    // If the tables cannot be written, there is no manifest that names them.
    begin(&[]);
    fs::create_dir_all(data.join("policy-tables/in-the-way")).unwrap();
    let refused = run(page_by_page());
    assert!(code(&refused) == 1 && errors(&refused).contains("cannot write"), "{refused:?}");
    assert!(!data.join("manifest.json").exists());
    begin(&[]);
    kill_at_moments(
        12,
        || {
            let mut command = doppel();
            command.args(page_by_page());
            command
        },
        |ended| {
            assert_eq!(meaning(&run_ok(page_by_page())), expected);
            begin(&[]);
            ended
        },
    );
}

#[test]
fn tables_do_not_depend_on_the_order_of_pages_and_are_learnt_from_standard_input_too() {
    let home = tempfile::tempdir().unwrap();
    let crawl = crawl(home.path());
    let text = fs::read_to_string(&crawl).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (first, second) = lines.split_at(23);
    let part = |name: &str, lines: &[&str]| {
        let path = home.path().join(name);
        fs::write(&path, lines.iter().rev().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let parts = [part("second.jsonl", second), part("first.jsonl", first), part("again.jsonl", second)];
    let out = home.path().join("out").to_str().unwrap().to_owned();
    for policy in WITH_TABLES {
        let learnt = fs::read(tables(home.path(), policy, &crawl)).unwrap();
        let options = ["policy-tables", "--policy", policy, "--out", &out];
        run_ok(options.into_iter().chain(parts.iter().map(String::as_str)));
        assert_eq!(fs::read(&out).unwrap(), learnt, "{policy}");
    }
    let piped = |arguments: &[&str]| {
        let mut command = doppel();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut command = command.spawn().unwrap();
        command.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = command.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let dedup = ["dedup", "--latest", "--out", "-", "--policy", "imatch"];
    let from_file = run_ok(dedup.into_iter().chain([&*crawl]));
    assert_eq!(meaning(&piped(&[&dedup[..], &["-"]].concat())), meaning(&from_file));
    for (options, says) in [
        (&["--policy", "simhash"][..], "the policy simhash reads no tables"),
        (&["--policy", "words"], "there are jaccard, supershingle"),
    ] {
        let refused = run(["policy-tables", "--out", &out].iter().chain(options).chain([&&*crawl]));
        assert!(code(&refused) == 2 && errors(&refused).contains(says), "{refused:?}");
    }
    let empty = part("empty.jsonl", &[r#"{"url": "http://a.example/", "text": "the of and"}"#]);
    let refused = run(["policy-tables", "--policy", "imatch", "--out", &out, &empty]);
    assert!(
        code(&refused) == 5 && errors(&refused).contains("no page of the input has a word"),
        "{refused:?}"
    );
}

#[test]
fn a_policy_that_reads_sites_refuses_files_without_a_host() {
    let home = tempfile::tempdir().unwrap();
    let site = home.path().join("site");
    fs::create_dir(&site).unwrap();
    for name in ["a.txt", "b.txt"] {
        fs::write(site.join(name), text(1, 50).join(" ")).unwrap();
    }
    let (site, data) = (site.to_str().unwrap(), home.path().join("data"));
    let data = data.to_str().unwrap();
    let crawl = home.path().join("crawl.jsonl");
    let page = |url: &str| json!({"url": url, "text": text(1, 50).join(" ")});
    fs::write(&crawl, ndjson(&["file:///a", "http://a.example/1", "http://a.example/2"].map(page))).unwrap();
    let crawl = crawl.to_str().unwrap();
    for policy in ["by-site", "copies"] {
        // If no file has a host, the command keeps nothing and says what to do.
        for options in [&[][..], &["--latest", "--incremental"], &["--data", data]] {
            let arguments = ["dedup", "--policy", policy].into_iter().chain(options.iter().copied());
            let refused = run(arguments.chain([site]));
            let errors = errors(&refused);
            assert_eq!(code(&refused), 5, "{policy} {options:?}: {errors}");
            assert!(errors.contains(".txt: the URL has no host") && errors.contains("such as content"));
            assert!(errors.contains("nothing was read: 2 bad"), "{errors}");
            assert!(!Path::new(data).join("manifest.json").exists());
        }
        // If one file has no host, the command groups the others.
        let dedup = ["dedup", "--policy", policy, "--json", crawl];
        let summary: serde_json::Value = serde_json::from_str(&run_ok(dedup)).unwrap();
        let reason = format!("no host in the URL, which {policy} needs");
        assert_eq!(summary["input"]["records"], json!(2));
        assert_eq!(summary["input"]["bad"][reason], json!(1));
        assert_eq!(code(&run(dedup.into_iter().chain(["--strict"]))), 5);
        let server = Server::start(&home.path().join(policy), &["--policy", policy]);
        let loaded = run(["load", "--server", &server.url, "--flush", "--strict", crawl]);
        assert!(code(&loaded) == 5 && errors(&loaded).contains("such as content"), "{loaded:?}");
        assert_eq!(server.export().lines().count(), 2);
    }
    run_ok(["dedup", "--policy", "content", site]);
}

/// One article is in two templates, and other articles are in one of these templates.
#[test]
fn main_contents_are_compared_without_the_template_around_them() {
    let home = tempfile::tempdir().unwrap();
    let article = |n: u64| text(n, 150).join(" ");
    let menu = |site: u64| text(100 + site, 2_500).join("</a><li><a href=/x>");
    let page = |url: &str, site: u64, body: String| {
        let html = format!(
            "<title>t</title><ul class=site-menu><li><a>{}</ul><div>{body}</div><footer>{url}</footer>",
            menu(site)
        );
        json!({"url": url, "html": html})
    };
    let pages = [
        page("http://a.example/1", 1, article(1)),
        page("http://a.example/2", 1, article(2)),
        page("http://a.example/copy", 2, article(1)),
        page("http://b.example/1", 3, article(1)),
        json!({"url": "http://b.example/1.txt", "text": article(1)}),
    ];
    let crawl = home.path().join("crawl.jsonl");
    fs::write(&crawl, ndjson(&pages)).unwrap();
    let crawl = crawl.to_str().unwrap();
    for (policy, groups) in
        [("jaccard", vec![vec!["a.example/1", "a.example/2"]]), ("content", copies()), ("copies", copies())]
    {
        let out = run_ok(["dedup", "--latest", "--out", "-", "--policy", policy, crawl]);
        let url = |url: &String| url.trim_start_matches("http://").to_owned();
        let groups_of =
            |(_, groups): crate::harness::Meaning| groups.into_iter().filter(|group| group.len() > 1);
        let mut found: Vec<Vec<String>> =
            groups_of(meaning(&out)).map(|group| group.iter().map(url).collect()).collect();
        found.iter_mut().for_each(|group| group.sort());
        assert_eq!(found, groups, "{policy}: {out}");
    }
}

/// The expected group: all pages with the article.
fn copies() -> Vec<Vec<&'static str>> {
    vec![vec!["a.example/1", "a.example/copy", "b.example/1", "b.example/1.txt"]]
}

#[test]
fn a_threshold_with_quadratic_running_time_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let crawl = home.path().join("crawl.jsonl");
    fs::write(&crawl, ndjson(&[json!({"url": "http://a/", "text": "one two"})])).unwrap();
    let (crawl, data) = (crawl.to_str().unwrap(), home.path().join("data"));
    let data = data.to_str().unwrap();
    let says = |arguments: &[&str]| errors(&run(arguments)).contains("the square of the number of pages");
    assert!(says(&["dedup", "--tau", "0.45", crawl]));
    assert!(says(&["dedup", "--policy", "copies:text=0.4", "--data", data, crawl]));
    assert!(!says(&["dedup", "--tau", "0.46", crawl]));
    let file = home.path().join("cluster.toml");
    let init = ["init", file.to_str().unwrap(), "--tier1", "a=10.0.0.1:7801", "--tier2", "b=10.0.0.2:7802"];
    assert!(says(&[&init[..], &["--tau", "0.3"]].concat()));
}
