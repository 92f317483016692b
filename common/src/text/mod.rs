//! Pages to signatures: charset, HTML, tokens, redirects in content, language.
//!
//! What counts as text: every tag separates; entities are decoded and comments dropped, and neither
//! separates; script and style are dropped; title, textarea, noscript and template text stays;
//! attributes are not text. Nothing of a page is refused: whatever the bytes are, they have a
//! signature. Time and memory are linear in the bytes given, whatever their nesting.

mod charset;
mod foreign;
mod html;
mod language;
mod prescan;
mod redirect;
mod script;
mod token;

pub use crate::signature::TOKENISER_VERSION;
pub use charset::decode;

use crate::model::PageUrl;
use crate::signature::{Builder, Signature};
use token::Tokeniser;

/// What a page's bytes are.
#[derive(Debug, Clone, PartialEq)]
pub enum Extracted {
    /// Content.
    Page(Page),
    /// A redirect in the content: its target, resolved and without a fragment.
    Redirect(PageUrl),
}

/// A content.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// All that is compared.
    pub signature: Signature,
    /// The ISO 639-3 code of the language its text begins in, where that can be told reliably.
    pub language: Option<Box<str>>,
    /// What the page names as its canonical URL (`<link rel=canonical>`), resolved.
    pub canonical: Option<PageUrl>,
}

/// Reads pages; keeps its buffers from one to the next. One per worker thread.
#[derive(Debug, Default)]
pub struct Extractor {
    tokeniser: Tokeniser,
    builder: Builder,
    head: html::Head,
    decoded: String,
}

impl Extractor {
    /// With empty buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an HTML page of any charset. `declared` is the charset of its Content-Type header, if any.
    pub fn html(&mut self, url: &PageUrl, html: &[u8], declared: Option<&str>) -> Extracted {
        let text = decode(html, declared, &mut self.decoded);
        html::read(text, html.len() < redirect::HTML_BYTES, &mut self.tokeniser, &mut self.head);
        if html.len() < redirect::HTML_BYTES
            && let Some(target) = redirect::target(url, &self.head, self.tokeniser.hashes().len())
        {
            return Extracted::Redirect(target);
        }
        let canonical = self.head.canonical(url);
        Extracted::Page(self.page(canonical))
    }

    /// Reads a plain text or Markdown.
    pub fn text(&mut self, text: &str) -> Page {
        self.tokeniser.clear();
        self.tokeniser.push(text.as_bytes());
        self.tokeniser.separate();
        self.page(None)
    }

    fn page(&mut self, canonical: Option<PageUrl>) -> Page {
        Page {
            signature: self.builder.build(self.tokeniser.hashes()),
            language: language::language(self.tokeniser.sample()),
            canonical,
        }
    }
}
