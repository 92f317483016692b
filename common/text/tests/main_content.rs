//! Tests the main content of pages on hand-written examples, on random markup and on random bytes.
#![allow(clippy::unwrap_used)]

use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, RawContent};
use doppel_text::{Extraction, Extractor, MainContentReport, PagePart, PageText};
use proptest::prelude::*;

fn url() -> PageUrl {
    PageUrl::parse("http://example.org/d/page.html").unwrap()
}

fn raw(bytes: &[u8]) -> RawContent<'_> {
    RawContent::Html { bytes, charset: None }
}

/// Returns 20 words that begin with `prefix`, which are enough for a main content.
fn words(prefix: &str) -> String {
    (0..20).map(|n| format!("{prefix}{n} ")).collect()
}

fn main_words(html: &str) -> Vec<String> {
    let mut extractor = Extractor::default();
    let PageText::Text(text) = extractor.main_text(&url(), raw(html.as_bytes())) else {
        panic!("unexpected redirect: {html}")
    };
    text.split_whitespace().map(str::to_owned).collect()
}

/// Checks that the main content of `html` has exactly `words`.
fn expect(html: &str, words: &str) {
    let expected: Vec<&str> = words.split_whitespace().collect();
    assert_eq!(main_words(html), expected, "{html}");
}

#[test]
fn boilerplate_is_omitted() {
    let article = words("w");
    for before in [
        "<nav>a <ul><li>b</ul></nav>",
        "<header><h1>site</h1><nav>a</nav>b</header>",
        "<div class=topNav>a<div>b</div>c</div>",
        "<div id='site-navigation'>a<p>b</div>",
        "<ul class='nav-list'><li>a<li>b<ul><li>c</ul></ul>",
        "<div role=search><form>a <input> b</form></div>",
        "<form class=search-form-box id=search>a</form>",
        "<a class='skip-link' href=#b>skip to the text</a>",
        "<ol class=breadcrumb><li>a<li>b</ol>",
        "<aside>a</aside><noscript>b</noscript><button>c</button>",
        "<p class='legalCopy'><small>copyright</small>",
        "<table><tr><td class=NavBarCell1>a<table><tr><td>b</table>c<td></table>",
        "<div hidden>a</div><p style='display:none'>b</p><span aria-hidden=true>c</span>",
        "<title>t</title>",
    ] {
        expect(&format!("{before}<p>{article}</p>"), &article);
        expect(
            &format!("<body class='nav sidebar'>{before}<div class='nav-pusher'>{article}</div>"),
            &article,
        );
        expect(&format!("<div class=header>{article}</div>{before}"), &article);
    }
}

#[test]
fn an_omitted_element_without_an_end_tag_ends_where_html_ends_it() {
    let article = words("w");
    for html in [
        format!("<ul><li class=skip>a<li>{article}</ul>"),
        format!("<ul><li class=skip>a<ol><li>b</ol></ul>{article}"),
        format!("<p class=copyright>a<div>{article}</div>"),
        format!("<table><tr><td role=navigation>a<td>{article}</table>"),
        format!("<table><tr hidden><td>a<tr><td>{article}</table>"),
        format!("<table><tr><td class=sidebar>a</table>{article}"),
        format!("<table><tbody hidden><tr><td>a<tr><th>b<tbody><tr><td>{article}</table>"),
        format!("<table><thead style='display:none'><tr><td>a</thead><tr><td>{article}</table>"),
        format!("<table><tfoot hidden><tr><td>a</td></tr></table>{article}"),
        format!(
            "<table><tbody hidden><tr><td>a<table><tbody><td>b</tbody></table>c<caption>{article}</table>"
        ),
        format!("<dl><dt hidden>a<dd>{article}</dl>"),
        format!("<div><p hidden>a</div>{article}"),
    ] {
        expect(&html, &article);
    }
}

#[test]
fn an_omitted_paragraph_ends_where_html_ends_it() {
    let article = words("w");
    for name in [
        "address article blockquote center dd details dialog dir div dl dt fieldset figcaption figure form h1 h2 h3 h4 h5 h6 hgroup",
        "hr li listing main menu ol p pre search section summary table ul",
    ]
    .into_iter()
    .flat_map(str::split_whitespace)
    {
        if name != "dialog" {
            expect(&format!("<p class=legal>a<b>b</b><{name}>{article}"), &article);
        }
        if name != "hr" {
            expect(&format!("<{name}><p hidden>a</{name}>{article}"), &article);
        }
    }
    for cell in ["td", "th", "tr", "tbody", "caption"] {
        expect(&format!("<table><td><p hidden>a<{cell}>{article}</table>"), &article);
        expect(&format!("<table><{cell}><p hidden>a</{cell}>{article}</table>"), &article);
    }
    // Tags inside an object in the paragraph do not end the paragraph.
    expect(&format!("<p hidden>a<object><div>b</div></object>c</p>{article}"), &article);
}

