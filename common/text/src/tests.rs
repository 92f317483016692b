use super::*;
use doppel_model::ContentHash;

fn url() -> PageUrl {
    PageUrl::parse("http://example.org/d/page.html").unwrap()
}

fn page(html: &str) -> SignedPage {
    match Extractor::default().html(&url(), html.as_bytes(), Some("utf-8")) {
        Extraction::Page(page) => page,
        Extraction::Redirect(target) => panic!("unexpected redirect to {target}: {html}"),
    }
}

fn raw(bytes: &[u8]) -> RawContent<'_> {
    RawContent::Html { bytes, charset: None }
}

/// Content hash of a plain text with the given words.
fn words(words: &str) -> ContentHash {
    Extractor::default().text(words).signature.content()
}

#[test]
fn html_has_the_expected_text() {
    for (html, text) in [
        ("one<b>two</b>three<br>four</x>five", "one two three four five"),
        ("hy&shy;phen&#8203;ate<wbr>d, <wbr>here</wbr>, f<WBR a=b/>ar", "hyphenated here far"),
        ("cafe&#769; cafe<!-- a -->\u{301} cafe&zwj;<wbr>&#x301;", "café café café"),
        ("e<b>\u{301}</b>", "e"),
        ("on<!-- a -->e t<!-->w<?x?>o <!doctype html>thr<![CDATA[x]]>ee", "one two three"),
        ("caf&eacute; c&#97;fe &lt;a&gt; &amp;b &NotEqualTilde; &bogus;", "café cafe a b bogus"),
        ("<title>a &amp; <b>c</title><textarea>d</b>e</textarea>", "a b c d b e"),
        ("<noscript>a<p>b</noscript><template>c<i>d</template>", "a b c d"),
        ("<script>a</script>b<style>c</style>d<script>'</scr'</script>e", "b d e"),
        ("<script><!--<script>a</script>b--></script>c", "c"),
        ("<script>a", ""),
        ("<style>a</style x='y'>b", "b"),
        ("<xmp>a<b>c</xmp><noembed>d<p></noembed>", "a b c d p"),
        ("<p title='a' alt=b>c<img alt='d'>", "c"),
        ("a<plaintext>b<c></plaintext>", "a b c plaintext"),
        ("<svg><style>a<g>b</g></style><title>c<i>d</i></title><text>e</text></svg>", "c d e"),
        ("<svg><style>a</style><![CDATA[b<i>c]]></svg>d<![CDATA[e]]>f", "b i c df"),
        ("<svg><script/>a</svg>", "a"),
        ("a\0b <svg>c\0d</svg>", "ab c d"),
        ("a<", "a"),
        ("a<b c=", "a"),
        ("", ""),
    ] {
        assert_eq!(page(html).signature.content(), words(text), "{html}");
    }
}

#[test]
fn the_content_of_frames_is_markup() {
    for (html, text) in [
        ("a<iframe src=b>c<p class=d>e</p>&amp;<!-- f --></iframe>g", "a c e g"),
        ("<noframes><h2>a</h2><a href=b>c</a></noframes>d", "a c d"),
        ("<frameset cols=1>a<frame src=b><noframes><body>c</body></noframes></frameset>d", "a c d"),
        ("a<iframe><script>b</script><style>c</style><textarea><i></textarea></iframe>d", "a i d"),
        // An end tag inside other markup is ignored, and an end tag may be missing.
        ("a<iframe><b title='</iframe>c'>d<!-- </iframe>e --></iframe>f", "a d f"),
        ("a<iframe>b<p>c<script>d</script>e", "a b c e"),
        ("a<noframes>b<i>c", "a b c"),
        ("<iframe>a<iframe>b</iframe><p>c</iframe><noframes><iframe><i>d</noframes></iframe>e", "a b c d e"),
        // The end of a frame ends the elements that are open inside it.
        ("<iframe><svg><title><i>a</i></title></iframe><![CDATA[b]]><style>c</style>d", "a d"),
        ("<noframes><math><mi>a</mi></noframes><![CDATA[b]]>c", "a c"),
        ("<noscript><iframe src=a><p>b</iframe></noscript><template><noframes><p>c</template>d", "b c d"),
    ] {
        assert_eq!(page(html).signature.content(), words(text), "{html}");
    }
}

#[test]
fn plain_text_is_not_read_as_markup() {
    assert_eq!(words("<b>one</b> &amp;"), words("b one b amp"));
    assert_eq!(Extractor::default().text("a < b").canonical, None);
}

