//! Pages to signatures: charset, HTML, tokens, redirects in content, language.
//!
//! The text of a page: every tag separates words. Entities are decoded and comments are dropped, and neither separates.
//! Script and style are dropped; the text of title, textarea, noscript, noframes, iframe and template stays. Attributes
//! are not text. No page is refused: any bytes have a signature. Time and memory are linear in the size of the page,
//! however deep it is nested. Policies that read lines get them as a browser shows them (the module `lines`).
#![forbid(unsafe_code)]

mod charset;
mod foreign;
mod html;
mod language;
mod letter;
mod lines;
mod prescan;
mod redirect;
mod refresh;
mod script;
mod site;
mod token;

pub use charset::decode;
pub use doppel_model::signature::TOKENISER_VERSION;

use std::borrow::Cow;

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::{PageUrl, stable_hash64};
use html::Document;
use language::language;
use token::Tokeniser;

/// The result of reading a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Extracted {
    /// Content.
    Page(Page),
    /// A redirect in the content: its target, resolved and without a fragment.
    Redirect(PageUrl),
}

/// An HTML page before it is split into tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum HtmlText<'a> {
    /// Its text, with a space for every tag.
    Text(Cow<'a, str>),
    /// A redirect in the content: its target, resolved and without a fragment.
    Redirect(PageUrl),
}

/// A page as the hashes of its text and of its lines, without a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedLines<'e> {
    /// The hash of the tokens; none where there are no tokens.
    pub text: Option<u64>,
    /// The hashes of the lines, in order.
    pub lines: &'e [u64],
}

/// A page with content.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Everything that is compared.
    pub signature: Signature,
    /// The ISO 639-3 code of the language at the beginning of the text, if the extractor detects languages and can tell
    /// this one reliably.
    pub language: Option<Box<str>>,
    /// The canonical URL that the page names (`<link rel=canonical>`), resolved.
    pub canonical: Option<PageUrl>,
}

/// Reads pages. It reuses its buffers, which grow to the size of the largest page. Each worker thread has its own.
///
/// ```
/// use doppel_model::PageUrl;
/// use doppel_text::{Extracted, Extractor};
///
/// let mut extractor = Extractor::default();
/// let url = PageUrl::parse("http://example.org/")?;
/// let html = b"<title>To be</title><p>or n&#111;t <b>to</b> be<script>run()</script>";
/// let Extracted::Page(page) = extractor.html(&url, html, None) else { panic!("it is no redirect") };
/// assert_eq!(page.signature.tokens(), 6);
/// assert_eq!(page.signature, extractor.text("to be or not to be").signature);
/// # Ok::<(), doppel_model::UrlError>(())
/// ```
#[derive(Debug)]
pub struct Extractor {
    detect_language: bool,
    decoded: String,
    document: Document,
    tokeniser: Tokeniser,
    signer: Signer,
}

impl Default for Extractor {
    fn default() -> Self {
        Self::new(Policy::default())
    }
}

impl Extractor {
    /// Creates an extractor with empty buffers, which makes the signatures of a policy.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            detect_language: false,
            decoded: String::new(),
            document: Document::default(),
            tokeniser: Tokeniser::default(),
            signer: Signer::new(policy),
        }
    }

    /// The same, but finds [`Page::language`] too, which takes longer than everything else.
    #[must_use]
    pub fn detecting_language(mut self) -> Self {
        self.detect_language = true;
        self
    }

    /// Reads an HTML page of any charset. `declared` is the charset of its Content-Type header, if any.
    pub fn html(&mut self, url: &PageUrl, html: &[u8], declared: Option<&str>) -> Extracted {
        let lines = self.signer.policy().reads_lines();
        if let Some(target) = self.read(url, html, declared, lines) {
            return Extracted::Redirect(target);
        }
        let canonical = self.document.canonical(url);
        Extracted::Page(self.page(Some(url), canonical))
    }

    /// Reads an HTML page like [`html`](Self::html), but stops before the tokens, for programs that make their own.
    pub fn html_text(&mut self, url: &PageUrl, html: &[u8], declared: Option<&str>) -> HtmlText<'_> {
        match self.read(url, html, declared, false) {
            Some(target) => HtmlText::Redirect(target),
            None => HtmlText::Text(String::from_utf8_lossy(&self.document.text)),
        }
    }

    /// Reads an HTML page like [`html`](Self::html), but makes no signature. None of a redirect.
    pub fn html_lines(
        &mut self,
        url: &PageUrl,
        html: &[u8],
        declared: Option<&str>,
    ) -> Option<HashedLines<'_>> {
        match self.read(url, html, declared, true) {
            Some(_) => None,
            None => Some(self.hashed_lines()),
        }
    }

    /// The same of plain text.
    pub fn text_lines(&mut self, text: &str) -> HashedLines<'_> {
        self.take(text);
        self.document.lines.take(text);
        self.hashed_lines()
    }

    fn hashed_lines(&mut self) -> HashedLines<'_> {
        let tokens = self.tokeniser.tokens(&mut self.document.text);
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        let text = (!tokens.is_empty()).then(|| stable_hash64(&bytes));
        HashedLines { text, lines: self.document.lines.hashes() }
    }

    /// Reads plain text or Markdown. A policy that reads the site takes all these texts for pages of one.
    pub fn text(&mut self, text: &str) -> Page {
        self.take(text);
        self.page(None, None)
    }

    /// The same of a page that has a URL.
    pub fn text_at(&mut self, url: &PageUrl, text: &str) -> Page {
        self.take(text);
        self.page(Some(url), None)
    }

    fn take(&mut self, text: &str) {
        self.document.text.clear();
        self.document.text.extend_from_slice(text.as_bytes());
        if self.signer.policy().reads_lines() {
            self.document.lines.take(text);
        }
    }

    /// Reads an HTML page into the document. Returns the target if the page is a redirect.
    fn read(&mut self, url: &PageUrl, html: &[u8], declared: Option<&str>, lines: bool) -> Option<PageUrl> {
        let small = html.len() < redirect::HTML_BYTES;
        self.document.read(decode(html, declared, &mut self.decoded), small, lines);
        if small { redirect::target(url, &self.document) } else { None }
    }

    fn page(&mut self, url: Option<&PageUrl>, canonical: Option<PageUrl>) -> Page {
        let site = url.zip(self.signer.policy().sites()).map(|(url, sites)| site::hash(sites, url));
        let tokens = self.tokeniser.tokens(&mut self.document.text);
        let lines = if self.signer.policy().reads_lines() { self.document.lines.hashes() } else { &[] };
        Page {
            signature: self.signer.sign(Features { tokens, site, lines }),
            language: if self.detect_language { language(&self.document.text) } else { None },
            canonical,
        }
    }
}

#[cfg(test)]
mod tests;
