//! Tests with records of many schemas: how the fields are guessed, how records are named, and what makes a
//! bad record.

use doppel_crawls::record::{Field, FieldNames};

use super::*;

/// Reads a file `part-1.jsonl` with these lines. Renders each item with the date of its page.
pub(super) fn read(options: InputOptions, lines: &[&str]) -> Vec<String> {
    let items = items_within(options, "part-1.jsonl", lines.join("\n").as_bytes());
    let date = |item: &Item| match item {
        Item::Page(page) => page.fetched_at.map_or(String::new(), |date| format!(" @{date}")),
        _ => String::new(),
    };
    rendered(&items).iter().zip(&items).map(|(text, item)| format!("{text}{}", date(item))).collect()
}

pub(super) fn options() -> InputOptions {
    LIMITS.into()
}

pub(super) fn check_lines(lines: &[&str], expected: &[&str]) {
    assert_eq!(read(options(), lines), expected, "{lines:?}");
}

#[test]
fn the_schemas_of_known_collections_are_guessed() {
    // C4
    check_lines(
        &[r#"{"text":"a\nb","timestamp":"2019-04-25T12:57:54Z","url":"https://a.org/1#x"}"#],
        &[
            "fields: text from text, URL from url, date from timestamp",
            "https://a.org/1 text a\nb @2019-04-25T12:57:54Z",
        ],
    );
    // Dolma, in which the field `source` is a name and not a URL
    check_lines(
        &[
            r#"{"id":"<urn:1>","text":"a","source":"common-crawl","added":"2023-04-11T09:57:03Z","metadata":{"x":[]}}"#,
        ],
        &[
            "fields: text from text, id from id; no URL, so a record is named by its id",
            "record:part-1.jsonl#%3Curn:1%3E text a",
        ],
    );
    // RedPajama, whose versions have the URL in different fields
    check_lines(
        &[r#"{"raw_content":"a","metadata":{"url":"https://a.org/1","date":"2020-01-02"},"url":null}"#],
        &[
            "fields: text from raw_content, URL from metadata.url, date from metadata.date",
            "https://a.org/1 text a @2020-01-02T00:00:00Z",
        ],
    );
    // Records with only a text, and a blank line
    check_lines(
        &[r#"{"content":"a"}"#, "", r#"{"content":"b"}"#],
        &[
            "fields: text from content; no URL, so a record is named by its row",
            "record:part-1.jsonl#row=1 text a",
            "record:part-1.jsonl#row=3 text b",
        ],
    );
}

#[test]
fn the_page_form_is_read_strictly_but_may_have_unknown_fields() {
    check_lines(
        &[
            r#"{"url":"file:///a","html":"<p>","title":{"x":1}}"#,
            r#"{"url":"https://a.org/1","redirect_to":"file:///a"}"#,
            r#"{"url":"https://a.org/2","dead":true,"fetched_at":"2020-01-02T00:00:00Z","etag":"x"}"#,
            r#"{"url":"/x","text":"a"}"#,
            r#"{"url":"https://a.org/3","text":"a","html":"a"}"#,
            r#"{"text":"a"}"#,
        ],
        &[
            "file:///a html [utf-8] <p>",
            "https://a.org/1 to file:///a",
            "https://a.org/2 dead @2020-01-02T00:00:00Z",
            r#"bad: part-1.jsonl, line 4: "url": not an absolute URL: relative URL without a base"#,
            r#"bad: part-1.jsonl, line 5: "text": given beside html; a page has exactly one of html, text, redirect_to and dead: true"#,
            r#"bad: part-1.jsonl, line 6: "url": missing"#,
        ],
    );
}

#[test]
fn a_file_is_in_the_page_form_if_most_of_its_records_can_be_read_in_it() {
    let own =
        |n: u64| format!(r#"{{"url":"https://a.org/{n}","text":"a","fetched_at":"2020-01-02T00:00:00Z"}}"#);
    let odd = r#"{"url":"https://a.org/0","text":"a","title":"t","fetched_at":"2020-01-02T00:00:00Z"}"#;
    let second = r#"{"url":"https://a.org/0","text":"a","html":"a"}"#;
    let mostly_own = read(options(), &[odd, second, &own(1), &own(2)]);
    assert_eq!(mostly_own[0], "https://a.org/0 text a @2020-01-02T00:00:00Z");
    assert!(mostly_own[1].starts_with(r#"bad: part-1.jsonl, line 2: "#), "{}", mostly_own[1]);
    // Dates in another form are guessed, as in any other file.
    check_lines(
        &[
            r#"{"url":"https://a.org/1","text":"a","fetched_at":"2020-01-02 03:04:05"}"#,
            r#"{"url":"https://a.org/2","text":"b","fetched_at":1700000000}"#,
            r#"{"url":"https://a.org/3","text":"c","fetched_at":"yesterday"}"#,
        ],
        &[
            "fields: text from text, URL from url, date from fetched_at",
            "https://a.org/1 text a @2020-01-02T03:04:05Z",
            "https://a.org/2 text b @2023-11-14T22:13:20Z",
            "https://a.org/3 text c",
        ],
    );
}

#[test]
fn fields_of_the_page_form_are_fallbacks_in_files_of_other_forms() {
    let mut lines = vec![r#"{"content":"a","link":"x"}"#; 1_000];
    lines.extend([
        r#"{"url":"https://a.org/1","text":"a","fetched_at":"2020-01-02T00:00:00Z"}"#,
        r#"{"url":"https://a.org/2","dead":true}"#,
        r#"{"url":"https://a.org/3","redirect_to":"https://a.org/1"}"#,
        r#"{"url":"https://a.org/4","content":"b","text":"c","html":"d"}"#,
        r#"{"url":"elsewhere","content":"b","text":["c"],"dead":3,"fetched_at":"soon"}"#,
    ]);
    let read = read(options(), &lines);
    assert_eq!(read[0], "fields: text from content; no URL, so a record is named by its row");
    assert_eq!(
        read[1_001..],
        [
            "https://a.org/1 text a @2020-01-02T00:00:00Z",
            "https://a.org/2 dead",
            "https://a.org/3 to https://a.org/1",
            "https://a.org/4 text b",
            "record:part-1.jsonl#row=1005 text b"
        ]
    );
}

#[test]
fn the_first_field_with_values_in_half_of_the_records_is_guessed() {
    // Most records have an empty value in the field that is preferred by its name.
    let record = |n: u64| {
        let text = if n == 0 { r#""odd""# } else { r#""""# };
        format!(
            r#"{{"text":{text},"content":null,"raw_content":"c{n}","metadata":{{"url":"https://a.org/{n}"}},"url":null}}"#
        )
    };
    let lines: Vec<_> = (0..4).map(record).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let found = read(options(), &lines);
    assert_eq!(found[0], "fields: text from raw_content, URL from metadata.url");
    assert_eq!(found[1..3], ["https://a.org/0 text c0", "https://a.org/1 text c1"]);
    // If no field has values in half of the records, the field with the most values is guessed.
    let rare = [r#"{"text":"a"}"#, r#"{"content":"b"}"#, r#"{"content":"c"}"#, "{}", "{}", "{}"];
    let rare = read(options(), &rare);
    assert_eq!(rare[0], "fields: text from content; no URL, so a record is named by its row");
    assert_eq!(rare[1], "record:part-1.jsonl#row=1 text a");
}

#[test]
fn a_named_field_without_values_is_reported_as_unmet() {
    let fields = FieldNames {
        url: Some("metadata.ulr".to_owned()),
        id: Some("nr".to_owned()),
        date: Some("when".to_owned()),
        text: Some("text".to_owned()),
        ..FieldNames::default()
    };
    let lines =
        [r#"{"text":"a","when":null,"metadata":{"url":"https://a.org/","lang":"en"},"number":1}"#, "{}"];
    let options = InputOptions { fields, ..options() };
    let items = items_within(options.clone(), "a.jsonl", lines.join("\n").as_bytes());
    let Item::Fields(map) = &items[0] else { panic!("{:?}", items[0]) };
    let unmet: Vec<_> =
        map.unmet().iter().map(|unmet| (unmet.field, unmet.path.as_str(), unmet.is_there)).collect();
    let expected =
        [(Field::Id, "nr", false), (Field::Url, "metadata.ulr", false), (Field::Date, "when", true)];
    assert_eq!(unmet, expected);
    assert_eq!(map.alike("metadata.ulr")[0], "metadata.url");
    assert_eq!(map.alike("Numbre")[0], "number");
    assert_eq!(map.alike("ulr")[0], "metadata.url");
    // In a file without records no field is unmet.
    let items = items_within(options, "a.jsonl", b"");
    let Item::Fields(map) = &items[0] else { panic!("{:?}", items[0]) };
    assert!(map.unmet().is_empty() && !map.is_of_records());
}

#[test]
fn a_named_field_is_found_among_more_fields_than_are_remembered() {
    let fields = FieldNames { url: Some("n1200".to_owned()), ..FieldNames::default() };
    let others: Vec<_> = (0..1_500).map(|n| format!(r#""n{n}":null"#)).collect();
    let line = format!(r#"{{{},"text":"a"}}"#, others.join(","));
    let columns: Vec<_> = (0..1_500).map(|n| format!("n{n}")).collect();
    let csv = format!("{},text\n{}a\n", columns.join(","), ",".repeat(1_500));
    for (name, content) in [("a.jsonl", line), ("a.csv", csv)] {
        let items =
            items_within(InputOptions { fields: fields.clone(), ..options() }, name, content.as_bytes());
        let Item::Fields(map) = &items[0] else { panic!("{:?}", items[0]) };
        let unmet: Vec<_> = map.unmet().iter().map(|unmet| (unmet.field, unmet.is_there)).collect();
        assert_eq!(unmet, [(Field::Url, true)], "{name}");
    }
}

#[test]
fn one_path_may_be_named_for_two_fields() {
    let fields = FieldNames {
        text: Some("text".to_owned()),
        id: Some("text".to_owned()),
        url: Some("link".to_owned()),
        ..FieldNames::default()
    };
    let named = InputOptions { fields, ..options() };
    let expected = ["record:FILE#a%0Ab text a\nb", "https://a.org/ text c"];
    let csv = "link,text\n,\"a\nb\"\nhttps://a.org/,c\n";
    let json = "{\"text\":\"a\\nb\"}\n{\"link\":\"https://a.org/\",\"text\":\"c\"}";
    for (name, content) in [("a.jsonl", json), ("a.csv", csv)] {
        let found = rendered(&items_within(named.clone(), name, content.as_bytes()));
        assert_eq!(found[1..], expected.map(|line| line.replace("FILE", name)), "{name}");
    }
}

#[test]
fn ids_beyond_the_limit_are_counted_as_unremembered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    let ids = ["1", "2", "3", "3", "1"].map(|id| format!(r#"{{"id":{id},"text":"a"}}"#));
    fs::write(&path, ids.join("\n")).unwrap();
    for (ids_max, bad, unremembered) in [(2, 1, 2), (3, 2, 0)] {
        let fields = FieldNames { id: Some("id".to_owned()), ..FieldNames::default() };
        let limits = Limits { ids_max, ..LIMITS };
        let options = InputOptions { fields, ..limits.into() };
        let mut input = doppel_crawls::open(&path, options).unwrap();
        let found = input.by_ref().filter(|item| matches!(item, Item::Bad(_))).count();
        assert_eq!((found, input.unremembered_ids()), (bad, unremembered));
    }
}

#[test]
fn a_field_is_guessed_as_the_url_only_if_its_values_are_urls_of_the_web() {
    for other in [r#""source":"x""#, r#""source":"file:///a""#, r#""source":7"#] {
        let lines =
            [r#"{"text":"a","source":"https://a.org/1"}"#.to_owned(), format!("{{\"text\":\"b\",{other}}}")];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let read = read(options(), &lines);
        assert_eq!(
            read[1..],
            ["record:part-1.jsonl#row=1 text a", "record:part-1.jsonl#row=2 text b"],
            "{other}"
        );
    }
    // A field named `url` may have a few other values, which make bad records. If most values are not URLs,
    // it is not guessed.
    let good = r#"{"url":"https://a.org/1","content":"a"}"#;
    let odd = r#"{"url":"a.org/2","content":"b"}"#;
    let file = r#"{"url":"file:///a","content":"b"}"#;
    let mixed = read(options(), &[odd, good, file, good]);
    assert_eq!(mixed[0], "fields: text from content, URL from url");
    assert!(mixed[1].starts_with("bad: part-1.jsonl, line 1: \"url\": not an absolute URL"), "{}", mixed[1]);
    assert_eq!(mixed[2..4], ["https://a.org/1 text a", "file:///a text b"]);
    let mostly_odd = read(options(), &[odd, good, odd]);
    assert_eq!(mostly_odd[2], "record:part-1.jsonl#row=2 text a");
    let redirect = read(options(), &[good, good, r#"{"url":"https://a.org/3","redirect_to":"a.org"}"#]);
    let says = "bad: part-1.jsonl, line 3: \"redirect_to\": not an absolute URL";
    assert!(redirect[3].starts_with(says), "{}", redirect[3]);
    // A record without a URL is named by its row. A record with a bad URL after the sample is bad.
    let mut lines = vec![r#"{"text":"a","source":"https://a.org/1"}"#; 1_000];
    lines[1] = r#"{"text":"a","source":""}"#;
    lines.extend([r#"{"text":"a","source":null}"#, r#"{"text":"a","source":"x"}"#]);
    let read = read(options(), &lines);
    assert_eq!(read[2], "record:part-1.jsonl#row=2 text a");
    assert_eq!(read[1_001], "record:part-1.jsonl#row=1001 text a");
    assert!(
        read[1_002].starts_with("bad: part-1.jsonl, line 1002: \"source\": not an absolute URL"),
        "{}",
        read[1_002]
    );
}

#[test]
fn named_fields_come_first_and_are_strict() {
    let fields = FieldNames {
        text: Some("doc.body".to_owned()),
        date: Some("doc.when".to_owned()),
        id: Some("n".to_owned()),
        ..FieldNames::default()
    };
    let lines = [
        r#"{"n":18446744073709551615,"text":"other","doc":{"body":"a","when":1700000000}}"#,
        r#"{"n":2,"doc.body":"b"}"#,
        r#"{"n":2,"doc":{"body":"again"}}"#,
        r#"{"n":3,"doc":{"body":"c","when":"soon"}}"#,
        r#"{"n":3,"doc":{"body":["c"]}}"#,
        r#"{"n":3,"html":"<p>"}"#,
        r#"{"n":3.5,"doc":{"body":"c"}}"#,
        r#"{"n":3,"doc":{"body":"c","body":"c"}}"#,
        r#"{"n":3,"doc":{"body":"c","when":4102444800}}"#,
        "[1]",
    ];
    let read = read(InputOptions { fields, ..options() }, &lines);
    let expected = [
        "fields: text from doc.body as named, id from n as named, date from doc.when as named; no URL, so a record is named by its id",
        "record:part-1.jsonl#18446744073709551615 text a @2023-11-14T22:13:20Z",
        "record:part-1.jsonl#2 text b",
        r#"bad: part-1.jsonl, line 3: "n": an earlier record of the file has the id "2""#,
        r#"bad: part-1.jsonl, line 4: "doc.when": no date: neither RFC 3339, nor a date or date-time without zone, nor seconds or milliseconds since 1970 as a number from 100,000,000"#,
        r#"bad: part-1.jsonl, line 5: "doc.body": is a list, and has to be text; --text-field doc.body[] takes the texts in it, and doc.body[].NAME a field of the objects in it"#,
        r#"bad: part-1.jsonl, line 6: "doc.body": missing"#,
        r#"bad: part-1.jsonl, line 7: "n": is a number, and has to be text or a whole number"#,
        r#"bad: part-1.jsonl, line 8: "body" is given twice at column 36"#,
        "bad: part-1.jsonl, line 9: the date 2100-01-01T00:00:00Z is more than 24 hours ahead",
        "bad: part-1.jsonl, line 10: invalid type: sequence, expected a JSON object at column 0",
    ];
    assert_eq!(read, expected);
}

#[test]
fn wrong_values_of_guessed_fields_are_ignored_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    let lines = [
        r#"{"text":"a","date":"2020-01-02","language":"English, mostly","popularity":"high"}"#,
        r#"{"text":"a","date":"2020-01-02","language":"en","popularity":2}"#,
        r#"{"text":"a","date":"unknown","language":"","popularity":-1}"#,
    ];
    fs::write(&path, lines.join("\n")).unwrap();
    let mut input = doppel_crawls::open(&path, LIMITS).unwrap();
    let pages: Vec<_> = input.by_ref().filter(|item| matches!(item, Item::Page(_))).collect();
    assert_eq!(pages.len(), 3);
    let ignored: Vec<_> = input.ignored().into_iter().collect();
    assert_eq!(ignored, [(Field::Date, 1), (Field::Language, 2), (Field::Popularity, 2)]);
}

#[test]
fn html_is_read_if_the_text_is_empty() {
    let lines = [
        r#"{"url":"https://a.org/1","text":"","html":"b","title":"t"}"#,
        r#"{"url":"https://a.org/2","text":"a","html":"b","title":"t"}"#,
        r#"{"url":"https://a.org/3","text":"","title":"t"}"#,
    ];
    assert_eq!(
        read(options(), &lines)[1..],
        ["https://a.org/1 html [utf-8] b", "https://a.org/2 text a", "https://a.org/3 text "]
    );
}

#[test]
fn text_is_preferred_to_html() {
    let both = r#"{"url":"https://a.org/1","fetched_at":"2020-01-02","html":"<p>","text":"a"}"#;
    let html = r#"{"url":"https://a.org/2","fetched_at":"2020-01-02","html":"<p>"}"#;
    assert_eq!(
        read(options(), &[both, both, html])[1..],
        [
            "https://a.org/1 text a @2020-01-02T00:00:00Z",
            "https://a.org/1 text a @2020-01-02T00:00:00Z",
            "https://a.org/2 html [utf-8] <p> @2020-01-02T00:00:00Z"
        ]
    );
}

#[test]
fn the_error_of_a_bad_record_contains_its_line() {
    let lines = "{\"url\":\"https://a.org/1\",\"text\":\"a\"}\n\u{feff} {\"url\": 7}\r\nx\n";
    let bad: Vec<_> = items("a.jsonl", lines.as_bytes())
        .into_iter()
        .filter_map(|item| {
            if let Item::Bad(error) = item {
                Some(String::from_utf8(error.line.unwrap().into_vec()).unwrap())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(bad, ["\u{feff} {\"url\": 7}", "x"]);
}

#[test]
fn an_id_beyond_64_bits_affects_only_its_own_record() {
    let lines = [
        r#"{"id":18446744073709551615,"text":"a"}"#,
        r#"{"id":18446744073709551616,"text":"b"}"#,
        r#"{"id":"18446744073709551616","text":"c"}"#,
        r#"{"id":-9223372036854775809,"text":"d"}"#,
        r#"{"id":1.5,"text":"e"}"#,
    ];
    let fields = FieldNames { id: Some("id".to_owned()), ..FieldNames::default() };
    let named = read(InputOptions { fields, ..options() }, &lines);
    let large =
        "\"id\": is a number of more than 64 bits, of which not all digits can be read; write it as text";
    let expected = [
        "record:part-1.jsonl#18446744073709551615 text a".to_owned(),
        format!("bad: part-1.jsonl, line 2: {large}"),
        "record:part-1.jsonl#18446744073709551616 text c".to_owned(),
        format!("bad: part-1.jsonl, line 4: {large}"),
        "bad: part-1.jsonl, line 5: \"id\": is a number, and has to be text or a whole number".to_owned(),
    ];
    assert_eq!(named[1..], expected);
    // If the id is guessed, a record whose id cannot be used is named by its row.
    let guessed = read(options(), &lines);
    assert_eq!(guessed[2], "record:part-1.jsonl#row=2 text b");
    assert_eq!(guessed[1], expected[0]);
}
