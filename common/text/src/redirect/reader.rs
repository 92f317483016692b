//! Reads a page like a browser with scripts and frames, and collects the signs of a redirect.

use html5gum::{Emitter, Error, State};

use super::RedirectSigns;
use super::open_elements::OpenElements;
use crate::html::attributes::Value;
use crate::html::foreign::Foreign;
use crate::html::short_name::Name;
use crate::html::style::is_hidden_by_style;
use crate::html::syntax::{Syntax, has_raw_text, raw_state};
use crate::xhtml::is_void;

/// Names of the attributes that the reader collects.
const ATTRIBUTES: [&str; 11] = [
    "content",
    "event",
    "for",
    "hidden",
    "href",
    "http-equiv",
    "language",
    "nomodule",
    "src",
    "style",
    "type",
];

/// Values of the [`ATTRIBUTES`] of a tag. If an attribute occurs twice, the first counts.
#[derive(Debug, Default)]
struct Attributes {
    values: [Option<String>; ATTRIBUTES.len()],
    name: Name,
    value: Value,
    is_open: bool,
    /// Whether any value is set. Most tags have no attribute of interest.
    has_values: bool,
}

impl Attributes {
    fn begin(&mut self) {
        self.end();
        (self.is_open, self.name) = (true, Name::default());
        self.value.begin();
    }

    fn end(&mut self) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let known = ATTRIBUTES.iter().position(|known| known.as_bytes() == self.name.get());
        if let Some(at) = known
            && self.values[at].is_none()
        {
            // A value that is too long counts as present and empty.
            self.values[at] = Some(self.value.get().unwrap_or_default().to_owned());
            self.has_values = true;
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let at = ATTRIBUTES.iter().position(|known| *known == name)?;
        self.values[at].as_deref()
    }

    fn clear(&mut self) {
        self.is_open = false;
        if std::mem::take(&mut self.has_values) {
            self.values = Default::default();
        }
    }

    /// Whether the attributes hide the element.
    fn is_hidden(&self) -> bool {
        if !self.has_values {
            return false;
        }
        self.get("hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found"))
            || self.get("style").is_some_and(is_hidden_by_style)
    }

    /// Whether a browser executes a script with these attributes immediately, from its own text (WHATWG HTML,
    /// "prepare the script element").
    fn is_classic_script(&self) -> bool {
        let is_elsewhere =
            ["src", "nomodule", "event", "for"].into_iter().any(|name| self.get(name).is_some());
        let kind = match (self.get("type"), self.get("language")) {
            (Some(kind), _) => kind.trim_ascii().to_ascii_lowercase(),
            (None, Some(language)) if !language.is_empty() => {
                format!("text/{}", language.to_ascii_lowercase())
            }
            (None, _) => String::new(),
        };
        !is_elsewhere && (kind.is_empty() || is_javascript(&kind))
    }
}

/// Whether a media type is a JavaScript MIME type (WHATWG MIME Sniffing).
fn is_javascript(kind: &str) -> bool {
    matches!(
        kind.split_once('/'),
        Some(("text" | "application", "javascript" | "ecmascript" | "x-javascript" | "x-ecmascript"))
            | Some((
                "text",
                "javascript1.0"
                    | "javascript1.1"
                    | "javascript1.2"
                    | "javascript1.3"
                    | "javascript1.4"
                    | "javascript1.5"
                    | "jscript"
                    | "livescript"
            ))
    )
}

/// Emitter that collects the signs of a redirect from the events of the tokenizer.
pub(super) struct Reader<'s, 't> {
    signs: &'s mut RedirectSigns<'t>,
    syntax: Syntax,
    elements: OpenElements,
    foreign: Foreign,
    name: Name,
    last_start: Name,
    is_end: bool,
    is_self_closing: bool,
    attributes: Attributes,
    /// Text of the open script, if the script counts.
    script: Option<Vec<u8>>,
    /// Whether the body has begun, so that a later `frameset` is ignored.
    has_body: bool,
    /// Whether the page consists of frames and shows no text of its own.
    is_frameset: bool,
}

impl<'s, 't> Reader<'s, 't> {
    pub(super) fn new(signs: &'s mut RedirectSigns<'t>, syntax: Syntax) -> Self {
        Self {
            signs,
            syntax,
            elements: OpenElements::new(syntax == Syntax::Xml),
            foreign: Foreign::default(),
            name: Name::default(),
            last_start: Name::default(),
            is_end: false,
            is_self_closing: false,
            attributes: Attributes::default(),
            script: None,
            has_body: false,
            is_frameset: false,
        }
    }

