//! Converts bytes in any charset to UTF-8, and tells text from binary data.
//!
//! [`decode`] reads HTML and [`decode_text`] reads plain text. Both take the charset from the first source in
//! this list that gives one:
//!
//! 1. the byte order mark;
//! 2. the charset that the response declares, if the label is known;
//! 3. in HTML and XHTML, the XML declaration, or else a `<meta>` in the first [`PRESCAN_BYTES`] bytes (WHATWG
//!    HTML, "prescan a byte stream to determine its encoding");
//! 4. the bytes themselves, if they are UTF-16 without a byte order mark, or ISO-2022-JP;
//! 5. UTF-8, if the bytes are valid UTF-8;
//! 6. a guess from the bytes.
//!
//! If the charset is UTF-8 and the bytes are valid, the text is returned in place, without a copy. [`check`]
//! refuses content in which too many characters are control characters. The crate works on bytes alone: it
//! never opens files or connections.
#![deny(unsafe_code)]

mod byte_patterns;
mod controls;
mod prescan;
mod xml_declaration;

pub use controls::{NoText, check, check_text};
pub use xml_declaration::begins_with_xml_declaration;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use prescan::prescan;

/// Number of bytes at the beginning of a page in which a `<meta>` is searched for.
const PRESCAN_BYTES: usize = 1024;

/// Maximum length, in bytes, of the charset in a Content-Type header. [`label`] ignores a longer charset.
const LABEL_BYTES_MAX: usize = 40;

/// Maximum number of bytes that are examined to guess an encoding, or to recognise ISO-2022-JP.
const GUESS_BYTES: usize = 64 * 1024;

/// Decodes HTML to UTF-8. If the charset is UTF-8 and the bytes are valid, the result is `html` itself,
/// without a copy. Otherwise the HTML is decoded into `buffer`.
///
/// `declared` is the charset of the Content-Type header, if there is one. Malformed bytes become U+FFFD. A
/// byte order mark is left out.
pub fn decode<'a>(html: &'a [u8], declared: Option<&str>, buffer: &'a mut String) -> &'a str {
    let (encoding, html) = certain_encoding(html, declared, markup_encoding);
    decode_with(html, encoding, buffer)
}

/// Decodes plain text to UTF-8. Works like [`decode`], but ignores `<meta>` tags and XML declarations, which
/// mean nothing in plain text.
pub fn decode_text<'a>(text: &'a [u8], declared: Option<&str>, buffer: &'a mut String) -> &'a str {
    let (encoding, text) = certain_encoding(text, declared, |_| None);
    decode_with(text, encoding, buffer)
}

/// Like [`decode_text`], but returns an owned string.
#[must_use]
pub fn to_text(text: &[u8], declared: Option<&str>) -> String {
    let (encoding, text) = certain_encoding(text, declared, |_| None);
    as_utf8(text, encoding).map_or_else(
        || {
            let mut buffer = String::new();
            decode_with(text, encoding, &mut buffer);
            buffer
        },
        str::to_owned,
    )
}

/// Whether [`decode`] returns this HTML in place, without using its buffer.
#[must_use]
pub fn is_read_in_place(html: &[u8], declared: Option<&str>) -> bool {
    let (encoding, html) = certain_encoding(html, declared, markup_encoding);
    as_utf8(html, encoding).is_some()
}

/// Decodes `bytes` with `encoding`. If `encoding` is `None`, valid UTF-8 is read as UTF-8, and other bytes
/// are read in the encoding that [`guess`] returns. Valid UTF-8 is returned in place if it is read as UTF-8.
fn decode_with<'a>(bytes: &'a [u8], encoding: Option<&'static Encoding>, buffer: &'a mut String) -> &'a str {
    if let Some(text) = as_utf8(bytes, encoding) {
        return text;
    }
    let encoding = encoding.unwrap_or_else(|| guess(bytes));
    let mut decoder = encoding.new_decoder_without_bom_handling();
    buffer.clear();
    if let Some(room) = decoder.max_utf8_buffer_length(bytes.len()) {
        buffer.reserve(room);
    }
    let (_, read, _) = decoder.decode_to_string(bytes, buffer, true);
    debug_assert_eq!(
        read,
        bytes.len(),
        "the decoder reads all bytes, because the buffer has the size it asked for"
    );
    buffer
}

