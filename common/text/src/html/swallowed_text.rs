//! Finds the *swallowed text* of a page. A raw-text element, comment, document type or tag may still be open
//! at the end of the page. It swallows all text after its beginning.
//!
//! A browser does not show swallowed text, so it is not part of the text of the page. Pages with different
//! swallowed text must not count as copies of each other. This module therefore finds where it begins, and
//! the extractor salts the hashes of the page with its words. Few pages end like this, and only these are
//! read a second time, with positions.

use std::convert::Infallible;

use html5gum::{Emitter, Error, State, Tokenizer};

use super::foreign::Foreign;
use super::syntax::{Syntax, has_raw_text, raw_state};
use crate::html::short_name::Name;

/// Maximum number of words in swallowed text that is ignored. Only longer swallowed text distinguishes pages.
pub(crate) const WORDS_MAX: usize = 20;

/// Returns the position in an HTML page where its swallowed text begins: the text inside a raw-text element,
/// comment, document type or tag that is still open at the end of the page. `None` if nothing of this kind is
/// open there.
pub(crate) fn begins_at(text: &str, syntax: Syntax) -> Option<usize> {
    let mut at = None;
    let finder = SwallowedTextFinder {
        text: text.as_bytes(),
        result: &mut at,
        is_broken_xml: syntax == Syntax::BrokenXml,
        position: 0,
        name: Name::default(),
        is_end: false,
        is_self_closing: false,
        last_start: Name::default(),
        foreign: Foreign::default(),
        ignored_at: None,
        open_at: None,
        ended_early: false,
    };
    let Ok(()) = Tokenizer::new_with_emitter(text, finder).finish();
    at.filter(|at| text.is_char_boundary(*at))
}

/// Emitter that remembers where open markup begins, and stores the position at the end of the page.
struct SwallowedTextFinder<'t> {
    text: &'t [u8],
    result: &'t mut Option<usize>,
    is_broken_xml: bool,
    position: usize,
    name: Name,
    is_end: bool,
    is_self_closing: bool,
    last_start: Name,
    foreign: Foreign,
    /// Open script or style of SVG or MathML, and the position where its content begins.
    ignored_at: Option<(Name, usize)>,
    /// Position where the content of the open raw-text element, or the open comment or tag begins.
    open_at: Option<usize>,
    /// Whether the page ended inside the last comment or document type.
    ended_early: bool,
}

impl SwallowedTextFinder<'_> {
    /// Marks the current tag, comment or document type as open.
    fn open(&mut self) {
        // If a raw-text element is open, its position stays: the tag can only be its end tag, or text.
        let read = self.text.get(..self.position).unwrap_or(self.text);
        let at = memchr::memrchr(b'<', read).unwrap_or(read.len());
        self.open_at.get_or_insert(at);
    }

    fn open_tag(&mut self, is_end: bool) {
        (self.name, self.is_end, self.is_self_closing) = (Name::default(), is_end, false);
        if !is_end || !self.is_in_raw_text() {
            self.open();
        }
    }

    /// Whether a raw-text element is open.
    fn is_in_raw_text(&self) -> bool {
        !self.foreign.is_inside() && raw_state(self.last_start.get()).is_some() && self.open_at.is_some()
    }

    /// Ends a comment or document type. It stays open if the page ended inside it.
    fn close_declaration(&mut self) {
        let is_closed = self.position > 0 && self.text.get(self.position - 1) == Some(&b'>');
        if is_closed && !self.ended_early {
            self.open_at = None;
        }
        self.ended_early = false;
    }
}

