//! Tests with records that strict JSON parsers refuse, with guessed ids that repeat, and with fields that are
//! joined or switched off.

use std::collections::BTreeMap;

use doppel_crawls::record::{FieldNames, IdChoices, NamedBy};

use super::records::{check_lines, options, read};
use super::*;

#[test]
fn values_that_strict_json_refuses_affect_only_the_fields_that_have_them() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    for odd in [
        "NaN",
        "[Infinity, -Infinity]",
        r#"{"a":{"b":1e999}}"#,
        r#""\ud800""#,
        r#"{"\udfff":NaN}"#,
        r#"{"a":1,"a":NaN}"#,
        &deep,
    ] {
        let other = format!(r#"{{"id":1,"content":"a b","quality":{odd}}}"#);
        let found = read(options(), &[&other, &other.replace(":1,", ":2,")]);
        assert_eq!(
            found[1..],
            ["record:part-1.jsonl#1 text a b", "record:part-1.jsonl#2 text a b"],
            "{odd:.40}"
        );
        let own = format!(
            r#"{{"url":"https://a.org/","text":"a b","dead":null,"fetched_at":null,"quality":{odd}}}"#
        );
        check_lines(&[&own], &["https://a.org/ text a b"]);
    }
    // In fields that are read, such a value is a missing, broken or wrong value.
    check_lines(
        &[
            r#"{"id":1,"content":"a\ud800b","date":NaN,"popularity":Infinity}"#,
            r#"{"id":NaN,"content":"c","date":"2020-01-02","popularity":1}"#,
            r#"{"id":"x\ud800","content":"d","date":Infinity}"#,
            r#"{"id":2,"content":NaN}"#,
            r#"{"id":3,"content":-Infinity}"#,
            r#"{"id":4,"content":"torn","quality":NaN"#,
        ],
        &[
            "fields: text from content, id from id, date from date, popularity from popularity; no URL, so a record is named by its id",
            "record:part-1.jsonl#1 text a\u{fffd}b",
            "record:part-1.jsonl#row=2 text c @2020-01-02T00:00:00Z",
            "record:part-1.jsonl#row=3 text d",
            r#"bad: part-1.jsonl, line 4: "content": missing"#,
            r#"bad: part-1.jsonl, line 5: "content": is a number, and has to be text"#,
            "bad: part-1.jsonl, line 6: EOF while parsing an object at column 39",
        ],
    );
    let named = FieldNames { id: Some("id".to_owned()), ..FieldNames::default() };
    let found = read(
        InputOptions { fields: named, ..options() },
        &[r#"{"id":"\ud800","text":"a"}"#, r#"{"id":1,"text":"a"}"#],
    );
    assert_eq!(
        found[1],
        r#"bad: part-1.jsonl, line 1: "id": is text with a lone surrogate, and has to be text or a whole number"#
    );
    // The page form is mended in the same way.
    let url = r#"{"url":"https://a.org/\ud800","text":"a"}"#;
    let text = r#"{"url":"https://a.org/","text":"a\ud800"}"#;
    let found = read(options(), &[url, text, text]);
    assert!(found[0].starts_with("bad: part-1.jsonl, line 1: "), "{}", found[0]);
    assert_eq!(found[1..], ["https://a.org/ text a\u{fffd}", "https://a.org/ text a\u{fffd}"]);
}

#[test]
fn texts_with_lone_surrogates_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    let count = |lines: &[&str]| {
        fs::write(&path, lines.join("\n")).unwrap();
        let mut input = doppel_crawls::open(&path, LIMITS).unwrap();
        let pages = input.by_ref().filter(|item| matches!(item, Item::Page(_))).count();
        (pages, input.mended_texts())
    };
    let (broken, unused) = (r#"{"id":1,"text":"\ud800a\udc00"}"#, r#"{"id":2,"text":"a","x":"\ud800"}"#);
    assert_eq!(count(&[broken, unused, r#"{"id":3,"html":"\ud800a"}"#]), (3, 2));
    let own = [
        r#"{"url":"https://a.org/1","text":"\ud800a"}"#,
        r#"{"url":"https://a.org/2","text":"a","x":"\ud800"}"#,
    ];
    assert_eq!(count(&own), (2, 1));
}

#[test]
fn a_guessed_id_that_repeats_names_no_record() {
    let fields =
        |why: &str| format!("fields: text from text; no URL, and {why}, so a record is named by its row");
    let rows = |number: u64| (1..=number).map(|row| format!("record:part-1.jsonl#row={row} text a"));
    for (ids, repeated) in [
        (vec!["0", "0", "0"], Some(r#"id is no id (rows 1 and 2 have "0")"#)),
        (vec!["1", "2", r#""1""#], Some(r#"id is no id (rows 1 and 3 have "1")"#)),
        (vec!["null", "\"x\"", "null", "\"x\""], Some(r#"id is no id (rows 2 and 4 have "x")"#)),
        (vec!["null", "1", "null", "\"\"", "2"], None),
    ] {
        let lines: Vec<_> = ids.iter().map(|id| format!(r#"{{"id":{id},"text":"a"}}"#)).collect();
        let found = read(options(), &lines.iter().map(String::as_str).collect::<Vec<_>>());
        match repeated {
            Some(why) => {
                let expected: Vec<_> = std::iter::once(fields(why)).chain(rows(ids.len() as u64)).collect();
                assert_eq!(found, expected, "{ids:?}");
            }
            None => assert_eq!(found[2], "record:part-1.jsonl#1 text a"),
        }
    }
    // The repetition is far after the sample, and in a bad record.
    let mut lines: Vec<_> = (0..2_000).map(|n| format!(r#"{{"id":{n},"text":"a"}}"#)).collect();
    lines.push(r#"{"id":7}"#.to_owned());
    let found = read(options(), &lines.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(found[0], fields(r#"id is no id (rows 8 and 2001 have "7")"#));
    assert_eq!(found[1], "record:part-1.jsonl#row=1 text a");
    // A field that the user names as the id remains the id, and the repetition is a bad record.
    let named = FieldNames { id: Some("id".to_owned()), ..FieldNames::default() };
    let found = read(
        InputOptions { fields: named, ..options() },
        &[r#"{"id":1,"text":"a"}"#, r#"{"id":1,"text":"b"}"#],
    );
    assert_eq!(
        found[1..],
        [
            "record:part-1.jsonl#1 text a",
            r#"bad: part-1.jsonl, line 2: "id": an earlier record of the file has the id "1""#
        ]
    );
    // The ids of records with URLs are not checked until a record has no URL.
    let url = |n: u64| format!(r#"{{"url":"https://a.org/{n}","id":1,"text":"a"}}"#);
    let (first, second, none) = (url(1), url(2), r#"{"id":2,"text":"b"}"#);
    let found = read(options(), &[&first, &second]);
    assert_eq!(found[0], "fields: text from text, id from id, URL from url");
    let found = read(options(), &[&first, &second, none]);
    assert_eq!(found[3], "record:part-1.jsonl#row=3 text b");
    let found = read(options(), &[&first, none]);
    assert_eq!(found[2], "record:part-1.jsonl#2 text b");
}

#[test]
fn the_stored_choice_of_a_collection_decides_how_records_are_named() {
    let unique = [r#"{"id":1,"text":"a"}"#, r#"{"id":2,"text":"b"}"#];
    let repeated = [r#"{"id":1,"text":"a"}"#, r#"{"id":1,"text":"b"}"#];
    let within = |by: NamedBy, lines: &[&str]| {
        let ids = IdChoices::default();
        let kept = BTreeMap::from([("record:part-1.jsonl".to_owned(), by)]);
        ids.keep_in(kept, None::<fn(&str, NamedBy) -> std::io::Result<()>>);
        read(InputOptions { ids, ..options() }, lines)
    };
    let found = within(NamedBy::Row, &unique);
    assert_eq!(
        found,
        [
            "fields: text from text; no URL, and id was no id in the first run, so a record is named by its row",
            "record:part-1.jsonl#row=1 text a",
            "record:part-1.jsonl#row=2 text b"
        ]
    );
    let found = within(NamedBy::Id, &repeated);
    assert_eq!(found[1], "record:part-1.jsonl#1 text a");
    assert!(found[2].ends_with(r#"an earlier record of the file has the id "1""#), "{}", found[2]);
}

#[test]
fn fields_that_are_switched_off_are_not_read() {
    let none = || Some("none".to_owned());
    let line = r#"{"id":"x","url":"https://a.org/","date":"2020-01-02","text":"a","html":"b","none":"c"}"#;
    for (fields, expected) in [
        (FieldNames { date: none(), ..FieldNames::default() }, "https://a.org/ text a"),
        (
            FieldNames { url: none(), ..FieldNames::default() },
            "record:part-1.jsonl#x text a @2020-01-02T00:00:00Z",
        ),
        (
            FieldNames { url: none(), id: none(), date: none(), ..FieldNames::default() },
            "record:part-1.jsonl#row=1 text a",
        ),
        (
            FieldNames { text: none(), ..FieldNames::default() },
            "https://a.org/ html [utf-8] b @2020-01-02T00:00:00Z",
        ),
    ] {
        let found = read(InputOptions { fields: fields.clone(), ..options() }, &[line]);
        assert_eq!(found[1..], [expected], "{fields:?}");
    }
    // Fields of the page form can be switched off, too. Without a URL, a redirect or a death concerns no
    // page.
    let own = [
        r#"{"url":"https://a.org/1","text":"a","fetched_at":"2020-01-02T00:00:00Z"}"#,
        r#"{"url":"https://a.org/2","dead":true}"#,
    ];
    let fields = FieldNames { url: none(), date: none(), ..FieldNames::default() };
    let found = read(InputOptions { fields, ..options() }, &own);
    assert_eq!(
        found[1..],
        ["record:part-1.jsonl#row=1 text a", "skip: redirect or death of a record without a URL"]
    );
}

#[test]
fn a_text_can_be_joined_from_several_fields() {
    let joined = |text: &str, lines: &[&str]| {
        let fields = FieldNames { text: Some(text.to_owned()), ..FieldNames::default() };
        read(InputOptions { fields, ..options() }, lines)
    };
    let lines = [
        r#"{"title":"t","body":"b","x":1}"#,
        r#"{"body":"b"}"#,
        r#"{"title":"","body":null}"#,
        r#"{"title":"t","body":[1]}"#,
        "{}",
    ];
    assert_eq!(
        joined("title, body", &lines),
        [
            "fields: text from title, body as named; no URL, so a record is named by its row",
            "record:part-1.jsonl#row=1 text t\nb",
            "record:part-1.jsonl#row=2 text b",
            "record:part-1.jsonl#row=3 text ",
            r#"bad: part-1.jsonl, line 4: "body": is a list, and has to be text; --text-field body[] takes the texts in it, and body[].NAME a field of the objects in it"#,
            r#"bad: part-1.jsonl, line 5: "title, body": missing"#,
        ]
    );
    // A field with the whole name takes precedence.
    assert_eq!(
        joined("title,body", &[r#"{"title,body":"whole","title":"t","body":"b"}"#])[1],
        "record:part-1.jsonl#row=1 text whole"
    );
    let talk = r#"{"title":"t","messages":[{"role":"user","content":"a"},{"role":"tool"},{"content":"b"}]}"#;
    assert_eq!(joined("messages[].content", &[talk])[1], "record:part-1.jsonl#row=1 text a\nb");
    assert_eq!(joined("title,messages[].content", &[talk])[1], "record:part-1.jsonl#row=1 text t\na\nb");
    let csv = items_within(
        InputOptions {
            fields: FieldNames { text: Some("title,body".to_owned()), ..FieldNames::default() },
            ..options()
        },
        "a.csv",
        b"title,body\nt,b\n,c\n",
    );
    assert_eq!(rendered(&csv)[1..], ["record:a.csv#row=1 text t\nb", "record:a.csv#row=2 text c"]);
    // Only the part that no record has is unmet.
    let fields = FieldNames { text: Some("title,bodi".to_owned()), ..FieldNames::default() };
    let items = items_within(InputOptions { fields, ..options() }, "a.jsonl", lines[0].as_bytes());
    let Item::Fields(map) = &items[0] else { panic!("{:?}", items[0]) };
    let unmet: Vec<_> = map.unmet().iter().map(|unmet| (&*unmet.path, unmet.is_there)).collect();
    assert_eq!(unmet, [("bodi", false)]);
    // If the guessed text is a list, the error says how to name the texts in it.
    let found = read(options(), &[r#"{"text":["a","b"]}"#]);
    assert_eq!(
        found[0],
        "fields: no text or HTML found; the first records have text, text[] (--text-field names one); no URL, so a record is named by its row"
    );
    assert_eq!(
        found[1],
        r#"bad: part-1.jsonl, line 1: "text": is a list, and has to be text; --text-field text[] takes the texts in it, and text[].NAME a field of the objects in it"#
    );
}
