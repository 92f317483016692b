//! Converts bytes in any charset to UTF-8.
//!
//! The charset is taken from the first of these that is there: the byte order mark; the declaration of the response; the XML declaration; a
//! `<meta>` in the first [`PRESCAN_BYTES`] bytes (WHATWG HTML, "prescan a byte stream to determine its encoding").
//! Without any, it is UTF-8 if the bytes are valid UTF-8, or else a guess from the bytes. Valid UTF-8 is not copied.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::prescan::prescan;
use super::xhtml;

/// The number of bytes in which a `<meta>` is searched for.
const PRESCAN_BYTES: usize = 1024;

/// The number of bytes that the guess examines.
const GUESS_BYTES: usize = 64 * 1024;

/// `html` as text: in place if it is valid UTF-8, else decoded into `buffer`. `declared` is the charset of
/// its Content-Type header, if any. Malformed bytes become U+FFFD; a byte order mark is left out.
pub fn decode<'a>(html: &'a [u8], declared: Option<&str>, buffer: &'a mut String) -> &'a str {
    let (encoding, html) = stated(html, declared);
    if let Some(text) = in_place(html, encoding) {
        return text;
    }
    let encoding = encoding.unwrap_or_else(|| guess(html));
    let mut decoder = encoding.new_decoder_without_bom_handling();
    buffer.clear();
    if let Some(bytes) = decoder.max_utf8_buffer_length(html.len()) {
        buffer.reserve(bytes);
    }
    let (_, read, _) = decoder.decode_to_string(html, buffer, true);
    debug_assert_eq!(read, html.len(), "the buffer has the room the decoder asked for");
    buffer
}

/// Whether [`decode`] leaves the text where it is, and needs no buffer.
#[must_use]
pub fn is_read_in_place(html: &[u8], declared: Option<&str>) -> bool {
    let (encoding, html) = stated(html, declared);
    in_place(html, encoding).is_some()
}

/// The charset that is stated, and what stands behind a byte order mark.
fn stated<'a>(html: &'a [u8], declared: Option<&str>) -> (Option<&'static Encoding>, &'a [u8]) {
    let (encoding, html) = match Encoding::for_bom(html) {
        Some((encoding, bom)) => (Some(encoding), &html[bom..]),
        None => (declared.and_then(|label| Encoding::for_label(label.trim().as_bytes())), html),
    };
    (encoding.or_else(|| xhtml::declared(html)).or_else(|| meta(html)), html)
}

fn in_place<'a>(html: &'a [u8], stated: Option<&'static Encoding>) -> Option<&'a str> {
    if stated.is_none_or(|encoding| encoding == UTF_8) { std::str::from_utf8(html).ok() } else { None }
}

/// The charset that a `<meta>` names. A page in which it can be found is not UTF-16, even if it says so.
fn meta(html: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(prescan(&html[..html.len().min(PRESCAN_BYTES)])?)?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    })
}

fn guess(html: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let seen = &html[..html.len().min(GUESS_BYTES)];
    detector.feed(seen, seen.len() == html.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(html: &[u8], declared: Option<&str>, expected: &str) {
        let mut buffer = String::new();
        assert_eq!(decode(html, declared, &mut buffer), expected);
        assert_eq!(is_read_in_place(html, declared), buffer.capacity() == 0);
    }

    #[test]
    fn mark_then_declared_then_meta_then_utf_8_then_a_guess() {
        check(b"\xef\xbb\xbf\xc3\xa9", Some("latin1"), "é");
        check(b"\xff\xfea\0", Some("utf-8"), "a");
        check(b"\xfe\xff\0a", None, "a");
        check(b"\xc3\xa9<meta charset=utf-8>", Some(" Latin1 "), "Ã©<meta charset=utf-8>");
        check(b"\xc3\xa9<meta charset=latin1>", None, "Ã©<meta charset=latin1>");
        check(b"\xc3\xa9<meta charset=latin1>", Some("klingon"), "Ã©<meta charset=latin1>");
        check(b"\xc3\xa9", None, "é");
        check(b"\xc3\xa9<meta charset=utf-16le>", None, "é<meta charset=utf-16le>");
        check(b"\xe9<meta charset=x-user-defined>", None, "é<meta charset=x-user-defined>");
    }

    #[test]
    fn a_page_whose_meta_tag_claims_utf_16_is_utf_8() {
        for label in ["utf-16", "utf-16le", "UTF-16BE", "unicodefeff", "unicodefffe", "ucs-2"] {
            for tag in [
                format!("<meta charset={label}>"),
                format!("<meta http-equiv=content-type content='text/html; charset={label}'>"),
            ] {
                check(format!("é{tag}").as_bytes(), None, &format!("é{tag}"));
                // Also where it is malformed: nothing is guessed.
                check(&[b"\xe9", tag.as_bytes()].concat(), None, &format!("\u{fffd}{tag}"));
            }
        }
        // What comes with the response counts.
        check(b"\0a", Some("utf-16be"), "a");
        check(b"a\0", Some("utf-16le"), "a");
    }

    #[test]
    fn guesses_what_is_not_utf_8() {
        let (text, _, _) =
            encoding_rs::WINDOWS_1251.encode("Съешь ещё этих мягких французских булок, да выпей чаю.");
        check(&text, None, "Съешь ещё этих мягких французских булок, да выпей чаю.");
        let (text, _, _) = encoding_rs::SHIFT_JIS.encode("吾輩は猫である。名前はまだ無い。");
        check(&text, None, "吾輩は猫である。名前はまだ無い。");
    }

    #[test]
    fn malformed_bytes_become_replacements() {
        check(b"a\xffb", Some("utf-8"), "a\u{fffd}b");
        check(b"a", Some("utf-16le"), "\u{fffd}");
    }

    #[test]
    fn a_buffer_is_used_again() {
        let mut buffer = String::from("before");
        assert_eq!(decode(b"caf\xe9", Some("latin1"), &mut buffer), "café");
        assert_eq!(decode(b"\xe0", Some("latin1"), &mut buffer), "à");
    }

    #[test]
    fn valid_utf_8_is_not_copied() {
        let html = "déjà vu".as_bytes();
        assert_eq!(decode(html, None, &mut String::new()).as_ptr(), html.as_ptr());
        assert_eq!(decode(html, Some("utf-8"), &mut String::new()).as_ptr(), html.as_ptr());
    }
}