#[test]
fn every_charset_is_decoded() {
    let mut extractor = Extractor::default();
    let mut content = |bytes: &[u8], declared| match extractor.html(&url(), bytes, declared) {
        Extraction::Page(page) => page.signature.content(),
        Extraction::Redirect(target) => panic!("unexpected redirect to {target}"),
    };
    assert_eq!(content(b"<p>caf\xe9", Some("iso-8859-1")), words("café"));
    assert_eq!(content(b"<meta charset=iso-8859-1><p>caf\xe9", None), words("café"));
    assert_eq!(content(b"<p>caf\xc3\xa9", None), words("café"));
    assert_eq!(content(b"<p>caf\xe9", Some("utf-8")), words("caf\u{fffd}"));
    assert_eq!(content(b"\xff\xfe<\0p\0>\0\x2e\x67", None), words("朮"));
}

#[test]
fn the_first_valid_canonical_link_is_resolved() {
    for (html, canonical) in [
        ("<link rel=canonical href='../x?y#z'>", Some("http://example.org/x?y")),
        ("<LINK HREF=//b.org/ REL='Alternate CANONICAL'>", Some("http://b.org/")),
        ("<link rel=canonical href=x><link rel=canonical href=y>", Some("http://example.org/d/x")),
        ("<link rel=canonical rel=alternate href=x href=y>", Some("http://example.org/d/x")),
        (
            "<link rel=canonical href=x><base href='http://b.org/'><base href='http://c.org/'>",
            Some("http://b.org/x"),
        ),
        ("<link rel=canonical href=''>", Some("http://example.org/d/page.html")),
        ("<link rel=canonical href='a&amp;b'>", Some("http://example.org/d/a&b")),
        ("<link rel=canonical href='mailto:a@b'>", None),
        ("<link rel=canonical href='http://['>", None),
        ("<link rel=canonicals href=x>", None),
        ("<link rel=canonical>", None),
        ("<a rel=canonical href=x>", None),
        ("</link rel=canonical href=x>", None),
        ("<template><link rel=canonical href=x></template>", None),
        ("<noframes><link rel=canonical href=x></noframes>", Some("http://example.org/d/x")),
        ("<template><iframe><link rel=canonical href=x></iframe></template>", None),
    ] {
        assert_eq!(page(html).canonical.as_ref().map(PageUrl::as_str), canonical, "{html}");
    }
}

#[test]
fn attribute_values_past_the_limit_count_as_absent() {
    let link = |bytes: usize| page(&format!("<link rel=canonical href='{}'>a", "x".repeat(bytes)));
    assert!(link(8_000).canonical.is_some());
    assert!(link(8_193).canonical.is_none());
    let long = "x".repeat(100_000);
    let html =
        format!("<{long}>a</{long}><p {long}>b<p x='{long}'>c<link {long}={long}><title>d</{long}>e</title>");
    assert_eq!(page(&html).signature.content(), words(&format!("a b c d {long} e")));
}

#[test]
fn a_reliable_language_is_detected_on_request() {
    let language = |text: &str| Extractor::default().detecting_language().text(text).language;
    let english = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
        foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light";
    let german = "Als Gregor Samsa eines Morgens aus unruhigen Träumen erwachte, fand er sich in seinem Bett zu \
        einem ungeheueren Ungeziefer verwandelt. Er lag auf seinem panzerartig harten Rücken";
    assert_eq!(language(english).as_deref(), Some("eng"));
    assert_eq!(language(german).as_deref(), Some("deu"));
    assert_eq!(
        language("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。").as_deref(),
        Some("jpn")
    );
    assert_eq!(language("x y z 1 2 3"), None);
    assert_eq!(language(""), None);
    let html = format!("<style>{german}</style><p>{english}");
    let Extraction::Page(page) =
        Extractor::default().detecting_language().html(&url(), html.as_bytes(), None)
    else {
        panic!("unexpected redirect")
    };
    assert_eq!(page.language.as_deref(), Some("eng"));
    assert_eq!(Extractor::default().text(english).language, None, "language detection is off by default");
}

#[test]
fn a_page_does_not_affect_the_next_page() {
    let mut extractor = Extractor::default();
    let mut read = |html: &str| extractor.html(&url(), html.as_bytes(), None);
    let empty = read("");
    read("<base href='http://b.org'><link rel=canonical href=x><p>日本 caf&eacute; <script>a");
    read("<meta http-equiv=refresh content='0;x'><script>location='x'</script>");
    assert_eq!(read(""), empty);
}