#[test]
fn text_after_an_element_that_a_browser_has_closed_is_content() {
    let (few, article) = (words("few"), words("w"));
    for (before, behind) in [
        ("<svg aria-hidden=true/>", ""),
        ("<math hidden/>", ""),
        ("<svg hidden><path/>x<p>", ""),
        ("<svg hidden><svg>x<p>", ""),
        ("<div><svg hidden><g>x</div>", ""),
        ("<svg hidden><foreignObject><svg>x</svg><p>y</foreignObject></svg>", ""),
        ("<a class=toc>x<a href=y>", "</a>"),
        ("<button>x<p>y<button>z</button>", ""),
        ("<select><option>x<select>", ""),
        ("<form class=search>x<form>y</form>", ""),
        ("<svg hidden>x</svg>", ""),
    ] {
        expect(&format!("{few}{before}{article}{behind}"), &format!("{few} {article}"));
    }
}

#[test]
fn an_element_that_never_ends_is_not_omitted() {
    let (few, article) = (words("few"), words("w"));
    for (before, shown) in [
        ("<a id=x class=toc />", ""),
        ("<div class=nav>", ""),
        ("<nav>x<nav>", "x"),
        ("<ul><li class=skip>x", "x"),
        ("<table><tr><td class=sidebar>", ""),
        ("<tr hidden><td>x", "x"),
        ("<div><span class=share>x</div><span>", "x"),
        ("<p class=legal><button>x<p>", "x"),
        ("<a class=skip>n<a class=skip>x", "x"),
    ] {
        let html = format!("<nav>n</nav>{few}{before} {article}");
        let shown = format!("{few} {shown} {article}");
        expect(&html, &shown);
        // A title after the element is still a title.
        expect(&format!("{html}<title>t</title>z"), &format!("{shown} z"));
        expect(&format!("<main>{html}</main>z"), &shown);
        expect(&format!("y<main>{html}"), &shown);
    }
    // The end tag of a paragraph may be missing.
    expect(&format!("{few}<p class=legal>{article}"), &few);
    expect(&format!("<main>{few}<p class=legal>{article}</main>"), &few);
}

#[test]
fn a_section_with_the_role_main_is_a_section() {
    let article = words("w");
    expect(
        &format!("<article><section role=main>few</section><header>h</header>{article}"),
        &format!("few h {article}"),
    );
}

#[test]
fn sections_whose_ids_come_from_headings_are_content() {
    let page = |section: &str| format!("<div role=main><p>{}</p>{section}</div>", words("w"));
    for (a, b) in [
        ("<section id=s-pagination>a", "<section id=s-full-text-search>b"),
        ("<div id=copyright>a", "<div id=License-and-Copyright>b"),
        ("<h2 id=menu>a", "<h2 id=search>b"),
        ("<div class=share-123>a", "<div class=share-124>b"),
    ] {
        assert_ne!(main_words(&page(a)), main_words(&page(b)), "{a}");
        expect(&page(a), &format!("{} a", words("w")));
    }
    let article = words("w");
    expect(&format!("<div class=chapter id=License-and-Copyright>{article}</div>"), &article);
    expect(&format!("<section id=SKIP_SUBTREE>a</section>{article}"), &format!("a {article}"));
    expect(&format!("<div id=searchbox>a</div><ul id=settings-menu><li>b</ul>{article}"), &article);
}

#[test]
fn the_main_element_is_never_omitted_and_excludes_the_text_around_it() {
    let article = words("w");
    expect(&format!("a<main>{article}</main>b"), &article);
    expect(&format!("a<div role=main>{article}<div>c</div></div>b"), &format!("{article} c"));
    expect(&format!("<div class=sidebar><main>{article}</main></div>b"), &article);
    // The header of the main element is content, but navigation inside the element is not.
    expect(
        &format!("<main><header>h</header><nav>n</nav>{article}<footer>f</footer></main>b"),
        &format!("h {article} f"),
    );
    expect(
        &format!("<article><header>h</header>{article}</article><footer>f</footer>"),
        &format!("h {article}"),
    );
    // A surplus end tag ends the main element early. Its text is then too short, so the page is the main
    // content.
    expect(&format!("<div role=main>few</div></div>{article}"), &format!("few {article}"));
}

