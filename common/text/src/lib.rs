//! Turns fetched pages into signatures. It decodes the charset, reads HTML, finds the main content and
//! redirects, cuts tokens, and detects the language. It knows nothing of where pages come from.
//!
//! No page is refused: any bytes yield a result. Time and memory are linear in the page at any nesting.
//!
//! - Every tag except `wbr` separates words. Decoded entities and dropped comments do not separate words.
//! - Script, style and attributes are not text. Title, textarea, iframe, noframes, noscript, template are.
//! - XHTML is read as XML (`xhtml`).
//! - Policies may compare main content (`main_content`), `lines` or source tokens instead of all words.
#![forbid(unsafe_code)]

pub mod difference;
mod html;
mod language;
mod lines;
mod main_content;
mod main_content_report;
mod markup;
mod redirect;
mod site;
mod tokens;
mod xhtml;

pub use doppel_charset::{decode, is_read_in_place};
pub use doppel_model::signature::TOKENISER_VERSION;
pub use main_content::PagePart;
pub use main_content::omission_rule::OmissionRule;
pub use main_content_report::{MainContentReport, OmittedText};
pub use site::is_one_site;
pub use tokens::form::compose;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ContentHash, PageUrl, RawContent};
use html::syntax::{ReadOptions, Syntax};
use html::{Document, swallowed_text};
use language::language;
use markup::{Markup, SaltBuffers, apply_salt};
use tokens::code::CodeTokens;
use tokens::source::{LinkResolver, SourceTokens};
use tokens::term::Terms;
use tokens::tokeniser::Tokeniser;

/// Result of reading a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Extraction {
    /// Page with content of its own.
    Page(SignedPage),
    /// Redirect inside the page, with its resolved target URL without a fragment.
    Redirect(PageUrl),
}

impl Extraction {
    /// Returns the page, or `None` if it is a redirect.
    #[must_use]
    pub fn page(self) -> Option<SignedPage> {
        if let Self::Page(page) = self { Some(page) } else { None }
    }
}

/// Text of a page before it is split into tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum PageText<'a> {
    /// Text of the page. In HTML, a space stands for every tag except `wbr`.
    Text(Cow<'a, str>),
    /// Redirect inside the page, with its resolved target URL without a fragment.
    Redirect(PageUrl),
}

impl<'a> PageText<'a> {
    /// Returns the text, or `None` if the page is a redirect.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Redirect(_) => None,
        }
    }
}

/// Hashes of the text and of the lines of a page, without a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedLines {
    /// Hash of all tokens, or `None` if the page has no tokens.
    pub text: Option<u64>,
    /// Hashes of the lines, in page order.
    pub lines: Vec<u64>,
}

/// Signature and metadata of a page with content.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedPage {
    /// Signature with everything that the policy compares.
    pub signature: Signature,
    /// ISO 639-3 code of the language at the beginning of the text. `None` if detection is off or unreliable.
    pub language: Option<Box<str>>,
    /// Resolved canonical URL (`<link rel=canonical>`), if the page names one.
    pub canonical: Option<PageUrl>,
}

/// Terms of a page, from which policies learn their tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTerms<'t> {
    /// Content hash of the page.
    pub content: ContentHash,
    /// Terms of the page ([`Features::terms`]), in text order.
    pub terms: &'t [u64],
}

/// Reads pages and reuses its buffers, which grow to the largest page. Each worker thread has its own.
///
/// ```
/// use doppel_model::PageUrl;
/// use doppel_text::{Extraction, Extractor};
///
/// let mut extractor = Extractor::default();
/// let url = PageUrl::parse("http://example.org/")?;
/// let html = b"<title>To be</title><p>or n&#111;t <b>to</b> be<script>run()</script>";
/// let Extraction::Page(page) = extractor.html(&url, html, None) else { panic!("unexpected redirect") };
/// assert_eq!(page.signature.tokens(), 6);
/// assert_eq!(page.signature, extractor.text("to be or not to be").signature);
/// # Ok::<(), doppel_model::UrlError>(())
/// ```
#[derive(Debug)]
pub struct Extractor {
    detect_language: bool,
    decoded: String,
    main: Vec<u8>,
    document: Document,
    tokeniser: Tokeniser,
    /// Created when a page first needs terms.
    terms: Option<Terms>,
    source: SourceTokens,
    /// Hash of the swallowed words of the page (see `swallowed_text`), if there are more than `WORDS_MAX`.
    swallowed_hash: Option<u64>,
    salt_buffers: SaltBuffers,
    code: CodeTokens,
    signer: Signer,
}

impl Default for Extractor {
    fn default() -> Self {
        Self::new(Policy::default())
    }
}

