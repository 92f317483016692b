//! Receives what the tokenizer of HTML or the reader of XML finds, and fills the [`Document`].

use std::convert::Infallible;

use html5gum::{Emitter, Error, State};

use super::Document;
use crate::boilerplate;
use crate::foreign::Foreign;
use crate::javascript;
use crate::short_name::Name;
use crate::source;
use crate::syntax::{Dropped, Syntax, holds_raw_text, is_ordinary, raw_state};

/// The tag being read.
#[derive(Debug, Default)]
struct Tag {
    name: Name,
    end: bool,
    self_closing: bool,
    /// Whether its end has not been read.
    is_open: bool,
}

/// Receives what the tokenizer finds, with lines or without, and with what a source reads or without.
pub(super) struct Reader<'a, const LINES: bool, const SOURCE: bool> {
    document: &'a mut Document,
    finds_main: bool,
    tag: Tag,
    last_start: Name,
    foreign: Foreign,
    dropped: Dropped,
    /// Whether the current place is in an element whose content a browser with scripts reads as raw text.
    is_aside: bool,
    /// Whether an element is open that contains no tags.
    is_raw: bool,
    /// The length of the text at the last comment or document type.
    comment_at: Option<usize>,
    /// The number of templates around the current place. Their content is not part of the page yet.
    templates: u32,
}

impl<'a, const LINES: bool, const SOURCE: bool> Reader<'a, LINES, SOURCE> {
    pub(super) fn new(document: &'a mut Document, finds_main: bool) -> Self {
        Self {
            document,
            finds_main,
            tag: Tag::default(),
            last_start: Name::default(),
            foreign: Foreign::default(),
            dropped: Dropped::Nothing,
            is_aside: false,
            is_raw: false,
            comment_at: None,
            templates: 0,
        }
    }

    fn init_tag(&mut self, end: bool) {
        self.tag = Tag { end, is_open: true, ..Tag::default() };
        self.document.attributes.clear();
    }

    /// Whether the tag only separates words, as most tags do.
    fn only_separates(&self) -> bool {
        let reads_all = LINES || SOURCE || self.finds_main;
        !reads_all && self.foreign.is_empty() && is_ordinary(self.tag.name.get())
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
                main.start(name, attributes.traits, text.len());
            }
        }
        if SOURCE && name.get() == b"img" {
            let Document { images, text, attributes, .. } = &mut *self.document;
            attributes.target.get().into_iter().for_each(|link| images.push(link, text.len()));
        }
        match name.get() {
            b"meta" | b"link" | b"base" if self.templates == 0 => self.note(),
            b"template" => self.templates += 1,
            b"noscript" | b"iframe" | b"noembed" | b"noframes" => self.is_aside = true,
            _ => {}
        }
        if self.dropped == Dropped::Nothing || was_foreign {
            // A style or script in foreign content ends with the foreign content.
            self.dropped = Dropped::by(name.get());
        }
        let state = raw_state(name.get());
        // What ends there for this reader may have ended before for a browser.
        self.document.may_redirect |= self.is_aside && state.is_some();
        state
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
            b"noscript" | b"iframe" | b"noembed" | b"noframes" => self.is_aside = false,
            b"template" => self.templates = self.templates.saturating_sub(1),
            _ => {}
        }
    }

    /// Takes text of the page.
    #[inline]
    fn show(&mut self, piece: &[u8]) {
        self.document.text.extend_from_slice(piece);
        if LINES {
            self.document.lines.push(piece);
        }
    }

    /// Takes a piece that begins with NUL, or one of a script or a style. It is not inlined, so that the loop of the tokenizer stays small.
    #[inline(never)]
    fn take_other(&mut self, piece: &[u8]) {
        match self.dropped {
            // A NUL in the text of HTML elements is ignored.
            Dropped::Nothing if piece != b"\0" || self.foreign.inside() => self.show(piece),
            Dropped::Script if !self.document.may_redirect => {
                self.document.may_redirect = javascript::may_set_location(piece);
            }
            _ => {}
        }
    }

    /// Ends an element that is empty in XML and would hold raw text in HTML. Returns whether the element is one.
    fn closes_itself(&mut self) -> bool {
        let is_raw = !self.tag.end && !self.foreign.inside() && holds_raw_text(self.tag.name.get());
        if is_raw {
            if LINES {
                self.document.lines.end(self.tag.name.get());
            }
            self.end_tag();
            self.is_raw = false;
        }
        is_raw
    }

    /// Evaluates a meta, link or base tag.
    fn note(&mut self) {
        let attributes = &self.document.attributes;
        let kind = || attributes.kind.get().unwrap_or_default();
        let is_canonical = || kind().split_ascii_whitespace().any(|k| k.eq_ignore_ascii_case("canonical"));
        let noted = match self.tag.name.get() {
            b"base" => &mut self.document.base,
            b"link" if is_canonical() => &mut self.document.canonical,
            b"meta" if kind().eq_ignore_ascii_case("refresh") => {
                self.document.may_redirect |= attributes.target.get().is_some();
                return;
            }
            _ => return,
        };
        // The first of each counts.
        if noted.is_none() {
            *noted = attributes.target.get().map(str::to_owned);
        }
    }
}

impl<const LINES: bool, const SOURCE: bool> Emitter for Reader<'_, LINES, SOURCE> {
    type Token = Infallible;

    fn emit_string(&mut self, piece: &[u8]) {
        if self.dropped == Dropped::Nothing && piece.first() != Some(&0) {
            self.show(piece);
        } else {
            self.take_other(piece);
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
        if self.only_separates() {
            return;
        }
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
        if self.only_separates() {
            if self.dropped == Dropped::Nothing {
                self.document.text.push(b' ');
            }
            if !self.tag.end {
                self.last_start = self.tag.name;
            }
            self.tag.is_open = false;
            self.is_raw = false;
            return None;
        }
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
        self.tag.is_open = false;
        let state = if self.tag.end {
            self.end_tag();
            None
        } else {
            self.start_tag()
        };
        self.is_raw = matches!(state, Some(State::RcData | State::RawText | State::ScriptData));
        if self.tag.self_closing && self.document.syntax == Syntax::BrokenXml && self.closes_itself() {
            return None;
        }
        state
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.tag.end && self.tag.name == self.last_start
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign.inside() || self.document.syntax == Syntax::BrokenXml
    }

    fn emit_eof(&mut self) {
        let ends_with_comment = self.comment_at == Some(self.document.text.len());
        if self.tag.is_open || self.is_raw || self.dropped != Dropped::Nothing || ends_with_comment {
            // Where it begins is found by whoever looks closer.
            self.document.swallowed_at = Some(0);
        }
    }

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
    fn init_comment(&mut self) {
        self.comment_at = Some(self.document.text.len());
        self.document.may_redirect |= self.is_aside;
    }
    fn push_comment(&mut self, _: &[u8]) {}
    fn emit_current_comment(&mut self) {}
    fn init_doctype(&mut self) {
        self.comment_at = Some(self.document.text.len());
    }
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn set_force_quirks(&mut self) {}
    fn emit_current_doctype(&mut self) {}
}
