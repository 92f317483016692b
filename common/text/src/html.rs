//! HTML to text, by the WHATWG tokenizer and without a tree.
//!
//! A page is read as by a browser without scripts and frames: `frameset`, `frame`, `iframe` and `noframes` have no
//! meaning of their own, and their content is ordinary markup. XHTML comes to the same reader by way of [`xhtml`].
//!
//! Besides the text, [`Document`] records what the page says about itself: `<base>` and the canonical link; and, where it is asked for,
//! which text is the main content. It records signs of a redirect and of swallowed text, too, for those who look closer. No HTML tokens
//! are built: text, names and the few attributes of interest go to buffers that are reused. Lines are made only where they are asked for: whether
//! they are is known to the compiler, so that other readers have no work for them; so it is with what the tokens of a source are made of.

mod reader;

use html5gum::Tokenizer;

use super::attributes::Attributes;
use super::lines::Lines;
use super::main_content::MainContent;
use super::source::Images;
use super::syntax::{Syntax, ReadOptions};
use super::{swallowed_text, xhtml};
use doppel_model::PageUrl;
use reader::Reader;

/// What was read from a page. The buffers are reused for the next page.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The text in UTF-8, with a space for every tag but `wbr`.
    pub(super) text: Vec<u8>,
    /// Its lines, where they were asked for.
    pub(super) lines: Lines,
    base: Option<String>,
    canonical: Option<String>,
    /// Whether there is a refresh or a script that may set the location, so that the page may be a redirect.
    pub(super) may_redirect: bool,
    /// Where in the source the text begins that an open element, comment or tag swallows at its end.
    pub(super) swallowed_at: Option<usize>,
    /// The syntax by which the page was read.
    pub(super) syntax: Syntax,
    /// Which text is the main content. Only where it is asked for.
    pub(super) main: MainContent,
    /// Its images, where the tokens of a source are asked for. Then formatting is no space in the text.
    pub(super) images: Images,
    attributes: Attributes,
}

impl Document {
    /// Reads `text` in place of the previous page.
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

    /// Against what links on this page are resolved: `<base>` if it has a valid one.
    pub(super) fn base(&self, url: &PageUrl) -> PageUrl {
        self.base.as_deref().and_then(|base| url.join(base).ok()).unwrap_or_else(|| url.clone())
    }

    /// Resolves a link on this page.
    pub(super) fn resolve(&self, url: &PageUrl, link: &str) -> Option<PageUrl> {
        self.base(url).join(link).ok()
    }

    /// The canonical URL that the page names.
    pub(super) fn canonical(&self, url: &PageUrl) -> Option<PageUrl> {
        self.resolve(url, self.canonical.as_deref()?)
    }
}
