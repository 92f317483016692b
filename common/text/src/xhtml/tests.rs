use doppel_model::{ContentHash, PageUrl, RawContent};

use crate::{Extraction, Extractor};

fn content(raw: RawContent<'_>) -> ContentHash {
    match Extractor::default().extract(&PageUrl::parse("http://example.org/").unwrap(), raw) {
        Extraction::Page(page) => page.signature.content(),
        Extraction::Redirect(target) => panic!("unexpected redirect to {target}"),
    }
}

fn words(words: &str) -> ContentHash {
    Extractor::default().text(words).signature.content()
}

/// Checks the words of a document that its media type, or an XML declaration, marks as XML.
#[track_caller]
fn check(document: &str, text: &str) {
    let expected = words(text);
    assert_eq!(
        content(RawContent::Xhtml { bytes: document.as_bytes(), charset: None }),
        expected,
        "{document}"
    );
    for declaration in [
        "<?xml version='1.0'?>",
        "\u{feff}<?xml version='1.0' encoding='utf-8'?>\n",
        "\n<?xml version='1.0'?>",
    ] {
        let html = format!("{declaration}{document}");
        assert_eq!(content(RawContent::Html { bytes: html.as_bytes(), charset: None }), expected, "{html}");
    }
}

/// Like [`check`], for the body of an XHTML page.
#[track_caller]
fn check_body(body: &str, text: &str) {
    check(&format!("<html xmlns='http://www.w3.org/1999/xhtml'><body>{body}</body></html>"), text);
    check(&format!("<!DOCTYPE html><html><body>{body}</body></html>\n<!-- b -->"), text);
    let prefixed = body.replace("</", "\0").replace('<', "<h:").replace('\0', "</h:");
    if !body.contains(['!', '?', ':']) && !body.contains("xmlns") {
        check(
            &format!("<h:html xmlns:h='http://www.w3.org/1999/xhtml'><h:body>{prefixed}</h:body></h:html>"),
            text,
        );
    }
}

#[test]
fn empty_elements_end_where_they_begin() {
    for element in [
        "script",
        "style",
        "title",
        "iframe",
        "textarea",
        "noscript",
        "noembed",
        "noframes",
        "xmp",
        "plaintext",
        "div",
        "p",
        "svg",
    ] {
        check_body(&format!("a<{element}/>b"), "a b");
        check_body(&format!("a<{element} c='d' />b<{element}></{element}>e"), "a b e");
    }
    check_body("<style>a</style>b<script>c</script>d", "b d");
    check_body("a<br/>b<br></br>c<p>d</p>e", "a b c d e");
    check_body("<title>a</title><textarea>b<i>c</i></textarea>", "a b c");
}

#[test]
fn xhtml_has_the_expected_text() {
    for (body, text) in [
        ("<![CDATA[a <b> &amp; c]]>", "a b amp c"),
        ("a<![CDATA[b]]>c", "abc"),
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a b"),
        (
            "<p>caf&eacute; na&#239;ve &#x41;&lt;b&gt; c&nbsp;d &amp; &quot;e&apos;</p>",
            "café naïve A b c d e",
        ),
        ("a<!-- b -->c<?php d ?>e", "ace"),
        ("<script><![CDATA[a]]></script><style><!-- a -->b<i/></style>c", "c"),
        (
            "<svg xmlns='http://www.w3.org/2000/svg'><style/><title>a</title><style>b</style><text>c</text><script>d</script></svg>e",
            "a c e",
        ),
        ("<s:svg xmlns:s='http://www.w3.org/2000/svg'><s:style>a</s:style><s:text>b</s:text></s:svg>", "b"),
        ("<math xmlns='http://www.w3.org/1998/Math/MathML'><mi>a</mi><script>b</script></math>", "a b"),
        ("<o:p>a</o:p><p o:x='y'>b</p>", "a b"),
        (
            "<x xmlns='http://b.org/'><script>a</script><p xmlns='http://www.w3.org/1999/xhtml'>b<script>c</script></p></x>",
            "a b",
        ),
        ("a <p title='b &amp; c' alt='d'>e</p>", "a e"),
        ("<p a='1' a='2'>b</p>", "b"),
    ] {
        check_body(body, text);
    }
}