    fn init_tag(&mut self, is_end: bool) {
        (self.name, self.is_end, self.is_self_closing) = (Name::default(), is_end, false);
        self.attributes.clear();
    }

    fn start_tag(&mut self) -> Option<State> {
        let name = self.name;
        self.last_start = name;
        if self.foreign.start(name.get(), self.is_self_closing) {
            if !self.is_self_closing {
                self.elements.start(name, self.attributes.is_hidden());
            }
            return None;
        }
        self.record_sign();
        let is_empty = self.is_self_closing
            && (matches!(name.get(), b"svg" | b"math")
                || self.syntax == Syntax::BrokenXml && has_raw_text(name.get()));
        if is_void(name.get()) || is_empty {
            return None;
        }
        self.elements.start(name, self.attributes.is_hidden());
        // A browser ignores script tags inside a frameset.
        let is_live = self.elements.visibility().is_live && !self.is_frameset;
        if name.get() == b"script" && is_live && self.attributes.is_classic_script() {
            self.script = Some(Vec::new());
        }
        // A browser with scripts and frames reads the content of `noscript`, `iframe` and `noframes` as raw
        // text.
        let is_raw = has_raw_text(name.get());
        raw_state(name.get()).or(is_raw.then_some(State::RawText))
    }

    /// Records the signs in the current start tag.
    fn record_sign(&mut self) {
        let visibility = self.elements.visibility();
        let attributes = &self.attributes;
        match self.name.get() {
            b"frameset" if !self.has_body => self.is_frameset = true,
            b"base" if visibility.is_live => {
                if let Some(link) = attributes.get("href") {
                    self.signs.set_base(link);
                }
            }
            b"meta" if visibility.is_live && !self.is_frameset => {
                let is_refresh =
                    attributes.get("http-equiv").is_some_and(|kind| kind.eq_ignore_ascii_case("refresh"));
                if let Some(content) = attributes.get("content").filter(|_| is_refresh) {
                    self.signs.set_refresh(content);
                }
            }
            b"a" | b"area" if visibility.is_shown && visibility.is_live && !attributes.is_hidden() => {
                if let Some(link) = attributes.get("href") {
                    self.signs.add_link(link);
                }
            }
            b"html" | b"head" | b"title" | b"script" | b"style" | b"link" | b"noscript" | b"template" => {}
            _ => self.has_body = true,
        }
    }

    fn end_tag(&mut self) {
        self.foreign.end(self.name.get());
        self.elements.end(self.name);
        if self.name.get() == b"script"
            && let Some(script) = self.script.take()
        {
            self.signs.take_script(&String::from_utf8_lossy(&script));
        }
    }
}

impl Emitter for Reader<'_, '_> {
    /// Emitted when the page has shown enough words to be content, to stop the tokenizer.
    type Token = ();

    fn emit_string(&mut self, piece: &[u8]) {
        if let Some(script) = &mut self.script {
            script.extend_from_slice(piece);
        } else if self.elements.visibility().is_shown && !self.is_frameset && piece != b"\0" {
            self.has_body |= !piece.trim_ascii().is_empty();
            self.signs.push_shown_text(piece);
        }
    }

    fn init_start_tag(&mut self) {
        self.init_tag(false);
    }

    fn init_end_tag(&mut self) {
        self.init_tag(true);
    }

    fn push_tag_name(&mut self, piece: &[u8]) {
        self.name.push(piece);
    }

    fn set_self_closing(&mut self) {
        self.is_self_closing = true;
    }

    fn init_attribute(&mut self) {
        self.attributes.begin();
    }

    fn push_attribute_name(&mut self, piece: &[u8]) {
        self.attributes.name.push(piece);
    }

    fn push_attribute_value(&mut self, piece: &[u8]) {
        self.attributes.value.push(piece);
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.attributes.end();
        if self.name.get() != b"wbr" {
            self.signs.push_shown_text(b" ");
        }
        let state = if self.is_end {
            self.end_tag();
            None
        } else {
            self.start_tag()
        };
        self.signs.count_if_longer();
        state
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.is_end && self.name == self.last_start
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&mut self) -> bool {
        self.foreign.is_inside() || self.syntax == Syntax::BrokenXml
    }

    fn set_last_start_tag(&mut self, name: Option<&[u8]>) {
        self.last_start = Name::of(name.unwrap_or_default());
    }

    fn pop_token(&mut self) -> Option<()> {
        self.signs.is_content.then_some(())
    }

    #[inline]
    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_error(&mut self, _: Error) {}
    fn emit_eof(&mut self) {}
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