impl Extractor {
    /// Creates an extractor that makes the signatures of `policy`.
    ///
    /// # Panics
    /// If the policy reads tables. Use [`signing`](Self::signing) with a signer that has the tables.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::signing(Signer::new(policy))
    }

    /// Creates an extractor that makes signatures with `signer`.
    #[must_use]
    pub fn signing(signer: Signer) -> Self {
        Self {
            detect_language: false,
            decoded: String::new(),
            main: Vec::new(),
            document: Document::default(),
            tokeniser: Tokeniser::default(),
            terms: None,
            source: SourceTokens::default(),
            swallowed_hash: None,
            salt_buffers: SaltBuffers::default(),
            code: CodeTokens::default(),
            signer,
        }
    }

    /// Returns the policy of the signatures.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.signer.policy()
    }

    /// Turns on language detection ([`SignedPage::language`]), which takes longer than everything else
    /// together.
    #[must_use]
    pub fn detecting_language(mut self) -> Self {
        self.detect_language = true;
        self
    }

    /// Calls `read`, which reads one page. Returns `None` if `read` panics. Only that page is lost: the
    /// extractor drops its buffers, which may be inconsistent, and reads the next page with new ones.
    pub fn guarded<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let answer = catch_unwind(AssertUnwindSafe(|| read(self)));
        if answer.is_err() {
            let detect_language = self.detect_language;
            *self = Self { detect_language, ..Self::signing(self.signer.anew()) };
        }
        answer.ok()
    }

    /// Reads a page of HTML, XHTML or plain text.
    pub fn extract(&mut self, url: &PageUrl, raw: RawContent<'_>) -> Extraction {
        match Markup::of(raw) {
            Ok(markup) => self.read_markup(url, markup),
            Err(text) => Extraction::Page(self.text_at(url, text)),
        }
    }

    /// Reads an HTML page of any charset. `declared` is the charset of its Content-Type header, if any.
    pub fn html(&mut self, url: &PageUrl, html: &[u8], declared: Option<&str>) -> Extraction {
        self.read_markup(url, Markup { bytes: html, charset: declared, is_xhtml: false })
    }

    fn read_markup(&mut self, url: &PageUrl, markup: Markup<'_>) -> Extraction {
        if let Some(target) = self.read(url, markup) {
            return Extraction::Redirect(target);
        }
        let canonical = self.document.canonical(url);
        Extraction::Page(self.build_page(Some(url), canonical, true))
    }

    /// Like [`extract`](Self::extract), but returns the text. For callers that cut their own tokens.
    pub fn page_text<'a>(&'a mut self, url: &PageUrl, raw: RawContent<'a>) -> PageText<'a> {
        let markup = match Markup::of(raw) {
            Ok(markup) => markup,
            Err(text) => return PageText::Text(text.into()),
        };
        match self.read_with(url, markup, ReadOptions::default()) {
            Some(target) => PageText::Redirect(target),
            None => PageText::Text(String::from_utf8_lossy(&self.document.text)),
        }
    }

    /// Like [`page_text`](Self::page_text), but returns only the main content, whatever the policy. If it has
    /// too few tokens, or for plain text, returns the whole text. ASCII letters may be in lower case.
    pub fn main_text<'a>(&'a mut self, url: &PageUrl, raw: RawContent<'a>) -> PageText<'a> {
        let markup = match Markup::of(raw) {
            Ok(markup) => markup,
            Err(text) => return PageText::Text(text.into()),
        };
        let options = ReadOptions { main: true, ..ReadOptions::default() };
        if let Some(target) = self.read_with(url, markup, options) {
            return PageText::Redirect(target);
        }
        let is_whole = self.find_main_content() == PagePart::Whole;
        PageText::Text(String::from_utf8_lossy(if is_whole { &self.document.text } else { &self.main }))
    }

    /// Like [`extract`](Self::extract), but hashes the lines and makes no signature. `None` for a redirect.
    pub fn lines(&mut self, url: &PageUrl, raw: RawContent<'_>) -> Option<HashedLines> {
        match Markup::of(raw) {
            Ok(markup) => {
                let options = ReadOptions { lines: true, ..ReadOptions::default() };
                if self.read_with(url, markup, options).is_some() {
                    return None;
                }
            }
            Err(text) => {
                self.set_text(text);
                self.document.lines.set_text(text);
            }
        }
        Some(self.hashed_lines())
    }

    fn hashed_lines(&mut self) -> HashedLines {
        let text = self.tokeniser.hash(&mut self.document.text);
        let text = text.map(|text| text ^ self.swallowed_hash.unwrap_or_default());
        HashedLines { text, lines: self.document.lines.take_hashes() }
    }

    /// Reads plain text or Markdown. Policies that compare sites treat all texts read this way as one site.
    pub fn text(&mut self, text: &str) -> SignedPage {
        self.set_text(text);
        self.build_page(None, None, false)
    }

    /// Like [`text`](Self::text), for a text with a URL, which determines its site.
    pub fn text_at(&mut self, url: &PageUrl, text: &str) -> SignedPage {
        self.set_text(text);
        self.build_page(Some(url), None, false)
    }

    /// Like [`extract`](Self::extract), but returns the terms instead of a signature. `None` for a redirect.
    pub fn terms(&mut self, url: &PageUrl, raw: RawContent<'_>) -> Option<PageTerms<'_>> {
        match Markup::of(raw) {
            Ok(markup) => match self.read(url, markup) {
                Some(_) => None,
                None => Some(self.page_terms()),
            },
            Err(text) => Some(self.text_terms(text)),
        }
    }

    /// Like [`text`](Self::text), but returns the terms instead of a signature.
    pub fn text_terms(&mut self, text: &str) -> PageTerms<'_> {
        self.set_text(text);
        self.page_terms()
    }

    fn page_terms(&mut self) -> PageTerms<'_> {
        let terms = self.terms.get_or_insert_with(Terms::new);
        terms.clear();
        let each = |token: &[u8], hash| terms.push(token, hash);
        let tokens = self.tokeniser.visit_tokens(&mut self.document.text, each);
        let (tokens, terms) = (
            apply_salt(tokens, self.swallowed_hash, &mut self.salt_buffers.tokens),
            apply_salt(terms.get(), self.swallowed_hash, &mut self.salt_buffers.terms),
        );
        PageTerms { content: Builder::new().content_of(tokens), terms }
    }

    fn set_text(&mut self, text: &str) {
        self.swallowed_hash = None;
        self.document.images.clear();
        self.document.text.clear();
        self.document.text.extend_from_slice(text.as_bytes());
        if self.signer.policy().reads_lines() {
            self.document.lines.set_text(text);
        }
    }

    /// Reads markup into `document` as the policy needs it. Returns the target if the page is a redirect.
    fn read(&mut self, url: &PageUrl, markup: Markup<'_>) -> Option<PageUrl> {
        let policy = self.signer.policy();
        let options = ReadOptions {
            main: policy.reads_main(),
            lines: policy.reads_lines(),
            source: policy.reads_source_tokens(),
        };
        self.read_with(url, markup, options)
    }

    fn read_with(&mut self, url: &PageUrl, markup: Markup<'_>, options: ReadOptions) -> Option<PageUrl> {
        let text = decode(markup.bytes, markup.charset, &mut self.decoded);
        self.document.read(text, Syntax::of(text, markup.is_xhtml), options);
        self.swallowed_hash = self.document.swallowed_at.and_then(|at| {
            self.main.clear();
            self.main.extend_from_slice(&text.as_bytes()[at..]);
            let words = self.tokeniser.tokens(&mut self.main).len();
            self.tokeniser.hash(&mut self.main).filter(|_| words > swallowed_text::WORDS_MAX)
        });
        let target = || redirect::target(url, text, self.document.syntax, &mut self.tokeniser);
        self.document.may_redirect.then(target).flatten()
    }

    fn build_page(&mut self, url: Option<&PageUrl>, canonical: Option<PageUrl>, is_html: bool) -> SignedPage {
        let site = url.zip(self.signer.policy().sites()).map(|(url, sites)| site::hash(sites, url));
        let finds_main = is_html && self.signer.policy().reads_main();
        let has_main_content = finds_main && self.find_main_content() != PagePart::Whole;
        let reads_source = self.signer.policy().reads_source_tokens();
        let links =
            url.filter(|_| reads_source).and_then(|url| LinkResolver::of(url, &self.document.base(url)));
        let text = &mut self.document.text;
        let (tokens, terms) = if self.signer.policy().reads_terms() {
            let terms = self.terms.get_or_insert_with(Terms::new);
            terms.clear();
            let tokens = self.tokeniser.visit_tokens(text, |token, hash| terms.push(token, hash));
            (tokens, terms.get())
        } else if has_main_content {
            (self.tokeniser.last_tokens(), &[][..])
        } else if self.signer.policy().reads_code_tokens() {
            (self.code.tokens(text), &[][..])
        } else if reads_source {
            (self.source.tokens(text, &self.document.images, links.as_ref()), &[][..])
        } else {
            (self.tokeniser.tokens(text), &[][..])
        };
        let tokens = apply_salt(tokens, self.swallowed_hash, &mut self.salt_buffers.tokens);
        let terms = apply_salt(terms, self.swallowed_hash, &mut self.salt_buffers.terms);
        // A policy that reads the main content compares nothing else, so no other tokens are cut.
        let main = finds_main.then_some(tokens);
        let lines = if self.signer.policy().reads_lines() { self.document.lines.hashes() } else { &[] };
        let lines = apply_salt(lines, self.swallowed_hash, &mut self.salt_buffers.lines);
        SignedPage {
            signature: self.signer.sign(Features { tokens, site, main, terms, lines }),
            language: if self.detect_language { language(&self.document.text) } else { None },
            canonical,
        }
    }
}

#[cfg(test)]
mod tests;
