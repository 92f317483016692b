//! The oracle alone, on small pages.

use doppel_baseline::{ContentId, Tau, tokens};

use crate::oracle::crawl::FetchOutcome;
use crate::oracle::{Collection, Crawl, Resolution, Truth, html, redirect};

fn tau(text: &str) -> Tau {
    text.parse().expect("a tau")
}

fn tokens_of(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    tokens::each_token(text, |token| found.push(token.to_owned()));
    found
}

fn tokens_of_html(source: &str) -> String {
    tokens_of(&html::parse(source).text).join(" ")
}

#[test]
fn tokens_are_runs_of_letters_and_digits_in_one_form() {
    let cases = [
        ("Don't stop-me_now 3.5", "don t stop me now 3 5"),
        ("ÄÖ Straße İx ΟΔΟΣ", "äö strasse i\u{307}x οδοσ"),
        ("e\u{301}a \u{301}b x²", "éa b x2"),
        ("co\u{ad}op ﬁ １", "coop fi 1"),
        ("x流y", "x 流 y"),
        ("流处理API", "流处 处理 api"),
        ("流处。理", "流处 理"),
        ("漢字かな", "漢字 かな"),
        ("ラーメン", "ラー ーメ メン"),
        ("ไทย", "ไท ทย"),
        ("ລາວ ក្រុម", "ລາ າວ ក្រុ រុម"),
        ("한국어 text", "한국어 text"),
        (" .,; ", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(tokens_of(text).join(" "), expected, "{text}");
    }
}

#[test]
fn html_gives_its_visible_tokens() {
    let cases = [
        ("<title>A</title><p>b<b>c</b>d", "a b c d"),
        ("a</span>b<br/>c", "a b c"),
        ("a<wbr>b&shy;c</wbr>d", "abcd"),
        ("a<!-- x -->b <!doctype html>c", "ab c"),
        ("<script>x < y</script>a<style>p{}</style>b<SCRIPT src=z></SCRIPT>c", "a b c"),
        ("<script><!-- <script>x</script> y --></script>a", "a"),
        ("caf&eacute; &lt;b&gt; &#x41;&amp;B &notit;", "café b a b it"),
        ("<head><noscript><p>no script</p></noscript></head>x", "no script x"),
        ("<template><i>in</i>side</template>", "in side"),
        ("<textarea><b>bold</textarea><xmp><i></xmp>", "b bold i"),
        ("a<iframe src=x><i>b</i><!-- c --><style>d</style></iframe>e", "a b e"),
        ("<img alt=no title=no>yes", "yes"),
        ("<svg><title><b>x</b></title><style/>y</svg>", "x y"),
        ("<svg><![CDATA[in]]></svg><![CDATA[out]]>", "in"),
        ("<table>a<tr><td>b</table>", "a b"),
        ("<frameset>a<frame src=x><noframes><h2>b</h2>c<script>d</script></noframes></frameset>e", "a b c e"),
        ("<iframe>a<p>b<noframes>c<svg>d</noframes><![CDATA[e]]>", "a b c d"),
        ("a\0b", "a b"),
        ("unclosed <script> dropped", "unclosed"),
    ];
    for (source, expected) in cases {
        assert_eq!(tokens_of_html(source), expected, "{source}");
    }
}

#[test]
fn a_refresh_is_read_by_the_standard() {
    let cases = [
        ("0;url=b.html", Some((0, "b.html"))),
        ("0;b.html", Some((0, "b.html"))),
        (" 5 , URL = 'b c' d", Some((5, "b c"))),
        ("1.9; url=\"b", Some((1, "b"))),
        (".5 b", Some((0, "b"))),
        ("3", Some((3, ""))),
        ("0;urlb", Some((0, "urlb"))),
        ("0;'b'", Some((0, "b"))),
        ("99999999999999999999999;b", Some((u64::MAX, "b"))),
        ("url=b", None),
        ("-1;b", None),
        ("0x;b", None),
        ("", None),
    ];
    for (content, expected) in cases {
        let expected = expected.map(|(delay, url)| (delay, url.to_owned()));
        assert_eq!(redirect::refresh(content), expected, "{content}");
    }
}

#[test]
fn stubs_are_redirects_and_pages_are_not() {
    let meta = |content: &str| format!("<meta http-equiv=Refresh content='{content}'>text");
    let words = |count: usize| "word ".repeat(count);
    let cases = [
        (meta("0; url=b.html"), Some("http://h/d/b.html")),
        (meta("1; url=/b#f"), Some("http://h/b")),
        (meta("0; url=HTTP://h:80/x/../b#f"), Some("HTTP://h:80/x/../b")),
        (meta("0; url=http:/b"), Some("http://h/b")),
        ("<script>location = 'http://H/%7eb'</script>".to_owned(), Some("http://H/%7eb")),
        (meta("2; url=/b"), None),
        (meta("10; url=/b") + " <a href=b></a> <a href='/b#f'>c</a>", Some("http://h/b")),
        (meta("10; url=/b") + " See http://h/b.", Some("http://h/b")),
        (meta("11; url=/b") + " <a href='/b'>c</a>", None),
        (meta("0; url=#here"), None),
        (meta("0; url=a.html"), None),
        (meta("0"), None),
        (meta("0; url=javascript:x"), None),
        (meta("0; url=/b") + &" ".repeat(4_000), Some("http://h/b")),
        (meta("0; url=/b") + " " + &words(18), Some("http://h/b")),
        (meta("0; url=/b") + " " + &words(19), None),
        (format!("{}<p hidden>{}", meta("0; url=/b"), words(30)), Some("http://h/b")),
        (format!("<title>{}</title>{}", words(30), meta("0; url=/b")), Some("http://h/b")),
        (format!("<base href=/e/>{}", meta("0; b")), Some("http://h/e/b")),
        (format!("<noscript>{}</noscript>", meta("0; b")), None),
        (format!("<frameset><frame><noframes>{}</noframes></frameset>", meta("0; b")), None),
        (format!("<iframe>{}</iframe>", meta("0; b")), None),
        (format!("<template>{}</template>", meta("0; b")), None),
        (format!("<!-- {} -->", meta("0; b")), None),
        ("<script>window.location.replace('b')</script>".to_owned(), Some("http://h/d/b")),
        (
            "<script>var a = 1\nif (a) { location = 'c' }\nlocation.href = 'b'</script>".to_owned(),
            Some("http://h/d/b"),
        ),
        ("<title>t</title><script>location = \"b\" + x</script>".to_owned(), None),
        ("<script>document.location.href='http:\\/\\/g\\/'</script>".to_owned(), Some("http://g/")),
        ("<script>if (location == 'b') location = 'c'</script>".to_owned(), None),
        ("<script>function f() { location = 'c' }</script>".to_owned(), None),
        ("<script>// location = 'c'</script>".to_owned(), None),
        ("<script src=x>location = 'c'</script>".to_owned(), None),
        ("<script>location = 'c'".to_owned(), None),
        ("<script>location.assign('b')</script>text".to_owned(), Some("http://h/d/b")),
        (format!("<script>location.assign('b')</script>{}", words(20)), None),
    ];
    for (source, expected) in cases {
        let target = redirect::target("http://h/d/a.html", &source);
        assert_eq!(target.as_deref(), expected, "{source}");
    }
}

fn text(words: std::ops::Range<usize>) -> FetchOutcome {
    FetchOutcome::Html(words.map(|word| format!("w{word} ")).collect())
}

fn redirect_to(url: &str) -> FetchOutcome {
    FetchOutcome::Location(url.to_owned())
}

#[test]
fn a_redirect_leads_to_the_nearest_spelling_of_its_target_that_was_fetched() {
    // In order: the target as sent; its normal form; the first of the other spellings in byte order; another
    // one.
    let names = ["http://b.example:80", "http://b.example/", "HTTP://b.example", "http://b.example"];
    let target = |fetched: &[&str], dead: Option<&str>| {
        let mut crawl = Crawl::default();
        crawl.add("http://h/from", "1", redirect_to(names[0]));
        fetched.iter().for_each(|url| crawl.add(url, "1", text(0..30)));
        dead.iter().for_each(|url| crawl.add(url, "2", FetchOutcome::Dead));
        match Collection::new(&crawl).resolve("http://h/from") {
            Resolution::At(url, _) => Some(url.to_owned()),
            Resolution::Unresolved(_) => None,
        }
    };
    for begin in 0..names.len() {
        assert_eq!(target(&names[begin..], None).as_deref(), Some(names[begin]));
        assert_eq!(target(&names[begin..], Some(names[begin])), None, "a dead page is on record");
    }
    assert_eq!(target(&[], None), None);
    // A redirect to another spelling of its own URL does not lead to itself.
    let mut crawl = Crawl::default();
    crawl.add("http://b.example", "1", redirect_to("HTTP://b.example:80/x/.."));
    assert!(matches!(Collection::new(&crawl).resolve("http://b.example"), Resolution::Unresolved(_)));
    crawl.add("HTTP://b.example", "1", text(0..30));
    let collection = Collection::new(&crawl);
    assert!(matches!(collection.resolve("http://b.example"), Resolution::At("HTTP://b.example", _)));
}

#[test]
fn the_newest_version_counts_and_the_later_one_wins_ties() {
    let mut crawl = Crawl::default();
    crawl.add("http://h/a", "2", text(0..30));
    crawl.add("http://h/a", "1", FetchOutcome::Dead);
    crawl.add("http://h/b", "1", text(0..30));
    crawl.add("http://h/b", "1", FetchOutcome::Dead);
    crawl.add("http://h/c", "1", FetchOutcome::Dead);
    crawl.add("http://h/c", "2", text(0..30));
    let collection = Collection::new(&crawl);
    let live: Vec<_> = collection.pages.keys().collect();
    assert_eq!(live, ["http://h/a", "http://h/c"]);
    assert_eq!(collection.dead, ["http://h/b"]);
}

#[test]
fn shingles_include_the_padding_and_j_equal_to_tau_is_not_above_it() {
    let mut crawl = Crawl::default();
    // 36 words, and a second text without the last word: they have 36 and 35 shingles, and share 31.
    crawl.add("http://h/a", "1", text(0..36));
    crawl.add("http://h/b", "1", text(0..35));
    crawl.add("http://h/empty", "1", text(0..0));
    let collection = Collection::new(&crawl);
    let sizes: Vec<_> = collection.contents.all().iter().map(|c| c.shingles.len()).collect();
    assert_eq!(sizes, [36, 35, 0]);
    let [a, b] = [0, 1].map(ContentId::at);
    let above = |tau: Tau| Truth::new(&collection, tau).near_duplicate(a, b);
    assert!((Truth::new(&collection, tau("0.8")).jaccard(a, b) - 0.775).abs() < 1e-12);
    assert!(!above(tau("0.775")), "31 / 40 is 0.775");
    assert!(above(tau("0.774999")));
}

#[test]
fn short_pages_match_only_by_equal_content_and_empty_ones_never() {
    let mut crawl = Crawl::default();
    for (url, words) in [("a", 0..19), ("b", 0..19), ("c", 0..200), ("d", 0..199), ("e", 0..0), ("f", 0..0)] {
        crawl.add(&format!("http://h/{url}"), "1", text(words));
    }
    let mut nearly = "w0 ".repeat(19);
    crawl.add("http://h/g", "1", FetchOutcome::Html(nearly.clone()));
    nearly.push_str("w0");
    crawl.add("http://h/h", "1", FetchOutcome::Html(nearly));
    let collection = Collection::new(&crawl);
    let truth = Truth::new(&collection, tau("0.8"));
    let mut groups = truth.groups();
    groups.retain(|group| group.len() > 1);
    assert_eq!(groups, [["http://h/a", "http://h/b"], ["http://h/c", "http://h/d"]]);
    assert_eq!(truth.page_pairs(), 1);
}

#[test]
fn redirects_join_their_final_target() {
    let mut crawl = Crawl::default();
    crawl.add("http://h/page", "1", text(0..40));
    crawl.add("http://h/empty", "1", text(0..0));
    crawl.add("http://h/to-empty", "1", redirect_to("/empty"));
    crawl.add("http://h/gone", "1", FetchOutcome::Dead);
    crawl.add("http://h/to-gone", "1", redirect_to("gone"));
    crawl.add("http://h/to-nothing", "1", redirect_to("http://elsewhere/"));
    crawl.add("http://h/to-itself", "1", redirect_to("/to-itself"));
    crawl.add("http://h/hop0", "1", redirect_to("page#part"));
    for hop in 1..=20 {
        crawl.add(&format!("http://h/hop{hop}"), "1", redirect_to(&format!("hop{}", hop - 1)));
    }
    let collection = Collection::new(&crawl);
    let truth = Truth::new(&collection, tau("0.8"));
    let resolves = |url: &str| matches!(collection.resolve(url), Resolution::At(..));
    assert!(resolves("http://h/hop19"), "20 hops");
    assert!(!resolves("http://h/hop20"), "21 hops");
    for url in ["to-gone", "to-nothing", "to-itself"] {
        assert!(truth.group(&format!("http://h/{url}")).is_none(), "{url}");
    }
    let sizes: Vec<usize> = truth.groups().iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 23);
    assert!(sizes.contains(&21) && sizes.contains(&2), "{sizes:?}");
}
