use proptest::prelude::*;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn parse(json: &str) -> Result<PageItem, ItemError> {
    PageItem::parse(json.as_bytes(), NOW)
}

/// Parses a page with a fixed URL; `body` is what follows the URL.
fn parse_page(body: &str) -> Result<PageItem, ItemError> {
    parse(&format!(r#"{{"url":"https://a.org/x"{body}}}"#))
}

fn message(json: &str) -> String {
    parse(json).unwrap_err().to_string()
}

#[test]
fn every_form_of_a_page_parses() {
    let a = PageUrl::parse("https://a.org/x").unwrap();
    let page = |body| PageItem { url: a.clone(), body, fetched_at: None, popularity: None, language: None };
    let html = |s: &str| page(PageBody::Html(s.to_owned()));
    assert_eq!(parse_page(r#","html":"<p>\u00e9 \"q\" \ud83d\ude00""#).unwrap(), html("<p>é \"q\" 😀"));
    assert_eq!(parse_page(r#","html":"""#).unwrap(), html(""));
    assert_eq!(parse_page(r#","text":"a","dead":false"#).unwrap(), page(PageBody::Text("a".to_owned())));
    assert_eq!(parse_page(r#","dead":true"#).unwrap(), page(PageBody::Dead));
    assert_eq!(
        parse_page(r#","redirect_to":"http://b.org/%7e/../c#d""#).unwrap(),
        page(PageBody::Redirect(PageUrl::parse("http://b.org/%7e/../c").unwrap()))
    );
    assert_eq!(parse_page(r#","html":null,"text":"a","fetched_at":null"#).unwrap().fetched_at, None);

    let full = parse_page(
        r#","text":"a","fetched_at":"2023-11-14T23:13:20.5+01:00","popularity":3,"language":"zh-Hant""#,
    );
    let full = full.unwrap();
    assert_eq!(full.fetched_at, Some(NOW.plus_millis(500)));
    assert_eq!(full.popularity, Some(3.0));
    assert_eq!(full.language.as_deref(), Some("zh-Hant"));
}

#[test]
fn each_error_names_the_field_and_the_reason() {
    for (json, expected) in [
        ("", "EOF while parsing a value at column 0"),
        ("[1]", "invalid type: sequence, expected a JSON object with the fields of a page"),
        ("3", "invalid type: integer `3`, expected a JSON object"),
        ("{} {}", "trailing characters"),
        (r#"{"url":"https://a.org/""#, "EOF while parsing an object"),
        ("{}", r#""url": missing"#),
        (r#"{"url":null,"dead":true}"#, r#""url": missing"#),
        (r#"{"url":7,"dead":true}"#, r#""url": invalid type: integer `7`, expected a string at column"#),
        (r#"{"text":"x \ud800 y"}"#, r#""text": a lone surrogate in the place of a character at column"#),
        (r#"{"html":"\udc00"}"#, r#""html": a lone surrogate in the place of a character at column"#),
        (r#"{"url":"/x","dead":true}"#, r#""url": not an absolute URL"#),
        (r#"{"url":"http://a/\u0000","dead":true}"#, r#""url": the URL has a control character"#),
        (r#"{"url":"ftp://a/","dead":true}"#, r#""url": the scheme is "ftp""#),
        (r#"{"url":"http://a/","url":"http://a/"}"#, r#""url": given twice"#),
        (r#"{"url":"http://a/","title":{"deep":[]}}"#, r#""title": unknown field"#),
        (r#"{"url":"http://a/"}"#, "no content: one of html, text, redirect_to and dead: true"),
        (r#"{"url":"http://a/","dead":false}"#, r#""dead": no content"#),
        (r#"{"url":"http://a/","html":"","text":""}"#, r#""text": given beside html"#),
        (r#"{"url":"http://a/","dead":true,"html":""}"#, r#""dead": given beside html"#),
        (r#"{"url":"http://a/","dead":"yes"}"#, r#""dead": invalid type: string "yes", expected a boolean"#),
        (r#"{"url":"http://a/","html":"\ud800"}"#, r#""html": "#),
        (r#"{"url":"http://a/","redirect_to":"/b"}"#, r#""redirect_to": not an absolute URL"#),
        (
            r#"{"url":"http://a/","redirect_to":"http://a/#b"}"#,
            r#""redirect_to": the page redirects to itself"#,
        ),
        (
            r#"{"url":"http://a/","dead":true,"fetched_at":"now"}"#,
            r#""fetched_at": "now" is not an RFC 3339"#,
        ),
        (r#"{"url":"http://a/","dead":true,"fetched_at":17}"#, r#""fetched_at": invalid type"#),
        (
            r#"{"url":"http://a/","dead":true,"fetched_at":"2023-11-15T22:13:20.001Z"}"#,
            r#""fetched_at": 2023-11-15T22:13:20.001Z is more than 24 hours ahead"#,
        ),
        (r#"{"url":"http://a/","dead":true,"popularity":-0.1}"#, r#""popularity": has to be a finite"#),
        (r#"{"url":"http://a/","dead":true,"popularity":1e999}"#, r#""popularity": number out of range"#),
        (r#"{"url":"http://a/","dead":true,"popularity":"1"}"#, r#""popularity": invalid type"#),
        (r#"{"url":"http://a/","dead":true,"language":""}"#, r#""language": has to be 1 to 35"#),
        (r#"{"url":"http://a/","dead":true,"language":"en_GB"}"#, r#""language": has to be 1 to 35"#),
    ] {
        let message = message(json);
        assert!(message.starts_with(expected), "{json}: {message}");
    }
    assert!(parse_page(r#","dead":true,"fetched_at":"2023-11-15T22:13:20Z""#).is_ok());
    let long = format!(r#"{{"url":"http://a/","dead":"{}"}}"#, "x".repeat(100_000));
    assert!(message(&long).len() < 200);
    let invalid = b"{\"url\":\"http://a/\",\"text\":\"\xff\"}";
    assert_eq!(PageItem::parse(invalid, NOW).unwrap_err().field.as_deref(), Some("text"));
    let nested = format!(r#"{{"url":{}"#, "[".repeat(1_000_000));
    assert!(parse(&nested).is_err());
}

#[test]
fn unknown_fields_are_ignored_in_files() {
    let json = br#"{"title":{"deep":[]},"url":"http://a/","text":"a","title":7}"#;
    let item = PageItem::parse_in_file(json, NOW).unwrap();
    assert_eq!(item, parse(r#"{"url":"http://a/","text":"a"}"#).unwrap());
    assert!(PageItem::parse(json, NOW).is_err());
    let repeated = br#"{"url":"http://a/","url":"http://a/","title":7,"text":"a"}"#;
    assert_eq!(PageItem::parse_in_file(repeated, NOW).unwrap_err().reason, ItemReason::Repeated);
}

#[test]
fn content_above_the_limit_is_refused() {
    for field in ["html", "text"] {
        let page = |bytes: usize| parse_page(&format!(r#","{field}":"{}""#, "x".repeat(bytes)));
        assert!(page(PAGE_BYTES_MAX).is_ok());
        let error = page(PAGE_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(field));
        assert_eq!(error.reason, ItemReason::TooLarge(PAGE_BYTES_MAX + 1));
    }
}

fn item() -> impl Strategy<Value = PageItem> {
    let body = prop_oneof![
        any::<String>().prop_map(PageBody::Html),
        any::<String>().prop_map(PageBody::Text),
        "[a-z/?]{0,9}"
            .prop_map(|p| PageBody::Redirect(PageUrl::parse(&format!("https://b.org/{p}")).unwrap())),
        Just(PageBody::Dead),
    ];
    let date = prop::option::of(-1_000_000_000_000..1_700_000_000_000_i64);
    let popularity = prop::option::of((0_u16..1000).prop_map(f64::from));
    (body, "[a-z/?=é ]{0,20}x", date, popularity, prop::option::of("[a-zA-Z0-9-]{1,35}")).prop_map(
        |(body, path, date, popularity, language)| PageItem {
            url: PageUrl::parse(&format!("https://a.org/{path}")).unwrap(),
            body,
            fetched_at: date.map(Timestamp::from_millis),
            popularity,
            language,
        },
    )
}

proptest! {
    #[test]
    fn a_line_reads_back_as_written(items in prop::collection::vec(item(), 0..4)) {
        let mut lines = Vec::new();
        items.iter().for_each(|item| item.to_json_line(&mut lines));
        let lines = lines.split_inclusive(|b| *b == b'\n');
        let back: Vec<_> = lines.map(|line| PageItem::parse(line, NOW).unwrap()).collect();
        prop_assert_eq!(back, items);
    }

    #[test]
    fn mutated_lines_never_panic(item in item(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut line = Vec::new();
        item.to_json_line(&mut line);
        let at = at.index(line.len());
        line[at] = byte;
        // If the line still parses, the item is valid: its own line parses to the same item.
        if let Ok(item) = PageItem::parse(&line, NOW) {
            let mut again = Vec::new();
            item.to_json_line(&mut again);
            prop_assert_eq!(PageItem::parse(&again, NOW).unwrap(), item);
        }
        let _truncated = PageItem::parse(&line[..at], NOW);
    }
}
