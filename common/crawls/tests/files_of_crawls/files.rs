//! Tests with directories, with single files, and with paths that cannot be opened.

use std::time::{Duration, SystemTime};

use super::*;

fn write(root: &Path, files: &[(&str, &[u8])]) {
    for (name, content) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Reads the items of a directory, and makes the URLs relative to the directory.
fn walk(root: &Path) -> Vec<String> {
    let canonical = fs::canonicalize(root).unwrap();
    let url = format!("file://{}/", canonical.display());
    let limits = Limits::at(Timestamp::from_millis(i64::MAX / 2));
    let mut input = doppel_crawls::open(root, limits).unwrap();
    let items: Vec<_> = input.by_ref().collect();
    assert_eq!(input.bytes_read(), input.bytes_total());
    rendered(&items).into_iter().map(|line| line.replace(&url, "")).collect()
}

#[test]
fn the_files_of_a_directory_are_read_in_the_order_of_their_paths() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(
        root,
        &[
            ("b.html", b"<p>b"),
            ("a/z.HTM", b"<p>caf\xe9"),
            ("a/LICENSE", b"free"),
            ("a/COPYING", b"\xff\xfe binary"),
            ("a.txt", b"caf\xe9"),
            ("a-b/c.md", "# ü".as_bytes()),
            ("c.xhtml", b""),
            ("c/d.XHT", b"<p/>"),
            ("d.rst", b"\xff\xfed\0"),
            ("e.adoc", b"a\0b"),
            ("f.png", b"\x89PNG"),
            ("g.html.gz", b"\x1f\x8b"),
            ("h.warc.gz", b"\x1f\x8b"),
            ("with space, % # ? é.text", b"x"),
            (".git/config", b"hidden"),
            (".hidden", b"hidden"),
            ("empty", b""),
        ],
    );
    std::os::unix::fs::symlink(root, root.join("m-link")).unwrap();
    std::os::unix::fs::symlink(root.join("b.html"), root.join("n.html")).unwrap();
    let expected = [
        "skip: hidden",
        "skip: hidden",
        "skip: binary, not text",
        "a/LICENSE text free",
        "a/z.HTM html <p>caf\u{fffd}",
        "a-b/c.md text # ü",
        "a.txt text café",
        "b.html html <p>b",
        "c/d.XHT xhtml <p/>",
        "c.xhtml xhtml ",
        "d.rst text d",
        "bad: e.adoc: binary or compressed data, not text: 1 of 3 characters are control characters, and at most 2 % may be",
        "empty text ",
        "skip: file name of neither HTML nor text",
        "skip: file name of neither HTML nor text",
        "skip: file name of neither HTML nor text",
        "skip: symbolic link or special file",
        "skip: symbolic link or special file",
        "with%20space,%20%%20%23%20%3F%20%C3%A9.text text x",
    ];
    let expected: Vec<_> = expected.map(|line| line.replace("%20%%20", "%20%25%20")).into();
    assert_eq!(walk(root), expected);
    // A symbolic link to the directory gives the same items.
    let link = directory.path().with_extension("link");
    std::os::unix::fs::symlink(root, &link).unwrap();
    assert_eq!(walk(&link), expected);
    fs::remove_file(&link).unwrap();
}

#[test]
fn text_is_recognised_if_a_character_is_cut_at_the_end_of_the_inspected_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let text = "é".repeat(5_000);
    let cut = format!("x{text}");
    write(
        directory.path(),
        &[("a", text.as_bytes()), ("b", cut.as_bytes()), ("c", &cut.as_bytes()[..4_000])],
    );
    let expected = [format!("a text {text}"), format!("b text {cut}"), "skip: binary, not text".to_owned()];
    assert_eq!(walk(directory.path()), expected);
}

