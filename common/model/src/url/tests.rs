//! Tests of identities, their normalised forms, and links.

use proptest::prelude::*;

use super::*;

/// The identity in a text, found without shortcuts: every text goes through the URL parser, names of records
/// as well.
fn identity_by_parser(text: &str) -> Option<&str> {
    let identity = text.split('#').next().unwrap();
    let is_spaced = text.starts_with(' ') || text.ends_with(' ') || identity.ends_with(' ');
    if is_spaced || text.contains(|c: char| c.is_ascii_control()) {
        return None;
    }
    let parsed = url::Url::parse(text).ok()?;
    match parsed.scheme() {
        "record" => {
            let (file, record) = text.strip_prefix("record:")?.split_once('#')?;
            (!file.is_empty() && !file.starts_with('/') && !record.is_empty()).then_some(text)
        }
        "http" | "https" => {
            let (_, rest) = text.split_once(':')?;
            let slashes = rest.chars().take_while(|c| matches!(c, '/' | '\\')).count();
            (slashes == 2).then_some(identity)
        }
        "file" => Some(identity),
        _ => None,
    }
}

proptest! {
    #[test]
    fn shortcuts_find_the_same_identity_as_the_url_parser(
        scheme in "record:|record:|record:|https?:|HTTP:|[a-zA-Z:]{0,7}",
        rest in r"[/\\]{0,4}a?[a/#:?%@.\\\[ \tA=é-]{0,12}|[a-z/]{1,3}#[ -~]{1,6}|.{0,12}",
    ) {
        let text = format!("{scheme}{rest}");
        let url = PageUrl::parse(&text);
        prop_assert_eq!(url.as_ref().ok().map(PageUrl::as_str), identity_by_parser(&text), "{}", text);
        prop_assert_eq!(PageUrl::try_from(text), url);
    }
}

#[test]
fn identity_is_byte_for_byte_without_the_fragment() {
    let url = PageUrl::parse("HTTP://Example.org:80/a/../b?x=1#top").unwrap();
    assert_eq!(url.as_str(), "HTTP://Example.org:80/a/../b?x=1");
    assert_eq!(url.host(), "example.org");
    assert_ne!(url.id(), PageUrl::parse("http://example.org/b?x=1").unwrap().id());
}

#[test]
fn invalid_urls_are_refused() {
    let spaces = [" http://a/", "http://a/ ", "http://a/ #top"];
    for bad in
        ["", "/a", "ftp://a/", "http://", "http://a/\0", "http://a/\nb", "mailto:a@b"].iter().chain(&spaces)
    {
        assert!(PageUrl::parse(bad).is_err(), "{bad:?}");
    }
    assert!(PageUrl::parse(&format!("http://a/{}", "x".repeat(9000))).is_err());
}

