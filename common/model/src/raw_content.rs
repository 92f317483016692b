//! The raw content of a page, before Doppel reads it.

/// The HTML or text of a page, as it was fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawContent<'c> {
    /// An HTML document that is not known to be XHTML.
    Html {
        /// The document as the server sent it, with content encodings such as gzip undone.
        bytes: &'c [u8],
        /// The charset that the response declared. The document may declare another one.
        charset: Option<&'c str>,
    },
    /// A document whose media type or file name says that it is XHTML.
    Xhtml {
        /// The document as the server sent it, with content encodings such as gzip undone.
        bytes: &'c [u8],
        /// The charset that the response declared. The document may declare another one.
        charset: Option<&'c str>,
    },
    /// Plain text or Markdown.
    Text(&'c str),
}

impl RawContent<'_> {
    /// The size of the content in bytes.
    #[must_use]
    pub fn size(self) -> usize {
        match self {
            Self::Html { bytes, .. } | Self::Xhtml { bytes, .. } => bytes.len(),
            Self::Text(text) => text.len(),
        }
    }
}