#[test]
fn too_many_control_characters_make_a_file_of_any_name_bad_or_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let text = "word ".repeat(80);
    let stray = format!("a\0{text}");
    let joined = text.replace(' ', "\x01");
    let mut files = Vec::new();
    let mut expected = Vec::new();
    for name in ["a.html", "b.md", "c.txt", "d"] {
        files.push((format!("{name}/joined-{name}"), &joined));
        files.push((format!("{name}/stray-{name}"), &stray));
        let kind = if name == "a.html" { "html" } else { "text" };
        expected.push(format!(
            "bad: joined-{name}: binary or compressed data, not text: 80 of 400 characters are control characters, and at most 2 % may be"
        ));
        expected.push(if name == "d" {
            "skip: binary, not text".to_owned()
        } else {
            format!("{name}/stray-{name} {kind} {stray}")
        });
    }
    let files: Vec<_> = files.iter().map(|(name, text)| (&**name, text.as_bytes())).collect();
    write(directory.path(), &files);
    assert_eq!(walk(directory.path()), expected);
    for (file, expected) in files.iter().zip(&expected).take(6) {
        let path = directory.path().join(file.0);
        let mut input = doppel_crawls::open(&path, Limits::at(Timestamp::from_millis(i64::MAX / 2))).unwrap();
        let item = rendered(&[input.next().unwrap()]).remove(0);
        assert!(item.ends_with(expected.trim_start_matches(file.0)), "{item}");
    }
}

#[test]
fn the_date_of_a_page_that_is_a_file_is_the_modification_time() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &[("a.html", b"a"), ("b.jsonl", b"")]);
    let at = |millis: i64| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(millis.unsigned_abs());
        for name in ["a.html", "b.jsonl"] {
            fs::File::options()
                .append(true)
                .open(directory.path().join(name))
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        let lines = doppel_crawls::open(&directory.path().join("b.jsonl"), LIMITS).unwrap().modified();
        let mut page = doppel_crawls::open(&directory.path().join("a.html"), LIMITS).unwrap();
        (page.next().unwrap(), lines)
    };
    let (Item::Page(page), modified) = at(1_600_000_000_123) else { panic!("the file is not a page") };
    assert_eq!(page.fetched_at, Some(Timestamp::from_millis(1_600_000_000_123)));
    assert_eq!(modified, Timestamp::from_millis(1_600_000_000_123));
    let (Item::Bad(error), modified) = at(1_700_100_000_000) else {
        panic!("a date too far in the future is accepted")
    };
    assert!(
        error.to_string().ends_with("the date 2023-11-16T02:00:00Z is more than 24 hours ahead"),
        "{error}"
    );
    assert_eq!(modified, NOW);
}

#[test]
fn a_file_above_the_limit_is_bad_and_the_files_after_it_are_read() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &[("a.html", b""), ("b.html", b"<p>"), ("c", b"text")]);
    fs::File::options()
        .append(true)
        .open(directory.path().join("a.html"))
        .unwrap()
        .set_len(50 << 20)
        .unwrap();
    let walked = walk(directory.path());
    assert_eq!(walked[0], "bad: a.html: a page of 52428800 bytes; at most 16777216 are taken");
    assert_eq!(walked[1..], ["b.html html <p>", "c text text"]);
}

#[test]
fn the_kind_of_a_single_file_follows_from_its_name_or_its_content() {
    let now = Limits::at(Timestamp::from_millis(i64::MAX / 2));
    for (name, content, expected) in [
        ("a.html", "{}", "a.html html {}"),
        ("a.xhtml", "<p/>", "a.xhtml xhtml <p/>"),
        ("a.XHT", "{}", "a.XHT xhtml {}"),
        ("a.md", "<p>", "a.md text <p>"),
        ("README", "hello", "README text hello"),
        ("page.php", " <p>", "page.php html  <p>"),
        ("notes.org", "hello", "notes.org text hello"),
    ] {
        let rendered = rendered(&items_within(now, name, content.as_bytes()));
        assert!(rendered[0].starts_with("file:///") && rendered[0].ends_with(expected), "{}", rendered[0]);
    }
}

#[test]
fn a_path_that_cannot_be_opened_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("it");
    assert_eq!(refusal(&path), "it: No such file or directory (os error 2)");
    assert_eq!(refusal(Path::new("/dev/null")), "it: neither a file nor a directory");
    let unknown = "it: unknown format: neither WARC, ARC, WACZ, JSON lines, Parquet, Arrow, HTML nor text by its content, \
                   nor CSV or TSV by its name";
    for content in [&b""[..], b"\x89PNG\0", b"\x00", &gzip(b"<p>"), &gzip(b"text"), &zstd(b"text")] {
        fs::write(&path, content).unwrap();
        assert_eq!(refusal(&path), unknown);
    }
    fs::write(&path, b"\x1f\x8b\x08").unwrap();
    assert_eq!(refusal(&path), "it: the data end in the middle of it");
    let array = directory.path().join("it.json");
    fs::write(&array, b" [{}]").unwrap();
    assert!(refusal(&array).contains(": a JSON array; the format is JSON lines, one object a line: `jq -c"));
}
