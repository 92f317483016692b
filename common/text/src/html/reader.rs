//! Fills the [`Document`] from the events of the HTML tokenizer or of the XML reader.
//!
//! Most tags are ordinary elements that only separate words. The reader handles these on a fast path, which
//! must give the same result as the full path (a test in `syntax` compares them).

use std::convert::Infallible;

use html5gum::{Emitter, Error, State};

use super::Document;
use crate::html::foreign::Foreign;
use crate::html::short_name::Name;
use crate::html::syntax::{IgnoredElement, Syntax, has_raw_text, is_ordinary, raw_state};
use crate::main_content::boilerplate;
use crate::redirect::javascript;
use crate::tokens::source;

/// Tag that the tokenizer is reading or has read last.
#[derive(Debug, Default)]
struct Tag {
    name: Name,
    is_end: bool,
    is_self_closing: bool,
    /// Whether the tokenizer has not reached the end of the tag.
    is_open: bool,
}

/// Emitter that fills a document. `LINES` and `SOURCE` turn on the outputs for lines and for source tokens.
pub(super) struct Reader<'a, const LINES: bool, const SOURCE: bool> {
    document: &'a mut Document,
    finds_main: bool,
    tag: Tag,
    last_start: Name,
    foreign: Foreign,
    ignored: IgnoredElement,
    /// Whether the current position is in fallback content, which a browser with scripts and frames reads as
    /// raw text.
    is_in_fallback: bool,
    /// Whether a raw-text element is open.
    is_raw: bool,
    /// Length of the text before the last comment or document type.
    comment_at: Option<usize>,
    /// Number of open templates. A browser does not apply metadata in their content.
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
            ignored: IgnoredElement::None,
            is_in_fallback: false,
            is_raw: false,
            comment_at: None,
            templates: 0,
        }
    }

    fn init_tag(&mut self, is_end: bool) {
        self.tag = Tag { is_end, is_open: true, ..Tag::default() };
        self.document.attributes.clear();
    }

    /// Whether the tag only separates words, like most tags.
    fn is_only_separator(&self) -> bool {
        let reads_all = LINES || SOURCE || self.finds_main;
        !reads_all && self.foreign.is_empty() && is_ordinary(self.tag.name.get())
    }

    fn start_tag(&mut self) -> Option<State> {
        let name = self.tag.name;
        self.last_start = name;
        let (was_foreign, root) = (self.foreign.is_inside(), self.foreign.root());
        if self.foreign.start(name.get(), self.tag.is_self_closing) {
            if self.ignored == IgnoredElement::None && !self.tag.is_self_closing {
                self.ignored = IgnoredElement::of(name.get());
            }
            return None;
        }
        if self.finds_main {
            let Document { main, text, attributes, .. } = &mut *self.document;
            if let Some(root) = root {
                // The tag has ended the foreign content.
                main.end(Name::of(root), text.len());
            }
            // Only foreign elements can be self-closed.
            if !(self.tag.is_self_closing && matches!(name.get(), b"svg" | b"math")) {
                main.start(name, attributes.traits, text.len());
            }
        }
        if SOURCE && name.get() == b"img" {
            let Document { images, text, attributes, .. } = &mut *self.document;
            attributes.target.get().into_iter().for_each(|link| images.push(link, text.len()));
        }
        match name.get() {
            b"meta" | b"link" | b"base" if self.templates == 0 => self.record_metadata(),
            b"template" => self.templates += 1,
            b"noscript" | b"iframe" | b"noembed" | b"noframes" => self.is_in_fallback = true,
            _ => {}
        }
        if self.ignored == IgnoredElement::None || was_foreign {
            // A style or script of foreign content ends together with the foreign content.
            self.ignored = IgnoredElement::of(name.get());
        }
        let state = raw_state(name.get());
        // A browser may end the fallback content earlier than this reader, so what follows may be live there.
        self.document.may_redirect |= self.is_in_fallback && state.is_some();
        state
    }

    fn end_tag(&mut self) {
        let name = self.tag.name;
        let (was_foreign, root) = (self.foreign.is_inside(), self.foreign.root());
        self.foreign.end(name.get());
        if self.finds_main && !(was_foreign && self.foreign.is_inside()) {
            let Document { main, text, .. } = &mut *self.document;
            if let Some(root) = root.filter(|root| *root != name.get()) {
                main.end(Name::of(root), text.len());
            }
            main.end(name, text.len());
        }
        if self.ignored == IgnoredElement::of(name.get()) || was_foreign && !self.foreign.is_inside() {
            self.ignored = IgnoredElement::None;
        }
        match name.get() {
            b"noscript" | b"iframe" | b"noembed" | b"noframes" => self.is_in_fallback = false,
            b"template" => self.templates = self.templates.saturating_sub(1),
            _ => {}
        }
    }

    /// Appends text of the page.
    #[inline]
    fn push_text(&mut self, piece: &[u8]) {
        self.document.text.extend_from_slice(piece);
        if LINES {
            self.document.lines.push(piece);
        }
    }

    /// Handles a piece of text that begins with NUL or belongs to a script or style. Not inlined, so that the
    /// loop of the tokenizer stays small.
    #[inline(never)]
    fn push_other_text(&mut self, piece: &[u8]) {
        match self.ignored {
            // HTML ignores NUL in text, except in foreign content.
            IgnoredElement::None if piece != b"\0" || self.foreign.is_inside() => self.push_text(piece),
            IgnoredElement::Script if !self.document.may_redirect => {
                self.document.may_redirect = javascript::can_set_location(piece);
            }
            _ => {}
        }
    }

    /// Ends a self-closed element that is empty in XML but would contain raw text in HTML. Returns whether
    /// the current tag is such an element.
    fn close_if_self_closed(&mut self) -> bool {
        let is_raw = !self.tag.is_end && !self.foreign.is_inside() && has_raw_text(self.tag.name.get());
        if is_raw {
            if LINES {
                self.document.lines.end(self.tag.name.get());
            }
            self.end_tag();
            self.is_raw = false;
        }
        is_raw
    }

    /// Records the metadata of a meta, link or base tag.
    fn record_metadata(&mut self) {
        let attributes = &self.document.attributes;
        let kind = || attributes.kind.get().unwrap_or_default();
        let is_canonical = || kind().split_ascii_whitespace().any(|k| k.eq_ignore_ascii_case("canonical"));
        let target_field = match self.tag.name.get() {
            b"base" => &mut self.document.base,
            b"link" if is_canonical() => &mut self.document.canonical,
            b"meta" if kind().eq_ignore_ascii_case("refresh") => {
                self.document.may_redirect |= attributes.target.get().is_some();
                return;
            }
            _ => return,
        };
        // The first base and the first canonical link count.
        if target_field.is_none() {
            *target_field = attributes.target.get().map(str::to_owned);
        }
    }
}

