//! The tokens of a source, held against a slow tokeniser that was written from the paper.
#![allow(clippy::unwrap_used)]

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, stable_hash64};
use doppel_text::{Extracted, Extractor};
use proptest::prelude::*;

const POLICIES: [&str; 4] = ["supershingle", "projection", "combined", "by-site"];

/// Where the page of a test is.
const PAGE: &str = "http://www.example.org/d/page.html";

fn policy(name: &str) -> Policy {
    format!("{name}:tokens=source").parse().unwrap()
}

fn url(url: &str) -> PageUrl {
    PageUrl::parse(url).unwrap()
}

fn at(policy: Policy, page: &str, html: &str) -> Signature {
    match Extractor::new(policy).html(&url(page), html.as_bytes(), None) {
        Extracted::Page(page) => page.signature,
        Extracted::Redirect(target) => panic!("a redirect to {target}"),
    }
}

/// The signature of these terms.
fn of_terms<S: AsRef<str>>(policy: Policy, terms: &[S]) -> Signature {
    let tokens: Vec<u64> = terms.iter().map(|term| stable_hash64(term.as_ref().as_bytes())).collect();
    // The site that `by-site` takes by default.
    let site = Some(stable_hash64(b"example.org"));
    Signer::new(policy).sign(Features { tokens: &tokens, site, ..Features::default() })
}

#[track_caller]
fn expect(html: &str, terms: &[&str]) {
    for name in POLICIES {
        let policy = policy(name);
        assert_eq!(at(policy, PAGE, html), of_terms(policy, terms), "{name} of {html}: not {terms:?}");
    }
}

#[test]
fn a_url_in_the_text_is_broken_at_slashes_and_dots() {
    expect("Two words", &["two", "words"]);
    expect(
        "see http://www.Example.com/a-b/c_d.html?x=1",
        &["see", "http:", "www", "example", "com", "a-b", "c_d", "html?x=1"],
    );
    expect("(HTTPS://x.org/), www.y.net.", &["https:", "x", "org", "www", "y", "net"]);
    expect("<p>ftp://f.org/x<p>y", &["ftp:", "f", "org", "x", "y"]);
    // Without a scheme a host is broken at dots anyway, and elsewhere than a URL a hyphen separates.
    expect(
        "x.org/a-b http:// httpx://a-b www. awww.a-b",
        &["x", "org", "a", "b", "http", "httpx", "a", "b", "www", "awww", "a", "b"],
    );
    expect("'http://a.b-c','http://d.e-f'", &["http:", "a", "b-c','http:", "d", "e-f"]);
    expect("\"http://a.b-c\"http://d.e-f", &["http:", "a", "b-c", "http:", "d", "e-f"]);
}

#[test]
fn a_url_begins_where_a_word_of_another_script_ends() {
    expect("请访问www.a-b.org/c-d，再见", &["请访问", "www", "a-b", "org", "c-d", "再见"]);
    expect(
        "ดูที่https://a-b.org ここhttp://c-d.org",
        &["ดูที่", "https:", "a-b", "org", "ここ", "http:", "c-d", "org"],
    );
    // Words of scripts with spaces go on.
    expect(
        "дляwww.a-b.org éwww.a-b 2www.a-b",
        &["дляwww", "a", "b", "org", "éwww", "a", "b", "2www", "a", "b"],
    );
}

#[test]
fn a_url_ends_at_the_signs_of_other_scripts() {
    expect(
        "请访问：www.example.com。如果您，http://a.b/c-d、東京",
        &["请访问", "www", "example", "com", "如果您", "http:", "a", "b", "c-d", "東京"],
    );
    expect("«http://a.b-c»–www.d.e-f…g", &["http:", "a", "b-c", "www", "d", "e-f", "g"]);
    // Letters of any script may be in a URL.
    expect("http://bücher.example/東-京.html", &["http:", "bücher", "example", "東-京", "html"]);
}

#[test]
fn the_url_of_an_image_is_a_term() {
    // On another host the whole URL, on the page's own the file name.
    expect("a <img src='http://other.org/I/One.gif'>b", &["a", "http://other.org/I/One.gif", "b"]);
    expect(
        "a<img src=../i/One.gif#x>b<img src=\"//www.example.org/two.png\">",
        &["a", "One.gif", "b", "two.png"],
    );
    expect("<img alt=c src='/i?id=1&amp;x=2'><IMG SRC=a src=b>", &["i?id=1&x=2", "a"]);
    expect("<base href='http://other.org/x/'><img src=y.gif>", &["http://other.org/x/y.gif"]);
    // What is no image of a host is no term.
    expect(
        "a<img><img src=''><img src=' '><img src='data:image/gif;base64,AA=='><img src=/x/>b",
        &["a", "b"],
    );
    expect("<script><img src=a></script><a src=b><input src=c></img src=d>e", &["e"]);
    expect("<svg><image src=a /><img src=b></svg>", &["b"]);
}

