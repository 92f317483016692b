use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;
use doppel_model::Timestamp;

const LIMITS: Limits = Limits { page_bytes_max: 100_000, ..Limits::at(Timestamp::from_millis(0)) };

/// The outcome as one line of text.
fn outcome(block: &[u8]) -> String {
    let url = PageUrl::parse("https://a.org/d/e").unwrap();
    match page(&url, Block { bytes: block, length: block.len() as u64 }, &LIMITS) {
        Ok(FetchedBody::Html { bytes, charset }) => {
            let charset = charset.map_or(String::new(), |charset| format!(" [{charset}]"));
            format!("html{charset} {}", String::from_utf8_lossy(&bytes))
        }
        Ok(FetchedBody::Xhtml { bytes, charset }) => {
            format!("xhtml {charset:?} {}", String::from_utf8_lossy(&bytes))
        }
        Ok(FetchedBody::Text(text)) => format!("text {text}"),
        Ok(FetchedBody::Redirect(target)) => format!("to {target}"),
        Ok(FetchedBody::Dead) => "dead".to_owned(),
        Err(Refusal::Skip(skip)) => format!("skip: {skip}"),
        Err(Refusal::Bad(reason)) => format!("bad: {reason}"),
    }
}

fn response(fields: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{fields}\r\n").as_bytes(), body].concat()
}

fn html(fields: &str, body: &[u8]) -> String {
    outcome(&response(&format!("Content-Type: text/html\r\n{fields}"), body))
}

fn packed<W: Write>(
    mut encoder: W,
    bytes: &[u8],
    finish: impl FnOnce(W) -> std::io::Result<Vec<u8>>,
) -> Vec<u8> {
    encoder.write_all(bytes).unwrap();
    finish(encoder).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    packed(GzEncoder::new(Vec::new(), Compression::best()), bytes, GzEncoder::finish)
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    let mut encoder = brotli::CompressorWriter::new(&mut packed, 4096, 5, 22);
    encoder.write_all(bytes).unwrap();
    drop(encoder);
    packed
}

#[test]
fn statuses() {
    for (head, expected) in [
        ("200 OK\r\nContent-Type: text/html", "html x"),
        ("200\r\nContent-Type: text/html", "html x"),
        ("404 Not Found", "dead"),
        ("410 Gone", "dead"),
        ("206 Partial Content\r\nContent-Type: text/html", "skip: HTTP status 206"),
        ("304 Not Modified", "skip: HTTP status 304"),
        ("500 Error", "skip: HTTP status 500"),
        ("301 Moved\r\nLocation: ../f?g#h", "to https://a.org/f?g"),
        ("302 Found\r\nlocation:   http://b.org  ", "to http://b.org/"),
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
fn content_types() {
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
fn heads_as_servers_send_them() {
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
fn chunks() {
    for (body, expected) in [
        ("4\r\nRust\r\n0\r\n\r\n", "html Rust"),
        ("4;a=b\r\nRust\r\n1\r\n!\r\n0\r\nX: y\r\n\r\n", "html Rust!"),
        // Cut off.
        ("4\r\nRust\r\n", "html Rust"),
        ("4\r\nRust\r\n8\r\nis", "html Rustis"),
        ("ff\r\nRust", "html Rust"),
        ("4\r\nRust\r\n8", "html Rust"),
        // Already undone.
        ("<p>Rust", "html <p>Rust"),
        ("add\r\nmore", "html more"),
        ("4\r\nfour and more", "html 4\r\nfour and more"),
        ("", "html "),
        // Broken.
        ("4\r\nRust\r\nzz\r\n", "bad: the body is not valid chunked"),
        ("4\r\nRust\r\n11111111111111111111\r\n", "bad: the body is not valid chunked"),
        ("4\r\nRust\r\nffffffffffffffff\r\nx", "html Rustx"),
    ] {
        assert_eq!(html("Transfer-Encoding: Chunked\r\n", body.as_bytes()), expected, "{body:?}");
    }
}

#[test]
fn content_encodings_are_undone() {
    let zlib = packed(ZlibEncoder::new(Vec::new(), Compression::fast()), b"<p>zlib", ZlibEncoder::finish);
    let deflate =
        packed(DeflateEncoder::new(Vec::new(), Compression::fast()), b"<p>bare", DeflateEncoder::finish);
    let zstd = zstd::encode_all(&b"<p>zstd"[..], 3).unwrap();
    let brotli = brotli(b"<p>brotli");
    let truncated = &gzip(&[b'x'; 999])[..20];
    for (encoding, body, expected) in [
        ("gzip", &*gzip(b"<p>gzip"), "html <p>gzip"),
        ("X-GZip", &*gzip(b""), "html "),
        ("deflate", &zlib, "html <p>zlib"),
        ("deflate", &deflate, "html <p>bare"),
        ("zstd", &zstd, "html <p>zstd"),
        ("identity", b"as is", "html as is"),
        ("gzip", b"not packed", "html not packed"),
        ("zstd", b"not packed", "html not packed"),
        ("br", b" <!doctype html>", "html  <!doctype html>"),
        ("deflate", b"<html>", "html <html>"),
        ("br", &brotli, "html <p>brotli"),
        ("BR", &brotli, "html <p>brotli"),
        ("br", "no brotli: é".as_bytes(), "html no brotli: é"),
        ("br", b"<html>br", "html <html>br"),
        ("br", &brotli[..5], "bad: the body is not valid br"),
        ("compress", b"\x1f\x9d\x90", "skip: unsupported content encoding"),
        ("gzip, gzip", &*gzip(b""), "skip: unsupported content encoding"),
        ("gzip", truncated, "bad: the body is not valid gzip"),
        ("deflate", b"\xff\xff\xff", "bad: the body is not valid deflate"),
        ("zstd", &zstd[..9], "bad: the body is not valid zstd"),
    ] {
        assert_eq!(html(&format!("Content-Encoding: {encoding}\r\n"), body), expected, "{encoding}");
    }
    let chunked =
        [format!("{:x}\r\n", gzip(b"both").len()).as_bytes(), &gzip(b"both"), b"\r\n0\r\n\r\n"].concat();
    assert_eq!(html("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", &chunked), "html both");
}

#[test]
fn unpacking_is_bounded() {
    let page = |bytes: usize| vec![b'x'; bytes];
    let expected = "bad: a page of 100001 bytes; at most 100000 are taken";
    assert_eq!(html("", &page(100_001)), expected);
    assert_eq!(html("Content-Encoding: gzip\r\n", &gzip(&page(1 << 24))), expected);
    let zstd = zstd::encode_all(&*page(1 << 24), 1).unwrap();
    assert_eq!(html("Content-Encoding: zstd\r\n", &zstd), expected);
    assert_eq!(html("Content-Encoding: br\r\n", &brotli(&page(1 << 24))), expected);
    assert!(html("Content-Encoding: gzip\r\n", &gzip(&page(100_000))).starts_with("html xxx"));
}

#[test]
fn a_block_that_is_too_large_is_judged_by_its_head() {
    let url = PageUrl::parse("https://a.org/").unwrap();
    let cut = |content_type: &str| {
        let head = response(&format!("Content-Type: {content_type}\r\n"), &[b'x'; 100]);
        page(&url, Block { bytes: &head, length: 1 << 40 }, &LIMITS)
    };
    assert!(matches!(cut("video/mp4"), Err(Refusal::Skip(Skip::ContentType))));
    let Err(Refusal::Bad(reason)) = cut("text/html") else { panic!("taken") };
    assert_eq!(reason.to_string(), "a record of 1099511627732 bytes; at most 33554432 are taken");
}
