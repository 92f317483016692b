//! Tells text from compressed and other binary data by its control characters.
//!
//! About a tenth of random bytes are control characters of ASCII that no text needs. Text has none, or a stray one.

use doppel_model::RawContent;

use crate::decode;

/// The largest share of control characters in a text, as one in so many characters: 2 %.
const ONE_IN: usize = 50;

/// Content with too many control characters, as compressed and other binary data have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "binary or compressed data, not text: {controls} of {characters} characters are control characters, and at most 2 % may be"
)]
pub struct NoText {
    /// Control characters of ASCII other than tab, line feed, form feed and carriage return.
    pub controls: usize,
    /// All characters.
    pub characters: usize,
}

/// Checks that content is text: at most 2 % of its characters, after its charset is decoded, are control characters
/// U+0000 to U+001F other than tab, line feed, form feed and carriage return.
///
/// # Errors
/// When there are more.
pub fn check(content: RawContent<'_>) -> Result<(), NoText> {
    match content {
        // A control character in any encoding needs such a byte, so most pages are not decoded here.
        RawContent::Html { bytes, .. } | RawContent::Xhtml { bytes, .. } if controls(bytes) == 0 => Ok(()),
        RawContent::Html { bytes, charset } | RawContent::Xhtml { bytes, charset } => {
            check_text(decode(bytes, charset, &mut String::new()))
        }
        RawContent::Text(text) => check_text(text),
    }
}

/// Checks a text that is decoded like [`check`].
///
/// # Errors
/// The same.
pub fn check_text(text: &str) -> Result<(), NoText> {
    let controls = controls(text.as_bytes());
    if controls == 0 {
        return Ok(());
    }
    let characters = text.chars().count();
    if are_too_many(controls, characters) { Err(NoText { controls, characters }) } else { Ok(()) }
}

/// Whether so many of all characters are too many for a text.
pub(crate) fn are_too_many(controls: usize, all: usize) -> bool {
    controls.saturating_mul(ONE_IN) > all
}

/// The number of bytes that are control characters of ASCII other than tab, line feed, form feed and carriage return. Every page is counted,
/// so the code is compiled for processors with longer vectors too, and the processor is asked: the only `unsafe` of the crate.
pub(crate) fn controls(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the processor has what the function is compiled for")]
        // SAFETY: the feature was just detected.
        return unsafe { count_with_avx2(bytes) };
    }
    count(bytes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn count_with_avx2(bytes: &[u8]) -> usize {
    count(bytes)
}

/// Is compiled into each of its callers, with their instructions.
#[inline(always)]
fn count(bytes: &[u8]) -> usize {
    // Counters of a byte each are what the compiler can add up many at a time. The length of a part is a multiple of the vectors of all
    // processors, so that nothing of it is left to be counted byte by byte, and fits into such a counter.
    const PART: usize = 192;
    let of_part = |part: &[u8]| part.iter().map(|byte| u8::from(is_control(*byte))).sum::<u8>();
    bytes.chunks(PART).map(|part| usize::from(of_part(part))).sum()
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
    fn control_characters_are_those_that_no_text_needs() {
        assert_eq!(controls(&(0..=255).collect::<Vec<u8>>()), 28);
        assert_eq!(controls(b"a\tb\nc\x0cd\re\x7f\x80\x9f"), 0);
        assert_eq!(controls(&[0; 10_000]), 10_000);
        assert_eq!(controls(b""), 0);
    }

    proptest! {
        #[test]
        fn every_processor_counts_the_same(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
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