/// The charset that a Content-Type header names in its parameters. `None` if the header names no charset, or
/// one longer than 40 bytes.
#[must_use]
pub fn label(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, label) = { parameters }.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    // Servers that send the header twice join the two values with a comma.
    let label = label.split(',').next().unwrap_or_default();
    let label = label.trim().trim_matches(['"', '\'']).trim();
    (1..=LABEL_BYTES_MAX).contains(&label.len()).then_some(label)
}

/// The encoding from the first source that gives one, and the bytes without their byte order mark. The
/// sources are the byte order mark, `declared`, the text itself, and patterns in the bytes. The encoding is
/// `None` if no source gives one.
///
/// `in_markup` finds the encoding that the text itself declares.
fn certain_encoding<'a>(
    bytes: &'a [u8],
    declared: Option<&str>,
    in_markup: impl FnOnce(&[u8]) -> Option<&'static Encoding>,
) -> (Option<&'static Encoding>, &'a [u8]) {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, mark_bytes)) => (Some(encoding), &bytes[mark_bytes..]),
        None => (declared.and_then(|label| encoding_of_label(label.trim().as_bytes())), bytes),
    };
    (encoding.or_else(|| in_markup(bytes)).or_else(|| byte_patterns::encoding(bytes)), bytes)
}

/// The encoding that a label names. `None` if the label is unknown, or if browsers do not decode its
/// encoding. An example is `iso-2022-kr`.
///
/// Browsers show one replacement character in place of a whole text in such an encoding. This character would
/// make different texts equal.
fn encoding_of_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

/// The bytes as text, without a copy. `None` if `encoding` is any encoding but UTF-8, or if the bytes are not
/// valid UTF-8. If `encoding` is `None`, the bytes are tried as UTF-8.
fn as_utf8<'a>(bytes: &'a [u8], encoding: Option<&'static Encoding>) -> Option<&'a str> {
    if encoding.is_some_and(|encoding| encoding != UTF_8) {
        return None;
    }
    match UTF_8.decode_without_bom_handling_and_without_replacement(bytes)? {
        Cow::Borrowed(text) => Some(text),
        Cow::Owned(_) => None,
    }
}

/// The encoding that the XML declaration gives, or else the encoding that a `<meta>` tag gives.
fn markup_encoding(html: &[u8]) -> Option<&'static Encoding> {
    xml_declaration::declared_encoding(html).or_else(|| meta_encoding(html))
}

/// The encoding for the page that a `<meta>` tag in the first [`PRESCAN_BYTES`] bytes gives.
///
/// The tag was found by reading the bytes as ASCII, so the page cannot be UTF-16. If the tag names UTF-16,
/// the page is read as UTF-8. If the tag names `x-user-defined`, the page is read as windows-1252. The WHATWG
/// rules require both.
fn meta_encoding(html: &[u8]) -> Option<&'static Encoding> {
    let encoding = encoding_of_label(prescan(&html[..html.len().min(PRESCAN_BYTES)])?)?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    })
}

/// The most likely encoding of bytes that are not valid UTF-8. The guess examines at most [`GUESS_BYTES`]
/// bytes. At most half of these precede the first byte that is not ASCII.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let begin = Encoding::ascii_valid_up_to(bytes).saturating_sub(GUESS_BYTES / 2);
    let sample = &bytes[begin..bytes.len().min(begin + GUESS_BYTES)];
    detector.feed(sample, begin + sample.len() == bytes.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests;
