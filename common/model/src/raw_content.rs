//! What a content is made of.

/// The HTML or text of a page as it was fetched, before anything is read of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawContent<'c> {
    /// An HTML document.
    Html {
        /// The document as served, after content encodings are undone.
        bytes: &'c [u8],
        /// The charset that the response declared. The document may declare another one.
        charset: Option<&'c str>,
    },
    /// A document whose media type or file name is that of XHTML.
    Xhtml {
        /// The document, as above.
        bytes: &'c [u8],
        /// The charset that the response declared.
        charset: Option<&'c str>,
    },
    /// Plain text or Markdown.
    Text(&'c str),
}

impl RawContent<'_> {
    /// Its bytes, as they were fetched.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Html { bytes, .. } | Self::Xhtml { bytes, .. } => bytes.len(),
            Self::Text(text) => text.len(),
        }
    }
}