#[test]
fn other_vocabularies_have_their_text() {
    check(
        "<rss><channel><title>a</title><description><![CDATA[<p>b</p>]]></description><script>c</script></channel></rss>",
        "a p b p c",
    );
    check(
        "<svg xmlns='http://www.w3.org/2000/svg'><title>a</title><style>b</style><text>c</text></svg>",
        "a c",
    );
    check(
        "<feed xmlns='http://www.w3.org/2005/Atom'><d xmlns:x='http://www.w3.org/1999/xhtml'><x:p>a<x:style>b</x:style></x:p></d></feed>",
        "a",
    );
    check("<a/>", "");
}

#[test]
fn a_document_that_is_not_well_formed_is_read_as_html() {
    for (body, text) in [
        ("<script src='x'/>a<br>b", "a b"),
        (
            "<style/><title/><textarea/><iframe/><xmp/><noembed/><noframes/><noscript/><plaintext/>a & b",
            "a b",
        ),
        ("<style>a</style>b<![CDATA[c <d>]]>e & f", "bc d e f"),
        ("<P>a<BR/>b</P><SCRIPT>c</SCRIPT><STYLE/>d", "a b d"),
        ("<p>a<p>b", "a b"),
        ("<p class=a>b</p>", "b"),
        ("<input disabled>a", "a"),
        ("a &bogus; b", "a bogus b"),
        ("a < b", "a b"),
        ("<svg><style/>a</svg><br>b", "a b"),
        ("<p/>a<div/>b<br>", "a b"),
        ("a&#0;b<br>", "a\u{fffd}b"),
    ] {
        check(&format!("<html xmlns='http://www.w3.org/1999/xhtml'><body>{body}</body></html>"), text);
    }
    for (document, text) in [
        ("", ""),
        ("a", "a"),
        ("<p>a</p>", "a"),
        ("<p>a</p><p>b</p>", "a b"),
        ("<p>a</p>b", "a b"),
        ("a<p>b</p>", "a b"),
        ("<p>a", "a"),
        ("<p>a</p></p>b", "a b"),
        ("<html><script src='a'/><body>b", "b"),
        ("<HTML><SCRIPT SRC='a'/>b</HTML>", "b"),
    ] {
        check(document, text);
    }
}

#[test]
fn pages_that_do_not_claim_to_be_xml_are_read_like_in_a_browser() {
    let html = |html: &str| content(RawContent::Html { bytes: html.as_bytes(), charset: None });
    assert_eq!(html("a<script src=b/>c</script>d"), words("a d"));
    assert_eq!(html("<title/>a</title>b"), words("a b"));
    assert_eq!(html("a<div/>b<![CDATA[c]]>"), words("a b"));
    assert_eq!(html("<html xmlns='http://www.w3.org/1999/xhtml'><style/>a</style>b</html>"), words("b"));
    assert_eq!(html("<?xml-stylesheet href='a'?><style/>b</style>c"), words("c"));
    assert_eq!(html("a<?xml version='1.0'?><style/>b</style>c"), words("a c"));
}

