//! Tests of the comparison itself: a correct output passes, and every kind of wrong output is detected.

use crate::accuracy::compare::{Agreement, compare};
use crate::accuracy::dedup;
use crate::oracle::crawl::FetchOutcome;
use crate::oracle::{Collection, Crawl, Truth};

/// A collection with these pages: two long near-duplicates (a, b), a text that is a near-duplicate only of b
/// (c), and an unrelated text (d). Also a redirect to a (r), an unresolved redirect (u), and a dead page (x).
fn collection() -> Collection {
    let text =
        |words: std::ops::Range<usize>| FetchOutcome::Html(words.map(|word| format!("w{word} ")).collect());
    let mut crawl = Crawl::default();
    crawl.add("http://h/a", "1", text(0..100));
    crawl.add("http://h/b", "1", text(7..107));
    crawl.add("http://h/c", "1", text(14..114));
    crawl.add("http://h/d", "1", text(200..300));
    crawl.add("http://h/r", "1", FetchOutcome::Location("/a".to_owned()));
    crawl.add("http://h/u", "1", FetchOutcome::Location("/x".to_owned()));
    crawl.add("http://h/x", "1", FetchOutcome::Dead);
    Collection::new(&crawl)
}

/// The correct output: J(a, b) = 89 / 111. The third is kept, because the second is not.
const RIGHT: [&str; 6] = [
    r#"{"url":"http://h/a","status":"winner","group":7,"winner":"http://h/a","duplicate_of":null,"similarity":null}"#,
    r#"{"url":"http://h/b","status":"duplicate","group":7,"winner":"http://h/a","duplicate_of":"http://h/a","similarity":0.8018}"#,
    r#"{"url":"http://h/c","status":"secondary","group":7,"winner":"http://h/a","duplicate_of":null,"similarity":null}"#,
    r#"{"url":"http://h/d","status":"unique","group":null,"winner":null,"duplicate_of":null,"similarity":null}"#,
    r#"{"url":"http://h/r","status":"duplicate","group":7,"winner":"http://h/a","duplicate_of":"http://h/a","similarity":null}"#,
    r#"{"url":"http://h/u","status":"unresolved","group":null,"winner":null,"duplicate_of":null,"similarity":null}"#,
];

fn agreement(lines: &[&str]) -> Agreement {
    let collection = collection();
    let truth = Truth::new(&collection, "0.8".parse().expect("a tau"));
    compare(&dedup::parse(lines.join("\n").as_bytes()).expect("lines"), &truth)
}

#[test]
fn a_correct_output_agrees() {
    let found = agreement(&RIGHT);
    assert!(found.violations.is_empty(), "{:?}", found.violations);
    assert_eq!(found.true_pairs, 3);
    assert_eq!(found.found_pairs, 3);
    assert_eq!(found.right_pairs, 3);
    assert_eq!(found.pages, 6);
    assert_eq!(found.exact_pages, 6);
    assert_eq!(found.duplicates, 2);
    assert_eq!(found.secondaries, 1);
    assert!(found.similarity_error < 0.0001);
}

#[test]
fn every_wrong_line_is_detected() {
    let cases = [
        (0, RIGHT[0], "", "a is missing"),
        (5, "\"http://h/u\"", "\"http://h/x\"", "x is not live"),
        (5, "\"http://h/u\"", "\"http://h/r\"", "is twice"),
        (1, "0.8018", "0.79", "off by"),
        (1, "0.8018", "null", "similarity should be null"),
        (4, "null", "1.0", "similarity should be null"),
        (2, "secondary", "duplicate", "not what it is said to be"),
        (2, "duplicate_of\":null", "duplicate_of\":\"http://h/b\"", "a duplicate of None"),
        (1, "duplicate\"", "secondary\"", "are kept, and are near-duplicates"),
        (2, "secondary", "winner", "winners [\"http://h/a\", \"http://h/c\"]"),
        (0, "winner\",\"group\":7", "duplicate\",\"group\":7", "winners []"),
        (1, ":7", ":8", "1 members"),
        (1, "\"winner\":\"http://h/a\"", "\"winner\":\"http://h/d\"", "4 members"),
        (3, "unique", "secondary", "do not fit"),
        (3, "unique", "unresolved", "resolves to"),
        (5, "unresolved", "unique", "does not resolve"),
    ];
    for (at, from, to, expected) in cases {
        let line = RIGHT[at].replacen(from, to, 1);
        assert_ne!(line, RIGHT[at], "{from} is in the line");
        let mut lines = RIGHT.to_vec();
        lines[at] = &line;
        lines.retain(|line| !line.is_empty());
        let violations = agreement(&lines).violations;
        assert!(violations.iter().any(|wrong| wrong.contains(expected)), "{expected}: {violations:?}");
    }
}

#[test]
fn wrong_groups_cost_precision_and_recall() {
    let mut lines = RIGHT.to_vec();
    lines[2] = r#"{"url":"http://h/c","status":"unique","group":null,"winner":null,"duplicate_of":null,"similarity":null}"#;
    lines[3] = r#"{"url":"http://h/d","status":"secondary","group":7,"winner":"http://h/a","duplicate_of":null,"similarity":null}"#;
    let found = agreement(&lines);
    assert_eq!(found.true_pairs, 3);
    assert_eq!(found.found_pairs, 3);
    assert_eq!(found.right_pairs, 1);
    assert!((found.precision() - 1.0 / 3.0).abs() < 1e-9 && (found.recall() - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!(found.exact_pages, 1, "only the unresolved one");
}

#[test]
fn a_line_with_a_missing_or_unknown_field_is_rejected() {
    for (from, to) in
        [(",\"similarity\":null", ""), ("\"group\":null,", ""), ("unique", "pending"), ("}", ",\"more\":1}")]
    {
        assert!(dedup::parse(RIGHT[3].replace(from, to).as_bytes()).is_err(), "{from}");
    }
}