#[test]
fn an_http_url_without_a_host_is_refused() {
    let http = ["http:a", "http:/a", "http:///a", "http:a/b?c#d", "HTTP:a", r"http:\a", r"http:\\\a"];
    for bad in http {
        let error = PageUrl::parse(bad).unwrap_err();
        assert_eq!(error, UrlError::NoHost("http:".to_owned()), "{bad}");
        assert_eq!(error.to_string(), r#"the URL has no host: write // and a host after "http:""#);
    }
    assert_eq!(PageUrl::parse("https:a.org/"), Err(UrlError::NoHost("https:".to_owned())));
    for bad in ["http:", "http://", "http:///", "http://?q", "http://#f", "http://:80/", "http://u@/"] {
        assert!(PageUrl::parse(bad).is_err(), "{bad}");
    }
    for good in
        ["http://a", "HTTP://a/", r"http:\\a\b", "file:///a", "file:/a", "https://[::1]/", "http://u@a"]
    {
        assert_eq!(PageUrl::parse(good).unwrap().as_str(), good);
    }
}

#[test]
fn all_spellings_of_a_url_have_one_normalised_form() {
    let spellings = [
        "http://c.example",
        "http://c.example/",
        "HTTP://c.example/",
        "http://C.Example/",
        "http://c.example:80/",
        "http://c.example/.",
        "http://c.example/a/..",
        r"http://c.example\",
        "http://%63.example/",
        "http://c.example/%2e",
    ];
    let url = |text: &str| PageUrl::parse(text).unwrap();
    for spelling in spellings {
        assert_eq!(url(spelling).normal_id(), PageId::of("http://c.example/"), "{spelling}");
        assert!(url(spelling).is_spelling_of(&url(spellings[0])), "{spelling}");
    }
    assert_eq!(url("http://c.example/").normalised(), None);
    // The rules keep the case of an escape, a dot at the end of the host, and an empty query.
    for other in ["http://c.example/%7E", "http://c.example/%7e", "http://c.example./", "http://c.example/?"]
    {
        assert_eq!(url(other).normalised(), None, "{other}");
    }
    assert_eq!(
        url("http://münchen.example/ü b").normalised(),
        Some(url("http://xn--mnchen-3ya.example/%C3%BC%20b"))
    );
    assert_eq!(url("record:a b#ü").normalised(), None);
    let long = format!("http://a/{}", "ü".repeat(4_000));
    assert_eq!(url(&long).normalised(), None);
    assert_eq!(url(&long).normal_id(), url(&long).id());
}

#[test]
fn the_target_of_a_redirect_keeps_its_spelling_if_it_is_absolute() {
    let page = PageUrl::parse("http://a.org/d/e").unwrap();
    let to = |reference: &str| page.redirect_target(reference).unwrap().as_str().to_owned();
    assert_eq!(to("http://c.example"), "http://c.example");
    assert_eq!(to("HTTP://c.example:80/a/../b#top"), "HTTP://c.example:80/a/../b");
    assert_eq!(to("http://c.example/ü b"), "http://c.example/ü b");
    // References that are not valid page URLs are resolved: relative ones, one with a tab, and ones without a
    // host.
    assert_eq!(to("/ü"), "http://a.org/%C3%BC");
    assert_eq!(to("//C.example"), "http://c.example/");
    assert_eq!(to("http://c.exa\tmple"), "http://c.example/");
    assert_eq!(to("http:f"), "http://a.org/d/f");
    assert_eq!(to("https:f"), "https://f/");
    assert!(page.redirect_target("record:a#1").is_err() && page.redirect_target("mailto:a@b").is_err());
}

#[test]
fn the_name_of_a_record_includes_the_part_after_the_hash_sign() {
    for name in ["record:part-1.jsonl#row=7", "record:2024/a%20b.csv#%3Curn:uuid:1%3E", "record:stdin#a#b"] {
        let url = PageUrl::parse(name).unwrap();
        assert_eq!((url.as_str(), url.host().as_str(), url.is_record()), (name, "", true));
    }
    for bad in
        ["record:", "record:a", "record:a#", "record:#1", "record:/a#1", "record://h/a#1", "Record:a#1"]
    {
        assert_eq!(PageUrl::parse(bad), Err(UrlError::Record), "{bad}");
    }
    assert!(PageUrl::parse("record:a#b c ").is_err() && PageUrl::parse("record:a#b\n").is_err());
    let record = PageUrl::parse("record:a#1").unwrap();
    assert!(record.join("b").is_err() && record.join("#2").is_err() && record.join("record:a#2").is_err());
    assert_eq!(record.join("https://b.org/x#y").unwrap().as_str(), "https://b.org/x");
    assert!(!PageUrl::parse("https://a.org/record:a").unwrap().is_record());
}

#[test]
fn links_resolve_as_in_a_browser() {
    let page = PageUrl::parse("https://a.org/d/e.html").unwrap();
    assert_eq!(page.join("../f.html#x").unwrap().as_str(), "https://a.org/f.html");
    assert_eq!(page.join("https://b.org").unwrap().as_str(), "https://b.org/");
    assert!(page.join("javascript:void(0)").is_err());
}