#[test]
fn entities_that_the_document_declares_are_expanded() {
    let check = |subset: &str, body: &str, text: &str| {
        check(
            &format!("<!DOCTYPE html PUBLIC \"-//a'[\" 'b' [ {subset} ]><html><body>{body}</body></html>"),
            text,
        );
    };
    check("<!ENTITY a 'one'> <!ENTITY b \"&a; two\">", "x&b;y", "xone twoy");
    check("<!ENTITY a 'one'><!ENTITY a 'two'>", "&a;", "one");
    check("<!ENTITY a '<p>one</p><style>two</style>'>", "&a;", "one");
    check("<!ENTITY a '&#38;#60;b'>", "&a; &#60;c", "b c");
    check(
        "<!ENTITY a SYSTEM 'file:///etc/passwd'><!ENTITY b PUBLIC 'c' 'http://d.org/'>",
        "x &a;&b; y",
        "x y",
    );
    check(
        "<!ENTITY % p 'one'><!-- > ]> --><?x ]> ?><!ELEMENT e (f)><!ATTLIST e f CDATA '>]'><!ENTITY a 'two'>",
        "&a;",
        "two",
    );
    check("<!ENTITY eacute 'e'>", "caf&eacute;", "cafe");
    // Declarations after a parameter entity are ignored.
    check("<!ENTITY a 'one'> %p; <!ENTITY b 'two'>", "&a; &b;", "p a b");
}

#[test]
fn the_expansion_of_entities_is_bounded() {
    let mut subset = "<!ENTITY a0 'lol'>".to_owned();
    for level in 1..=9 {
        subset += &format!("<!ENTITY a{level} '{}'>", format!("&a{};", level - 1).repeat(10));
    }
    let page =
        |subset: &str, body: &str| format!("<!DOCTYPE html [{subset}]><html><body>{body}</body></html>");
    // `a2` is within the limit, and `a9` far past it.
    check(&page(&subset, "&a2;"), &"lol".repeat(100));
    for (body, text) in [("<script/>&a9;", "a9"), ("<script/><p title='&a9;'>x</p>", "x")] {
        let html = format!("<?xml version='1.0'?>{}", page(&subset, body));
        let read = content(RawContent::Html { bytes: html.as_bytes(), charset: None });
        // The document is read as HTML. There the first `>` ends the document type, and an unknown entity is
        // text.
        assert_eq!(read, words(text), "{body}");
    }
    // Entities that contain themselves.
    for subset in
        ["<!ENTITY a '&a;'>", "<!ENTITY a '&b;'><!ENTITY b '&a;'>", "<!ENTITY a '&e;&e;'><!ENTITY e ''>"]
    {
        let html = format!("<?xml version='1.0'?>{}", page(subset, &"&a;".repeat(1_000_000)));
        content(RawContent::Html { bytes: html.as_bytes(), charset: None });
    }
}

#[test]
fn deep_documents_and_many_namespaces_are_read() {
    let deep = format!("{}a{}", "<p>".repeat(100_000), "</p>".repeat(100_000));
    check(&deep, "a");
    let namespaces: String = (0..300).map(|number| format!(" xmlns:n{number}='http://b.org/'")).collect();
    check(&format!("<html{namespaces}><style/>a</html>"), "a");
    let nested =
        format!("{}a{}", "<p xmlns='http://www.w3.org/1999/xhtml'>".repeat(1_000), "</p>".repeat(1_000));
    check(&nested, "a");
    let attributes: String = (0..100_000).map(|number| format!(" a{number}='b'")).collect();
    check(&format!("<p{attributes}>a</p>"), "a");
}

#[test]
fn every_charset_of_xhtml_is_decoded() {
    let read = |bytes: &[u8], charset| content(RawContent::Html { bytes, charset });
    assert_eq!(
        read(b"<?xml version='1.0' encoding='iso-8859-1'?><html><style/>caf\xe9</html>", None),
        words("café")
    );
    assert_eq!(
        read(b"<?xml version='1.0' encoding='iso-8859-1'?><p>caf\xc3\xa9</p>", Some("utf-8")),
        words("café")
    );
    let utf_16: Vec<u8> = "<?xml version='1.0' encoding='UTF-16'?><html><style/>é</html>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(read(&utf_16, None), words("é"));
    assert_eq!(read(&[b"\xff\xfe", &*utf_16].concat(), None), words("é"));
    assert_eq!(read(&[b"\xff\xfe", &*utf_16].concat(), Some("utf-8")), words("é"));
}
