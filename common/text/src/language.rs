//! Detects the language of a text from its first words, in NFC and without invisible characters such as soft
//! hyphens.
//!
//! Detection takes about 0.13 ms per page, which is more than everything else for a page of 30 kB. It looks
//! up 300 trigrams of each language of the script, however short the text is. An extractor therefore detects
//! languages only on request.

use crate::tokens::form::compose;

/// Number of bytes that detection examines: about 300 characters of most scripts.
const SAMPLE_BYTES: usize = 320;

/// Returns the ISO 639-3 code of the language, or `None` if detection is not reliable.
pub(super) fn language(text: &[u8]) -> Option<Box<str>> {
    let mut sample = String::with_capacity(SAMPLE_BYTES + 4);
    for word in text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        // Before NFC, a letter may take several times as many bytes as after it.
        let word = String::from_utf8_lossy(&word[..word.len().min(4 * SAMPLE_BYTES)]);
        let word = compose(&word);
        let word = &word.as_bytes()[..word.len().min(SAMPLE_BYTES - sample.len())];
        sample.push_str(&String::from_utf8_lossy(word));
        if sample.len() >= SAMPLE_BYTES {
            break;
        }
        sample.push(' ');
    }
    let info = whatlang::detect(&sample)?;
    info.is_reliable().then(|| info.lang().code().into())
}
