//! Extracts the text of HTML with the WHATWG tokenizer, without building a tree.
//!
//! A page is read like by a browser without scripts and frames: `frameset`, `frame`, `iframe` and `noframes`
//! have no meaning of their own, and their content is ordinary markup. For XHTML, [`xhtml`] calls the same
//! reader.
//!
//! Besides the text, [`Document`] records `<base>`, the canonical link and, on request, lines, images and the
//! regions of the main content. It also records whether the page may be a redirect and whether it may have
//! swallowed text. These signs are cheap and may be wrong: `redirect` and `swallowed_text` read such a page
//! again and decide.
//!
//! For speed, no HTML tokens are built. Text, names and the few attributes of interest go into buffers that
//! are reused. Whether lines and source tokens are requested is a const parameter, so that other readers do
//! no work for them.

pub(crate) mod attributes;
pub(crate) mod foreign;
mod reader;
pub(crate) mod short_name;
pub(crate) mod style;
pub(crate) mod swallowed_text;
pub(crate) mod syntax;

use html5gum::Tokenizer;

use crate::lines::Lines;
use crate::main_content::MainContent;
use crate::tokens::source::Images;
use crate::xhtml;
use attributes::Attributes;
use doppel_model::PageUrl;
use reader::Reader;
use syntax::{ReadOptions, Syntax};

/// Text and metadata of a page. The buffers are reused for the next page.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Text in UTF-8, with a space for every tag except `wbr`. For source tokens, formatting tags leave no
    /// space either.
    pub(super) text: Vec<u8>,
    /// Lines of the page, if they were requested.
    pub(super) lines: Lines,
    base: Option<String>,
    canonical: Option<String>,
    /// Whether the page may be a redirect, because it contains a refresh or a script that may set the
    /// location.
    pub(super) may_redirect: bool,
    /// Position in the source where the swallowed text begins (see [`swallowed_text`]).
    pub(super) swallowed_at: Option<usize>,
    /// Syntax by which the page was read.
    pub(super) syntax: Syntax,
    /// Regions of the main content, if they were requested.
    pub(super) main: MainContent,
    /// Images of the page, if source tokens were requested.
    pub(super) images: Images,
    attributes: Attributes,
}

impl Document {
    /// Replaces the previous page with the page whose source is `text`.
    pub(super) fn read(&mut self, text: &str, syntax: Syntax, options: ReadOptions) {
        if options.lines {
            self.read_as::<true, false>(text, syntax, options.main);
        } else if options.source {
            self.read_as::<false, true>(text, syntax, options.main);
        } else {
            self.read_as::<false, false>(text, syntax, options.main);
        }
    }

    fn read_as<const LINES: bool, const SOURCE: bool>(
        &mut self,
        text: &str,
        syntax: Syntax,
        finds_main: bool,
    ) {
        self.clear(syntax);
        if syntax == Syntax::Xml {
            let mut reader = Reader::<LINES, SOURCE>::new(self, finds_main);
            if xhtml::read(text, &mut reader).is_err() {
                self.clear(Syntax::BrokenXml);
            }
        }
        if self.syntax != Syntax::Xml {
            let reader = Reader::<LINES, SOURCE>::new(self, finds_main);
            let Ok(()) = Tokenizer::new_with_emitter(text, reader).finish();
        }
        if finds_main {
            self.main.finish();
        }
        if self.swallowed_at.is_some() {
            self.swallowed_at = swallowed_text::begins_at(text, self.syntax);
        }
    }

    fn clear(&mut self, syntax: Syntax) {
        self.syntax = syntax;
        self.text.clear();
        self.lines.clear();
        self.base = None;
        self.canonical = None;
        self.may_redirect = false;
        self.swallowed_at = None;
        self.main.clear();
        self.images.clear();
    }

    /// Returns the base URL of links: the `<base>` of the page if it is valid, otherwise `url`.
    pub(super) fn base(&self, url: &PageUrl) -> PageUrl {
        self.base.as_deref().and_then(|base| url.join(base).ok()).unwrap_or_else(|| url.clone())
    }

    /// Resolves a link on the page, or returns `None` if it is no page URL.
    pub(super) fn resolve(&self, url: &PageUrl, link: &str) -> Option<PageUrl> {
        self.base(url).join(link).ok()
    }

    /// Returns the resolved canonical URL, if the page names a valid one.
    pub(super) fn canonical(&self, url: &PageUrl) -> Option<PageUrl> {
        self.resolve(url, self.canonical.as_deref()?)
    }
}
