use super::super::unpack::BodyCompression;
use super::super::unpack::tests::{packed, text};
use super::*;
use doppel_model::Timestamp;

const LIMITS: Limits = Limits { page_bytes_max: 100_000, ..Limits::at(Timestamp::from_millis(0)) };

/// Extracts the page from an HTTP response and describes the result as one line of text.
fn outcome(block: &[u8]) -> String {
    let url = PageUrl::parse("https://a.org/d/e").unwrap();
    describe(page(&url, Block { bytes: block, length: block.len() as u64 }, &LIMITS))
}

fn describe(answer: Result<ExtractedBody, NotAPage>) -> String {
    let ExtractedBody { body, is_cut_off } = match answer {
        Ok(answer) => answer,
        Err(NotAPage::Skip(skip)) => return format!("skip: {skip}"),
        Err(NotAPage::Bad(reason)) => return format!("bad: {reason}"),
    };
    let cut_off = if is_cut_off { "cut off: " } else { "" };
    let body = match body {
        FetchedBody::Html { bytes, charset } => {
            let charset = charset.map_or(String::new(), |charset| format!(" [{charset}]"));
            format!("html{charset} {}", String::from_utf8_lossy(&bytes))
        }
        FetchedBody::Xhtml { bytes, charset } => {
            format!("xhtml {charset:?} {}", String::from_utf8_lossy(&bytes))
        }
        FetchedBody::Text(text) => format!("text {text}"),
        FetchedBody::Redirect(target) => format!("to {target}"),
        FetchedBody::Dead => "dead".to_owned(),
    };
    format!("{cut_off}{body}")
}

fn response(fields: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat()
}

fn html(fields: &str, body: &[u8]) -> String {
    outcome(&response(&format!("Content-Type: text/html\r\n{fields}"), body))
}

#[test]
fn the_status_decides_what_a_response_says() {
    for (head, expected) in [
        ("200 OK\r\nContent-Type: text/html", "html x"),
        ("200\r\nContent-Type: text/html", "html x"),
        ("404 Not Found", "dead"),
        ("410 Gone", "dead"),
        ("206 Partial Content\r\nContent-Type: text/html", "skip: HTTP status 206"),
        ("304 Not Modified", "skip: HTTP status 304"),
        ("500 Error", "skip: HTTP status 500"),
        ("301 Moved\r\nLocation: ../f?g#h", "to https://a.org/f?g"),
        ("302 Found\r\nlocation:   http://b.org  ", "to http://b.org"),
        ("303 See\r\nLocation: //b.org/c", "to https://b.org/c"),
        ("307 T\r\nLocation: e", "skip: redirect to itself"),
        ("308 P\r\nLocation: #top", "skip: redirect to itself"),
        ("301 Moved\r\nLocation: caf\u{e9}", "to https://a.org/d/caf%C3%A9"),
        ("301 Moved", "skip: redirect without a target"),
        ("301 Moved\r\nLocation: ", "skip: redirect without a target"),
        ("302 Found\r\nLocation: javascript:history.back()", "skip: redirect to something that is no page"),
        ("302 Found\r\nLocation: http://", "skip: redirect to something that is no page"),
    ] {
        assert_eq!(outcome(format!("HTTP/1.0 {head}\r\n\r\nx").as_bytes()), expected, "{head}");
    }
    let latin_1 = b"HTTP/1.1 301 Moved\r\nLocation: /caf\xe9\r\n\r\n";
    assert_eq!(outcome(latin_1), "to https://a.org/caf%C3%A9");
}