impl<const LINES: bool, const SOURCE: bool> Emitter for Reader<'_, LINES, SOURCE> {
    type Token = Infallible;

    fn emit_string(&mut self, piece: &[u8]) {
        if self.ignored == IgnoredElement::None && piece.first() != Some(&0) {
            self.push_text(piece);
        } else {
            self.push_other_text(piece);
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
        self.tag.is_self_closing = true;
    }

    fn init_attribute(&mut self) {
        if self.is_only_separator() {
            return;
        }
        let tag = self.tag.name.get();
        self.document.attributes.end(tag);
        let is_read =
            self.finds_main || matches!(tag, b"meta" | b"link" | b"base") || SOURCE && tag == b"img";
        if !self.tag.is_end && is_read {
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
            // Most values are links, which this reader does not need.
            let is_read = attributes.value.has_begun()
                || boilerplate::is_read(attributes.name.get())
                || matches!(self.tag.name.get(), b"meta" | b"link" | b"base")
                || SOURCE && self.tag.name.get() == b"img";
            attributes.value.push(if is_read { piece } else { b"" });
        }
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        if self.is_only_separator() {
            if self.ignored == IgnoredElement::None {
                self.document.text.push(b' ');
            }
            if !self.tag.is_end {
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
        if self.ignored == IgnoredElement::None && !is_inside_word() {
            self.document.text.push(b' ');
        }
        if LINES {
            let lines = &mut self.document.lines;
            if self.tag.is_end { lines.end(self.tag.name.get()) } else { lines.start(self.tag.name.get()) }
        }
        self.tag.is_open = false;
        let state = if self.tag.is_end {
            self.end_tag();
            None
        } else {
            self.start_tag()
        };
        self.is_raw = matches!(state, Some(State::RcData | State::RawText | State::ScriptData));
        if self.tag.is_self_closing
            && self.document.syntax == Syntax::BrokenXml
            && self.close_if_self_closed()
        {
            return None;
        }
        state
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.tag.is_end && self.tag.name == self.last_start
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign.is_inside() || self.document.syntax == Syntax::BrokenXml
    }

    fn emit_eof(&mut self) {
        let ends_with_comment = self.comment_at == Some(self.document.text.len());
        if self.tag.is_open || self.is_raw || self.ignored != IgnoredElement::None || ends_with_comment {
            // A sign only: `swallowed_text` finds the real position.
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

    // Comments and document types are not text.
    fn init_comment(&mut self) {
        self.comment_at = Some(self.document.text.len());
        self.document.may_redirect |= self.is_in_fallback;
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
