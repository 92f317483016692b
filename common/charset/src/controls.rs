//! Tells text from binary data by counting control characters.
//!
//! A *control character* here is one of U+0000 to U+001F, except tab, line feed, form feed and carriage
//! return. About a tenth of random bytes are control characters, so compressed and other binary data contain
//! many of them. Text contains few or none.

use doppel_model::RawContent;

use crate::decode;

/// A text has at most one control character in 50 characters, which is 2 %.
const CHARACTERS_PER_CONTROL: usize = 50;

/// The content has too many control characters to be text: it is compressed or other binary data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "binary or compressed data, not text: {controls} of {characters} characters are control characters, and at most 2 % may be"
)]
pub struct NoText {
    /// Number of control characters: U+0000 to U+001F, except tab, line feed, form feed and carriage return.
    pub controls: usize,
    /// Number of all characters of the content.
    pub characters: usize,
}

/// Checks that content is text rather than binary data.
///
/// At most 2 % of the characters of a text are control characters: U+0000 to U+001F other than tab, line
/// feed, form feed and carriage return. Characters are counted after the charset is decoded.
///
/// # Errors
/// [`NoText`] if more than 2 % are control characters.
pub fn check(content: RawContent<'_>) -> Result<(), NoText> {
    match content {
        // In every encoding a control character contains a byte that `controls` counts. Pages without such a
        // byte need no decoding, and most pages have none.
        RawContent::Html { bytes, .. } | RawContent::Xhtml { bytes, .. } if controls(bytes) == 0 => Ok(()),
        RawContent::Html { bytes, charset } | RawContent::Xhtml { bytes, charset } => {
            check_text(decode(bytes, charset, &mut String::new()))
        }
        RawContent::Text(text) => check_text(text),
    }
}

/// Like [`check`], for text that is already decoded.
///
/// # Errors
/// [`NoText`] if more than 2 % of the characters are control characters.
pub fn check_text(text: &str) -> Result<(), NoText> {
    let controls = controls(text.as_bytes());
    if controls == 0 {
        return Ok(());
    }
    let characters = text.chars().count();
    if is_too_many(controls, characters) { Err(NoText { controls, characters }) } else { Ok(()) }
}

/// Whether `controls` control characters among `all` characters are more than the 2 % that a text may
/// contain.
pub(crate) fn is_too_many(controls: usize, all: usize) -> bool {
    controls.saturating_mul(CHARACTERS_PER_CONTROL) > all
}

/// Counts the bytes that are control characters: 0x00 to 0x1f, except tab, line feed, form feed and carriage
/// return.
///
/// This function reads every page, so a second version is compiled for processors with AVX2. Choosing that
/// version at run time needs the only `unsafe` block of the crate.
pub(crate) fn controls(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the processor supports AVX2, for which the function is compiled")]
        // SAFETY: `is_x86_feature_detected` has found AVX2.
        return unsafe { count_with_avx2(bytes) };
    }
    count(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn count_with_avx2(bytes: &[u8]) -> usize {
    count(bytes)
}

/// Counts control characters. Always inlined, so that each caller compiles it for its own instruction set.
#[inline(always)]
fn count(bytes: &[u8]) -> usize {
    // One-byte counters let the compiler add many of them with one vector instruction. A chunk of 192 bytes
    // is a multiple of all common vector lengths, so no remainder is counted byte by byte. Its count also
    // fits into a u8.
    const CHUNK_BYTES: usize = 192;
    let count_chunk = |chunk: &[u8]| chunk.iter().map(|byte| u8::from(is_control(*byte))).sum::<u8>();
    bytes.chunks(CHUNK_BYTES).map(|chunk| usize::from(count_chunk(chunk))).sum()
}

#[inline]
fn is_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tab_line_feed_form_feed_and_carriage_return_are_not_counted() {
        assert_eq!(controls(&(0..=255).collect::<Vec<u8>>()), 28);
        assert_eq!(controls(b"a\tb\nc\x0cd\re\x7f\x80\x9f"), 0);
        assert_eq!(controls(&[0; 10_000]), 10_000);
        assert_eq!(controls(b""), 0);
    }

    proptest! {
        #[test]
        fn avx2_counts_like_the_portable_code(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let expected = bytes.iter().filter(|byte| is_control(**byte)).count();
            prop_assert_eq!((controls(&bytes), count(&bytes)), (expected, expected));
        }
    }

    #[test]
    fn two_percent_of_the_characters_may_be_control_characters() {
        for letter in ["a", "é", "猫", "\u{10348}"] {
            let text = |letters: usize, controls: usize| letter.repeat(letters) + &"\0".repeat(controls);
            assert_eq!(check_text(&text(98, 2)), Ok(()), "{letter}");
            assert_eq!(check_text(&text(97, 3)), Err(NoText { controls: 3, characters: 100 }), "{letter}");
            assert_eq!(check_text(&text(49, 1)), Ok(()), "{letter}");
            assert_eq!(check_text(&text(48, 1)), Err(NoText { controls: 1, characters: 49 }), "{letter}");
        }
        assert_eq!(check_text(""), Ok(()));
        assert_eq!(check_text("\t\r\n\x0c"), Ok(()));
        assert_eq!(check_text("\0"), Err(NoText { controls: 1, characters: 1 }));
    }

    #[test]
    fn characters_are_counted_after_the_charset_is_decoded() {
        fn html(bytes: &[u8], charset: Option<&str>) -> Result<(), NoText> {
            check(RawContent::Html { bytes, charset })
        }
        let utf_16: Vec<u8> = "<p>Съешь ещё".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(html(&utf_16, Some("utf-16le")), Ok(()));
        assert_eq!(html(&utf_16, None), Ok(()));
        assert_eq!(html(&[b"\xff\xfe", &*utf_16].concat(), Some("latin1")), Ok(()));
        assert!(html(&utf_16, Some("latin1")).is_err());
        assert_eq!(html(b"<p>\x1b$BG-\x1b(B", Some("iso-2022-jp")), Ok(()));
        assert_eq!(html(b"<p>\x1b$BG-\x1b(B", None), Ok(()));
        assert!(html(b"<p>\x1b$BG-\x1b(B", Some("utf-8")).is_err());
        assert_eq!(html("é".repeat(25).as_bytes(), None), Ok(()));
        let one_in_25 = "é".repeat(25) + "\0";
        assert_eq!(html(one_in_25.as_bytes(), None), Err(NoText { controls: 1, characters: 26 }));
    }
}