#[test]
fn a_page_with_too_few_words_is_used_with_its_title_and_then_as_a_whole() {
    let article = words("w");
    let few: String = (0..17).map(|n| format!("f{n} ")).collect();
    expect(&format!("<title>A title too</title><nav>n</nav><p>{few}"), &format!("a title too {few}"));
    expect(&format!("<title>T</title><nav>{article}</nav><p>{few}"), &format!("T {article} {few}"));
    expect("<title>T</title><nav>n</nav>", "T n");
    expect("", "");
}

#[test]
fn tags_inside_svg_do_not_end_omitted_elements() {
    let article = words("w");
    expect(&format!("<a class=skip>a<svg><a>b</a><title>c</title></svg>d</a>{article}"), &article);
    expect(&format!("<nav><svg><nav/></svg>a</nav>{article}"), &article);
}

/// Creates an extractor. A policy that reads tables gets small tables.
fn extractor(policy: Policy) -> Extractor {
    Extractor::signing(Signer::learnt(policy, [vec![1, 2, 3], vec![4]]))
}

fn signature(policy: &str, html: &str) -> Signature {
    let mut extractor = extractor(policy.parse().unwrap());
    let Extraction::Page(page) = extractor.html(&url(), html.as_bytes(), None) else {
        panic!("unexpected redirect: {html}")
    };
    page.signature
}

#[test]
fn a_policy_compares_either_the_main_content_or_the_whole_page() {
    let article = words("w");
    let page = |menu: &str| format!("<nav>{menu}</nav>{article}");
    for policy in Policy::all() {
        let name = policy.name();
        let (a, b) = (signature(name, &page("a b c")), signature(name, &page("d e")));
        assert_eq!(a.content() == b.content(), policy.reads_main(), "{policy}");
        // Plain text has no boilerplate. Only `content` finds the same content: `copies` distinguishes plain
        // text from HTML, and the other policies compare the navigation of the page.
        let text = extractor(policy).text_at(&url(), &article).signature;
        assert_eq!(text.content() == a.content(), name == "content", "{policy}");
        assert!(!policy.reads_main() || policy.similar(&text, &a), "{policy}");
    }
}

fn explanation(html: &str) -> MainContentReport {
    Extractor::default().main_content_report(&url(), raw(html.as_bytes()), 40).unwrap()
}

/// Returns the name, the number of tokens and the text of each rule that omits text.
fn omissions(explanation: &MainContentReport) -> Vec<(&str, usize, &str)> {
    explanation.left_out.iter().map(|omitted| (omitted.rule.name(), omitted.tokens, &*omitted.text)).collect()
}

#[test]
fn omitted_text_is_explained_by_rule() {
    let article = words("w");
    let page = format!(
        "<title>The Title</title><header>Site &amp; Co<nav>in header</nav></header><nav>Home <b>Two</b></nav>{article}\
        <div class=menu>\n\nThree\u{7}   Four</div><p hidden>secret</p><script>run()</script><footer>--</footer>"
    );
    let of_page = explanation(&page);
    assert_eq!((of_page.part, of_page.tokens, of_page.of), (PagePart::Page, 20, 31));
    let expected = [
        ("title", 2, "The Title"),
        ("header", 4, "Site & Co in header"),
        ("navigation", 4, "Home Two Three Four"),
        ("hidden", 1, "secret"),
    ];
    assert_eq!(omissions(&of_page), expected);
    // The rules for boilerplate also apply outside the main element.
    let with_main = explanation(&format!("{page}<main>{article}{article}<nav>x</nav></main>"));
    assert_eq!((with_main.part, with_main.tokens, with_main.of), (PagePart::Main, 40, 72));
    let shortened = "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w…";
    assert!(omissions(&with_main).contains(&("outside-main", 20, shortened)), "{with_main:?}");
    // If too few tokens would remain, no text is omitted.
    let few = explanation("<title>T</title><nav>a b</nav>c");
    assert_eq!((few.part, few.tokens, few.of, few.left_out), (PagePart::Whole, 4, 4, Vec::new()));
    let titled: String = (0..19).map(|n| format!("f{n} ")).collect();
    let titled = explanation(&format!("<title>T</title><nav>a b</nav>{titled}"));
    assert_eq!((titled.part, titled.tokens, titled.of), (PagePart::PageAndTitle, 20, 22));
    let redirect = b"<meta http-equiv=refresh content='0;x'>";
    assert_eq!(Extractor::default().main_content_report(&url(), raw(redirect), 40), None);
}