#[test]
fn the_content_type_decides_what_a_page_is() {
    for (content_type, body, expected) in [
        ("text/html", "x", "html x"),
        ("Text/HTML ; Charset = \"Shift_JIS\"", "x", "html [Shift_JIS] x"),
        ("text/html;charset=", "x", "html x"),
        ("text/html, text/html", "x", "html x"),
        ("application/xhtml+xml;charset=utf-8", "x", "xhtml Some(\"utf-8\") x"),
        ("Application/XHTML+XML", "x", "xhtml None x"),
        ("text/plain; charset=iso-8859-2", "<", "text <"),
        ("text/markdown", "# é", "text # é"),
        ("", " \n<p>", "html  \n<p>"),
        ("", "\u{feff}<p>", "html \u{feff}<p>"),
        ("", "{}", "skip: neither HTML nor text"),
        ("", "", "skip: neither HTML nor text"),
        ("text/css", "<", "skip: neither HTML nor text"),
        ("image/svg+xml", "<svg>", "skip: neither HTML nor text"),
        ("application/json", "{}", "skip: neither HTML nor text"),
    ] {
        let field = format!("Content-Type: {content_type}\r\n");
        assert_eq!(outcome(&response(&field, body.as_bytes())), expected, "{content_type}");
    }
    assert_eq!(outcome(&response("", b"<p>")), "html <p>");
    assert_eq!(outcome(&response("Content-Type: text/html\r\n", b"")), "html ");
}

#[test]
fn irregular_heads_of_real_servers_are_parsed() {
    for (head, expected) in [
        (&b"HTTP/2 200\r\ncontent-type: text/html\r\n\r\nbody"[..], "html body"),
        (b"HTTP/2.0 200 OK\r\ncontent-type: text/html\r\n\r\nbody", "html body"),
        (b"HTTP/3 404\r\n\r\n", "dead"),
        (b"HTTP/1.1 200 OK\nContent-Type: text/html\n\nbody", "html body"),
        (b"HTTP/1.1 200 Sch\xf6n\r\nX Y: z\r\nno colon\r\nContent-Type : text/html\r\n\r\nbody", "html body"),
        (b"HTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\nContent-Type: text/html\r\n\r\nbody", "html body"),
        (b"", "bad: no HTTP response head: it does not end"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", "bad: no HTTP response head: it does not end"),
        (b"<html>no head</html>", "bad: no HTTP response head: invalid HTTP version"),
        (b"HTTP/1.1 2oo OK\r\n\r\n", "bad: no HTTP response head: invalid response status"),
        (b"HTTP/2", "bad: no HTTP response head: it does not end"),
    ] {
        assert_eq!(outcome(head), expected, "{}", String::from_utf8_lossy(head));
    }
    let endless = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'y'; 1 << 20], b"\r\n\r\n".to_vec()].concat();
    assert_eq!(outcome(&endless), "bad: no HTTP response head: it does not end");
    let fields = |n| response(&"X: y\r\n".repeat(n), b"<p>");
    assert_eq!(outcome(&fields(HEAD_FIELDS_MAX)), "html <p>");
    assert_eq!(outcome(&fields(HEAD_FIELDS_MAX + 1)), "bad: no HTTP response head: too many headers");
}