#[test]
fn html_and_text_with_the_same_words_have_the_same_terms() {
    use doppel_model::pairwise::Signer;

    let policy: Policy = "multi-simhash".parse().unwrap();
    let text = "The runners were running past a house of cards, and the dogs barked at passing cars";
    let mut reader = Extractor::default();
    let PageTerms { content, terms } = reader.text_terms(text);
    let signer = Signer::learnt(policy, [terms]);
    assert_eq!((content, terms.len()), (words(text), 9));
    let html = format!("<title>The runners</title><p>{}", &text[12..]);
    let of_html = Extractor::default();
    assert_eq!({ of_html }.terms(&url(), raw(html.as_bytes())).map(|of| of.content), Some(content));
    let redirect = b"<meta http-equiv=refresh content='0;x'>";
    assert_eq!(Extractor::default().terms(&url(), raw(redirect)), None);
    let sign = |text: &str| Extractor::signing(signer.clone()).text(text).signature;
    // The texts differ only in stop words and endings, so only their content hashes differ.
    let (a, b) =
        (sign(text), sign("Runner runs past houses of the card; dog barking at some passes of a car"));
    assert!(a.payload() == b.payload() && a.content() != b.content());
    assert_eq!(policy.compare(&a, &b).similarity.as_f64(), 1.0);
    // The texts are too short to be near-duplicates.
    assert!(!policy.similar(&a, &b));
}

#[test]
fn every_way_of_reading_accepts_html_and_text() {
    let text = "a text of six words here";
    let html = format!("<p>{text}</p>");
    let redirect = raw(b"<meta http-equiv=refresh content='0;http://b.org/'>");
    struct Readings {
        signature: Option<Signature>,
        lines: Option<(Option<u64>, Vec<u64>)>,
        terms: Option<(ContentHash, Vec<u64>)>,
        texts: [Vec<String>; 2],
        has_explanation: bool,
    }
    let [of_html, of_text] = [raw(html.as_bytes()), RawContent::Text(text)].map(|raw| {
        let mut extractor = Extractor::new("content".parse().unwrap());
        let signature = extractor.extract(&url(), raw).page().map(|page| page.signature);
        let lines = extractor.lines(&url(), raw).map(|hashed| (hashed.text, hashed.lines.to_vec()));
        let terms = extractor.terms(&url(), raw).map(|of| (of.content, of.terms.to_vec()));
        let tokens = |text: PageText<'_>| match text {
            PageText::Text(text) => text.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            PageText::Redirect(target) => panic!("unexpected redirect to {target}"),
        };
        let whole = tokens(extractor.page_text(&url(), raw));
        let texts = [whole, tokens(extractor.main_text(&url(), raw))];
        let has_explanation = extractor.main_content_report(&url(), raw, 0).is_some();
        Readings { signature, lines, terms, texts, has_explanation }
    });
    assert_eq!(of_html.signature, of_text.signature);
    assert_eq!(of_html.lines, of_text.lines);
    assert_eq!(of_html.terms, of_text.terms);
    assert_eq!(of_html.texts, of_text.texts);
    assert_eq!(of_text.signature.map(|signature| signature.tokens()), Some(6));
    assert!(of_html.has_explanation && !of_text.has_explanation, "plain text has no main content to explain");
    let mut extractor = Extractor::default();
    let target = PageUrl::parse("http://b.org/").unwrap();
    assert_eq!(extractor.extract(&url(), redirect), Extraction::Redirect(target.clone()));
    assert_eq!(extractor.page_text(&url(), redirect), PageText::Redirect(target.clone()));
    assert_eq!(extractor.main_text(&url(), redirect), PageText::Redirect(target));
    assert!(extractor.lines(&url(), redirect).is_none() && extractor.terms(&url(), redirect).is_none());
}

#[test]
fn a_panic_loses_only_one_page() {
    let policy: Policy = "imatch".parse().unwrap();
    let signer = Signer::learnt(policy, [[1_u64, 2, 3]]);
    let mut extractor = Extractor::signing(signer.clone()).detecting_language();
    let text =
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age";
    let lost: Option<()> = extractor.guarded(|extractor| {
        extractor.set_text("half a page");
        panic!("planted panic")
    });
    assert_eq!(lost, None);
    let read = extractor.guarded(|extractor| extractor.text(text));
    assert_eq!(read, Some(Extractor::signing(signer).detecting_language().text(text)));
    assert!(read.is_some_and(|page| page.language.is_some()));
}