#[test]
fn the_explanation_of_a_long_page_is_bounded() {
    let menu: String = (0..50_000).map(|n| format!("<nav>n{n}</nav><p>p{n}")).collect();
    let explanation = explanation(&menu);
    assert_eq!((explanation.tokens, explanation.of, explanation.left_out.len()), (50_000, 100_000, 1));
    assert_eq!(explanation.left_out[0].text.chars().count(), 40);
    let without_text = Extractor::default().main_content_report(&url(), raw(menu.as_bytes()), 0).unwrap();
    assert_eq!((without_text.left_out[0].tokens, &*without_text.left_out[0].text), (50_000, ""));
}

const PIECES: &[&str] = &[
    "<div class=nav>",
    "<div>",
    "</div>",
    "<main>",
    "</main>",
    "<div role=main>",
    "<nav>",
    "</nav>",
    "<ul class=menu>",
    "<ul>",
    "</ul>",
    "<li class=skip>",
    "<li>",
    "</li>",
    "<table>",
    "</table>",
    "<td class=sidebar>",
    "<td>",
    "<tr hidden>",
    "<p class=legal>",
    "<p>",
    "</p>",
    "<title>",
    "</title>",
    "<svg>",
    "</svg>",
    "<section>",
    "</section>",
    "<header>",
    "</header>",
    "<script>",
    "</script>",
    "<br class=nav>",
    "<div class='",
    "'",
    "word ",
    "w1 w2 w3 w4 w5 w6 w7 ",
    "<!--",
    "-->",
    "<template>",
    "</template>",
    "<tbody hidden>",
    "<tbody>",
    "</tbody>",
    "<svg hidden>",
    "<svg aria-hidden=true/>",
    "<math hidden>",
    "<foreignObject>",
    "</foreignObject>",
    "<a id=toc>",
    "<a class=toc />",
    "</a>",
    "<button>",
    "<select>",
    "</select>",
    "<form class=search>",
    "</form>",
    "<section id=pagination>",
    "<div id=footer>",
    "<div class=chapter id=copyright>",
    "<section role=main>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_words_of_the_main_content_are_words_of_the_page_in_page_order(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..80)) {
        let html = pieces.concat();
        let main = main_words(&html);
        let mut extractor = Extractor::default();
        let PageText::Text(text) = extractor.page_text(&url(), raw(html.as_bytes())) else { panic!("unexpected redirect: {html}") };
        let mut page = text.split_whitespace().map(str::to_lowercase);
        prop_assert!(main.iter().all(|word| page.any(|other| other == word.to_lowercase())), "{} {:?}", html, main);
    }

    /// Policies that read the main content compare exactly its tokens.
    #[test]
    fn every_token_is_either_main_content_or_omitted(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..80)) {
        let html = pieces.concat();
        let explanation = explanation(&html);
        let omitted: usize = explanation.left_out.iter().map(|omitted| omitted.tokens).sum();
        prop_assert_eq!(explanation.tokens + omitted, explanation.of, "{}", html);
        prop_assert_eq!(signature("content", &html).tokens() as usize, explanation.tokens, "{}", html);
        prop_assert_eq!(signature("jaccard", &html).tokens() as usize, explanation.of, "{}", html);
    }

    #[test]
    fn random_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let mut extractor = Extractor::new("copies".parse().unwrap());
        let _ = extractor.html(&url(), &bytes, None);
        let _ = extractor.main_text(&url(), RawContent::Html { bytes: &bytes, charset: Some("utf-16") });
    }
}

#[test]
fn deep_nesting_and_missing_end_tags_take_linear_time() {
    for piece in
        ["<div class=nav>", "<td>", "<li class=skip>", "<section>", "<main>", "<div role=main>", "<p hidden>"]
    {
        let html = piece.repeat(300_000) + "end";
        assert_eq!(main_words(&html), ["end"]);
        let names = format!("<div class='{}'>end", "a-nav ".repeat(300));
        assert_eq!(main_words(&names), ["end"]);
    }
}
