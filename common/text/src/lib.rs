//! Pages to signatures: charset, HTML, main content, tokens, redirects in content, language.
//!
//! The text of a page: every tag but `wbr` separates words. Entities are decoded and comments are dropped, and neither separates.
//! Script and style are dropped; the text of title, textarea, noscript, noframes, iframe and template stays. Attributes
//! are not text. XHTML is read as XML (`xhtml`). For policies that read it, boilerplate is left out (`main_content`); those that read lines get them as a browser shows
//! them (`lines`), and those that are asked for it the tokens of their source (`source`). No page is refused: any bytes have a signature.
//! Time and memory are linear in the size of the page, however deep it is nested.
#![forbid(unsafe_code)]

mod attributes;
mod boilerplate;
mod code;
mod foreign;
mod form;
mod html;
mod javascript;
mod language;
mod letter;
mod lines;
mod main_content;
mod markup;
mod name;
mod redirect;
mod refresh;
mod rule;
mod script;
mod site;
mod source;
mod style;
mod swallowed;
mod syntax;
mod taken;
mod term;
mod token;
mod xhtml;

pub use doppel_charset::{decode, is_read_in_place};
pub use doppel_model::signature::TOKENISER_VERSION;
pub use form::compose;
pub use main_content::Part;
pub use rule::Rule;
pub use site::is_one_site;
pub use taken::{Omitted, Taken};

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use code::CodeTokens;
use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::signature::{Builder, Signature};
use doppel_model::{ContentHash, PageUrl, RawContent};
use html::Document;
use language::language;
use markup::{Changed, Markup, change};
use source::{Links, SourceTokens};
use syntax::{Syntax, Wanted};
use term::Terms;
use token::Tokeniser;

/// The result of reading a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Extracted {
    /// Content.
    Page(Page),
    /// A redirect in the content: its target, resolved and without a fragment.
    Redirect(PageUrl),
}

impl Extracted {
    /// The page, unless it is a redirect.
    #[must_use]
    pub fn page(self) -> Option<Page> {
        if let Self::Page(page) = self { Some(page) } else { None }
    }
}

/// A page before it is split into tokens.
#[derive(Debug, Clone, PartialEq)]
pub enum PageText<'a> {
    /// Its text; of HTML with a space for every tag but `wbr`.
    Text(Cow<'a, str>),
    /// A redirect in the content: its target, resolved and without a fragment.
    Redirect(PageUrl),
}

impl<'a> PageText<'a> {
    /// The text, unless the page is a redirect.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Redirect(_) => None,
        }
    }
}

/// A page as the hashes of its text and of its lines, without a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashedLines {
    /// The hash of the tokens; none where there are no tokens.
    pub text: Option<u64>,
    /// The hashes of the lines, in order.
    pub lines: Vec<u64>,
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

/// The words of a page, for tables that are learnt of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTerms<'t> {
    /// The page's content.
    pub content: ContentHash,
    /// Its terms ([`Features::terms`]), in text order.
    pub terms: &'t [u64],
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
    main: Vec<u8>,
    document: Document,
    tokeniser: Tokeniser,
    /// None before the first page of which terms are needed.
    terms: Option<Terms>,
    source: SourceTokens,
    /// The hash of the words that the end of the page swallows, if there are enough of them.
    swallowed: Option<u64>,
    /// Hashes that are changed by those words.
    changed: Changed,
    code: CodeTokens,
    signer: Signer,
}

impl Default for Extractor {
    fn default() -> Self {
        Self::new(Policy::default())
    }
}

