use doppel_model::Timestamp;

use super::super::unpack::tests::{ALL, packed, text};
use super::*;

const LIMITS: Limits = Limits { page_bytes_max: 100_000, ..Limits::at(Timestamp::from_millis(0)) };

/// Decodes a body and describes the result as text: the decoded body and whether it was cut off, or the
/// error.
fn decode_to_text(content: &[&str], transfer: &[&str], body: &[u8]) -> String {
    decode_with_charset(None, content, transfer, body)
}

fn decode_with_charset(charset: Option<&str>, content: &[&str], transfer: &[&str], body: &[u8]) -> String {
    let bytes =
        |values: &[&str]| values.iter().map(|value| value.to_string().into_bytes()).collect::<Vec<_>>();
    let (content, transfer) = (bytes(content), bytes(transfer));
    let codings = Codings {
        content: content.iter().map(Vec::as_slice).collect(),
        transfer: transfer.iter().map(Vec::as_slice).collect(),
    };
    match codings.undo(body, charset, &LIMITS) {
        Ok(DecodedBody { bytes, is_cut_off }) => {
            let cut_off = if is_cut_off { "cut off: " } else { "" };
            format!("{cut_off}{}", String::from_utf8_lossy(&bytes))
        }
        Err(reason) => format!("bad: {reason}"),
    }
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let chunks = body
        .chunks(size)
        .flat_map(|chunk| [format!("{:X}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
    chunks.chain(*b"0\r\n\r\n").collect()
}

fn packed_in(order: &[BodyCompression], text: &str) -> Vec<u8> {
    order.iter().fold(text.as_bytes().to_vec(), |body, compression| packed(*compression, &body))
}

#[test]
fn every_compression_is_undone_under_every_name() {
    let text = text(300);
    for compression in ALL {
        let body = packed(compression, text.as_bytes());
        for name in [
            "gzip",
            "x-gzip",
            "GZIP",
            "deflate",
            "br",
            "zstd",
            "compress",
            "snappy",
            "utf-8",
            " \"gzip\" ",
            "gzip;q=1",
        ] {
            assert_eq!(decode_to_text(&[name], &[], &body), text, "{compression:?} named {name}");
            assert_eq!(decode_to_text(&[], &[name], &body), text, "{compression:?} transferred as {name}");
            assert_eq!(
                decode_to_text(&[], &[name, "chunked"], &chunked(&body, 100)),
                text,
                "{compression:?} named {name}"
            );
        }
        for name in ["", "identity", "none", "binary", "chunked"] {
            let expected = match compression {
                BodyCompression::Gzip | BodyCompression::Zlib | BodyCompression::Zstd => text.clone(),
                // No byte shows that these are compressed. A later check refuses them because they are not
                // text.
                BodyCompression::Deflate | BodyCompression::Brotli => {
                    String::from_utf8_lossy(&body).into_owned()
                }
            };
            assert_eq!(decode_to_text(&[name], &[], &body), expected, "{compression:?} named {name}");
        }
    }
}

#[test]
fn several_compressions_are_undone_from_any_number_of_fields() {
    use BodyCompression::{Brotli, Deflate, Gzip, Zlib, Zstd};
    let text = text(300);
    for (names, order) in [
        (&["gzip, br"][..], &[Gzip, Brotli][..]),
        (&["br", "gzip"], &[Brotli, Gzip]),
        (&["gzip,gzip"], &[Gzip, Gzip]),
        (&["deflate, gzip"], &[Zlib, Gzip]),
        (&["deflate", "br"], &[Deflate, Brotli]),
        (&["zstd, br, gzip"], &[Zstd, Brotli, Gzip]),
        (&["identity, gzip", "identity"], &[Gzip]),
        // The head names the codings in the wrong order, or one coding too many, or one too few.
        (&["br, gzip"], &[Gzip, Brotli]),
        (&["gzip, gzip"], &[Gzip]),
        (&["gzip", "gzip"], &[Gzip]),
        (&["gzip"], &[Gzip, Gzip]),
        (&["br"], &[Gzip, Brotli]),
        (&["gzip, br"], &[]),
        (&[", gzip, ,"], &[Gzip]),
    ] {
        let body = packed_in(order, &text);
        assert_eq!(decode_to_text(names, &[], &body), text, "{names:?} {order:?}");
        let transferred: Vec<&str> = names.iter().copied().chain(["chunked"]).collect();
        assert_eq!(decode_to_text(&[], &transferred, &chunked(&body, 64)), text, "{names:?} {order:?}");
        assert_eq!(decode_to_text(names, &["Chunked"], &chunked(&body, 1_000)), text, "{names:?} {order:?}");
    }
    assert_eq!(decode_to_text(&["gzip"], &["br"], &packed_in(&[Gzip, Brotli], &text)), text);
    let many = ["gzip"; 9].join(",");
    assert_eq!(decode_to_text(&[&many], &[], &packed(Gzip, b"a")), "bad: the body has more than 8 encodings");
    assert_eq!(decode_to_text(&["gzip"], &[], &packed_in(&[Gzip; 3], &text)), text);
}

#[test]
fn a_body_that_was_decoded_before_stays_as_it_is() {
    let (cyrillic, _, _) =
        encoding_rs::WINDOWS_1251.encode("Съешь ещё этих мягких французских булок, да выпей чаю.");
    let utf_16: Vec<u8> = "Zwei Wörter".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for name in ["gzip", "br", "deflate", "zstd", "compress", "gzip, br", "utf-8"] {
        for body in
            ["<html>é", " <!doctype html>", "no markup: é", "x", "x^y", "{\"a\": 1}", "\u{feff}text", ""]
        {
            assert_eq!(decode_to_text(&[name], &[], body.as_bytes()), body, "{name}");
            assert_eq!(decode_to_text(&[name], &["gzip, chunked"], body.as_bytes()), body, "{name}");
        }
        for (body, charset) in [(&*cyrillic, None), (&utf_16, None), (&utf_16, Some("utf-16le"))] {
            let expected = String::from_utf8_lossy(body);
            assert_eq!(decode_with_charset(charset, &[name], &[], body), expected, "{name}");
        }
    }
    // The length of a page does not show its coding.
    let text = text(300);
    assert_eq!(decode_to_text(&["br"], &[], text.as_bytes()), text);
}

#[test]
fn a_body_that_is_cut_off_is_read_as_far_as_it_goes() {
    let text = text(3_000);
    for (name, compression) in [
        ("gzip", BodyCompression::Gzip),
        ("deflate", BodyCompression::Zlib),
        ("deflate", BodyCompression::Deflate),
        ("br", BodyCompression::Brotli),
    ] {
        let body = packed(compression, text.as_bytes());
        let found = decode_to_text(&[name], &[], &body[..body.len() * 3 / 4]);
        let beginning = found.strip_prefix("cut off: ").unwrap_or_else(|| panic!("{compression:?} {found}"));
        assert!(text.starts_with(beginning) && beginning.len() > text.len() / 4, "{compression:?}");
        let half = &chunked(&body, 1_000)[..body.len() / 2];
        assert!(
            decode_to_text(&[name], &["chunked"], half).starts_with("cut off: word0 "),
            "{compression:?}"
        );
    }
    // Without the trailer, without the last chunk, and with a header but no trailer, as old scripts send it.
    let gzip = packed(BodyCompression::Gzip, text.as_bytes());
    for missing in 1..=8 {
        assert_eq!(decode_to_text(&["gzip"], &[], &gzip[..gzip.len() - missing]), format!("cut off: {text}"));
    }
    let chunks = chunked(&gzip, 500);
    assert_eq!(
        decode_to_text(&["gzip"], &["chunked"], &chunks[..chunks.len() - 5]),
        format!("cut off: {text}")
    );
    let zlib = packed(BodyCompression::Zlib, text.as_bytes());
    assert_eq!(decode_to_text(&["deflate"], &[], &zlib[..zlib.len() - 4]), format!("cut off: {text}"));
    let script = [b"\x1f\x8b\x08\0\0\0\0\0", &zlib[..zlib.len() - 4]].concat();
    assert_eq!(decode_to_text(&["gzip"], &[], &script), format!("cut off: {text}"));
    // The body ends before its first byte of text.
    assert_eq!(decode_to_text(&["gzip"], &[], &gzip[..10]), "bad: the body is not valid gzip");
    assert_eq!(decode_to_text(&["gzip"], &[], &gzip[..2]), "bad: the body is not valid gzip");
}

#[test]
fn a_body_that_cannot_be_decoded_is_an_error() {
    let mut state = 7_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(2_000)
    .collect();
    for (name, expected) in [
        ("gzip", "bad: the body is not valid gzip"),
        ("deflate", "bad: the body is not valid deflate"),
        ("br", "bad: the body is not valid br"),
        ("zstd", "bad: the body is not valid zstd"),
        ("compress", "bad: the body is encoded as \"compress\", which cannot be read"),
        ("dcb", "bad: the body is encoded as \"dcb\", which cannot be read"),
    ] {
        assert_eq!(decode_to_text(&[name], &[], &noise), expected);
    }
    let lzw = b"\x1f\x9d\x90\x61\xc4\x88\x09\x43\x86\x0e";
    assert_eq!(
        decode_to_text(&["compress"], &[], lzw),
        "bad: the body is encoded as \"compress\", which cannot be read"
    );
    let gzip = packed(BodyCompression::Gzip, text(300).as_bytes());
    let mut broken = gzip.clone();
    broken[gzip.len() - 3] ^= 1;
    assert_eq!(decode_to_text(&["gzip"], &[], &broken), "bad: the body is not valid gzip");
    assert_eq!(decode_to_text(&[], &[], &broken), "bad: the body is not valid gzip");
    assert_eq!(
        decode_to_text(&[], &["chunked"], b"4\r\nRust\r\nzz\r\n"),
        "bad: the body is not valid chunked"
    );
}

#[test]
fn chunks_are_joined() {
    for (body, expected) in [
        (&b"4\r\nRust\r\n0\r\n\r\n"[..], "Rust"),
        (b"4;a=b\r\nRust\r\n1 ; c=\"d\"\r\n!\r\n0\r\nX: y\r\n\r\n", "Rust!"),
        (b"4  \r\nRust\r\n0\r\n\r\n", "Rust"),
        (b"0004\r\nRust\r\n00\r\n\r\n", "Rust"),
        // Lines that end with line feeds alone.
        (b"4\nRust\n1\n!\n0\n\n", "Rust!"),
        (b"4\r\nRust\r\n0\r\n", "Rust"),
        (b"0\r\n\r\n", ""),
        (b"4;chunk-signature=ad80c730\r\nRust\r\n0;chunk-signature=b6c6ea8a\r\n\r\n", "Rust"),
        // Bodies that are cut off.
        (b"4\r\nRust\r\n", "cut off: Rust"),
        (b"4\r\nRust", "cut off: Rust"),
        (b"4\r\nRust\r\n8\r\nis", "cut off: Rustis"),
        (b"ff\r\nRust", "cut off: Rust"),
        (b"4\r\nRust\r\n8", "cut off: Rust"),
        (b"4\r\nRust\r\n8;ab", "cut off: Rust"),
        (b"4\r\nRust\r\nffffffffffffffff\r\nx", "cut off: Rustx"),
        // Bodies whose chunking is already undone.
        (b"<p>Rust", "<p>Rust"),
        (b"4\r\nfour and more", "4\r\nfour and more"),
        (b"dad\nis here", "dad\nis here"),
        (b"2 birds\r\n", "2 birds\r\n"),
        (b"", ""),
        // Bodies with a broken size line.
        (b"4\r\nRust\r\nzz\r\n", "bad: the body is not valid chunked"),
        (b"4\r\nRust\r\n11111111111111111\r\n", "bad: the body is not valid chunked"),
    ] {
        assert_eq!(decode_to_text(&[], &["chunked"], body), expected, "{}", String::from_utf8_lossy(body));
        assert_eq!(
            decode_to_text(&["aws-chunked"], &[], body),
            expected,
            "{}",
            String::from_utf8_lossy(body)
        );
    }
    // The writer of a record has removed the field that names the chunking.
    let text = text(300);
    let body = chunked(&packed(BodyCompression::Gzip, text.as_bytes()), 100);
    assert_eq!(decode_to_text(&["gzip"], &[], &body), text);
    assert_eq!(
        decode_to_text(&[], &["chunked, chunked"], &chunked(&chunked(text.as_bytes(), 100), 64)),
        text
    );
    let endless = [b"4;".to_vec(), vec![b'x'; 1 << 20]].concat();
    assert!(decode_to_text(&[], &["chunked"], &endless).starts_with("4;xx"));
}

#[test]
fn no_layer_is_larger_than_a_page() {
    let too_large = "bad: a page of 100001 bytes; at most 100000 are taken";
    let bomb = vec![b'x'; 1 << 24];
    for compression in ALL {
        let name = compression.name();
        assert_eq!(decode_to_text(&[name], &[], &packed(compression, &bomb)), too_large, "{compression:?}");
        assert_eq!(
            decode_to_text(
                &[name, "gzip"],
                &[],
                &packed_in(&[compression, BodyCompression::Gzip], &"x".repeat(1 << 22))
            ),
            too_large
        );
    }
}

proptest::proptest! {
    #[test]
    fn decoding_any_body_terminates(body: Vec<u8>, names in "(gzip|br|deflate|zstd|chunked|x|,){0,5}") {
        let _ = decode_to_text(&[&names], &[&names], &body);
    }

    #[test]
    fn compressed_bytes_are_never_text(words in 1_usize..400, kind in 0_usize..5, named in "gzip|br|deflate|zstd|compress||identity") {
        let text = text(words);
        let body = packed(ALL[kind], text.as_bytes());
        let codings = Codings { content: vec![named.as_bytes()], transfer: Vec::new() };
        let Ok(DecodedBody { bytes, is_cut_off: false }) = codings.undo(&body, None, &LIMITS) else { panic!() };
        // Short compressed bodies may contain so few control characters, by chance, that they pass for text.
        proptest::prop_assert!(&*bytes == text.as_bytes() || *bytes == *body && (words < 30 || !is_text(&bytes, None)));
    }
}
