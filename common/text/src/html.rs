//! HTML to text, by the WHATWG tokenizer and without a tree.
//!
//! A page is read as by a browser without scripts and frames: `frameset`, `frame`, `iframe` and `noframes` have no
//! meaning of their own, and their content is ordinary markup.
//!
//! Besides the text, [`Document`] records what the page says about itself: `<base>`, the canonical link and, for small
//! pages, the signs of a redirect in the content; and, where it is asked for, which text is the main content. No HTML tokens are built:
//! text, names and the few attributes of interest go to buffers that are reused. Lines are made only where they are asked for: whether
//! they are is known to the compiler, so that other readers have no work for them; so it is with what the tokens of a source are made of.

use std::convert::Infallible;

use html5gum::{Emitter, Error, State, Tokenizer};

use super::attributes::Attributes;
use super::boilerplate;
use super::foreign::Foreign;
use super::lines::Lines;
use super::main_content::MainContent;
use super::name::Name;
use super::refresh;
use super::source::{self, Images};
use doppel_model::PageUrl;

/// What was read from a page. The buffers are reused for the next page.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The text in UTF-8, with a space for every tag but `wbr`.
    pub(super) text: Vec<u8>,
    /// Its lines, where they were asked for.
    pub(super) lines: Lines,
    base: Option<String>,
    canonical: Option<String>,
    /// The target of the first valid meta refresh of at most 10 s, not yet resolved. Small pages only.
    pub(super) refresh: Option<String>,
    /// The text of all scripts. Small pages only.
    pub(super) script: Vec<u8>,
    /// Whether there is a letter, a digit, a form or an embedded document outside of title and noscript. Small
    /// pages only.
    pub(super) has_body: bool,
    /// Which text is the main content. Only where it is asked for.
    pub(super) main: MainContent,
    /// Its images, where the tokens of a source are asked for. Then formatting is no space in the text.
    pub(super) images: Images,
    attributes: Attributes,
}

/// What is to be found beside the text.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Wanted {
    /// The main content.
    pub(super) main: bool,
    /// Lines.
    pub(super) lines: bool,
    /// What the tokens of a source are made of. Nobody asks for these and for lines.
    pub(super) source: bool,
}

impl Document {
    /// Reads `html` in place of the previous page. `small` pages may be redirects.
    pub(super) fn read(&mut self, html: &str, small: bool, wanted: Wanted) {
        if wanted.lines {
            self.lines.clear();
            self.read_as::<true, false>(html, small, wanted.main);
        } else if wanted.source {
            self.read_as::<false, true>(html, small, wanted.main);
        } else {
            self.read_as::<false, false>(html, small, wanted.main);
        }
    }

    fn read_as<const LINES: bool, const SOURCE: bool>(&mut self, html: &str, small: bool, finds_main: bool) {
        self.text.clear();
        self.base = None;
        self.canonical = None;
        self.refresh = None;
        self.script.clear();
        self.has_body = false;
        self.main.clear();
        self.images.clear();
        let reader = Reader::<LINES, SOURCE> {
            document: self,
            small,
            finds_main,
            tag: Tag::default(),
            last_start: Name::default(),
            foreign: Foreign::default(),
            dropped: Dropped::Nothing,
            aside: false,
            templates: 0,
        };
        let Ok(()) = Tokenizer::new_with_emitter(html, reader).finish();
        if finds_main {
            self.main.finish();
        }
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

/// The tag being read.
#[derive(Debug, Default)]
struct Tag {
    name: Name,
    end: bool,
    self_closing: bool,
}

/// The element whose text is being dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dropped {
    Nothing,
    Script,
    Style,
}

impl Dropped {
    fn by(name: &[u8]) -> Self {
        match name {
            b"script" => Self::Script,
            b"style" => Self::Style,
            _ => Self::Nothing,
        }
    }
}

/// Receives what the tokenizer finds, with lines or without, and with what a source reads or without.
struct Reader<'a, const LINES: bool, const SOURCE: bool> {
    document: &'a mut Document,
    small: bool,
    finds_main: bool,
    tag: Tag,
    last_start: Name,
    foreign: Foreign,
    dropped: Dropped,
    /// Whether the current place is in title or noscript.
    aside: bool,
    /// The number of templates around the current place. Their content is not part of the page yet.
    templates: u32,
}

