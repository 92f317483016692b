//! Tests of how inputs are resolved into sources.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::arguments::InputArgs;

fn make(home: &Path, names: &[&str]) {
    for name in names {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"12345").unwrap();
    }
}

/// Names of the records in the sources of an input, and the number of files beside. The name is `pages` for a
/// directory of pages.
fn found(input: &Path) -> (Vec<String>, u64) {
    let Sources { all, beside, .. } = sources(&[input.to_owned()]).unwrap();
    let name = |source: InputSource| match source.kind {
        SourceKind::Standard => STANDARD_NAME.to_owned(),
        SourceKind::Pages(_) => "pages".to_owned(),
        SourceKind::Object(object) => object.path().display().to_string(),
        SourceKind::File(path, name) => {
            assert!(path.exists() && source.bytes == 5);
            name.with_number(1).unwrap().as_str().trim_end_matches("#row=1").to_owned()
        }
    };
    (all.into_iter().map(name).collect(), beside)
}

#[test]
fn a_directory_is_one_of_pages_or_of_crawl_files() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    make(home.path(), &["set/README.md", "set/data/b.parquet", "set/data/a.jsonl.zst", "set/.git/x.jsonl"]);
    let names = ["record:data/a.jsonl.zst", "record:data/b.parquet"].map(str::to_owned).to_vec();
    assert_eq!(found(&at("set")), (names, 1));
    make(home.path(), &["site/index.html", "site/all.csv", "notes/a.txt", "notes/b.md"]);
    for dir in ["site", "notes"] {
        assert_eq!(found(&at(dir)), (vec!["pages".to_owned()], 0), "{dir}");
    }
}

#[test]
fn an_output_is_none_of_the_files_that_are_read() {
    let home = tempfile::tempdir().unwrap();
    make(home.path(), &["set/a/1.jsonl", "set/README.md", "site/index.html", "other/1.jsonl"]);
    let at = |name: &str| home.path().join(name);
    let is_refused = |input: &str, output: &str| {
        InputArgs::from(vec![at(input)]).refuse_output("--out", &at(output)).is_err_and(|error| {
            let why = format!("--out {} would replace the input", at(output).display());
            error.to_string().starts_with(&why)
        })
    };
    for (input, output) in [
        ("set", "set/a/1.jsonl"),
        ("set/*/*.jsonl", "set/../set/a/1.jsonl"),
        ("set/a/1.jsonl", "set/a/1.jsonl"),
        ("site", "site/index.html"),
    ] {
        assert!(is_refused(input, output), "{input} {output}");
    }
    for (input, output) in [
        ("set", "set/a/2.jsonl"),
        ("set", "set/README.md"),
        ("set", "other/1.jsonl"),
        ("site", "site/x.html"),
    ] {
        assert!(!is_refused(input, output), "{input} {output}");
    }
}

#[test]
fn a_part_of_a_directory_that_cannot_be_read_is_told() {
    let home = tempfile::tempdir().unwrap();
    make(home.path(), &["set/a.jsonl", "set/b/c.jsonl"]);
    let closed = home.path().join("set/b");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser can read the directory in spite of its permissions.
    if fs::read_dir(&closed).is_err() {
        let error = sources(&[home.path().join("set")]).unwrap_err();
        assert!(error.to_string().starts_with("cannot read all of "), "{error}");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn patterns_are_expanded_in_order() {
    let home = tempfile::tempdir().unwrap();
    make(
        home.path(),
        &["d/b/2.jsonl", "d/a/1.jsonl", "d/3.jsonl", "d/a/no.txt", "d/.hidden.jsonl", "d/[x].jsonl"],
    );
    let (names, _) = found(&home.path().join("d/**/*.jsonl"));
    assert_eq!(
        names,
        ["record:3.jsonl", "record:%5Bx%5D.jsonl", "record:a/1.jsonl", "record:b/2.jsonl"].map(str::to_owned)
    );
    // Names that are not UTF-8 match nothing. Hidden files match only a pattern that asks for them. Pipes are
    // left out.
    let not_utf8 = OsStr::from_bytes(b"d/caf\xe9.jsonl");
    fs::write(home.path().join(not_utf8), b"12345").unwrap();
    let all = found(&home.path().join("d/*.jsonl")).0;
    assert_eq!(all, ["record:3.jsonl", "record:%5Bx%5D.jsonl"].map(str::to_owned));
    assert_eq!(found(&home.path().join("d/.h*.jsonl")).0, ["record:.hidden.jsonl"]);
    let pipe = rustix::fs::mknodat(
        rustix::fs::CWD,
        home.path().join("d/b/pipe.jsonl"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    );
    assert!(pipe.is_ok() && found(&home.path().join("d/b/*")).0.len() == 1);
    assert_eq!(before_pattern(Path::new("./d/./e/*.jsonl")), Path::new("d/e"));
    // If a file is named like a pattern, the input means that file.
    assert_eq!(found(&home.path().join("d/[x].jsonl")).0.len(), 1);
    let none = home.path().join("d/*.warc");
    let error = sources(slice::from_ref(&none)).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: no file matches this pattern", none.display()));
    assert!(sources(&[home.path().join("d/none")]).is_err());
}

#[test]
fn files_of_one_name_get_the_shortest_distinct_ends_of_their_paths() {
    let home = tempfile::tempdir().unwrap();
    make(home.path(), &["a/1/x.csv", "b/1/x.csv", "c/1/y.csv", "c/2/y.csv", "d/z.csv", "e/2/y.csv"]);
    let named = |inputs: &[&str]| -> Vec<String> {
        let inputs: Vec<_> = inputs.iter().map(|input| home.path().join(input)).collect();
        let mut sources = sources(&inputs).unwrap();
        sources.give_distinct_names();
        let name = |source: InputSource| match source.kind {
            SourceKind::File(_, name) => name.as_str().trim_start_matches("record:").to_owned(),
            _ => panic!("not a file"),
        };
        sources.all.into_iter().map(name).collect()
    };
    assert_eq!(named(&["a/1/x.csv", "d/z.csv", "b/1/x.csv"]), ["a/1/x.csv", "z.csv", "b/1/x.csv"]);
    assert_eq!(named(&["c/1/y.csv", "c/2/y.csv"]), ["1/y.csv", "2/y.csv"]);
    assert_eq!(named(&["c/1/y.csv", "c/1/../2/y.csv", "c/1/y.csv"]), ["1/y.csv", "2/y.csv", "1/y.csv"]);
    assert_eq!(named(&["d/z.csv", "d/../d/z.csv"]), ["z.csv", "z.csv"], "one file");
    // The names 1/y.csv and 2/y.csv already belong to the files that match the pattern.
    let expected = ["1/y.csv", "2/y.csv", "c/1/y.csv", "e/2/y.csv"];
    assert_eq!(named(&["c/*/*.csv", "c/1/y.csv", "e/2/y.csv"]), expected);
}
