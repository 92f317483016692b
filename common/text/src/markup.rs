//! Documents of HTML and XHTML before they are read, and what their swallowed words change.

use doppel_model::RawContent;

/// A document of HTML or XHTML.
#[derive(Debug, Clone, Copy)]
pub(super) struct Markup<'c> {
    pub(super) bytes: &'c [u8],
    pub(super) charset: Option<&'c str>,
    /// Whether its media type is that of XHTML.
    pub(super) is_xhtml: bool,
}

impl<'c> Markup<'c> {
    /// The document, or what is plain text.
    pub(super) fn of(raw: RawContent<'c>) -> Result<Self, &'c str> {
        match raw {
            RawContent::Html { bytes, charset } => Ok(Self { bytes, charset, is_xhtml: false }),
            RawContent::Xhtml { bytes, charset } => Ok(Self { bytes, charset, is_xhtml: true }),
            RawContent::Text(text) => Err(text),
        }
    }
}

/// Hashes of a page with swallowed words, which equal those of no page with others.
#[derive(Debug, Default)]
pub(super) struct Changed {
    pub(super) tokens: Vec<u64>,
    pub(super) terms: Vec<u64>,
    pub(super) lines: Vec<u64>,
}

/// Hashes, changed in a buffer if words are swallowed.
pub(super) fn change<'h>(hashes: &'h [u64], swallowed: Option<u64>, buffer: &'h mut Vec<u64>) -> &'h [u64] {
    let Some(swallowed) = swallowed else { return hashes };
    buffer.clear();
    buffer.extend(hashes.iter().map(|hash| hash ^ swallowed));
    buffer
}