#[test]
fn the_folders_of_a_long_base_are_left_out() {
    let policy = policy("projection");
    let folder = |bytes: usize| "x".repeat(bytes);
    for (bytes, of_other) in [
        (900, format!("http://other.org/{}/y.gif", folder(900))),
        (8_000, "http://other.org/y.gif".to_owned()),
    ] {
        let base = folder(bytes);
        let html = format!("<base href='http://other.org/{base}/z'><img src=y.gif>");
        assert_eq!(at(policy, PAGE, &html), of_terms(policy, &[of_other]), "{bytes}");
        // On the page's own host the folders do not count anyway.
        let page = format!("http://www.example.org/{base}/page.html");
        let html = "<img src=y.gif><img src=../a/b.gif?c><img src=//other.org/d/e.gif>";
        let terms = ["y.gif", "b.gif?c", "http://other.org/d/e.gif"];
        assert_eq!(at(policy, &page, html), of_terms(policy, &terms), "{bytes}");
    }
    let html = format!("<base href='http://{}.org/'><img src=y.gif>a", folder(8_000));
    assert_eq!(at(policy, PAGE, &html), of_terms(policy, &["a"]));
}

#[test]
fn a_mirrored_page_with_its_images_has_the_same_tokens() {
    let html = "<p>Pictures of the harbour<img src=/pictures/harbour.jpg><img src='quay.jpg'>";
    let mirror = html.replace("/pictures/", "/mirror/of/pictures/");
    let policy = policy("projection");
    let original = at(policy, "http://harbour.example/index.html", html);
    assert_eq!(original, at(policy, "http://mirror.example/harbour/", &mirror));
    // A link to the original's images is one to another host.
    let linked = html.replace("/pictures/", "http://harbour.example/pictures/");
    assert_eq!(original, at(policy, "http://harbour.example/index.html", &linked));
    assert_ne!(original.content(), at(policy, "http://mirror.example/harbour/", &linked).content());
    // Other images make another page.
    assert_ne!(
        original.content(),
        at(policy, "http://harbour.example/", &html.replace("quay", "pier")).content()
    );
}

#[test]
fn parked_domains_differ_in_the_terms_of_their_urls() {
    let words: String = (0..60).map(|n| format!("word{n} ")).collect();
    let page = |domain: &str| format!("Buy http://www.{domain}/ now! {words}");
    let policy = policy("combined");
    let (a, b) = (at(policy, PAGE, &page("one-name.com")), at(policy, PAGE, &page("other-name.org")));
    let mut terms = vec!["buy", "http:", "www", "one-name", "com", "now"];
    terms.extend(words.split_whitespace());
    assert_eq!(a, of_terms(policy, &terms));
    (terms[3], terms[4]) = ("other-name", "org");
    assert_eq!(b, of_terms(policy, &terms));
}

#[test]
fn formatting_is_ignored_and_other_markup_separates() {
    expect("h<b>alf</b> o<font color=red>n</font>e<br>t<em>w</em>o", &["half", "one", "two"]);
    expect("a<span>b</span>c<p>d<sub>2</sub>", &["a", "b", "c", "d", "2"]);
    expect("http://a.b<b>-c</b>", &["http:", "a", "b-c"]);
}

#[test]
fn other_policies_and_plain_text() {
    let text = "See http://a.b-c/d now";
    for name in POLICIES {
        let usual: Policy = name.parse().unwrap();
        let source = policy(name);
        let terms = ["see", "http:", "a", "b-c", "d", "now"];
        // Nothing of the page before is left.
        let mut extractor = Extractor::new(source);
        extractor.html(&url(PAGE), b"<base href=http://x/><img src=a.gif>b", None);
        assert_eq!(extractor.text_at(&url(PAGE), text).signature, of_terms(source, &terms));
        let own = Extractor::new(usual).text_at(&url(PAGE), text).signature;
        assert_eq!(own, of_terms(usual, &["see", "http", "a", "b", "c", "d", "now"]));
        let html = "a<b>b</b><img src=c.gif>";
        assert_eq!(at(usual, PAGE, html), of_terms(usual, &["a", "b"]));
    }
}

/// What a page is made of in tests.
#[derive(Debug, Clone)]
enum Piece {
    Text(&'static str),
    Formatting(&'static str),
    Markup(&'static str),
    /// An image, and its term.
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

/// The terms of a text, one character and one word of it at a time.
fn slow(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let lower = |from: &[char]| from.iter().flat_map(|c| c.to_lowercase()).collect::<String>();
    let begins_url = |at: usize| {
        // Of the scripts without spaces only one is here.
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
    fn tokens_are_those_of_the_paper(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
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
                terms.extend(slow(&std::mem::take(&mut text)));
                terms.push(term.to_owned());
            }
        }
        terms.extend(slow(&text));
        let policy = policy("projection");
        prop_assert_eq!(at(policy, PAGE, &html), of_terms(policy, &terms), "{}: {:?}", html, terms);
    }

    #[test]
    fn any_bytes_have_them(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = Extractor::new(policy("by-site")).html(&url(PAGE), &bytes, None);
    }
}

#[test]
fn time_is_linear_in_the_size_of_a_page() {
    let mut extractor = Extractor::new(policy("projection"));
    for piece in ["http://((", "www.a/", "www.a'", "w", "<img src=a>", "<b>", "http://a \"", "("] {
        let html = piece.repeat(2_000_000 / piece.len());
        extractor.html(&url(PAGE), html.as_bytes(), None);
    }
    let html =
        format!("<base href='http://other.org/{}/'>{}", "x".repeat(8_000), "<img src=a>".repeat(180_000));
    extractor.html(&url(PAGE), html.as_bytes(), None);
}
