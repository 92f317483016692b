//! Records of other schemas than Doppel's own: which field is what, how records are named, and what makes a bad one.

use doppel_crawls::record::{Field, FieldNames};

use super::*;

/// What the file `part-1.jsonl` with these lines gives.
fn read(options: InputOptions, lines: &[&str]) -> Vec<String> {
    let items = items_within(options, "part-1.jsonl", lines.join("\n").as_bytes());
    let date = |item: &Item| match item {
        Item::Page(page) => page.fetched_at.map_or(String::new(), |date| format!(" @{date}")),
        _ => String::new(),
    };
    rendered(&items).iter().zip(&items).map(|(text, item)| format!("{text}{}", date(item))).collect()
}

fn options() -> InputOptions {
    LIMITS.into()
}

fn check_lines(lines: &[&str], expected: &[&str]) {
    assert_eq!(read(options(), lines), expected, "{lines:?}");
}

#[test]
fn the_schemas_of_known_collections_are_guessed() {
    // C4.
    check_lines(
        &[r#"{"text":"a\nb","timestamp":"2019-04-25T12:57:54Z","url":"https://a.org/1#x"}"#],
        &[
            "fields: text from text, URL from url, date from timestamp",
            "https://a.org/1 text a\nb @2019-04-25T12:57:54Z",
        ],
    );
    // Dolma: the source is a name, not a URL.
    check_lines(
        &[
            r#"{"id":"<urn:1>","text":"a","source":"common-crawl","added":"2023-04-11T09:57:03Z","metadata":{"x":[]}}"#,
        ],
        &[
            "fields: text from text, id from id; no URL, so a record is named by its id",
            "record:part-1.jsonl#%3Curn:1%3E text a",
        ],
    );
    // RedPajama, whose versions have the URL here or there.
    check_lines(
        &[r#"{"raw_content":"a","metadata":{"url":"https://a.org/1","date":"2020-01-02"},"url":null}"#],
        &[
            "fields: text from raw_content, URL from metadata.url, date from metadata.date",
            "https://a.org/1 text a @2020-01-02T00:00:00Z",
        ],
    );
    // Nothing but text, with a blank line.
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
fn own_form_stays_what_it_is_but_for_unknown_fields() {
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
fn a_guessed_url_field_has_nothing_but_urls_of_the_web() {
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
    // A record without one is named otherwise, and a bad one behind the first thousand is bad.
    let mut lines = vec![r#"{"text":"a","source":"https://a.org/1"}"#; 1_000];
    lines[1] = r#"{"text":"a","source":""}"#;
    lines.extend([r#"{"text":"a","source":null}"#, r#"{"text":"a","source":"x"}"#]);
    let read = read(options(), &lines);
    assert_eq!(read[2], "record:part-1.jsonl#row=2 text a");
    assert_eq!(read[1_001], "record:part-1.jsonl#row=1001 text a");
    assert!(read[1_002].starts_with("bad: part-1.jsonl, line 1002: not an absolute URL"), "{}", read[1_002]);
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
        r#"bad: part-1.jsonl, line 5: "doc.body": is a list, and has to be text"#,
        r#"bad: part-1.jsonl, line 6: "doc.body": missing"#,
        r#"bad: part-1.jsonl, line 7: "n": is a number, and has to be text or a whole number"#,
        r#"bad: part-1.jsonl, line 8: "body" is given twice at column 36"#,
        "bad: part-1.jsonl, line 9: the date 2100-01-01T00:00:00Z is more than 24 hours ahead",
        "bad: part-1.jsonl, line 10: invalid type: sequence, expected a JSON object at column 0",
    ];
    assert_eq!(read, expected);
}

#[test]
fn what_is_guessed_and_wrong_is_ignored_and_counted() {
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
fn each_row_is_a_page_of_its_own_on_demand() {
    let each_row = InputOptions { each_row: true, ..options() };
    let own = [
        r#"{"url":"https://a.org/1","text":"a"}"#,
        r#"{"url":"https://a.org/1","html":"b"}"#,
        r#"{"url":"https://a.org/1","dead":true}"#,
        r#"{"url":"https://a.org/1","redirect_to":"https://a.org/2"}"#,
    ];
    let skip = "skip: redirect or death, which is no row of its own";
    assert_eq!(
        read(each_row.clone(), &own),
        ["record:part-1.jsonl#row=1 text a", "record:part-1.jsonl#row=2 html [utf-8] b", skip, skip]
    );
    let other = [r#"{"url":"https://a.org/1","id":"x","content":"a"}"#];
    assert_eq!(read(each_row, &other)[1..], ["record:part-1.jsonl#x text a"]);
}

#[test]
fn text_comes_before_html_where_records_have_both() {
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
fn a_bad_record_is_there_as_it_was() {
    let lines = "{\"url\":\"https://a.org/1\",\"text\":\"a\"}\n\u{feff} {\"url\": 7}\r\nx\n";
    let bad: Vec<_> = items("a.jsonl", lines.as_bytes())
        .into_iter()
        .filter_map(|item| {
            if let Item::Bad(error) = item {
                Some(String::from_utf8(error.line.unwrap()).unwrap())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(bad, ["\u{feff} {\"url\": 7}", "x"]);
}
