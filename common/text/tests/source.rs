//! Tests source tokens on examples, and against a slow tokeniser that follows the paper (Henzinger, SIGIR
//! 2006).
#![allow(clippy::unwrap_used)]

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, stable_hash64};
use doppel_text::{Extraction, Extractor};
use proptest::prelude::*;

const POLICIES: [&str; 4] = ["supershingle", "projection", "combined", "by-site"];

/// URL of the page in most tests.
const PAGE: &str = "http://www.example.org/d/page.html";

fn policy(name: &str) -> Policy {
    format!("{name}:tokens=source").parse().unwrap()
}

fn url(url: &str) -> PageUrl {
    PageUrl::parse(url).unwrap()
}

/// Returns the signature of an HTML page at the URL `page`.
fn signature_at(policy: Policy, page: &str, html: &str) -> Signature {
    match Extractor::new(policy).html(&url(page), html.as_bytes(), None) {
        Extraction::Page(page) => page.signature,
        Extraction::Redirect(target) => panic!("unexpected redirect to {target}"),
    }
}

/// Returns the signature of a page with these terms.
fn signature_of_terms<S: AsRef<str>>(policy: Policy, terms: &[S]) -> Signature {
    let tokens: Vec<u64> = terms.iter().map(|term| stable_hash64(term.as_ref().as_bytes())).collect();
    // The site of `PAGE` by the default of `by-site`.
    let site = Some(stable_hash64(b"example.org"));
    Signer::new(policy).sign(Features { tokens: &tokens, site, ..Features::default() })
}

/// Checks that the page has exactly these terms under every policy with source tokens.
#[track_caller]
fn expect(html: &str, terms: &[&str]) {
    for name in POLICIES {
        let policy = policy(name);
        assert_eq!(
            signature_at(policy, PAGE, html),
            signature_of_terms(policy, terms),
            "{name} of {html}: not {terms:?}"
        );
    }
}

#[test]
fn a_url_in_the_text_is_split_at_slashes_and_dots() {
    expect("Two words", &["two", "words"]);
    expect(
        "see http://www.Example.com/a-b/c_d.html?x=1",
        &["see", "http:", "www", "example", "com", "a-b", "c_d", "html?x=1"],
    );
    expect("(HTTPS://x.org/), www.y.net.", &["https:", "x", "org", "www", "y", "net"]);
    expect("<p>ftp://f.org/x<p>y", &["ftp:", "f", "org", "x", "y"]);
    // A host without a scheme is no URL. Dots and hyphens separate its words, as in all text.
    expect(
        "x.org/a-b http:// httpx://a-b www. awww.a-b",
        &["x", "org", "a", "b", "http", "httpx", "a", "b", "www", "awww", "a", "b"],
    );
    expect("'http://a.b-c','http://d.e-f'", &["http:", "a", "b-c','http:", "d", "e-f"]);
    expect("\"http://a.b-c\"http://d.e-f", &["http:", "a", "b-c", "http:", "d", "e-f"]);
}

#[test]
fn a_url_may_directly_follow_a_word_of_a_script_without_spaces() {
    expect("请访问www.a-b.org/c-d，再见", &["请访问", "www", "a-b", "org", "c-d", "再见"]);
    expect(
        "ดูที่https://a-b.org ここhttp://c-d.org",
        &["ดูที่", "https:", "a-b", "org", "ここ", "http:", "c-d", "org"],
    );
    // A word of a script with spaces continues into the URL.
    expect(
        "дляwww.a-b.org éwww.a-b 2www.a-b",
        &["дляwww", "a", "b", "org", "éwww", "a", "b", "2www", "a", "b"],
    );
}

#[test]
fn a_url_ends_at_the_punctuation_of_other_scripts() {
    expect(
        "请访问：www.example.com。如果您，http://a.b/c-d、東京",
        &["请访问", "www", "example", "com", "如果您", "http:", "a", "b", "c-d", "東京"],
    );
    expect("«http://a.b-c»–www.d.e-f…g", &["http:", "a", "b-c", "www", "d", "e-f", "g"]);
    // A URL may contain letters of any script.
    expect("http://bücher.example/東-京.html", &["http:", "bücher", "example", "東-京", "html"]);
}

#[test]
fn the_url_of_an_image_is_a_term() {
    // The term is the whole URL on another host, and the file name on the host of the page.
    expect("a <img src='http://other.org/I/One.gif'>b", &["a", "http://other.org/I/One.gif", "b"]);
    expect(
        "a<img src=../i/One.gif#x>b<img src=\"//www.example.org/two.png\">",
        &["a", "One.gif", "b", "two.png"],
    );
    expect("<img alt=c src='/i?id=1&amp;x=2'><IMG SRC=a src=b>", &["i?id=1&x=2", "a"]);
    expect("<base href='http://other.org/x/'><img src=y.gif>", &["http://other.org/x/y.gif"]);
    // An image without a URL on a host has no term.
    expect(
        "a<img><img src=''><img src=' '><img src='data:image/gif;base64,AA=='><img src=/x/>b",
        &["a", "b"],
    );
    expect("<script><img src=a></script><a src=b><input src=c></img src=d>e", &["e"]);
    expect("<svg><image src=a /><img src=b></svg>", &["b"]);
}

