//! Converts bytes in any charset to UTF-8, and tells text from binary data.
//!
//! [`decode`] reads HTML and [`decode_text`] reads plain text. Both take the charset from the first of these that names
//! one:
//!
//! 1. the byte order mark;
//! 2. the charset that the response declares, if the label is known;
//! 3. in HTML and XHTML, the XML declaration, or else a `<meta>` in the first [`PRESCAN_BYTES`] bytes (WHATWG HTML, "prescan a byte stream to determine its
//!    encoding");
//! 4. the bytes themselves, if they are UTF-16 without a byte order mark, or ISO-2022-JP;
//! 5. UTF-8, if the bytes are valid UTF-8;
//! 6. a guess from the bytes.
//!
//! Valid UTF-8 is not copied. [`check`] refuses content in which too many characters are control characters.
#![deny(unsafe_code)]

mod controls;
mod prescan;
mod unmarked;
mod xml_declaration;

pub use controls::{NoText, check, check_text};
pub use xml_declaration::begins_with_xml_declaration;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use prescan::prescan;

/// The number of bytes in which a `<meta>` is searched for.
const PRESCAN_BYTES: usize = 1024;

/// The longest label of a charset, in bytes.
const LABEL_BYTES_MAX: usize = 40;

/// The number of bytes that the guess examines.
const GUESS_BYTES: usize = 64 * 1024;

/// `html` as text: in place if it is valid UTF-8, else decoded into `buffer`. `declared` is the charset of
/// its Content-Type header, if any. Malformed bytes become U+FFFD; a byte order mark is left out.
pub fn decode<'a>(html: &'a [u8], declared: Option<&str>, buffer: &'a mut String) -> &'a str {
    let (encoding, html) = stated(html, declared, named_in_markup);
    read(html, encoding, buffer)
}

/// Plain text, like [`decode`] but for `<meta>`, which means nothing in plain text.
pub fn decode_text<'a>(text: &'a [u8], declared: Option<&str>, buffer: &'a mut String) -> &'a str {
    let (encoding, text) = stated(text, declared, |_| None);
    read(text, encoding, buffer)
}

/// The same as a string of its own.
#[must_use]
pub fn to_text(text: &[u8], declared: Option<&str>) -> String {
    let (encoding, text) = stated(text, declared, |_| None);
    in_place(text, encoding).map_or_else(
        || {
            let mut buffer = String::new();
            read(text, encoding, &mut buffer);
            buffer
        },
        str::to_owned,
    )
}

/// Whether [`decode`] leaves the text where it is, and needs no buffer.
#[must_use]
pub fn is_read_in_place(html: &[u8], declared: Option<&str>) -> bool {
    let (encoding, html) = stated(html, declared, named_in_markup);
    in_place(html, encoding).is_some()
}

fn read<'a>(bytes: &'a [u8], stated: Option<&'static Encoding>, buffer: &'a mut String) -> &'a str {
    if let Some(text) = in_place(bytes, stated) {
        return text;
    }
    let encoding = stated.unwrap_or_else(|| guess(bytes));
    let mut decoder = encoding.new_decoder_without_bom_handling();
    buffer.clear();
    if let Some(room) = decoder.max_utf8_buffer_length(bytes.len()) {
        buffer.reserve(room);
    }
    let (_, read, _) = decoder.decode_to_string(bytes, buffer, true);
    debug_assert_eq!(read, bytes.len(), "the buffer has the room the decoder asked for");
    buffer
}

/// The charset that a Content-Type names in its parameters.
#[must_use]
pub fn label(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let (_, label) = { parameters }.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    // Servers that set the field twice join its values by a comma.
    let label = label.split(',').next().unwrap_or_default();
    let label = label.trim().trim_matches(['"', '\'']).trim();
    (1..=LABEL_BYTES_MAX).contains(&label.len()).then_some(label)
}

/// The charset that is certain without a guess, and the bytes after a byte order mark.
fn stated<'a>(
    bytes: &'a [u8],
    declared: Option<&str>,
    named: impl FnOnce(&[u8]) -> Option<&'static Encoding>,
) -> (Option<&'static Encoding>, &'a [u8]) {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((encoding, mark)) => (Some(encoding), &bytes[mark..]),
        None => (declared.and_then(|label| known(label.trim().as_bytes())), bytes),
    };
    (encoding.or_else(|| named(bytes)).or_else(|| unmarked::encoding(bytes)), bytes)
}

/// The encoding of a label. None of a label whose encoding browsers do not decode, such as `iso-2022-kr`: they show one
/// replacement character for the whole text, so that unlike texts would become equal.
fn known(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

fn in_place<'a>(bytes: &'a [u8], stated: Option<&'static Encoding>) -> Option<&'a str> {
    if stated.is_some_and(|encoding| encoding != UTF_8) {
        return None;
    }
    match UTF_8.decode_without_bom_handling_and_without_replacement(bytes)? {
        Cow::Borrowed(text) => Some(text),
        Cow::Owned(_) => None,
    }
}

/// The charset that an XML declaration names, or else a `<meta>`.
fn named_in_markup(html: &[u8]) -> Option<&'static Encoding> {
    xml_declaration::declared(html).or_else(|| meta(html))
}

/// The charset that a `<meta>` names. A page in which it can be found is not UTF-16, even if it says so.
fn meta(html: &[u8]) -> Option<&'static Encoding> {
    let encoding = known(prescan(&html[..html.len().min(PRESCAN_BYTES)])?)?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    })
}

/// The most likely encoding of bytes that are not all ASCII. The guess examines the bytes around the first one that is not.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let begin = Encoding::ascii_valid_up_to(bytes).saturating_sub(GUESS_BYTES / 2);
    let seen = &bytes[begin..bytes.len().min(begin + GUESS_BYTES)];
    detector.feed(seen, begin + seen.len() == bytes.len());
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests;
