//! HTML and XHTML documents before they are read, and the salt that swallowed words add to hashes.
//!
//! Pages with different swallowed words must never be equal (see `swallowed_text`), although these words are
//! not part of the text. Therefore their hash is a salt: every token, term and line hash of the page is XORed
//! with it.

use doppel_model::RawContent;

/// Bytes of an HTML or XHTML document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Markup<'c> {
    pub(super) bytes: &'c [u8],
    pub(super) charset: Option<&'c str>,
    /// Whether the media type says XHTML.
    pub(super) is_xhtml: bool,
}

impl<'c> Markup<'c> {
    /// Returns the document, or the text as an error if `raw` is plain text.
    pub(super) fn of(raw: RawContent<'c>) -> Result<Self, &'c str> {
        match raw {
            RawContent::Html { bytes, charset } => Ok(Self { bytes, charset, is_xhtml: false }),
            RawContent::Xhtml { bytes, charset } => Ok(Self { bytes, charset, is_xhtml: true }),
            RawContent::Text(text) => Err(text),
        }
    }
}

/// Buffers for the salted hashes of a page with swallowed words.
#[derive(Debug, Default)]
pub(super) struct SaltBuffers {
    pub(super) tokens: Vec<u64>,
    pub(super) terms: Vec<u64>,
    pub(super) lines: Vec<u64>,
}

/// Returns `hashes`, each XORed with `salt` in `buffer`. Without a salt, returns `hashes` unchanged.
pub(super) fn apply_salt<'h>(hashes: &'h [u64], salt: Option<u64>, buffer: &'h mut Vec<u64>) -> &'h [u64] {
    let Some(salt) = salt else { return hashes };
    buffer.clear();
    buffer.extend(hashes.iter().map(|hash| hash ^ salt));
    buffer
}
