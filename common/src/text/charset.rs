//! Bytes of any charset to UTF-8.
//!
//! In order: byte order mark; the charset declared with the response; `<meta>` in the first
//! [`PRESCAN_BYTES`] bytes (WHATWG HTML, "prescan a byte stream to determine its encoding"); UTF-8 if
//! the bytes are valid UTF-8; else a guess from the bytes. Valid UTF-8 is not copied.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::prescan::prescan;

/// How far `<meta>` is looked for, in bytes.
const PRESCAN_BYTES: usize = 1024;

/// How much of a page the guess looks at, in bytes.
const GUESS_BYTES: usize = 64 * 1024;

/// `html` as text: in place if it is valid UTF-8, else decoded into `buffer`. `declared` is the charset of
/// its Content-Type header, if any. Malformed bytes become U+FFFD; a byte order mark is left out.
pub fn decode<'a>(html: &'a [u8], declared: Option<&str>, buffer: &'a mut String) -> &'a str {
    let (encoding, html) = match Encoding::for_bom(html) {
        Some((encoding, bom)) => (Some(encoding), &html[bom..]),
        None => (declared.and_then(|label| Encoding::for_label(label.trim().as_bytes())), html),
    };
    let encoding = encoding.or_else(|| meta(html));
    if encoding.is_none_or(|e| e == UTF_8)
        && let Ok(text) = std::str::from_utf8(html)
    {
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

/// The charset a `<meta>` names. A page that can be prescanned is no UTF-16, whatever it says.
fn meta(html: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(&prescan(&html[..html.len().min(PRESCAN_BYTES)])?)?;
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