impl<const LINES: bool, const SOURCE: bool> Reader<'_, LINES, SOURCE> {
    fn init_tag(&mut self, end: bool) {
        self.tag = Tag { end, ..Tag::default() };
        self.document.attributes.clear();
    }

    fn start_tag(&mut self) -> Option<State> {
        let name = self.tag.name;
        self.last_start = name;
        let (was_foreign, root) = (self.foreign.inside(), self.foreign.root());
        if self.foreign.start(name.get(), self.tag.self_closing) {
            if self.dropped == Dropped::Nothing && !self.tag.self_closing {
                self.dropped = Dropped::by(name.get());
            }
            return None;
        }
        if self.finds_main {
            let Document { main, text, attributes, .. } = &mut *self.document;
            if let Some(root) = root {
                // The tag has ended it.
                main.end(Name::of(root), text.len());
            }
            // Of HTML, no element ends with its start tag.
            if !(self.tag.self_closing && matches!(name.get(), b"svg" | b"math")) {
                main.start(name, attributes.marks, text.len());
            }
        }
        if SOURCE && name.get() == b"img" {
            let Document { images, text, attributes, .. } = &mut *self.document;
            attributes.target.get().into_iter().for_each(|link| images.push(link, text.len()));
        }
        match name.get() {
            b"meta" | b"link" | b"base" if self.templates == 0 => self.note(),
            b"template" => self.templates += 1,
            b"title" | b"noscript" => self.aside = true,
            b"iframe" | b"frame" | b"object" | b"embed" | b"form" => self.document.has_body |= !self.aside,
            _ => {}
        }
        if self.dropped == Dropped::Nothing || was_foreign {
            // A style or script in foreign content ends with the foreign content.
            self.dropped = Dropped::by(name.get());
        }
        match name.get() {
            b"title" | b"textarea" => Some(State::RcData),
            // `iframe` and `noframes` are not raw text here: a browser without frames reads their content as markup.
            b"style" | b"xmp" | b"noembed" => Some(State::RawText),
            b"script" => Some(State::ScriptData),
            b"plaintext" => Some(State::PlainText),
            _ => None,
        }
    }

    fn end_tag(&mut self) {
        let name = self.tag.name;
        let (was_foreign, root) = (self.foreign.inside(), self.foreign.root());
        self.foreign.end(name.get());
        if self.finds_main && !(was_foreign && self.foreign.inside()) {
            let Document { main, text, .. } = &mut *self.document;
            if let Some(root) = root.filter(|root| *root != name.get()) {
                main.end(Name::of(root), text.len());
            }
            main.end(name, text.len());
        }
        if self.dropped == Dropped::by(name.get()) || was_foreign && !self.foreign.inside() {
            self.dropped = Dropped::Nothing;
        }
        match name.get() {
            b"title" | b"noscript" => self.aside = false,
            b"template" => self.templates = self.templates.saturating_sub(1),
            _ => {}
        }
    }

    /// Evaluates a meta, link or base tag.
    fn note(&mut self) {
        let Some(target) = self.document.attributes.target.get() else { return };
        let kind = self.document.attributes.kind.get().unwrap_or_default();
        let is_canonical = || kind.split_ascii_whitespace().any(|k| k.eq_ignore_ascii_case("canonical"));
        let (noted, target) = match self.tag.name.get() {
            b"base" => (&mut self.document.base, Some(target)),
            b"link" if is_canonical() => (&mut self.document.canonical, Some(target)),
            b"meta" if self.small && kind.eq_ignore_ascii_case("refresh") => {
                (&mut self.document.refresh, refresh::target(target))
            }
            _ => return,
        };
        // The first of each counts.
        if noted.is_none() {
            *noted = target.map(str::to_owned);
        }
    }
}

impl<const LINES: bool, const SOURCE: bool> Emitter for Reader<'_, LINES, SOURCE> {
    type Token = Infallible;

    fn emit_string(&mut self, piece: &[u8]) {
        match self.dropped {
            // A NUL in the text of HTML elements is ignored.
            Dropped::Nothing if piece == b"\0" && !self.foreign.inside() => {}
            Dropped::Nothing => {
                self.document.text.extend_from_slice(piece);
                if LINES {
                    self.document.lines.push(piece);
                }
                if self.small && !self.aside && !self.document.has_body {
                    self.document.has_body = piece.iter().any(|b| b.is_ascii_alphanumeric() || !b.is_ascii());
                }
            }
            Dropped::Script if self.small => self.document.script.extend_from_slice(piece),
            _ => {}
        }
    }

    fn init_start_tag(&mut self) {
        self.init_tag(false);
    }

    fn init_end_tag(&mut self) {
        self.init_tag(true);
    }

    fn push_tag_name(&mut self, piece: &[u8]) {
        self.tag.name.push(piece);
    }

    fn set_self_closing(&mut self) {
        self.tag.self_closing = true;
    }

    fn init_attribute(&mut self) {
        let tag = self.tag.name.get();
        self.document.attributes.end(tag);
        let is_read =
            self.finds_main || matches!(tag, b"meta" | b"link" | b"base") || SOURCE && tag == b"img";
        if !self.tag.end && is_read {
            self.document.attributes.begin();
        }
    }

    fn push_attribute_name(&mut self, piece: &[u8]) {
        if self.document.attributes.open {
            self.document.attributes.name.push(piece);
        }
    }

    fn push_attribute_value(&mut self, piece: &[u8]) {
        let attributes = &mut self.document.attributes;
        if attributes.open {
            // Most values are links, which are of no interest here.
            let is_read = attributes.value.has_begun()
                || boilerplate::is_read(attributes.name.get())
                || matches!(self.tag.name.get(), b"meta" | b"link" | b"base")
                || SOURCE && self.tag.name.get() == b"img";
            attributes.value.push(if is_read { piece } else { b"" });
        }
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.document.attributes.end(self.tag.name.get());
        let is_inside_word = || {
            let name = self.tag.name.get();
            name == b"wbr" || SOURCE && source::is_formatting(name)
        };
        if self.dropped == Dropped::Nothing && !is_inside_word() {
            self.document.text.push(b' ');
        }
        if LINES {
            let lines = &mut self.document.lines;
            if self.tag.end { lines.end(self.tag.name.get()) } else { lines.start(self.tag.name.get()) }
        }
        if self.tag.end {
            self.end_tag();
            None
        } else {
            self.start_tag()
        }
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.tag.end && self.tag.name == self.last_start
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign.inside()
    }

    fn emit_eof(&mut self) {}

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.last_start = Name::default();
        self.last_start.push(name.unwrap_or_default());
    }

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_error(&mut self, _: Error) {}

    #[inline]
    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    // Comments and document types are dropped.
    fn init_comment(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn emit_current_comment(&mut self) {}
    fn init_doctype(&mut self) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn set_force_quirks(&mut self) {}
    fn emit_current_doctype(&mut self) {}
}
