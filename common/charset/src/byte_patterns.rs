//! Recognises UTF-16 without a byte order mark, and ISO-2022-JP, by patterns in the bytes.
//!
//! English text in UTF-16, and any text in ISO-2022-JP, has no byte above 0x7f, so the bytes are also valid
//! UTF-8. Therefore the caller must ask [`encoding`] before it reads the bytes as UTF-8.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

use crate::GUESS_BYTES;
use crate::controls::{controls, is_too_many};

/// Maximum number of bytes at the beginning of a text that are examined for UTF-16.
const UTF_16_BYTES: usize = 8 << 10;

/// Minimum length, in characters, of a UTF-16 text without any ASCII character. A shorter text is recognised
/// as UTF-16 only if it contains an ASCII character, such as a space or a line feed, and has an even number
/// of bytes.
const CHARACTERS_WITHOUT_ASCII_MIN: usize = 32;

/// Bytes that contain no zeros are recognised as UTF-16 only if at least one byte in 20 (5 %) is above 0x7f.
/// East Asian text in UTF-16 exceeds this share. Western European text with one byte per character stays
/// below it.
const BYTES_PER_HIGH_BYTE: usize = 20;

/// The byte that begins an escape sequence of ISO-2022.
const ESCAPE: u8 = 0x1b;

/// The encoding that patterns in the bytes reveal. `None` if the bytes are neither UTF-16 nor ISO-2022-JP.
pub(crate) fn encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    utf_16(bytes).or_else(|| iso_2022_jp(bytes))
}

/// UTF-16 in the byte order of the bytes, or `None` if they are not UTF-16. Examines the first
/// [`UTF_16_BYTES`] bytes.
///
/// Read as ASCII, the bytes must contain more control characters than text does. Read as UTF-16, the bytes
/// must be text. These two conditions are not enough, because almost any two ASCII letters form a Chinese
/// character in UTF-16. Therefore the bytes must also contain the zeros that UTF-16 adds to ASCII characters.
/// Bytes without these zeros must include many bytes above 0x7f, and must not be valid UTF-8.
fn utf_16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(UTF_16_BYTES)];
    if !is_too_many(controls(sample), sample.len()) {
        return None;
    }
    let may_lack_zeros = has_many_high_bytes(sample) && !is_utf_8(sample, sample.len() < bytes.len());
    let [little, big] = [u16::from_le_bytes, u16::from_be_bytes].map(|unit: fn([u8; 2]) -> u16| {
        if may_lack_zeros || has_zeros(sample, unit) { count_ascii_in_text(sample, unit) } else { None }
    });
    match (little, big) {
        (Some(little), Some(big)) if big > little => Some(UTF_16BE),
        (Some(_), _) => Some(UTF_16LE),
        (None, Some(_)) => Some(UTF_16BE),
        (None, None) => None,
    }
}

/// Whether the bytes contain zeros where UTF-16 in one byte order has them. `unit` joins two bytes to a unit
/// of 16 bits in this byte order.
///
/// The upper byte of at least one unit must be zero, as in ASCII. The upper bytes of at least half of the
/// units must be below 0x20, as in ASCII, Cyrillic, Arabic, and Thai.
fn has_zeros(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> bool {
    let (mut units, mut zero, mut low) = (0, 0, 0);
    for pair in bytes.chunks_exact(2) {
        let upper = unit([pair[0], pair[1]]) >> 8;
        units += 1;
        zero += usize::from(upper == 0);
        low += usize::from(upper < 0x20);
    }
    zero > 0 && low * 2 >= units
}

fn has_many_high_bytes(bytes: &[u8]) -> bool {
    bytes.iter().filter(|byte| !byte.is_ascii()).count() * BYTES_PER_HIGH_BYTE >= bytes.len()
}

/// Whether the bytes are valid UTF-8. If they are a sample of a longer text, the last character may be cut
/// off.
fn is_utf_8(bytes: &[u8], is_sample: bool) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| is_sample && error.error_len().is_none(), |_| true)
}

/// Reads the bytes as UTF-16 in one byte order, and returns the number of ASCII characters other than control
/// characters. `unit` joins two bytes to a unit of 16 bits in this byte order.
///
/// `None` if the bytes are not text: if less than 95 % of the characters are readable, or more than one
/// character is malformed. Also `None` if the text is too short to be certain (see
/// [`CHARACTERS_WITHOUT_ASCII_MIN`]).
fn count_ascii_in_text(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<usize> {
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let (mut characters, mut readable, mut ascii, mut malformed) = (0, 0, 0, 0);
    for character in char::decode_utf16(units) {
        characters += 1;
        match character {
            Ok('\t' | '\n' | '\x0c' | '\r' | ' '..='~') => ascii += 1,
            Ok(character) if is_readable(character) => readable += 1,
            Ok(_) => {}
            Err(_) => malformed += 1,
        }
    }
    readable += ascii;
    // The sample may end within a surrogate pair.
    let is_text = characters > 0 && malformed <= 1 && readable * 20 >= characters * 19;
    let is_certain = ascii > 0 && bytes.len().is_multiple_of(2) || characters >= CHARACTERS_WITHOUT_ASCII_MIN;
    (is_text && is_certain).then_some(ascii)
}

/// Whether ordinary text may contain the character: a letter, digit, white space, mark, punctuation, or
/// symbol. Marks, punctuation, and symbols are recognised by Unicode block, so the answer is approximate.
fn is_readable(character: char) -> bool {
    character.is_alphanumeric()
        || character.is_whitespace()
        || matches!(
            character,
            '\u{a0}'..='\u{bf}'
                | '\u{300}'..='\u{36f}'
                | '\u{591}'..='\u{5c7}'
                | '\u{600}'..='\u{6ff}'
                | '\u{900}'..='\u{eff}'
                | '\u{2000}'..='\u{206f}'
                | '\u{20a0}'..='\u{20cf}'
                | '\u{2100}'..='\u{23ff}'
                | '\u{2500}'..='\u{27bf}'
                | '\u{3000}'..='\u{303f}'
                | '\u{30fb}'..='\u{30ff}'
                | '\u{fe0f}'
                | '\u{ff00}'..='\u{ffef}'
                | '\u{1f000}'..='\u{1faff}'
        )
}

/// ISO-2022-JP, if the first [`GUESS_BYTES`] bytes are all ASCII and contain escape sequences of this
/// encoding. `None` for all other bytes.
fn iso_2022_jp(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(GUESS_BYTES)];
    memchr::memchr(ESCAPE, sample)?;
    if !sample.is_ascii() {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, sample.len() == bytes.len());
    let guess = detector.guess(None, Utf8Detection::Allow);
    (guess == ISO_2022_JP).then_some(guess)
}
