//! Encodings that the bytes show without any label: UTF-16 without a byte order mark, and ISO-2022-JP.
//!
//! Both look like ASCII with control characters, which is valid UTF-8. So they are tried before UTF-8.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

use crate::GUESS_BYTES;
use crate::controls::{are_too_many, controls};

/// The number of bytes in which UTF-16 is recognised.
const UTF_16_BYTES: usize = 8 << 10;

/// The number of characters from which on UTF-16 may have no character of ASCII, such as a space or a line feed, and may end
/// in the middle of a character.
const MANY: usize = 32;

/// The share of bytes above 0x7f from which on bytes without the zeros of UTF-16 may be UTF-16, as one in so many bytes: 5 %. East
/// Asian UTF-16 has more, and Latin-1 fewer.
const ONE_HIGH_IN: usize = 20;

/// The character that begins an escape sequence of ISO-2022.
const ESCAPE: u8 = 0x1b;

/// The encoding that the bytes show, if they show one.
pub(crate) fn encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    utf_16(bytes).or_else(|| iso_2022_jp(bytes))
}

/// UTF-16, if the bytes have too many control characters as ASCII, and almost none as UTF-16.
///
/// Almost any two bytes of ASCII are a Chinese character of UTF-16. So the bytes must have the zeros of UTF-16, or be no text in
/// an encoding of single bytes or in UTF-8.
fn utf_16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(UTF_16_BYTES)];
    if !are_too_many(controls(sample), sample.len()) {
        return None;
    }
    let may_lack_zeros = has_many_high_bytes(sample) && !is_utf_8(sample, sample.len() < bytes.len());
    let [little, big] = [u16::from_le_bytes, u16::from_be_bytes].map(|unit: fn([u8; 2]) -> u16| {
        if may_lack_zeros || has_zeros(sample, unit) { ascii_of_text(sample, unit) } else { None }
    });
    match (little, big) {
        (Some(little), Some(big)) if big > little => Some(UTF_16BE),
        (Some(_), _) => Some(UTF_16LE),
        (None, Some(_)) => Some(UTF_16BE),
        (None, None) => None,
    }
}

/// Whether the bytes have zeros as one of the two forms of UTF-16 has them: the upper byte of some unit is zero, and the upper bytes of
/// at least half of the units are below 0x20, as in ASCII, Cyrillic, Arabic, or Thai.
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
    bytes.iter().filter(|byte| !byte.is_ascii()).count() * ONE_HIGH_IN >= bytes.len()
}

/// Whether the bytes are valid UTF-8. The last character of a sample may be cut off.
fn is_utf_8(bytes: &[u8], is_sample: bool) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| is_sample && error.error_len().is_none(), |_| true)
}

/// How many characters of ASCII the bytes have in one of the two forms of UTF-16; none if they are no text in it.
fn ascii_of_text(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<usize> {
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
    (is_text && (ascii > 0 && bytes.len().is_multiple_of(2) || characters >= MANY)).then_some(ascii)
}

/// Letters, digits, marks and punctuation, as far as a block of Unicode tells.
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

/// ISO-2022-JP, if the bytes are ASCII with its escape sequences.
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