#[test]
fn links_are_resolved_against_the_root_if_the_base_is_too_long() {
    let policy = policy("projection");
    let folder = |bytes: usize| "x".repeat(bytes);
    for (bytes, of_other) in [
        (900, format!("http://other.org/{}/y.gif", folder(900))),
        (8_000, "http://other.org/y.gif".to_owned()),
    ] {
        let base = folder(bytes);
        let html = format!("<base href='http://other.org/{base}/z'><img src=y.gif>");
        assert_eq!(signature_at(policy, PAGE, &html), signature_of_terms(policy, &[of_other]), "{bytes}");
        // On the host of the page, the folders are never part of the term.
        let page = format!("http://www.example.org/{base}/page.html");
        let html = "<img src=y.gif><img src=../a/b.gif?c><img src=//other.org/d/e.gif>";
        let terms = ["y.gif", "b.gif?c", "http://other.org/d/e.gif"];
        assert_eq!(signature_at(policy, &page, html), signature_of_terms(policy, &terms), "{bytes}");
    }
    let html = format!("<base href='http://{}.org/'><img src=y.gif>a", folder(8_000));
    assert_eq!(signature_at(policy, PAGE, &html), signature_of_terms(policy, &["a"]));
}

#[test]
fn a_mirrored_page_with_its_images_has_the_same_tokens() {
    let html = "<p>Pictures of the harbour<img src=/pictures/harbour.jpg><img src='quay.jpg'>";
    let mirror = html.replace("/pictures/", "/mirror/of/pictures/");
    let policy = policy("projection");
    let original = signature_at(policy, "http://harbour.example/index.html", html);
    assert_eq!(original, signature_at(policy, "http://mirror.example/harbour/", &mirror));
    // If the mirror links to the images of the original, they are on another host.
    let linked = html.replace("/pictures/", "http://harbour.example/pictures/");
    assert_eq!(original, signature_at(policy, "http://harbour.example/index.html", &linked));
    assert_ne!(original.content(), signature_at(policy, "http://mirror.example/harbour/", &linked).content());
    // A page with other images has other content.
    assert_ne!(
        original.content(),
        signature_at(policy, "http://harbour.example/", &html.replace("quay", "pier")).content()
    );
}

#[test]
fn parked_domains_differ_in_the_terms_of_their_urls() {
    let words: String = (0..60).map(|n| format!("word{n} ")).collect();
    let page = |domain: &str| format!("Buy http://www.{domain}/ now! {words}");
    let policy = policy("combined");
    let (a, b) = (
        signature_at(policy, PAGE, &page("one-name.com")),
        signature_at(policy, PAGE, &page("other-name.org")),
    );
    let mut terms = vec!["buy", "http:", "www", "one-name", "com", "now"];
    terms.extend(words.split_whitespace());
    assert_eq!(a, signature_of_terms(policy, &terms));
    (terms[3], terms[4]) = ("other-name", "org");
    assert_eq!(b, signature_of_terms(policy, &terms));
}

#[test]
fn formatting_is_ignored_and_other_markup_separates_terms() {
    expect("h<b>alf</b> o<font color=red>n</font>e<br>t<em>w</em>o", &["half", "one", "two"]);
    expect("a<span>b</span>c<p>d<sub>2</sub>", &["a", "b", "c", "d", "2"]);
    expect("http://a.b<b>-c</b>", &["http:", "a", "b-c"]);
}

#[test]
fn only_the_option_selects_source_tokens_and_plain_text_has_them_too() {
    let text = "See http://a.b-c/d now";
    for name in POLICIES {
        let usual: Policy = name.parse().unwrap();
        let source = policy(name);
        let terms = ["see", "http:", "a", "b-c", "d", "now"];
        // The images of the previous page do not affect the plain text.
        let mut extractor = Extractor::new(source);
        extractor.html(&url(PAGE), b"<base href=http://x/><img src=a.gif>b", None);
        assert_eq!(extractor.text_at(&url(PAGE), text).signature, signature_of_terms(source, &terms));
        let own = Extractor::new(usual).text_at(&url(PAGE), text).signature;
        assert_eq!(own, signature_of_terms(usual, &["see", "http", "a", "b", "c", "d", "now"]));
        let html = "a<b>b</b><img src=c.gif>";
        assert_eq!(signature_at(usual, PAGE, html), signature_of_terms(usual, &["a", "b"]));
    }
}