impl Emitter for SwallowedTextFinder<'_> {
    type Token = Infallible;

    fn move_position(&mut self, offset: isize) {
        self.position = self.position.saturating_add_signed(offset);
    }

    fn emit_eof(&mut self) {
        *self.result = self.open_at.or(self.ignored_at.map(|(_, at)| at));
    }

    fn emit_error(&mut self, error: Error) {
        self.ended_early |= matches!(error, Error::EofInComment | Error::EofInDoctype);
    }

    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }

    fn emit_string(&mut self, _: &[u8]) {}

    fn init_start_tag(&mut self) {
        self.open_tag(false);
    }

    fn init_end_tag(&mut self) {
        self.open_tag(true);
    }

    fn push_tag_name(&mut self, piece: &[u8]) {
        self.name.push(piece);
    }

    fn set_self_closing(&mut self) {
        self.is_self_closing = true;
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.open_at = None;
        let name = self.name;
        let was_foreign = self.foreign.is_inside();
        if self.is_end {
            self.foreign.end(name.get());
            if self.ignored_at.is_some_and(|(ignored, _)| ignored == name) || !self.foreign.is_inside() {
                self.ignored_at = None;
            }
            return None;
        }
        self.last_start = name;
        if self.foreign.start(name.get(), self.is_self_closing) {
            if matches!(name.get(), b"script" | b"style") && !self.is_self_closing {
                self.ignored_at.get_or_insert((name, self.position));
            }
            return None;
        }
        if was_foreign {
            self.ignored_at = None;
        }
        if self.is_broken_xml && self.is_self_closing && has_raw_text(name.get()) {
            return None;
        }
        let state = raw_state(name.get())?;
        if state != State::PlainText {
            self.open_at = Some(self.position);
        }
        Some(state)
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.is_end && self.name == self.last_start
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign.is_inside() || self.is_broken_xml
    }

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.last_start = Name::of(name.unwrap_or_default());
    }

    fn init_comment(&mut self) {
        self.open();
    }

    fn emit_current_comment(&mut self) {
        self.close_declaration();
    }

    fn init_doctype(&mut self) {
        self.open();
    }

    fn emit_current_doctype(&mut self) {
        self.close_declaration();
    }

    fn push_comment(&mut self, _: &[u8]) {}
    fn init_attribute(&mut self) {}
    fn push_attribute_name(&mut self, _: &[u8]) {}
    fn push_attribute_value(&mut self, _: &[u8]) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn set_force_quirks(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_markup_at_the_end_of_a_page_swallows_text() {
        for (html, swallowed) in [
            ("<p>a<script>b c", Some("b c")),
            ("<p>a<script src=x/>b</p>c", Some("b</p>c")),
            ("<style>a</p>b", Some("a</p>b")),
            ("<style>a</styles>b", Some("a</styles>b")),
            ("<title>a</b><p>c", Some("a</b><p>c")),
            ("<textarea>a", Some("a")),
            ("<xmp>a", Some("a")),
            ("<script><!--<script>a</script>b", Some("<!--<script>a</script>b")),
            ("<svg><style>a<g>b", Some("a<g>b")),
            ("a<!-- b <p>c</p>", Some(" b <p>c</p>")),
            ("<script>a</script>b<!--c", Some("c")),
            ("a<!b c", Some("b c")),
            ("a<?b c", Some("b c")),
            ("<!doctype html b", Some("doctype html b")),
            ("a<p title=\"b>c</p>d", Some("p title=\"b>c</p>d")),
            ("a</p b", Some("p b")),
            ("<script>a</script", Some("a</script")),
            ("<script>a</script x", Some("a</script x")),
            ("<script>a</script>b", None),
            ("<svg><style>a</style>b", None),
            ("<svg><style>a</svg>b", None),
            ("<svg><style>a<p>b", None),
            ("<svg><script/>b", None),
            ("<plaintext>a", None),
            ("<noscript>a<iframe>b<noframes>c", None),
            ("a<!-- b -->", None),
            ("a<!-- b --!>", None),
            ("a<!-->", None),
            ("a<!b>", None),
            ("<!doctype html>", None),
            ("a<b", Some("b")),
            ("a", None),
            ("", None),
        ] {
            let found = begins_at(html, Syntax::Html)
                .map(|at| html[at..].trim_start_matches(['<', '/', '!', '-', '?']));
            let expected = swallowed.map(|text| text.trim_start_matches(['<', '/', '!', '-', '?']));
            assert_eq!(found, expected, "{html}");
        }
    }
}