impl Extractor {
    /// Creates an extractor with empty buffers, which makes the signatures of a policy.
    ///
    /// # Panics
    /// When the policy reads tables: [`signing`](Self::signing) makes its extractors.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::signing(Signer::new(policy))
    }

    /// Creates an extractor with empty buffers, which makes signatures with this signer.
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
            swallowed: None,
            changed: Changed::default(),
            code: CodeTokens::default(),
            signer,
        }
    }

    /// What its signatures are of.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.signer.policy()
    }

    /// The same, but finds [`Page::language`] too, which takes longer than everything else.
    #[must_use]
    pub fn detecting_language(mut self) -> Self {
        self.detect_language = true;
        self
    }

    /// Calls `read`, which reads one page. None when that panics: then this page alone is lost, and the next is read with new buffers,
    /// for the old ones may be in any state.
    pub fn guarded<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let answer = catch_unwind(AssertUnwindSafe(|| read(self)));
        if answer.is_err() {
            let detect_language = self.detect_language;
            *self = Self { detect_language, ..Self::signing(self.signer.anew()) };
        }
        answer.ok()
    }

    /// Reads a page, HTML or text.
    pub fn extract(&mut self, url: &PageUrl, raw: RawContent<'_>) -> Extracted {
        match Markup::of(raw) {
            Ok(markup) => self.markup(url, markup),
            Err(text) => Extracted::Page(self.text_at(url, text)),
        }
    }

    /// Reads an HTML page of any charset. `declared` is the charset of its Content-Type header, if any.
    pub fn html(&mut self, url: &PageUrl, html: &[u8], declared: Option<&str>) -> Extracted {
        self.markup(url, Markup { bytes: html, charset: declared, is_xhtml: false })
    }

    fn markup(&mut self, url: &PageUrl, markup: Markup<'_>) -> Extracted {
        if let Some(target) = self.read(url, markup) {
            return Extracted::Redirect(target);
        }
        let canonical = self.document.canonical(url);
        Extracted::Page(self.page(Some(url), canonical, true))
    }

    /// Reads a page like [`extract`](Self::extract), but stops before the tokens, for programs that make their own.
    pub fn page_text<'a>(&'a mut self, url: &PageUrl, raw: RawContent<'a>) -> PageText<'a> {
        let markup = match Markup::of(raw) {
            Ok(markup) => markup,
            Err(text) => return PageText::Text(text.into()),
        };
        match self.read_for(url, markup, Wanted::default()) {
            Some(target) => PageText::Redirect(target),
            None => PageText::Text(String::from_utf8_lossy(&self.document.text)),
        }
    }

    /// The same of the main content, which policies that read it compare, whatever the policy here. It is the text of the whole page where
    /// nothing else has enough tokens, and that of what is no HTML. ASCII letters may be in lower case.
    pub fn main_text<'a>(&'a mut self, url: &PageUrl, raw: RawContent<'a>) -> PageText<'a> {
        let markup = match Markup::of(raw) {
            Ok(markup) => markup,
            Err(text) => return PageText::Text(text.into()),
        };
        let wanted = Wanted { main: true, ..Wanted::default() };
        if let Some(target) = self.read_for(url, markup, wanted) {
            return PageText::Redirect(target);
        }
        let found = self.find_main() != Part::Whole;
        PageText::Text(String::from_utf8_lossy(if found { &self.main } else { &self.document.text }))
    }

    /// Reads a page like [`extract`](Self::extract), but makes no signature. None of a redirect.
    pub fn lines(&mut self, url: &PageUrl, raw: RawContent<'_>) -> Option<HashedLines> {
        match Markup::of(raw) {
            Ok(markup) => {
                let wanted = Wanted { lines: true, ..Wanted::default() };
                if self.read_for(url, markup, wanted).is_some() {
                    return None;
                }
            }
            Err(text) => {
                self.take(text);
                self.document.lines.take(text);
            }
        }
        Some(self.hashed_lines())
    }

    fn hashed_lines(&mut self) -> HashedLines {
        let text = self.tokeniser.hash(&mut self.document.text);
        let text = text.map(|text| text ^ self.swallowed.unwrap_or_default());
        HashedLines { text, lines: self.document.lines.take_hashes() }
    }

    /// Reads plain text or Markdown. A policy that reads the site takes all these texts for pages of one.
    pub fn text(&mut self, text: &str) -> Page {
        self.take(text);
        self.page(None, None, false)
    }

    /// The same of a page that has a URL.
    pub fn text_at(&mut self, url: &PageUrl, text: &str) -> Page {
        self.take(text);
        self.page(Some(url), None, false)
    }

    /// Reads a page like [`extract`](Self::extract), but gives its words instead of a signature; none of a redirect.
    pub fn terms(&mut self, url: &PageUrl, raw: RawContent<'_>) -> Option<PageTerms<'_>> {
        match Markup::of(raw) {
            Ok(markup) => match self.read(url, markup) {
                Some(_) => None,
                None => Some(self.page_terms()),
            },
            Err(text) => Some(self.text_terms(text)),
        }
    }

    /// Reads plain text or Markdown like [`text`](Self::text), but gives its words.
    pub fn text_terms(&mut self, text: &str) -> PageTerms<'_> {
        self.take(text);
        self.page_terms()
    }

    fn page_terms(&mut self) -> PageTerms<'_> {
        let terms = self.terms.get_or_insert_with(Terms::new);
        terms.clear();
        let each = |token: &[u8], hash| terms.push(token, hash);
        let tokens = self.tokeniser.tokens_and(&mut self.document.text, each);
        let (tokens, terms) = (
            change(tokens, self.swallowed, &mut self.changed.tokens),
            change(terms.get(), self.swallowed, &mut self.changed.terms),
        );
        PageTerms { content: Builder::new().content_of(tokens), terms }
    }

    fn take(&mut self, text: &str) {
        self.swallowed = None;
        self.document.images.clear();
        self.document.text.clear();
        self.document.text.extend_from_slice(text.as_bytes());
        if self.signer.policy().reads_lines() {
            self.document.lines.take(text);
        }
    }

    /// Reads an HTML page into the document. Returns the target if the page is a redirect.
    fn read(&mut self, url: &PageUrl, markup: Markup<'_>) -> Option<PageUrl> {
        let policy = self.signer.policy();
        let wanted = Wanted {
            main: policy.reads_main(),
            lines: policy.reads_lines(),
            source: policy.reads_source_tokens(),
        };
        self.read_for(url, markup, wanted)
    }

    fn read_for(&mut self, url: &PageUrl, markup: Markup<'_>, wanted: Wanted) -> Option<PageUrl> {
        let text = decode(markup.bytes, markup.charset, &mut self.decoded);
        self.document.read(text, Syntax::of(text, markup.is_xhtml), wanted);
        self.swallowed = self.document.swallowed_at.and_then(|at| {
            self.main.clear();
            self.main.extend_from_slice(&text.as_bytes()[at..]);
            let words = self.tokeniser.tokens(&mut self.main).len();
            self.tokeniser.hash(&mut self.main).filter(|_| words > swallowed::WORDS_MAX)
        });
        let target = || redirect::target(url, text, self.document.syntax, &mut self.tokeniser);
        self.document.may_redirect.then(target).flatten()
    }

    fn page(&mut self, url: Option<&PageUrl>, canonical: Option<PageUrl>, is_html: bool) -> Page {
        let site = url.zip(self.signer.policy().sites()).map(|(url, sites)| site::hash(sites, url));
        let finds_main = is_html && self.signer.policy().reads_main();
        let found = finds_main && self.find_main() != Part::Whole;
        let reads_source = self.signer.policy().reads_source_tokens();
        let links = url.filter(|_| reads_source).and_then(|url| Links::of(url, &self.document.base(url)));
        let text = &mut self.document.text;
        let (tokens, terms) = if self.signer.policy().reads_terms() {
            let terms = self.terms.get_or_insert_with(Terms::new);
            terms.clear();
            let tokens = self.tokeniser.tokens_and(text, |token, hash| terms.push(token, hash));
            (tokens, terms.get())
        } else if found {
            (self.tokeniser.found(), &[][..])
        } else if self.signer.policy().reads_code_tokens() {
            (self.code.tokens(text), &[][..])
        } else if reads_source {
            (self.source.tokens(text, &self.document.images, links.as_ref()), &[][..])
        } else {
            (self.tokeniser.tokens(text), &[][..])
        };
        let tokens = change(tokens, self.swallowed, &mut self.changed.tokens);
        let terms = change(terms, self.swallowed, &mut self.changed.terms);
        // Where the main content is asked for, it alone is compared: of the rest the tokens are not even made.
        let main = finds_main.then_some(tokens);
        let lines = if self.signer.policy().reads_lines() { self.document.lines.hashes() } else { &[] };
        let lines = change(lines, self.swallowed, &mut self.changed.lines);
        Page {
            signature: self.signer.sign(Features { tokens, site, main, terms, lines }),
            language: if self.detect_language { language(&self.document.text) } else { None },
            canonical,
        }
    }
}

#[cfg(test)]
mod tests;