/// Piece of a generated page.
#[derive(Debug, Clone)]
enum Piece {
    Text(&'static str),
    Formatting(&'static str),
    Markup(&'static str),
    /// Image with its term, if it has a term.
    Image(&'static str, Option<&'static str>),
}

const PIECES: &[Piece] = &[
    Piece::Text("word "),
    Piece::Text("Word"),
    Piece::Text(" "),
    Piece::Text("\n"),
    Piece::Text("-"),
    Piece::Text("."),
    Piece::Text("/"),
    Piece::Text("),"),
    Piece::Text("\""),
    Piece::Text(">"),
    Piece::Text("ΟΔΟΣ"),
    Piece::Text("東京"),
    Piece::Text("\u{a0}"),
    Piece::Text("。"),
    Piece::Text("，"),
    Piece::Text("http://"),
    Piece::Text("HTTPS://A.b/c-d/"),
    Piece::Text("ftp://x-y.Z/É/"),
    Piece::Text("www."),
    Piece::Text("(www.a-b.c/d?e=f#g) "),
    Piece::Formatting("<b>"),
    Piece::Formatting("</b>"),
    Piece::Formatting("<font size=1>"),
    Piece::Markup("<p>"),
    Piece::Markup("</div>"),
    Piece::Markup("<br>"),
    Piece::Image("<img src=a.gif>", Some("a.gif")),
    Piece::Image("<img src='https://www.example.org/x/B.png?c#d'>", Some("B.png?c")),
    Piece::Image("<img src=//cdn.example.org/a.gif>", Some("http://cdn.example.org/a.gif")),
    Piece::Image("<img src=/>", None),
];

/// Slow tokeniser: cuts the terms of a text character by character.
fn slow_terms(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let lower = |from: &[char]| from.iter().flat_map(|c| c.to_lowercase()).collect::<String>();
    let begins_url = |at: usize| {
        // Han is the only script without spaces in the generated pages.
        let is_han = |c: char| ('\u{4e00}'..'\u{a000}').contains(&c);
        let is_first = at == 0 || !chars[at - 1].is_alphanumeric() || is_han(chars[at - 1]);
        ["http://", "https://", "ftp://", "www."].into_iter().any(|with| {
            let end = at + with.len();
            is_first && end < chars.len() && lower(&chars[at..end]) == with && chars[end].is_alphanumeric()
        })
    };
    let (mut terms, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        let begin = at;
        if begins_url(at) {
            let is_inside = |c: char| {
                if c.is_ascii() {
                    !c.is_whitespace() && !['<', '>', '"'].contains(&c)
                } else {
                    c.is_alphanumeric()
                }
            };
            while at < chars.len() && is_inside(chars[at]) {
                at += 1;
            }
            while ".,;:!?')]}".contains(chars[at - 1]) {
                at -= 1;
            }
            let pieces = chars[begin..at].split(|c| *c == '/' || *c == '.');
            terms.extend(pieces.filter(|piece| !piece.is_empty()).map(lower));
        } else if chars[at].is_alphanumeric() {
            while at < chars.len() && chars[at].is_alphanumeric() && !(at > begin && begins_url(at)) {
                at += 1;
            }
            terms.push(lower(&chars[begin..at]));
        } else {
            at += 1;
        }
    }
    terms
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn source_tokens_equal_those_of_the_slow_tokeniser(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        let (mut html, mut text, mut terms) = (String::new(), String::new(), Vec::new());
        for piece in &pieces {
            let (markup, term) = match piece {
                Piece::Text(piece) => {
                    text.push_str(piece);
                    (*piece, None)
                }
                Piece::Formatting(tag) => (*tag, None),
                Piece::Markup(tag) => {
                    text.push(' ');
                    (*tag, None)
                }
                Piece::Image(tag, term) => {
                    text.push(' ');
                    (*tag, *term)
                }
            };
            html.push_str(markup);
            if let Some(term) = term {
                terms.extend(slow_terms(&std::mem::take(&mut text)));
                terms.push(term.to_owned());
            }
        }
        terms.extend(slow_terms(&text));
        let policy = policy("projection");
        prop_assert_eq!(signature_at(policy, PAGE, &html), signature_of_terms(policy, &terms), "{}: {:?}", html, terms);
    }

    #[test]
    fn random_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = Extractor::new(policy("by-site")).html(&url(PAGE), &bytes, None);
    }
}

#[test]
fn reading_takes_time_linear_in_the_size_of_the_page() {
    let mut extractor = Extractor::new(policy("projection"));
    for piece in ["http://((", "www.a/", "www.a'", "w", "<img src=a>", "<b>", "http://a \"", "("] {
        let html = piece.repeat(2_000_000 / piece.len());
        extractor.html(&url(PAGE), html.as_bytes(), None);
    }
    let html =
        format!("<base href='http://other.org/{}/'>{}", "x".repeat(8_000), "<img src=a>".repeat(180_000));
    extractor.html(&url(PAGE), html.as_bytes(), None);
}