#[test]
fn bodies_are_decoded() {
    let gzip = packed(BodyCompression::Gzip, b"<p>text");
    let chunked = [format!("{:x}\r\n", gzip.len()).as_bytes(), &gzip, b"\r\n0\r\n\r\n"].concat();
    let twice = packed(BodyCompression::Brotli, &gzip);
    let members = [&*gzip, &gzip].concat();
    for (fields, body, expected) in [
        ("Content-Encoding: gzip\r\n", &*gzip, "html <p>text"),
        ("content-encoding:GZIP\r\nTransfer-Encoding: chunked\r\n", &chunked, "html <p>text"),
        ("Transfer-Encoding: gzip, chunked\r\n", &chunked, "html <p>text"),
        ("Transfer-Encoding: gzip\r\nX: y\r\nTransfer-Encoding: chunked\r\n", &chunked, "html <p>text"),
        ("Content-Encoding: gzip, br\r\n", &twice, "html <p>text"),
        ("Content-Encoding: gzip\r\nContent-Encoding: br\r\n", &twice, "html <p>text"),
        ("Content-Encoding: gzip\r\n", &members, "html <p>text<p>text"),
        ("", &gzip, "html <p>text"),
        ("Content-Encoding: gzip\r\n", &gzip[..gzip.len() - 1], "cut off: html <p>text"),
        ("Transfer-Encoding: chunked\r\n", b"4\r\nRust\r\n8\r\nis", "cut off: html Rustis"),
        ("Content-Encoding: gzip\r\n", &gzip[..10], "bad: the body is not valid gzip"),
        ("Content-Encoding: gzip\r\n", b"<p>text", "html <p>text"),
    ] {
        assert_eq!(html(fields, body), expected, "{fields}");
    }
    let no_type = [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", &*gzip].concat();
    assert_eq!(outcome(&no_type), "html <p>text");
    let resource = |body: &[u8]| {
        let block = Block { bytes: body, length: body.len() as u64 };
        describe(document(Some(b"text/plain"), block, &LIMITS))
    };
    assert_eq!(resource(&gzip), "text <p>text");
    assert_eq!(resource(b"as it is"), "text as it is");
}

#[test]
fn compressed_bytes_are_never_text() {
    let refused = |fields: &str, body: &[u8]| {
        let found = html(fields, body);
        assert!(found.starts_with("bad: binary or compressed data, not text: "), "{found}");
    };
    let text = text(300);
    for packing in [BodyCompression::Brotli, BodyCompression::Deflate] {
        let body = packed(packing, text.as_bytes());
        refused("", &body);
        refused("Content-Encoding: identity\r\n", &body);
        let plain = [b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", &*body].concat();
        assert!(outcome(&plain).starts_with("bad: binary or compressed data"));
    }
    refused("", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0");
    refused("Content-Encoding: gzip\r\n", &packed(BodyCompression::Gzip, &[1, 2, 3, 4]));
    assert_eq!(html("", "é".repeat(49).as_bytes()), format!("html {}", "é".repeat(49)));
    refused("", ("é".repeat(48) + "\0").as_bytes());
}

#[test]
fn text_without_a_declared_charset_is_decoded_by_detection() {
    let text = "Съешь ещё этих мягких французских булок, да выпей чаю.";
    let (old, _, _) = encoding_rs::WINDOWS_1251.encode(text);
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for bytes in [text.as_bytes(), &old, &utf_16] {
        for content_type in ["text/plain", "text/plain; charset=none", "text/markdown;charset=\"\""] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n");
            assert_eq!(outcome(&[head.as_bytes(), bytes].concat()), format!("text {text}"), "{content_type}");
        }
    }
    for (content_type, expected) in [
        ("text/plain; charset=utf8", "text é"),
        ("text/plain; charset=\"utf-8\"", "text é"),
        ("text/plain; charset='UTF-8'", "text é"),
        ("text/plain; charset=latin1, text/plain", "text Ã©"),
        ("text/plain; format=flowed; charset=latin1", "text Ã©"),
        ("text/plain; charset=latin1; charset=utf-8", "text Ã©"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\né");
        assert_eq!(outcome(head.as_bytes()), expected, "{content_type}");
    }
}

#[test]
fn a_block_that_is_too_large_is_judged_by_its_head() {
    let url = PageUrl::parse("https://a.org/").unwrap();
    let cut = |content_type: &str| {
        let head = response(&format!("Content-Type: {content_type}\r\n"), &[b'x'; 100]);
        page(&url, Block { bytes: &head, length: 1 << 40 }, &LIMITS)
    };
    assert!(matches!(cut("video/mp4"), Err(NotAPage::Skip(SkipReason::ContentType))));
    let Err(NotAPage::Bad(reason)) = cut("text/html") else { panic!("a block that is too large is a page") };
    assert_eq!(reason.to_string(), "a record of 1099511627732 bytes; at most 33554432 are taken");
}
